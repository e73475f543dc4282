/*
 * usage: model_fuzz [ROUNDS [SEED]]
 *
 * Models of random shape and types, most of them damaged, through the loader,
 * the tokeniser and the transformer: whatever is in a file must end in logits
 * or a message, and every group of kernels must end alike, to the bit.  Files
 * lie in buffers of their exact size, so that a sanitizer sees the rest.  The
 * same arguments do the same.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "chat.h"
#include "cpu.h"
#include "forward.h"
#include "gguf_write.h"
#include "io.h"
#include "mapped.h"
#include "quantize.h"
#include "tap.h"

enum { MAX_TENSORS = 64, MAX_TOKENS = 40, MAX_MEMORY = 1 << 28 };

static char path[] = "/tmp/dllm-model-fuzz.XXXXXX";
static const struct kern *kerns[8];
static int n_kerns;
static struct pool *pools[2];
static uint64_t state;

/* Instead of the library's: memory that ends where the file ends. */
void *
mapped_open(int fd, size_t n, int protection, const char *name)
{
	void *p = malloc(n);

	(void)protection;
	(void)name;
	if (p && io_read_all(fd, p, n) != (ssize_t)n) {
		free(p);
		return NULL;
	}
	return p;
}

void
mapped_close(void *p, size_t n)
{
	(void)n;
	free(p);
}

const char *
mapped_name(const void *address)
{
	(void)address;
	return NULL;
}

/* xorshift64 */
static uint64_t
draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 8) % below;
}

static float
draw_real(float scale)
{
	return ((float)draw(1 << 20) / (1 << 19) - 1) * scale;
}

/* ---- a model ---------------------------------------------------------- */

struct shape {
	int dream, layers, bias;
	uint64_t embd, head_dim, kv_heads, group, ff, vocab;
};

struct tensor {
	char name[GGUF_MAX_NAME];
	uint64_t ne[2];
	int n_dims;
	enum ggml_type type;
};

static struct tensor tensors[MAX_TENSORS];
static int n_tensors;

static uint64_t
draw_width(void)
{
	static const uint64_t w[] = { 1, 3, 8, 12, 31, 32, 64, 96, 160, 256,
		288, 512 };

	return w[draw(sizeof w / sizeof *w)];
}

static void
draw_shape(struct shape *s)
{
	static const uint64_t d[] = { 2, 4, 6, 8, 10, 16, 24, 32, 48, 64, 80,
		128 };

	s->dream = (int)draw(2);
	s->layers = 1 + (int)draw(2);
	s->embd = draw_width();
	if (s->embd < 9)
		s->embd += 9; /* a width per head at least */
	s->ff = draw_width();
	s->head_dim = d[draw(sizeof d / sizeof *d)];
	s->kv_heads = 1 + draw(3);
	s->group = 1 + draw(3);
	s->vocab = 20 + draw(60);
}

/* Any type that rows of n_in elements can have. */
static enum ggml_type
draw_type(uint64_t n_in, int n_dims)
{
	static const enum ggml_type t[] = { GGML_F32, GGML_F16, GGML_BF16,
		GGML_Q4_0, GGML_Q4_1, GGML_Q5_0, GGML_Q5_1, GGML_Q8_0,
		GGML_Q2_K, GGML_Q3_K, GGML_Q4_K, GGML_Q5_K, GGML_Q6_K,
		GGML_IQ4_NL, GGML_IQ4_XS, GGML_MXFP4 };
	enum ggml_type type;

	do
		type = t[draw(n_dims == 1 ? 3 : sizeof t / sizeof *t)];
	while (n_in % ggml_type_info(type)->block);
	return type;
}

static void
add(const char *name, int n_dims, uint64_t n_in, uint64_t n_out)
{
	struct tensor *t = &tensors[n_tensors++];

	snprintf(t->name, sizeof t->name, "%s", name);
	t->n_dims = n_dims;
	t->ne[0] = n_in;
	t->ne[1] = n_out;
	t->type = draw_type(n_in, n_dims);
}

static void
add_blk(int i, const char *rest, int n_dims, uint64_t n_in, uint64_t n_out)
{
	char name[GGUF_MAX_NAME];

	snprintf(name, sizeof name, "blk.%d.%s", i, rest);
	add(name, n_dims, n_in, n_out);
}

static void
list_tensors(const struct shape *s)
{
	uint64_t q = s->head_dim * s->kv_heads * s->group;
	uint64_t kv = s->head_dim * s->kv_heads;

	n_tensors = 0;
	add("token_embd.weight", 2, s->embd, s->vocab);
	for (int i = 0; i < s->layers; i++) {
		add_blk(i, "attn_norm.weight", 1, s->embd, 1);
		add_blk(i, "attn_q.weight", 2, s->embd, q);
		add_blk(i, "attn_k.weight", 2, s->embd, kv);
		add_blk(i, "attn_v.weight", 2, s->embd, kv);
		if (s->dream) {
			add_blk(i, "attn_q.bias", 1, q, 1);
			add_blk(i, "attn_k.bias", 1, kv, 1);
			add_blk(i, "attn_v.bias", 1, kv, 1);
		}
		add_blk(i, "attn_output.weight", 2, q, s->embd);
		add_blk(i, "ffn_norm.weight", 1, s->embd, 1);
		add_blk(i, "ffn_gate.weight", 2, s->embd, s->ff);
		add_blk(i, "ffn_up.weight", 2, s->embd, s->ff);
		add_blk(i, "ffn_down.weight", 2, s->ff, s->embd);
	}
	add("output_norm.weight", 1, s->embd, 1);
	if (draw(4))
		add("output.weight", 2, s->embd, s->vocab);
}

static void
put_tokens(struct gguf_writer *w, uint64_t n)
{
	char text[16];

	gguf_put_str(w, "tokenizer.ggml.model", "gpt2");
	gguf_put_str(w, "tokenizer.ggml.pre", draw(2) ? "qwen2" : "llama-bpe");
	gguf_put_array(w, "tokenizer.ggml.tokens", GGUF_STRING, n);
	for (uint64_t i = 0; i < n; i++) {
		if (i < 15)
			snprintf(text, sizeof text, "%c", "aber e stuv<|>."[i]);
		else
			snprintf(text, sizeof text, "<|%c%d|>", "be"[i % 2],
			    (int)i);
		if (i == 5 || i == 3)
			snprintf(text, sizeof text, "%s", i == 3 ? "ab" : "be");
		gguf_item_str(w, text, strlen(text));
	}
	gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, n);
	for (uint64_t i = 0; i < n; i++)
		gguf_item_i32(w, i < 15 ? 1 : 3 + (int)draw(2));
	gguf_put_array(w, "tokenizer.ggml.merges", GGUF_STRING, 2);
	gguf_item_str(w, "a b", 3);
	gguf_item_str(w, "b e", 3);
}

static void
put_keys(struct gguf_writer *w, const struct shape *s)
{
	const char *arch = s->dream ? "dream" : "llada";
	const struct {
		const char *name;
		uint64_t value;
	} keys[] = { { "block_count", (uint64_t)s->layers },
		{ "context_length", 64 }, { "embedding_length", s->embd },
		{ "feed_forward_length", s->ff },
		{ "attention.head_count", s->kv_heads * s->group },
		{ "attention.head_count_kv", s->kv_heads },
		{ "attention.key_length", s->head_dim },
		{ "attention.value_length", s->head_dim },
		{ "vocab_size", s->vocab } };
	char key[96];

	gguf_put_str(w, "general.architecture", arch);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, keys[i].name);
		gguf_put_u32(w, key, (uint32_t)keys[i].value);
	}
	snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
	gguf_put_f32(w, key, 1e-5f);
	snprintf(key, sizeof key, "%s.rope.freq_base", arch);
	gguf_put_f32(w, key, 10000);
	gguf_put_bool(w, "diffusion.shift_logits", s->dream);
	gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 16);
	gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 17);
	gguf_put_u32(w, "tokenizer.ggml.mask_token_id", 18);
	put_tokens(w, s->vocab);
}

static void
write_tensor(struct gguf_writer *w, FILE *f, const struct tensor *t,
    struct err *err)
{
	size_t n = (size_t)(t->ne[0] * t->ne[1]);
	size_t bytes = (size_t)ggml_row_bytes(t->type, n);
	float *x = malloc(n * sizeof *x);
	void *out = malloc(bytes);

	for (size_t i = 0; i < n; i++)
		x[i] = draw_real(t->n_dims == 1 ? 1 : 0.2f);
	quantize_row(t->type, x, n, out);
	gguf_write_data(w, f, out, bytes, err);
	free(x);
	free(out);
}

/* A whole model in *bytes (malloc); its size. */
static size_t
make_model(char **bytes, struct err *err)
{
	struct gguf_writer w = { 0 };
	struct shape s;
	size_t n = 0;
	FILE *f = open_memstream(bytes, &n);

	draw_shape(&s);
	list_tensors(&s);
	put_keys(&w, &s);
	for (int i = 0; i < n_tensors; i++)
		gguf_add_tensor(&w, tensors[i].name, tensors[i].n_dims,
		    tensors[i].ne, tensors[i].type);
	gguf_write_head(&w, f, err);
	for (int i = 0; i < n_tensors; i++)
		write_tensor(&w, f, &tensors[i], err);
	gguf_write_end(&w, err);
	fclose(f);
	gguf_writer_free(&w);
	return n;
}

/* ---- damage ------------------------------------------------------------ */

/* Values that have broken loaders. */
static uint64_t
nasty(void)
{
	static const uint64_t v[] = { 0, 1, 2, 3, 7, 16, 17, 33, 64, 255, 256,
		1024, 65535, 1u << 24, INT32_MAX, 1u << 31, UINT32_MAX,
		1ull << 32, 1ull << 61, INT64_MAX, UINT64_MAX };

	return v[draw(sizeof v / sizeof *v)];
}

static void
damage(char *p, size_t n)
{
	uint64_t v;
	size_t at, m;

	switch (draw(5)) {
	case 0:
		p[draw(n)] ^= (char)(1 << draw(8));
		break;
	case 1:
		p[draw(n)] = (char)draw(256);
		break;
	case 2: /* a number */
		m = draw(2) ? 8 : 4;
		at = draw(n - m);
		v = nasty();
		for (size_t i = 0; i < m; i++)
			p[at + i] = (char)(v >> 8 * i);
		break;
	case 3: /* no number is finite any more */
		m = 1 + draw(64);
		memset(p + draw(n - m), draw(2) ? 0xff : 0x7c, m);
		break;
	default: /* a piece from elsewhere */
		m = 1 + draw(n / 8);
		memmove(p + draw(n - m), p + draw(n - m), m);
	}
}

/* Half of the time where the metadata are. */
static size_t
damage_file(char *bytes, size_t n)
{
	size_t head = n < 4096 ? n : 4096;

	for (uint64_t k = draw(4); k > 0; k--)
		damage(bytes, draw(2) ? head : n);
	return draw(8) ? n : n - draw(n - 64);
}

/* ---- use --------------------------------------------------------------- */

struct outcome {
	struct err err;
	size_t rows;
	float *logits;
};

static void
run_model(struct outcome *o, const struct model *m, const struct kern *k,
    struct pool *pool, int float_activations, const int32_t *ids, size_t n,
    const struct ranges *rows)
{
	struct forward_options opt = { .kern = k, .pool = pool,
		.float_activations = float_activations,
		.max_length = MAX_TOKENS };
	struct forward *f;

	memset(o, 0, sizeof *o);
	if (forward_open(&f, m, &opt, &o->err) < 0)
		return;
	if (forward_bytes(f, n) > MAX_MEMORY)
		err_set(&o->err, "too large");
	else if (forward_hidden(f, ids, n, rows, &o->err) == 0) {
		o->rows = forward_rows(f);
		o->logits = malloc(o->rows * m->n_vocab * sizeof *o->logits + 1);
		forward_head(f, 0, o->rows, o->logits, &o->err);
	}
	forward_close(f);
}

static int
same(const struct outcome *a, const struct outcome *b, size_t vocab)
{
	return !strcmp(a->err.msg, b->err.msg) &&
	    (a->err.set || (a->rows == b->rows &&
	        !memcmp(a->logits, b->logits,
	            a->rows * vocab * sizeof *a->logits)));
}

/* 1: logits, 0: a message, -1: kernels that disagree. */
static int
run_all(const struct model *m, int whole)
{
	size_t n = 2 + draw(MAX_TOKENS - 1), from = 1 + draw(n - 1);
	int32_t ids[MAX_TOKENS];
	struct range r = { from, 1 + draw(n - from) };
	struct ranges rows = { .r = &r, .n = 1, .total = r.count };
	const struct ranges *wanted = draw(2) ? &rows : NULL;
	int floats = draw(4) == 0, rc;
	struct outcome first, o;

	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)draw(m->n_vocab < 20 ? m->n_vocab : 20);
	run_model(&first, m, kerns[0], pools[0], floats, ids, n, wanted);
	rc = !first.err.set;
	for (int i = 1; i < n_kerns; i++) {
		run_model(&o, m, kerns[i], pools[i % 2], floats, ids, n,
		    wanted);
		if (!same(&first, &o, m->n_vocab)) {
			printf("# %s differs: %s / %s\n", kerns[i]->name,
			    first.err.msg, o.err.msg);
			rc = -1;
		}
		free(o.logits);
	}
	if (whole && !rc)
		printf("# %s\n", first.err.msg);
	free(first.logits);
	return rc;
}

static void
use_tokenizer(void)
{
	static const char text[] = "be a bestseller <|b18|><|e17|> \xff ab\n";
	char piece[VOCAB_MAX_TEXT];
	struct tokens ids = { 0 };
	struct tokenizer t;
	struct err err = { 0 };
	struct gguf_str template;
	struct gguf g;

	if (gguf_open(&g, path, &err) < 0)
		return;
	if (tokenizer_init(&t, &g, &err) == 0) {
		tokenizer_encode(&t, text, sizeof text, 1, &ids, &err);
		for (size_t i = 0; i < ids.n; i++)
			vocab_piece(&t.vocab, ids.id[i], 1, piece);
		if (gguf_get_str(&g, "tokenizer.chat_template", &template,
		        &err) > 0)
			chat_recognise(template);
		tokenizer_free(&t);
	}
	tokens_free(&ids);
	gguf_close(&g);
}

static void
save(const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		printf("Bail out! cannot write %s\n", path);
}

/* As run_all, and -2 for a refusal without a message. */
static int
one_round(int *whole)
{
	struct err err = { 0 };
	struct model m;
	char *bytes = NULL;
	size_t n = make_model(&bytes, &err);
	int rc = 0;

	*whole = draw(3) == 0;
	if (!*whole)
		n = damage_file(bytes, n);
	save(bytes, n);
	free(bytes);
	if (err.set)
		printf("# %s\n", err.msg);
	use_tokenizer();
	if (model_open(&m, path, &err) < 0) {
		if (*whole)
			printf("# %s\n", err.msg);
		return *err.msg ? 0 : -2;
	}
	rc = run_all(&m, *whole);
	model_close(&m);
	return rc;
}

static void
find_kernels(void)
{
	struct err err;

	for (int i = 0; kern_names[i]; i++) {
		memset(&err, 0, sizeof err);
		if (kern_select(&kerns[n_kerns], kern_names[i], cpu_flags(),
		        &err) == KERN_OK)
			n_kerns++;
	}
	kerns[n_kerns] = kern_evex(cpu_flags());
	n_kerns += kerns[n_kerns] != NULL;
}

int
main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 150;
	unsigned long good = 0, damaged = 0, refused = 0, bad = 0, silent = 0;
	struct err err = { 0 };
	int fd = mkstemp(path), rc, whole;

	state = argc > 2 ? strtoul(argv[2], NULL, 10) | 1 : 88172645463325252u;
	find_kernels();
	ok(fd >= 0 && pool_open(&pools[0], 1, &err) == 0 &&
	        pool_open(&pools[1], 3, &err) == 0,
	    "%d groups of kernels", n_kerns);
	for (unsigned long i = 0; i < n; i++) {
		uint64_t before = state;

		rc = one_round(&whole);
		good += whole && rc == 1;
		damaged += !whole && rc == 1;
		refused += !whole && rc == 0;
		silent += rc == -2;
		bad += rc == -1 || (whole && rc == 0);
		if (rc == -1 || (whole && rc == 0))
			printf("# seed %llu\n", (unsigned long long)before);
	}
	ok(!silent, "every refusal has a message");
	ok(!bad, "all kernels agree, and whole models run");
	/* All must happen, or this is no test. */
	ok(good > n / 8 && damaged > n / 50 && refused > n / 8,
	    "%lu whole models, %lu damaged that run, %lu that do not", good,
	    damaged, refused);
	pool_close(pools[0]);
	pool_close(pools[1]);
	close(fd);
	unlink(path);
	return tap_end();
}
