/*
 * Writes a GGUF model of any shape with random weights, reproducibly from a
 * seed, so that speed and memory can be measured, and odd shapes tested,
 * without a real model.  It answers nothing; only its shape is real.
 *
 * The fields of each block are drawn directly, with scales chosen so that a
 * row of K weights has a standard deviation near 1/sqrt(K): activations keep
 * their size through the layers and logits stay finite.  Data is streamed; the
 * memory needed is that of the vocabulary.
 */
#define PROG "gguf-synth"
#define USAGE "gguf-synth [--shape S] [options] --output FILE"

#include <math.h>

#include "expand.h"
#include "gguf_write.h"
#include "quantize.h"
#include "quantmix.h"
#include "tool.h"

enum { BATCH = 1 << 16 }; /* bytes drawn at a time, at least one block */

/* iLLaDA: llada's architecture, its special tokens at the very beginning. */
static const char *const families[] = { "llada", "dream", "illada", NULL };
enum { LLADA, DREAM, ILLADA };
static const char *const archs[] = { "llada", "dream", "llada" };
static const char *const shapes[] = { "tiny", "llada-8b", "dream-7b",
	"illada-8b", NULL };
enum { TINY, LLADA_8B, DREAM_7B, ILLADA_8B };

struct shape {
	int family;
	uint64_t layers, embd, ffn, heads, kv_heads, vocab, context;
	float eps, rope_base;
};

static const struct shape presets[] = {
	[TINY] = { LLADA, 2, 256, 512, 4, 4, 512, 4096, 1e-5f, 5e5f },
	[LLADA_8B] = { LLADA, 32, 4096, 12288, 32, 32, 126464, 4096, 1e-5f,
	    5e5f },
	[DREAM_7B] = { DREAM, 28, 3584, 18944, 28, 4, 152064, 131072, 1e-6f,
	    1e6f },
	[ILLADA_8B] = { ILLADA, 32, 4096, 14336, 32, 8, 155136, 8192, 1e-5f,
	    5e5f },
};

/* Of --type: a type for all matrices, or a rule by tensor and layer. */
enum { MIX_ALL = 999, MIX = 1000 }; /* MIX + enum quantmix */
static const char *const mixes[] = { "Q4_K_M", "Q5_K_M", "Q4_K_S", "mixed",
	"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K",
	"Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", NULL };
static const int mix_types[] = { MIX + QUANTMIX_Q4_K_M, MIX + QUANTMIX_Q5_K_M,
	MIX + QUANTMIX_Q4_K_S, MIX_ALL, GGML_F32, GGML_F16, GGML_BF16,
	GGML_Q8_0, GGML_Q4_0, GGML_Q4_1, GGML_Q5_0, GGML_Q5_1, GGML_Q2_K,
	GGML_Q3_K, GGML_Q4_K, GGML_Q5_K, GGML_Q6_K, GGML_IQ4_NL, GGML_IQ4_XS,
	GGML_MXFP4 };
enum { FIRST_PURE = 4, N_MIXES = sizeof mix_types / sizeof *mix_types };

/* splitmix64: one stream per tensor. */
static uint64_t
next(uint64_t *s)
{
	uint64_t z = *s += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void
fill(uint64_t *s, unsigned char *p, size_t n)
{
	uint64_t r;

	for (; n >= 8; n -= 8, p += 8) {
		r = next(s);
		memcpy(p, &r, 8);
	}
	r = next(s);
	memcpy(p, &r, n);
}

/* A positive f32 within F16's range, truncated. */
static uint16_t
half(float f)
{
	uint32_t u;
	int e;

	memcpy(&u, &f, sizeof u);
	e = (int)(u >> 23) - 127 + 15;
	if (e <= 0)
		return (uint16_t)(f * 0x1p24f);
	return (uint16_t)(e << 10 | (u >> 13 & 0x3ff));
}

static void
put16(unsigned char *p, uint16_t v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}

/*
 * Where the scales of a block lie, and what random quants spread by: values
 * have the standard deviation d * spread.  For types with mins the values are
 * centred by dmin = centre * d together with mins equal to the scales.
 */
struct layout {
	enum ggml_type type;
	int d_at, m_at; /* byte offsets of the F16 fields; -1: none */
	float spread, centre;
};

static const struct layout layouts[] = {
	{ GGML_Q8_0, 0, -1, 73.9f, 0 },
	{ GGML_Q4_0, 0, -1, 4.64f, 0 },
	{ GGML_Q4_1, 0, 2, 4.61f, -7.5f },
	{ GGML_Q5_0, 0, -1, 9.25f, 0 },
	{ GGML_Q5_1, 0, 2, 9.23f, -15.5f },
	{ GGML_IQ4_NL, 0, -1, 66.f, 0 },
	{ GGML_Q2_K, 80, 82, 9.8f, 1.5f },
	{ GGML_Q3_K, 108, -1, 42.f, 0 },
	{ GGML_Q4_K, 0, 2, 169.f, 7.5f },
	{ GGML_Q5_K, 0, 2, 338.f, 15.5f },
	{ GGML_Q6_K, 208, -1, 1366.f, 0 },
	{ GGML_IQ4_XS, 0, -1, 1219.f, 0 },
};

/* The 12 scale bytes of a Q4_K or Q5_K block: mins equal to the scales. */
static void
equal_mins(unsigned char *s)
{
	memcpy(s + 4, s, 4);
	for (int j = 8; j < 12; j++)
		s[j] = (unsigned char)((s[j] & 15) | (s[j] & 15) << 4);
}

static void
fit_block(const struct layout *l, unsigned char *b, float std)
{
	float d = std / l->spread;

	put16(b + l->d_at, half(d));
	if (l->m_at < 0)
		return;
	if (l->centre < 0) { /* + m rather than - dmin * min */
		put16(b + l->m_at, (uint16_t)(half(-l->centre * d) | 0x8000));
		return;
	}
	put16(b + l->m_at, half(l->centre * d));
	if (l->type == GGML_Q2_K)
		for (int j = 0; j < 16; j++)
			b[j] = (unsigned char)((b[j] & 15) | (b[j] & 15) << 4);
	else
		equal_mins(b + 4);
}

/* MXFP4's only scale is a power of two: the one nearest to std. */
static void
fit_mxfp4(unsigned char *b, float std)
{
	b[0] = (unsigned char)(128 + (int)lrintf(log2f(std / 5.34f)));
}

static void
put_float(enum ggml_type type, unsigned char *p, float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof u);
	if (type == GGML_F32)
		memcpy(p, &u, 4);
	else if (type == GGML_BF16)
		put16(p, (uint16_t)(u >> 16));
	else
		put16(p, (uint16_t)(half(fabsf(v)) | (v < 0) << 15));
}

/* Fill n bytes (whole blocks) with values of this mean and deviation. */
static void
draw(enum ggml_type type, uint64_t *s, unsigned char *buf, size_t n, float mean,
    float std)
{
	const struct ggml_type_info *t = ggml_type_info(type);
	const struct layout *l = layouts;
	unsigned char *end = buf + n;
	float u;

	if (t->block == 1) {
		for (; buf < end; buf += t->block_bytes) {
			u = (float)(next(s) >> 40) * 0x1p-23f - 1.0f;
			put_float(type, buf, mean + u * std * 1.7320508f);
		}
		return;
	}
	fill(s, buf, n);
	while (type != GGML_MXFP4 && l->type != type)
		l++;
	for (; buf < end; buf += t->block_bytes)
		if (type == GGML_MXFP4)
			fit_mxfp4(buf, std);
		else
			fit_block(l, buf, std);
}

struct model;

/* Change row r (n_in) of a tensor; returns whether it did. */
typedef int plant_fn(const struct model *m, uint64_t r, float *row);

struct model {
	struct shape s;
	int mix, tied;
	uint64_t seed, outliers;
	struct gguf_writer w;
	int n; /* tensors so far */
	struct tensor {
		enum ggml_type type;
		uint64_t bytes, n_in;
		float mean, std;
		plant_fn *plant; /* or NULL */
	} *todo;
};

/* llama.cpp's fall-back where a row is no multiple of 256. */
static int
fall_back(int type, uint64_t n)
{
	if (ggml_type_info(type)->block <= 32 || n % 256 == 0)
		return type;
	switch (type) {
	case GGML_Q4_K:
		return GGML_Q5_0;
	case GGML_Q5_K:
		return GGML_Q5_1;
	case GGML_Q6_K:
		return GGML_Q8_0;
	default:
		return GGML_IQ4_NL;
	}
}

static int
matrix_type(const struct model *m, const char *name, uint64_t in)
{
	struct quantmix_model q = { m->s.layers, m->tied };

	if (m->mix >= MIX)
		return (int)quantmix_matrix(
		    (enum quantmix)(m->mix - MIX), &q, name, in, NULL);
	if (m->mix == MIX_ALL)
		return fall_back(
		    mix_types[FIRST_PURE + m->n % (N_MIXES - FIRST_PURE)], in);
	return fall_back(m->mix, in);
}

/* Special tokens, where the real models have them or near the end. */
static const struct special {
	int family;
	const char *key, *text;
	uint32_t real; /* id in the real vocabulary */
	uint32_t back; /* distance from the end of a smaller one */
} specials[] = {
	{ LLADA, "bos", "<|startoftext|>", 126080, 8 },
	{ LLADA, "eos", "<|endoftext|>", 126081, 7 },
	{ LLADA, "mask", "<|mdm_mask|>", 126336, 4 },
	{ LLADA, NULL, "<|start_header_id|>", 126346, 3 },
	{ LLADA, NULL, "<|end_header_id|>", 126347, 2 },
	{ LLADA, NULL, "<|eot_id|>", 126348, 1 },
	{ DREAM, "eos", "<|endoftext|>", 151643, 8 },
	{ DREAM, NULL, "<|im_start|>", 151644, 7 },
	{ DREAM, NULL, "<|im_end|>", 151645, 6 },
	{ DREAM, "bos", "<|beginoftext|>", 151665, 2 },
	{ DREAM, "mask", "<|mask|>", 151666, 1 },
	{ ILLADA, "bos", "<|startoftext|>", 0, 0 },
	{ ILLADA, "padding", "<|pad|>", 1, 0 },
	{ ILLADA, "eos", "<|endoftext|>", 2, 0 },
	{ ILLADA, NULL, "<|start_header_id|>", 3, 0 },
	{ ILLADA, NULL, "<|end_header_id|>", 4, 0 },
	{ ILLADA, "mask", "<|mdm_mask|>", 5, 0 },
	{ ILLADA, NULL, "<|eot_id|>", 6, 0 },
};
enum { N_SPECIALS = sizeof specials / sizeof *specials };

/* The token of byte 0; the others follow. */
static uint64_t
first_byte(const struct shape *s)
{
	return s->family == ILLADA ? 7 : 0;
}

static uint32_t
special_id(const struct shape *s, const struct special *p)
{
	return p->real < s->vocab ? p->real : (uint32_t)(s->vocab - p->back);
}

static const struct special *
special_at(const struct shape *s, uint64_t id)
{
	for (int i = 0; i < N_SPECIALS; i++)
		if (specials[i].family == s->family &&
		    special_id(s, &specials[i]) == id)
			return &specials[i];
	return NULL;
}

/*
 * Massive activations, as trained models have them on the first token, control
 * tokens and line feeds: a few channels of the residual stream are a thousand
 * times larger than the others, in every layer; in the feed-forward of an early
 * layer, where gate and up both answer to such a channel, a few elements are
 * larger still.  The mask token has none.
 */
static const float massive = 1000;

/* Outlier k of N among n, spread evenly. */
static uint64_t
spot(const struct model *m, uint64_t k, uint64_t n)
{
	return (2 * k + 1) * n / (2 * m->outliers);
}

static float
sign(uint64_t k)
{
	return k % 2 ? -1.0f : 1.0f;
}

static int
plant_embd(const struct model *m, uint64_t r, float *row)
{
	const struct special *p = special_at(&m->s, r);

	if (r != first_byte(&m->s) + '\n' && (!p || (p->key && !strcmp(p->key, "mask"))))
		return 0;
	for (uint64_t k = 0; k < m->outliers; k++)
		row[spot(m, k, m->s.embd)] = sign(k) * massive;
	return 1;
}

static int
plant_ffn(const struct model *m, uint64_t r, float *row)
{
	for (uint64_t k = 0; k < m->outliers; k++)
		if (r == spot(m, k, m->s.ffn)) {
			row[spot(m, k, m->s.embd)] = sign(k);
			return 1;
		}
	return 0;
}

static void
add(struct model *m, const char *name, uint64_t in, uint64_t out, int type,
    float mean, float std)
{
	uint64_t ne[2] = { in, out };

	gguf_add_tensor(&m->w, name, out ? 2 : 1, ne, (enum ggml_type)type);
	m->todo[m->n].type = (enum ggml_type)type;
	m->todo[m->n].bytes =
	    ggml_row_bytes((enum ggml_type)type, in) * (out ? out : 1);
	m->todo[m->n].n_in = in;
	m->todo[m->n].mean = mean;
	m->todo[m->n].std = std;
	if (m->outliers && !strcmp(name, "token_embd.weight"))
		m->todo[m->n].plant = plant_embd;
	if (m->outliers && (!strcmp(name, "blk.0.ffn_gate.weight") ||
			       !strcmp(name, "blk.0.ffn_up.weight")))
		m->todo[m->n].plant = plant_ffn;
	m->n++;
}

static void
add_matrix(struct model *m, const char *name, uint64_t in, uint64_t out)
{
	float std = strstr(name, "token_embd") ? 1 : 1 / sqrtf((float)in);

	add(m, name, in, out, matrix_type(m, name, in), 0, std);
}

static void
add_vector(struct model *m, const char *name, uint64_t n, float mean, float std)
{
	add(m, name, n, 0, GGML_F32, mean, std);
}

static void
add_layer(struct model *m, uint64_t i)
{
	const struct shape *s = &m->s;
	uint64_t kv = s->embd / s->heads * s->kv_heads;
	char name[GGUF_MAX_NAME];

#define NAME(part)                                                             \
	(snprintf(name, sizeof name, "blk.%u.%s", (unsigned)i, part), name)
	add_vector(m, NAME("attn_norm.weight"), s->embd, 1, 0.1f);
	add_matrix(m, NAME("attn_q.weight"), s->embd, s->embd);
	add_matrix(m, NAME("attn_k.weight"), s->embd, kv);
	add_matrix(m, NAME("attn_v.weight"), s->embd, kv);
	add_matrix(m, NAME("attn_output.weight"), s->embd, s->embd);
	if (s->family == DREAM) {
		add_vector(m, NAME("attn_q.bias"), s->embd, 0, 0.5f);
		add_vector(m, NAME("attn_k.bias"), kv, 0, 0.5f);
		add_vector(m, NAME("attn_v.bias"), kv, 0, 0.5f);
	}
	add_vector(m, NAME("ffn_norm.weight"), s->embd, 1, 0.1f);
	add_matrix(m, NAME("ffn_gate.weight"), s->embd, s->ffn);
	add_matrix(m, NAME("ffn_up.weight"), s->embd, s->ffn);
	add_matrix(m, NAME("ffn_down.weight"), s->ffn, s->embd);
#undef NAME
}

/* Is the byte its own character in byte-level BPE? */
static int
printable(unsigned b)
{
	return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
}

/* The character that stands for a byte, as UTF-8. */
static size_t
byte_text(unsigned b, char *out)
{
	unsigned cp = b;

	if (!printable(b))
		for (cp = 256; b-- > 0;)
			cp += !printable(b);
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	out[0] = (char)(0xc0 | cp >> 6);
	out[1] = (char)(0x80 | (cp & 0x3f));
	return 2;
}

static void
put_tokens(struct model *m)
{
	const struct special *p;
	uint64_t from = first_byte(&m->s);
	char text[32];
	size_t n;

	gguf_put_array(&m->w, "tokenizer.ggml.tokens", GGUF_STRING, m->s.vocab);
	for (uint64_t i = 0; i < m->s.vocab; i++) {
		p = special_at(&m->s, i);
		if (p)
			n = (size_t)snprintf(text, sizeof text, "%s", p->text);
		else if (i < from + 256)
			n = byte_text((unsigned)(i - from), text);
		else
			n = (size_t)snprintf(text, sizeof text, "[PAD%llu]",
			    (unsigned long long)i);
		gguf_item_str(&m->w, text, n);
	}
	gguf_put_array(
	    &m->w, "tokenizer.ggml.token_type", GGUF_I32, m->s.vocab);
	for (uint64_t i = 0; i < m->s.vocab; i++)
		gguf_item_i32(&m->w, special_at(&m->s, i) ? 3
				     : i < from + 256	  ? 1
							  : 5);
}

static void
put_vocabulary(struct model *m)
{
	char key[64];

	gguf_put_str(&m->w, "tokenizer.ggml.model", "gpt2");
	gguf_put_str(&m->w, "tokenizer.ggml.pre",
	    m->s.family == DREAM ? "qwen2" : "bailingmoe");
	put_tokens(m);
	gguf_put_array(&m->w, "tokenizer.ggml.merges", GGUF_STRING, 0);
	for (int i = 0; i < N_SPECIALS; i++) {
		if (specials[i].family != m->s.family || !specials[i].key)
			continue;
		snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id",
		    specials[i].key);
		gguf_put_u32(&m->w, key, special_id(&m->s, &specials[i]));
	}
	gguf_put_str(&m->w, "tokenizer.chat_template",
	    m->s.family == DREAM ? "<|im_start|>"
				 : "<|start_header_id|><|end_header_id|>");
}

static void
put_metadata(struct model *m)
{
	const struct shape *s = &m->s;
	struct gguf_writer *w = &m->w;
	char key[64];

#define KEY(part)                                                              \
	(snprintf(key, sizeof key, "%s." part, archs[s->family]), key)
	gguf_put_str(w, "general.architecture", archs[s->family]);
	gguf_put_str(w, "general.name", "random weights");
	gguf_put_u32(w, KEY("block_count"), (uint32_t)s->layers);
	gguf_put_u32(w, KEY("context_length"), (uint32_t)s->context);
	gguf_put_u32(w, KEY("embedding_length"), (uint32_t)s->embd);
	gguf_put_u32(w, KEY("feed_forward_length"), (uint32_t)s->ffn);
	gguf_put_u32(w, KEY("attention.head_count"), (uint32_t)s->heads);
	gguf_put_u32(w, KEY("attention.head_count_kv"), (uint32_t)s->kv_heads);
	gguf_put_f32(w, KEY("attention.layer_norm_rms_epsilon"), s->eps);
	gguf_put_f32(w, KEY("rope.freq_base"), s->rope_base);
	gguf_put_u32(
	    w, KEY("rope.dimension_count"), (uint32_t)(s->embd / s->heads));
	gguf_put_u32(w, KEY("vocab_size"), (uint32_t)s->vocab);
	gguf_put_bool(w, KEY("attention.causal"), 0);
#undef KEY
	if (s->family != DREAM)
		gguf_put_bool(w, "diffusion.shift_logits", 0);
	if (m->mix >= MIX)
		gguf_put_u32(w, "general.file_type",
		    quantmix_file_type((enum quantmix)(m->mix - MIX)));
	put_vocabulary(m);
}

static void
add_tensors(struct model *m)
{
	add_matrix(m, "token_embd.weight", m->s.embd, m->s.vocab);
	for (uint64_t i = 0; i < m->s.layers; i++)
		add_layer(m, i);
	add_vector(m, "output_norm.weight", m->s.embd, 1, 0.1f);
	if (!m->tied)
		add_matrix(m, "output.weight", m->s.embd, m->s.vocab);
}

/* Draw and write the bytes of a tensor, a batch or a row at a time. */
static int
write_tensor(struct model *m, const struct tensor *t, uint64_t state, FILE *f,
    struct err *err)
{
	uint64_t block = ggml_type_info(t->type)->block_bytes;
	uint64_t n, left, batch = BATCH / block * block, row = 0;
	float *x = malloc((size_t)t->n_in * sizeof *x);
	unsigned char *buf;
	int rc = 0;

	if (t->plant)
		batch = ggml_row_bytes(t->type, t->n_in);
	buf = malloc((size_t)batch);
	if (!x || !buf)
		rc = err_set(err, "out of memory");
	for (left = t->bytes; rc == 0 && left > 0; left -= n, row++) {
		n = left < batch ? left : batch;
		draw(t->type, &state, buf, (size_t)n, t->mean, t->std);
		if (t->plant) {
			decode_row(t->type, buf, (size_t)t->n_in, x);
			if (t->plant(m, row, x))
				quantize_row(t->type, x, (size_t)t->n_in, buf);
		}
		rc = gguf_write_data(&m->w, f, buf, (size_t)n, err);
	}
	free(x);
	free(buf);
	return rc;
}

static int
write_tensors(struct model *m, FILE *f, struct err *err)
{
	uint64_t state;

	for (int i = 0; i < m->n; i++) {
		state = m->seed * 0x2545f4914f6cdd1du + (uint64_t)i;
		state = next(&state);
		if (write_tensor(m, &m->todo[i], state, f, err) < 0)
			return -1;
	}
	return gguf_write_end(&m->w, err);
}

static void
check_shape(const struct model *m)
{
	const struct shape *s = &m->s;
	struct err err = { 0 };
	int blocks = m->mix >= MIX_ALL || ggml_type_info(m->mix)->block > 1;

	if (s->embd % s->heads || s->embd / s->heads % 2)
		err_set(&err, "--embd must be an even multiple of --heads");
	else if (s->heads % s->kv_heads)
		err_set(&err, "--heads must be a multiple of --kv-heads");
	else if (blocks && (s->embd % 32 || s->ffn % 32))
		err_set(&err, "--embd and --ffn must be multiples of 32");
	else if (m->outliers > s->embd || m->outliers > s->ffn)
		err_set(&err, "--outliers must not be above --embd or --ffn");
	else if (s->vocab < 264)
		err_set(&err, "--vocab must be at least 264");
	if (err.set)
		tool_usage(&err);
}

/* What the command line gave (0: nothing) over the preset. */
static void
override(struct shape *s, const struct shape *given, int family)
{
	if (given->layers)
		s->layers = given->layers;
	if (given->embd)
		s->embd = given->embd;
	if (given->ffn)
		s->ffn = given->ffn;
	if (given->heads)
		s->heads = s->kv_heads = given->heads;
	if (given->kv_heads)
		s->kv_heads = given->kv_heads;
	if (given->vocab)
		s->vocab = given->vocab;
	if (given->context)
		s->context = given->context;
	if (family >= 0 && family != s->family) {
		s->family = family;
		s->eps = presets[family == DREAM ? DREAM_7B : LLADA_8B].eps;
		s->rope_base =
		    presets[family == DREAM ? DREAM_7B : LLADA_8B].rope_base;
	}
}

static int
write_model(struct model *m, const char *path, struct err *err)
{
	struct outfile out;

	m->todo = calloc(m->s.layers * 12 + 3, sizeof *m->todo);
	if (!m->todo)
		return err_set(err, "out of memory");
	put_metadata(m);
	add_tensors(m);
	if (io_create_large(&out, path, err) < 0)
		return -1;
	if (gguf_write_head(&m->w, out.f, err) < 0 ||
	    write_tensors(m, out.f, err) < 0) {
		io_abort(&out);
		return err_prefix(err, "%s", path);
	}
	gguf_writer_free(&m->w);
	free(m->todo);
	return io_commit(&out, err);
}

int
main(int argc, char **argv)
{
	static struct model m = { .seed = 1 };
	struct shape s = { 0 };
	const char *output = NULL;
	struct err err = { 0 };
	int shape = TINY, mix = 0, family = -1, have_output = 0;
	const struct opt opts[] = {
		{ "shape", OPT_WORD, &shape, "S",
		    "tiny, llada-8b, dream-7b or illada-8b; the options below "
		    "change it",
		    .words = shapes },
		{ "family", OPT_WORD, &family, "F", "llada, dream or illada",
		    .words = families },
		{ "layers", OPT_UINT, &s.layers, "N", "layers", .min = 1,
		    .max = 512 },
		{ "embd", OPT_UINT, &s.embd, "N", "width", .min = 2 },
		{ "ffn", OPT_UINT, &s.ffn, "N", "feed-forward width",
		    .min = 1 },
		{ "heads", OPT_UINT, &s.heads, "N", "attention heads",
		    .min = 1 },
		{ "kv-heads", OPT_UINT, &s.kv_heads, "N", "key/value heads",
		    .min = 1 },
		{ "vocab", OPT_UINT, &s.vocab, "N", "tokens", .min = 1 },
		{ "context", OPT_UINT, &s.context, "N", "context length",
		    .min = 1 },
		{ "type", OPT_WORD, &mix, "T",
		    "Q4_K_M (default), Q5_K_M, Q4_K_S, mixed, or one type",
		    .words = mixes },
		{ "tied", OPT_FLAG, &m.tied, NULL, "no output.weight" },
		{ "outliers", OPT_UINT, &m.outliers, "N",
		    "channels with massive activations on control tokens" },
		{ "seed", OPT_UINT, &m.seed, "N", "seed of the weights",
		    .max = UINT64_MAX },
		{ "output", OPT_STR, &output, "FILE", "the file to write",
		    .required = 1, .given = &have_output },
		{ 0 },
	};
	int rest = tool_start(
	    opts, argc, argv, "Write a GGUF model with random weights.");

	tool_no_operands(rest, argc, argv);
	m.s = presets[shape];
	override(&m.s, &s, family);
	m.tied |= shape == ILLADA_8B;
	m.mix = mix_types[mix];
	check_shape(&m);
	if (write_model(&m, output, &err) < 0)
		tool_fail(&err);
	return tool_finish();
}
