/*
 * Every kernel of every group that this CPU has, against the scalar
 * specification: the same bits for odd shapes, extreme fills and buffers that
 * end or begin at a page that must not be touched.  Each kernel runs in a
 * process of its own, so that a crash is its failure and not the end.  Kernels
 * that are wrong on purpose must be caught.
 *
 *   kern_check [--seed N]
 *   kern_check --bench     times instead of checks
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"
#include "expand.h"
#include "kern.h"
#include "kern_bench.h"
#include "opt.h"
#include "tap.h"

enum { CASES = 60, MAX_GUARDED = 64 };

static uint64_t seed = 1;
static uint64_t state;
static const struct kern *ref; /* the scalar group */

/* What the child works on, for the parent to print when it dies. */
static char *note;
enum { NOTE = 256 };

static uint64_t
next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static size_t
below(size_t n)
{
	return (size_t)(next() % n);
}

/* Sizes at which kernels have edges. */
static size_t
odd_size(size_t max)
{
	static const size_t odd[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24,
		31, 32, 33, 47, 48, 49, 63, 64, 65, 70, 97, 144 };
	size_t n;

	do
		n = odd[below(sizeof odd / sizeof *odd)];
	while (n > max);
	return n;
}

static struct guarded {
	void *map;
	size_t size;
} guarded[MAX_GUARDED];
static int n_guarded;

/*
 * Memory between two pages that must not be touched, filled with a pattern;
 * ends at the second one, or begins after the first.  Freed by release().
 */
static void *
guard(size_t bytes, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (bytes + page - 1) / page * page;
	char *p = mmap(NULL, size + 2 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || n_guarded == MAX_GUARDED ||
	    (size && mprotect(p + page, size, PROT_READ | PROT_WRITE) < 0))
		_exit(3);
	guarded[n_guarded].map = p;
	guarded[n_guarded++].size = size + 2 * page;
	memset(p + page, 0xa5, size);
	return below(3) ? p + page + (size - bytes) / align * align : p + page;
}

static void
release(void)
{
	while (n_guarded > 0) {
		n_guarded--;
		munmap(guarded[n_guarded].map, guarded[n_guarded].size);
	}
}

static float *
floats(size_t n)
{
	return guard(n * sizeof(float), sizeof(float));
}

/* Kinds of numbers; NaN and infinity are not among them. */
enum { NORMAL, ZEROS, TINY, EXTREMES, OUTLIER, N_FILLS };

static float
uniform(void)
{
	return (float)((double)(next() >> 11) * 0x1p-52 - 1);
}

static void
fill(float *x, size_t n, int kind)
{
	for (size_t i = 0; i < n; i++)
		switch (kind) {
		case ZEROS:
			x[i] = next() & 1 ? 0.0f : -0.0f;
			break;
		case TINY:
			x[i] = uniform() * 0x1p-130f;
			break;
		case EXTREMES:
			x[i] = i & 1 ? 0x1p+20f : -0x1p+20f;
			break;
		default:
			x[i] = uniform() + uniform() + uniform();
		}
	if (kind == OUTLIER && n)
		x[below(n)] *= 0x1p+40f;
}

/* A filled array; the kind is drawn. */
static float *
filled(size_t n)
{
	float *x = floats(n);

	fill(x, n, (int)below(N_FILLS));
	return x;
}

static int
same(const char *what, const float *a, const float *b, size_t n)
{
	size_t i = 0;

	if (!memcmp(a, b, n * sizeof *a))
		return 1;
	while (!memcmp(&a[i], &b[i], sizeof *a))
		i++;
	snprintf(note + strlen(note), NOTE - strlen(note),
	    ": %s differs at %zu of %zu: %a, specified %a", what, i, n,
	    (double)a[i], (double)b[i]);
	return 0;
}

/* Two equal destinations, preset so that a write not made is noticed. */
static void
twins(float **a, float **b, size_t n)
{
	*a = floats(n);
	*b = floats(n);
	fill(*a, n, NORMAL);
	if (n)
		memcpy(*b, *a, n * sizeof **a);
}

static int
all_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return 0;
	return 1;
}

static const enum ggml_type quant_types[] = { GGML_Q4_0, GGML_Q4_1, GGML_Q5_0,
	GGML_Q5_1, GGML_Q8_0, GGML_Q2_K, GGML_Q3_K, GGML_Q4_K, GGML_Q5_K,
	GGML_Q6_K, GGML_IQ4_NL, GGML_IQ4_XS, GGML_MXFP4 };
enum { N_QUANT = sizeof quant_types / sizeof *quant_types };

/*
 * One block of a type whose values are finite: random bytes, or one byte all
 * over with ones (as F16) where scales may lie.
 */
static void
fill_block(uint8_t *p, enum ggml_type type)
{
	static const uint8_t bytes[] = { 0x00, 0x80, 0x7f, 0xff, 0x55, 0xaa };
	size_t size = ggml_type_info(type)->block_bytes;
	size_t n = ggml_type_info(type)->block;
	size_t at[] = { 0, 2, size - 2, size - 4 };
	float value[256];

	if (below(3) == 0) {
		memset(p, bytes[below(sizeof bytes)], size);
		decode_row(type, p, n, value);
		for (int i = 0; i < 4 && !all_finite(value, n); i++) {
			p[at[i]] = 0x00;
			p[at[i] + 1] = 0x3c;
			decode_row(type, p, n, value);
		}
		if (all_finite(value, n))
			return;
	}
	do {
		for (size_t i = 0; i < size; i++)
			p[i] = (uint8_t)next();
		decode_row(type, p, n, value);
	} while (!all_finite(value, n));
}

/* n_rows rows of n_in weights. */
static uint8_t *
weights(enum ggml_type type, size_t n_rows, size_t n_in, size_t *row_bytes)
{
	const struct ggml_type_info *t = ggml_type_info(type);
	uint8_t *p;

	*row_bytes = n_in / t->block * t->block_bytes;
	p = guard(n_rows * *row_bytes, 1);
	for (size_t i = 0; i < n_rows * (n_in / t->block); i++)
		fill_block(p + i * t->block_bytes, type);
	return p;
}

/* A matrix product from the start to the end, for tokens from `first`. */
static void
product(const struct kern *k, float *y, size_t stride, enum ggml_type type,
    const uint8_t *w, size_t row_bytes, size_t n_rows, size_t n_in,
    const float *x, size_t n_tok, size_t first)
{
	struct wtile tile;
	struct xquant xq;

	xquant_place(&xq, guard(xquant_bytes(n_in, n_tok), 64), n_in, n_tok);
	wtile_place(&tile, guard(wtile_bytes(n_rows, n_in), 64), n_rows, n_in);
	if (k->pack_quant(&xq, 0, n_tok, x, n_in) != n_tok)
		_exit(4);
	k->expand(&tile, type, w, row_bytes, n_rows, n_in);
	k->matmul_quant(y, stride, &tile, &xq, first, n_tok - first);
}

static int
check_quant(const struct kern *k)
{
	enum ggml_type type = quant_types[below(N_QUANT)];
	size_t block = ggml_type_info(type)->block, row_bytes;
	size_t n_in = block * (1 + below(block == 256 ? 3 : 9));
	size_t n_rows = odd_size(KERN_TILE_ROWS), n_tok = odd_size(144);
	size_t first = below(n_tok / 16 + 1) * 16, n, stride;
	uint8_t *w;
	float *x, *got, *want;

	if (first == n_tok)
		first = 0;
	n = n_tok - first;
	stride = n_rows + below(3);
	snprintf(note, NOTE, "%s %zux%zu, tokens %zu to %zu",
	    ggml_type_name(type), n_rows, n_in, first, n_tok);
	w = weights(type, n_rows, n_in, &row_bytes);
	x = filled(n_tok * n_in);
	/* the last row ends where the buffer does */
	twins(&got, &want, (n - 1) * stride + n_rows);
	product(ref, want, stride, type, w, row_bytes, n_rows, n_in, x, n_tok,
	    first);
	product(k, got, stride, type, w, row_bytes, n_rows, n_in, x, n_tok,
	    first);
	return same("product", got, want, (n - 1) * stride + n_rows);
}

/* Numbers that must be found, wherever they are. */
static int
check_pack_errors(const struct kern *k)
{
	static const float bad[] = { NAN, INFINITY, -INFINITY, 0x1.000002p+100f,
		-0x1.8p+126f };
	size_t n_in = 32 * (1 + below(9)), n_tok = odd_size(70);
	size_t at = below(n_tok * n_in);
	float *x = floats(n_tok * n_in), v = bad[below(5)];
	struct xquant xq;
	struct xfloat xf = { .n_in = n_in, .n_tok = n_tok };
	size_t got;

	snprintf(note, NOTE, "%zu tokens of %zu, %a at %zu", n_tok, n_in,
	    (double)v, at);
	fill(x, n_tok * n_in, NORMAL);
	x[at] = v;
	xquant_place(&xq, guard(xquant_bytes(n_in, n_tok), 64), n_in, n_tok);
	got = k->pack_quant(&xq, 0, n_tok, x, n_in);
	if (got != at / n_in)
		return 0;
	x[at] = isfinite(v) ? NAN : v;
	xf.x = floats(kern_panels(n_tok, KERN_FLOAT_LANES) * n_in);
	got = k->pack_float(&xf, 0, n_tok, x, n_in);
	if (got != at / n_in)
		return 0;
	x[at] = 0x1p+100f; /* just within */
	return k->pack_quant(&xq, 0, n_tok, x, n_in) == n_tok &&
	    k->pack_float(&xf, 0, n_tok, x, n_in) == n_tok;
}

static int
check_float(const struct kern *k)
{
	size_t n_in = odd_size(144), n_rows = odd_size(KERN_TILE_ROWS);
	size_t n_tok = odd_size(70), first = below(n_tok), n = n_tok - first;
	size_t lanes = kern_panels(n_tok, KERN_FLOAT_LANES);
	struct xfloat a = { n_in, n_tok, floats(lanes * n_in) };
	struct xfloat b = { n_in, n_tok, floats(lanes * n_in) };
	float *w = filled(n_rows * n_in), *x = filled(n_tok * n_in);
	float *got, *want;

	snprintf(note, NOTE, "%zux%zu, tokens %zu to %zu", n_rows, n_in, first,
	    n_tok);
	twins(&got, &want, n * n_rows);
	ref->pack_float(&b, 0, n_tok, x, n_in);
	ref->matmul_float(want, n_rows, w, n_rows, &b, first, n);
	k->pack_float(&a, 0, n_tok, x, n_in);
	k->matmul_float(got, n_rows, w, n_rows, &a, first, n);
	return same("panels", a.x, b.x, lanes * n_in) &&
	    same("product", got, want, n * n_rows);
}

static int
check_decode(const struct kern *k)
{
	static const enum ggml_type plain[] = { GGML_F32, GGML_F16, GGML_BF16 };
	enum ggml_type type = below(2) ? quant_types[below(N_QUANT)] :
	                                 plain[below(3)];
	size_t block = ggml_type_info(type)->block, row_bytes;
	size_t n = block == 1 ? odd_size(144) : block * (1 + below(4));
	float *got, *want;
	uint8_t *w;

	snprintf(note, NOTE, "%s, %zu", ggml_type_name(type), n);
	row_bytes = n / block * ggml_type_info(type)->block_bytes;
	if (block == 1) {
		w = guard(row_bytes, 1);
		for (size_t i = 0; i < row_bytes; i++)
			w[i] = i % 4 == 3 || (row_bytes == 2 * n && i % 2) ?
			    (uint8_t)(0x30 + below(16)) :
			    (uint8_t)next();
	} else {
		w = weights(type, 1, n, &row_bytes);
	}
	twins(&got, &want, n);
	decode_row(type, w, n, want);
	k->decode(type, w, n, got);
	return same("values", got, want, n);
}

static int
check_rmsnorm(const struct kern *k)
{
	size_t n = odd_size(144) + below(2) * 256;
	float *x = filled(n), *w = filled(n), *got, *want;
	int a, b;

	snprintf(note, NOTE, "%zu elements", n);
	if (below(8) == 0)
		x[below(n)] = below(2) ? NAN : 0x1p+100f;
	twins(&got, &want, n);
	b = ref->rmsnorm(want, x, w, n, 1e-5f);
	a = k->rmsnorm(got, x, w, n, 1e-5f);
	return a == b && (b < 0 || same("norm", got, want, n));
}

static int
check_rows(const struct kern *k)
{
	size_t n = odd_size(144), i;
	float *x = filled(n), *u = filled(n), *got, *want;

	snprintf(note, NOTE, "%zu elements", n);
	twins(&got, &want, n);
	ref->add(want, x, n);
	k->add(got, x, n);
	if (!same("sum", got, want, n))
		return 0;
	ref->silu_mul(want, want, u, n);
	k->silu_mul(got, got, u, n);
	if (!same("silu(g) * u", got, want, n))
		return 0;
	if (!k->all_finite(x, n))
		return 0;
	i = below(n);
	x[i] = below(2) ? NAN : -INFINITY;
	return !k->all_finite(x, n);
}

static int
check_rope(const struct kern *k)
{
	static const size_t dims[] = { 2, 4, 6, 16, 34, 64, 128 };
	size_t d = dims[below(7)], heads = 1 + below(5), n = d * heads;
	int neox = (int)below(2);
	float *c = filled(d / 2), *s = filled(d / 2), *got, *want;

	snprintf(note, NOTE, "%zu heads of %zu, neox %d", heads, d, neox);
	twins(&got, &want, n);
	ref->rope(want, heads, d, c, s, neox);
	k->rope(got, heads, d, c, s, neox);
	return same("rotated", got, want, n);
}

static void
attend(const struct kern *k, float *out, size_t out_stride,
    const float *const *q, size_t n_q, const float *keys, const float *v,
    size_t stride, size_t n_keys, size_t d)
{
	size_t padded = kern_panels(n_keys, KERN_KEY_LANES);
	float *kt = floats(padded * d), *e = floats(n_q * padded);

	for (size_t t = 0; t < n_keys; t += KERN_KEY_LANES)
		k->pack_keys(kt, t, n_keys - t < KERN_KEY_LANES ? n_keys - t :
		    KERN_KEY_LANES, keys + t * stride, stride, d);
	k->attention(out, out_stride, q, n_q, kt, v, stride, n_keys, d, 0.125f,
	    e);
}

static int
check_attention(const struct kern *k)
{
	static const size_t dims[] = { 2, 4, 6, 16, 34, 64, 128 };
	size_t d = dims[below(7)], n_keys = odd_size(144);
	size_t n_q = 1 + below(KERN_QUERIES), stride = d + below(2) * 5;
	size_t out_stride = d + below(2) * 3, n = (n_q - 1) * out_stride + d;
	size_t n_kv = (n_keys - 1) * stride + d;
	float *keys = filled(n_kv), *v = filled(n_kv), *got, *want;
	const float *q[KERN_QUERIES];

	snprintf(note, NOTE, "%zu queries, %zu keys, width %zu", n_q, n_keys,
	    d);
	for (size_t i = 0; i < n_q; i++)
		q[i] = filled(d);
	twins(&got, &want, n);
	attend(ref, want, out_stride, q, n_q, keys, v, stride, n_keys, d);
	attend(k, got, out_stride, q, n_q, keys, v, stride, n_keys, d);
	/* scores that overflow make NaN, whose bits nobody specifies */
	return !all_finite(want, n) || same("attention", got, want, n);
}

static int
check_logits(const struct kern *k)
{
	static const float bad[] = { NAN, INFINITY };
	size_t n = odd_size(144) + below(2) * 256, at;
	float *x = filled(n), *got, *want;

	snprintf(note, NOTE, "%zu logits", n);
	if (below(2)) /* equal numbers */
		for (size_t i = 0; i < n; i++)
			x[i] = rintf(x[i]);
	x[below(n)] = -INFINITY;
	twins(&got, &want, n);
	if (!ref->clean_logits(want, x, n) || !k->clean_logits(got, x, n) ||
	    !same("copy", got, want, n) ||
	    k->largest(got, n) != ref->largest(want, n))
		return 0;
	at = below(n);
	x[at] = bad[below(2)];
	return !k->clean_logits(got, x, n);
}

static int
check_weigh(const struct kern *k)
{
	static const double temperature[] = { 0, 0.2, 3, 1e-30 };
	size_t n = odd_size(144) + below(2) * 256;
	double t = temperature[below(4)];
	float *l = filled(n), *got, *want, max;
	struct weights a, b;
	double x, y;

	snprintf(note, NOTE, "%zu logits, temperature %g", n, t);
	for (size_t i = below(20); i < n; i += 1 + below(20))
		l[i] = i & 1 ? -INFINITY : l[i] * 30;
	max = l[ref->largest(l, n)];
	if (max == -INFINITY)
		max = l[0] = 0;
	twins(&got, &want, n);
	ref->weigh(&b, want, l, n, max, t);
	k->weigh(&a, got, l, n, max, t);
	x = k->negentropy(got, n, b.sum);
	y = ref->negentropy(want, n, b.sum);
	return same("weights", got, want, n) &&
	    same("the largest", &a.first, &b.first, 1) &&
	    same("the second", &a.second, &b.second, 1) &&
	    !memcmp(&a.sum, &b.sum, sizeof a.sum) && !memcmp(&x, &y, sizeof x);
}

static int
check_contenders(const struct kern *k)
{
	static const float bounds[] = { 0, 1e-9f, 0.01f, 0.5f, INFINITY, NAN };
	static const float scales[] = { 0, 0.3f, 5, 3.4e38f };
	size_t from = 32 * below(4), n = odd_size(144), m;
	float *l = filled(from + n);
	uint32_t *got = guard(n * sizeof *got, sizeof *got);
	uint32_t *want = guard(n * sizeof *want, sizeof *want);
	struct noise z = { .position = (uint32_t)next(),
		.step = (uint32_t)next(), .stream = (uint32_t)below(6),
		.max = l[ref->largest(l, from + n)], .scale = scales[below(4)],
		.bound = bounds[below(6)] };

	z.key[0] = (uint32_t)next();
	z.key[1] = (uint32_t)next();
	snprintf(note, NOTE, "ids %zu to %zu, scale %g, bound %g", from,
	    from + n, (double)z.scale, (double)z.bound);
	l[below(from + n)] = -INFINITY;
	m = ref->contenders(want, l, from, n, &z);
	return k->contenders(got, l, from, n, &z) == m &&
	    !memcmp(got, want, m * sizeof *got);
}

static const struct check {
	const char *name;
	int (*run)(const struct kern *k);
} checks[] = {
	{ "matmul_quant", check_quant },
	{ "pack errors", check_pack_errors },
	{ "matmul_float", check_float },
	{ "decode", check_decode },
	{ "rmsnorm", check_rmsnorm },
	{ "add, silu_mul, all_finite", check_rows },
	{ "rope", check_rope },
	{ "attention", check_attention },
	{ "clean_logits, largest", check_logits },
	{ "weigh, negentropy", check_weigh },
	{ "contenders", check_contenders },
};
enum { N_CHECKS = sizeof checks / sizeof *checks };

/* In a child: 0 if every case agreed; the note says where it did not. */
static int
passes(const struct check *c, const struct kern *k)
{
	int status;
	pid_t pid;

	*note = '\0';
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* a sanitizer's handler would make an exit of a signal */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		state = seed;
		for (int i = 0; i < CASES * 5; i++) {
			if (!c->run(k))
				_exit(1);
			release();
		}
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 0;
	if (WIFSIGNALED(status))
		snprintf(note + strlen(note), NOTE - strlen(note),
		    ": killed by signal %d", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
check_kern(const struct kern *k)
{
	for (int i = 0; i < N_CHECKS; i++)
		if (!ok(passes(&checks[i], k), "%s: %s", k->name,
		        checks[i].name))
			printf("# %s (--seed %llu)\n", note,
			    (unsigned long long)seed);
}

static void
check_group(const char *name, unsigned flags)
{
	const struct kern *k;
	struct err err = { 0 };

	if (kern_select(&k, name, flags, &err) != KERN_OK) {
		skip(name, err.msg);
		return;
	}
	ok(!strcmp(k->name, name), "%s: this is the group's name", name);
	check_kern(k);
}

/* The last token is forgotten. */
static void
broken_tail(float *y, size_t stride, const struct wtile *w,
    const struct xquant *x, size_t t0, size_t n)
{
	ref->matmul_quant(y, stride, w, x, t0, n - 1);
}

/* One element too many. */
static void
broken_end(float *y, const float *x, size_t n)
{
	ref->add(y, x, n);
	((volatile float *)y)[n] = 0;
}

static void
broken_nan(float *y, const float *g, const float *u, size_t n)
{
	ref->silu_mul(y, g, u, n);
	y[n / 2] = NAN;
}

/* Right up to rounding: another order of the sum. */
static int
broken_order(float *y, const float *x, const float *w, size_t n, float eps)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] * (1 / sqrtf(sum / (float)n + eps)) * w[i];
	return isfinite(sum) ? 0 : -1;
}

static void
broken_rope(float *x, size_t n_heads, size_t head_dim, const float *cosine,
    const float *sine, int neox)
{
	ref->rope(x, n_heads, head_dim, cosine, sine, !neox);
}

static size_t
broken_errors(struct xquant *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	ref->pack_quant(to, t0, n, x, stride);
	return n;
}

/* The last one among equals. */
static size_t
broken_largest(const float *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (x[i] >= x[best])
			best = i;
	return best;
}

/* In single precision. */
static double
broken_sum(const float *e, size_t n, double sum)
{
	return (double)(float)ref->negentropy(e, n, sum);
}

/* An id too few. */
static size_t
broken_ids(uint32_t *to, const float *l, size_t from, size_t n,
    const struct noise *z)
{
	size_t m = ref->contenders(to, l, from, n, z);

	return m ? m - 1 : 0;
}

static void
self_test(void)
{
	struct kern k[9];

	for (int i = 0; i < 9; i++)
		k[i] = *ref;
	k[0].matmul_quant = broken_tail;
	k[1].add = broken_end;
	k[2].silu_mul = broken_nan;
	k[3].rmsnorm = broken_order;
	k[4].rope = broken_rope;
	k[5].pack_quant = broken_errors;
	k[6].largest = broken_largest;
	k[7].negentropy = broken_sum;
	k[8].contenders = broken_ids;
	ok(!passes(&checks[0], &k[0]), "a forgotten tail is caught");
	ok(!passes(&checks[5], &k[1]), "a write past the end is caught");
	ok(strstr(note, "signal") != NULL, "by a crash: %s", note);
	ok(!passes(&checks[5], &k[2]), "a NaN is caught");
	ok(!passes(&checks[4], &k[3]), "another order of a sum is caught");
	ok(!passes(&checks[6], &k[4]), "wrong pairs are caught");
	ok(!passes(&checks[1], &k[5]), "an error not reported is caught");
	ok(!passes(&checks[8], &k[6]), "the last among equals is caught");
	ok(!passes(&checks[9], &k[7]), "a sum in single precision is caught");
	ok(!passes(&checks[10], &k[8]), "a forgotten id is caught");
}

/* What is chosen without a name, where the build has it. */
static void
check_best(unsigned flags, const char *name)
{
	const struct kern *k;
	struct err err = { 0 };

	if (kern_select(&k, name, ~0u, &err) == KERN_OK)
		ok(kern_select(&k, NULL, flags, &err) == KERN_OK &&
		        !strcmp(k->name, name), "flags %u: %s", flags, name);
}

static void
test_selection(void)
{
	const struct kern *k;
	struct err err = { 0 };

	ok(kern_select(&k, NULL, 0, &err) == KERN_OK &&
	        !strcmp(k->name, "scalar"), "a CPU without anything: scalar");
	ok(kern_select(&k, "sse9", ~0u, &err) == KERN_UNKNOWN,
	    "an unknown word is told apart");
	is(err.msg, "'sse9': not one of scalar, avx2, avxvnni, avx512vnni, "
	    "neon, dotprod, i8mm", "and named");
	err.set = 0;
	ok(kern_select(&k, "avx512vnni", CPU_AVX2, &err) == KERN_MISSING,
	    "a group that the CPU lacks is refused");
	for (int i = 0; kern_names[i]; i++)
		ok(kern_select(&k, kern_names[i], ~0u, &err) != KERN_UNKNOWN,
		    "%s is a group's name", kern_names[i]);
	check_best(CPU_AVX2, "avx2");
	check_best(CPU_AVX2 | CPU_AVXVNNI, "avxvnni");
	check_best(CPU_AVX2 | CPU_AVX512VNNI, "avx512vnni");
	check_best(CPU_NEON, "neon");
	check_best(CPU_NEON | CPU_DOTPROD, "dotprod");
	check_best(CPU_NEON | CPU_DOTPROD | CPU_I8MM, "i8mm");
}

static int
bench_groups(unsigned flags)
{
	const struct kern *k;
	struct err no = { 0 };

	for (int i = 0; kern_names[i]; i++)
		if (kern_select(&k, kern_names[i], flags, &no) == KERN_OK)
			kern_bench(k, ref);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("kern_check: ERROR: cannot write standard output");
	return 1;
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	unsigned flags = cpu_flags();

	if (argc == 3 && !strcmp(argv[1], "--seed"))
		opt_uint(argv[2], 0, UINT64_MAX, &seed);
	note = mmap(NULL, NOTE, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (note == MAP_FAILED ||
	    kern_select(&ref, "scalar", flags, &err) != KERN_OK)
		return 2;
	if (argc == 2 && !strcmp(argv[1], "--bench"))
		return bench_groups(flags);
	test_selection();
	self_test();
	for (int i = 0; kern_names[i]; i++)
		check_group(kern_names[i], flags);
	if (kern_evex(flags))
		check_kern(kern_evex(flags));
	else
		skip("evexvnni", "this CPU lacks avx512-vnni");
	return tap_end();
}
