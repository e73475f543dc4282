/*
 * The numeric kernels as tables of functions, one table per group of
 * instructions.  The scalar group is the specification, dllm-numbers(7) in C;
 * every other group gives its bits for every shape, and tests compare with
 * memcmp.
 *
 * Layout and kernel are one choice: a group says how many tokens it interleaves
 * (lanes) and packs the activations itself.  A lane is always one output, and
 * sums of floats never run across lanes.
 *
 * The life of a matrix product: the activations of all tokens are packed once
 * per input (q, k and v share one, gate and up another); a tile of weight rows
 * is expanded into cache once and multiplied with all tokens.
 *
 * All sizes are in elements, all matrices row-major.  Nothing here allocates,
 * fails or looks at the environment.  A kernel that finds a number it must not
 * work with says at which row.
 */
#ifndef KERN_H
#define KERN_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "ggml_type.h"

enum {
	KERN_BLOCK = 32,     /* activations that share a scale */
	KERN_FLOAT_LANES = 16, /* tokens side by side in struct xfloat */
	KERN_KEY_LANES = 16, /* keys side by side in a key panel */
	KERN_QUERIES = 8,    /* most queries of one call of attention */
	KERN_SUMS = 16,      /* partial sums of a reduction along a row */
	KERN_TILE_ROWS = 64  /* most weight rows of a struct wtile */
};

/*
 * Quantised activations of n_tok tokens, n_in each, in panels of `lanes`
 * tokens; the last panel is filled up with zeros.  With P = t / lanes and
 * l = t % lanes, token t has
 *   q[((P * n_in/4 + k/4) * lanes + l) * 4 + k%4]   the quant of element k
 *   dx[(P * n_in/32 + b) * lanes + l]               the scale of block b
 *   sx[(P * n_in/32 + b) * lanes + l]               dx * (sum of its quants)
 *   sx16[(P * n_in/16 + h) * lanes + l]             the same for 16 elements
 * so that with one lane every token is simply a row.  A group whose product
 * takes eight elements of a token at a time has 8 for 4 in q.  The other
 * members are for groups that want them: what they hold, and how a last panel
 * that is not full is laid out, is the business of the group alone.
 */
struct xquant {
	size_t n_in, n_tok;
	int8_t *q;
	float *dx, *mdx, *sx, *sx16;
	int32_t *sum, *sum16;
};

/*
 * Bytes of an xquant's arrays; and set them to lie in memory of that size,
 * aligned to 64 bytes.  The same for every group.
 */
size_t xquant_bytes(size_t n_in, size_t n_tok);
void xquant_place(struct xquant *x, void *memory, size_t n_in, size_t n_tok);

/*
 * Float activations in panels of KERN_FLOAT_LANES tokens, filled up with
 * zeros: x[(P * n_in + k) * 16 + l].
 */
struct xfloat {
	size_t n_in, n_tok;
	float *x;
};

/*
 * A tile of weight rows taken apart (see expand.h).
 *   q (n_rows, n_in)           quants; a group may add a constant to them
 *   w, m (n_rows, n_in/group)  scales and offsets; m only with mins
 * How rows lie in q, w and m, and rows up to a multiple of 8, are the group's
 * business.
 */
struct wtile {
	size_t n_rows, n_in;
	unsigned group; /* 16 or 32 */
	int mins;
	enum ggml_type type;
	int8_t *q;
	float *w, *m;

	/*
	 * What is likely to be expanded next: a product may load it into a
	 * cache meanwhile.  expand sets it to nothing.
	 */
	const uint8_t *next;
	size_t next_bytes;
};

/* As for struct xquant; n_rows is at most KERN_TILE_ROWS. */
size_t wtile_bytes(size_t n_rows, size_t n_in);
void wtile_place(struct wtile *w, void *memory, size_t n_rows, size_t n_in);

/* What weigh() says of a row of weights. */
struct weights {
	double sum;
	float first, second; /* the two largest */
};

/* The random numbers of a row of logits (philox.h), and what may win there. */
struct noise {
	uint32_t key[2], position, step, stream;
	float max, scale, bound; /* see contenders() */
};

struct kern {
	const char *name;
	unsigned lanes; /* of struct xquant */

	/*
	 * Pack tokens t0 to t0+n-1, t0 a multiple of lanes, from x[i *
	 * stride]; i counts from t0.  n may end inside a panel only at the
	 * last token.  Returns n, or the index (from 0) of the first token
	 * with a value that is not finite or above 2^100.
	 */
	size_t (*pack_quant)(struct xquant *to, size_t t0, size_t n,
	    const float *x, size_t stride);

	/* The same for floats; t0 a multiple of KERN_FLOAT_LANES. */
	size_t (*pack_float)(struct xfloat *to, size_t t0, size_t n,
	    const float *x, size_t stride);

	/* Expand n_rows rows of row_bytes each, of a GGML_QUANT type. */
	void (*expand)(struct wtile *to, enum ggml_type type,
	    const uint8_t *src, size_t row_bytes, size_t n_rows, size_t n_in);

	/* As decode_row() of expand.h, for GGML_FLOAT and GGML_QUANT types. */
	void (*decode)(enum ggml_type type, const void *src, size_t n,
	    float *dst);

	/*
	 * y[t * stride + r] = weight row r times token t, for all rows of the
	 * tile and tokens t0 to t0+n-1 (y is where token t0 goes); t0 is a
	 * multiple of 16.
	 */
	void (*matmul_quant)(float *y, size_t stride, const struct wtile *w,
	    const struct xquant *x, size_t t0, size_t n);

	/* The same for weights w (n_rows, n_in) as floats. */
	void (*matmul_float)(float *y, size_t stride, const float *w,
	    size_t n_rows, const struct xfloat *x, size_t t0, size_t n);

	/*
	 * y = (x * (1 / sqrtf(mean(x * x) + eps))) * w, n elements.  0, or -1
	 * if the mean of squares is not finite.
	 */
	int (*rmsnorm)(float *y, const float *x, const float *w, size_t n,
	    float eps);

	/* y[i] = x[i] + y[i]: residuals and biases. */
	void (*add)(float *y, const float *x, size_t n);

	/*
	 * Rotate n_heads heads of head_dim elements in place by the angles
	 * whose cosines and sines are given (head_dim/2 each).  Pairs are (2i,
	 * 2i+1), or (i, i + head_dim/2) where neox is set.
	 */
	void (*rope)(float *x, size_t n_heads, size_t head_dim,
	    const float *cosine, const float *sine, int neox);

	/*
	 * Keys of one head into panels: kt[(P * head_dim + d) * 16 + l] for
	 * keys t0 to t0+n-1, t0 a multiple of 16; lanes without a key are 0.
	 */
	void (*pack_keys)(float *kt, size_t t0, size_t n, const float *k,
	    size_t stride, size_t head_dim);

	/*
	 * n_q queries, at most KERN_QUERIES, of one head against all keys, no
	 * mask.  Together because they share the loads of keys and values.
	 *   out[i * out_stride + d]  q[i] (head_dim)
	 *   kt: key panels           v[j * stride + d]
	 *   e (n_q, n_keys rounded up to 16): scratch
	 */
	void (*attention)(float *out, size_t out_stride, const float *const *q,
	    size_t n_q, const float *kt, const float *v, size_t stride,
	    size_t n_keys, size_t head_dim, float scale, float *e);

	/* y = g / (1 + exp(-g)) * u, n elements; y may be g. */
	void (*silu_mul)(float *y, const float *g, const float *u, size_t n);

	/* 1 if all n elements are finite. */
	int (*all_finite)(const float *x, size_t n);

	/*
	 * y = x + 0, so that -0 becomes 0; 1 if all n elements are below
	 * infinity, that is no NaN either.
	 */
	int (*clean_logits)(float *y, const float *x, size_t n);

	/* The index of the largest, the lowest among equals; n is not 0. */
	size_t (*largest)(const float *x, size_t n);

	/*
	 * e[i] = exp(l[i] - max), or exp((l[i] - max) / temperature), divided
	 * in double precision, if that is not 0.  No l[i] is above max.
	 */
	void (*weigh)(struct weights *w, float *e, const float *l, size_t n,
	    float max, double temperature);

	/* The sum of p * log(p + 1e-10) over p = e[i] / sum. */
	double (*negentropy)(const float *e, size_t n, double sum);

	/*
	 * Which of the ids from `from` to from+n-1 may win a draw: those whose
	 * 1 - u is not above bound * exp((l[id] - max) * scale).  Of u only the
	 * upper 31 bits are looked at, 1 - u rounded down.  l begins with
	 * id 0; from is a multiple of 32.  Returns how many are in `to`.
	 */
	size_t (*contenders)(uint32_t *to, const float *l, size_t from,
	    size_t n, const struct noise *z);
};

/* What the CPU and the operating system allow; groups, not single bits. */
enum {
	CPU_AVX2 = 1,       /* avx2, fma, f16c */
	CPU_AVXVNNI = 2,    /* the above and avx-vnni */
	CPU_AVX512VNNI = 4, /* avx512 f, bw, dq, vl, vnni */
	CPU_NEON = 8,       /* AdvSIMD, which every AArch64 CPU has */
	CPU_DOTPROD = 16,   /* the above and FEAT_DotProd */
	CPU_I8MM = 32       /* the first and FEAT_I8MM */
};

/* The words that name a group, NULL-terminated. */
extern const char *const kern_names[];

enum kern_result { KERN_OK, KERN_UNKNOWN, KERN_MISSING };

/*
 * The table for a group, by name, or the best one for NULL.  A pure function
 * of name and flags.  KERN_UNKNOWN: not a group's name; KERN_MISSING: the CPU
 * lacks it or this build does not have it; err says so.
 */
enum kern_result kern_select(const struct kern **k, const char *name,
    unsigned flags, struct err *err);

/*
 * For tests: the code of group avxvnni in the encoding that CPUs with
 * AVX512-VNNI understand, or NULL.  No name selects it.
 */
const struct kern *kern_evex(unsigned flags);

/* Memory that tokens take when packed, rounded up to whole panels. */
size_t kern_panels(size_t n_tok, unsigned lanes);

#endif
