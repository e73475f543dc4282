/*
 * The mixes: layer by layer for the shapes of LLaDA-8B and Dream-7B, whose
 * tensor lists llama.cpp's quantiser was run on, and odd shapes.
 */
#include "quantmix.h"
#include "tap.h"

struct shape {
	uint64_t layers, embd, ffn, kv, vocab;
	int biases;
};

static const struct shape llada = { 32, 4096, 12288, 4096, 126464, 0 };
static const struct shape dream = { 28, 3584, 18944, 512, 152064, 1 };

/* Bytes of a tensor after quantising; n_out 0: a vector. */
static uint64_t
bytes(enum quantmix mix, const struct quantmix_model *m, const char *name,
    uint64_t n_in, uint64_t n_out)
{
	struct gguf_tensor t = { .n_dims = n_out ? 2 : 1,
		.ne = { n_in, n_out },
		.type = n_out ? GGML_F16 : GGML_F32 };

	snprintf(t.name, sizeof t.name, "%s", name);
	return ggml_row_bytes(quantmix_tensor(mix, m, &t, NULL), n_in) *
	       (n_out ? n_out : 1);
}

static uint64_t
layer_bytes(enum quantmix mix, const struct quantmix_model *m,
    const struct shape *s, unsigned i)
{
	const struct {
		const char *part;
		uint64_t n_in, n_out;
	} parts[] = {
		{ "attn_q.weight", s->embd, s->embd },
		{ "attn_k.weight", s->embd, s->kv },
		{ "attn_v.weight", s->embd, s->kv },
		{ "attn_output.weight", s->embd, s->embd },
		{ "ffn_gate.weight", s->embd, s->ffn },
		{ "ffn_up.weight", s->embd, s->ffn },
		{ "ffn_down.weight", s->ffn, s->embd },
		{ "attn_norm.weight", s->embd, 0 },
		{ "ffn_norm.weight", s->embd, 0 },
		{ "attn_q.bias", s->biases * s->embd, 0 },
		{ "attn_k.bias", s->biases * s->kv, 0 },
		{ "attn_v.bias", s->biases * s->kv, 0 },
	};
	uint64_t sum = 0;
	char name[64];

	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		snprintf(name, sizeof name, "blk.%u.%s", i, parts[k].part);
		sum += bytes(mix, m, name, parts[k].n_in, parts[k].n_out);
	}
	return sum;
}

static uint64_t
model_bytes(enum quantmix mix, const struct shape *s)
{
	struct quantmix_model m = { s->layers, 0 };
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->layers; i++)
		sum += layer_bytes(mix, &m, s, i);
	return sum + bytes(mix, &m, "token_embd.weight", s->embd, s->vocab) +
	       bytes(mix, &m, "output.weight", s->embd, s->vocab) +
	       bytes(mix, &m, "output_norm.weight", s->embd, 0);
}

/* The layers whose tensor gets this type, as "0 1 5". */
static const char *
layers(enum quantmix mix, uint64_t n, const char *part, enum ggml_type type)
{
	static char list[256];
	struct quantmix_model m = { n, 0 };
	char name[64];
	int len = 0;

	list[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof name, "blk.%u.%s", i, part);
		if (quantmix_matrix(mix, &m, name, 256, NULL) == type)
			len += snprintf(list + len, sizeof list - (size_t)len,
			    "%s%u", len ? " " : "", i);
	}
	return list;
}

static void
test_layers(void)
{
	static const char n32[] = "0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31";
	static const char n28[] = "0 1 2 5 8 11 14 17 20 23 24 25 26 27";

	is(layers(QUANTMIX_Q4_K_M, 32, "attn_v.weight", GGML_Q6_K), n32,
	    "Q4_K_M, 32 layers: attn_v");
	is(layers(QUANTMIX_Q4_K_M, 32, "attn_qkv.weight", GGML_Q6_K), n32,
	    "Q4_K_M, 32 layers: attn_qkv");
	is(layers(QUANTMIX_Q4_K_M, 28, "ffn_down.weight", GGML_Q6_K), n28,
	    "Q4_K_M, 28 layers: ffn_down");
	is(layers(QUANTMIX_Q5_K_M, 28, "ffn_down.weight", GGML_Q6_K), n28,
	    "Q5_K_M, 28 layers: ffn_down");
	is(layers(QUANTMIX_Q4_K_S, 28, "attn_v.weight", GGML_Q5_K), "0 1 2 3",
	    "Q4_K_S: attn_v of the first four layers");
	is(layers(QUANTMIX_Q4_K_S, 28, "ffn_down.weight", GGML_Q5_K), "0 1 2",
	    "Q4_K_S: ffn_down of the first eighth");
	is(layers(QUANTMIX_Q4_K_M, 4, "attn_q.weight", GGML_Q4_K), "0 1 2 3",
	    "Q4_K_M: attn_q is Q4_K everywhere");
	is(layers(QUANTMIX_Q5_K_S, 4, "attn_v.weight", GGML_Q5_K), "0 1 2 3",
	    "Q5_K_S: attn_v too");
}

static void
test_sizes(void)
{
	ok(model_bytes(QUANTMIX_Q4_K_M, &llada) == 4920049664,
	    "LLaDA-8B as Q4_K_M: %llu bytes",
	    (unsigned long long)model_bytes(QUANTMIX_Q4_K_M, &llada));
	ok(model_bytes(QUANTMIX_Q4_K_M, &dream) == 4677120000,
	    "Dream-7B as Q4_K_M: %llu bytes",
	    (unsigned long long)model_bytes(QUANTMIX_Q4_K_M, &dream));
}

/* What becomes of one tensor: "Q4_K". */
static const char *
becomes(enum quantmix mix, int tied, const char *name, int n_dims, uint64_t ne0,
    uint64_t ne1)
{
	struct quantmix_model m = { 8, tied };
	struct gguf_tensor t = {
		.n_dims = n_dims, .ne = { ne0, ne1, 1, 1 }, .type = GGML_F32
	};

	snprintf(t.name, sizeof t.name, "%s", name);
	return ggml_type_name(quantmix_tensor(mix, &m, &t, NULL));
}

static void
test_tensors(void)
{
	static const struct {
		enum quantmix mix;
		int tied;
		const char *name;
		int n_dims;
		uint64_t ne0, ne1;
		const char *want;
	} cases[] = {
		{ QUANTMIX_Q4_K_M, 0, "output.weight", 2, 256, 9, "Q6_K" },
		{ QUANTMIX_Q4_0, 0, "output.weight", 2, 256, 9, "Q6_K" },
		{ QUANTMIX_Q8_0, 0, "output.weight", 2, 256, 9, "Q8_0" },
		{ QUANTMIX_F16, 0, "output.weight", 2, 256, 9, "F16" },
		{ QUANTMIX_Q4_K_M, 0, "token_embd.weight", 2, 256, 9, "Q4_K" },
		{ QUANTMIX_Q4_K_M, 1, "token_embd.weight", 2, 256, 9, "Q6_K" },
		{ QUANTMIX_Q4_K_S, 1, "token_embd.weight", 2, 96, 9, "Q8_0" },
		{ QUANTMIX_Q4_K_M, 0, "blk.2.attn_q.weight", 2, 96, 9, "Q5_0" },
		{ QUANTMIX_Q5_K_M, 0, "blk.2.attn_q.weight", 2, 96, 9, "Q5_1" },
		{ QUANTMIX_Q6_K, 0, "blk.2.attn_q.weight", 2, 96, 9, "Q8_0" },
		{ QUANTMIX_Q4_K_M, 0, "blk.0.attn_v.weight", 2, 96, 9, "Q8_0" },
		{ QUANTMIX_Q4_K_S, 0, "blk.0.attn_v.weight", 2, 96, 9, "Q5_1" },
		{ QUANTMIX_Q4_0, 0, "blk.2.attn_q.weight", 2, 96, 9, "Q4_0" },
		{ QUANTMIX_Q4_0, 0, "blk.2.attn_q.weight", 2, 40, 9, "F16" },
		{ QUANTMIX_Q4_K_M, 0, "blk.2.attn_q.weight", 2, 40, 9, "F16" },
		{ QUANTMIX_F32, 0, "blk.2.attn_q.weight", 2, 40, 9, "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.attn_q.bias", 2, 256, 9, "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.x_norm.weight", 2, 256, 9, "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.ffn_gate_inp.weight", 2, 256, 9,
		    "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.attn_q.weight", 1, 256, 1, "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.attn_q.weight", 2, 256, 1, "F32" },
		{ QUANTMIX_Q8_0, 0, "blk.0.attn_q.weight", 4, 256, 2, "Q8_0" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ok(!strcmp(becomes(cases[i].mix, cases[i].tied, cases[i].name,
			       cases[i].n_dims, cases[i].ne0, cases[i].ne1),
		       cases[i].want),
		    "%s: %s of (%d, %d) becomes %s",
		    quantmix_names[cases[i].mix], cases[i].name,
		    (int)cases[i].ne1, (int)cases[i].ne0, cases[i].want);
}

static void
test_order(void)
{
	static const char *const names[] = { "output.weight",
		"output_norm.weight", "token_embd.weight",
		"blk.0.attn_k.weight", "blk.0.ffn_up.weight",
		"blk.2.attn_k.weight", "blk.10.attn_k.weight" };
	enum { N = sizeof names / sizeof *names };
	int bad = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			int c = quantmix_order(names[i], names[j]);

			bad += (c > 0) - (c < 0) != (i > j) - (i < j);
		}
	ok(bad == 0, "the order of tensors");
	ok(quantmix_layer("blk.17.x") == 17 && quantmix_layer("blk.17") < 0 &&
		quantmix_layer("blk..x") < 0 && quantmix_layer("output") < 0 &&
		quantmix_layer("blk.99999999999999999999.x") < 0,
	    "layers");
}

int
main(void)
{
	int n = 0;

	while (quantmix_names[n])
		n++;
	ok(n == QUANTMIX_N, "a name for every mix");
	test_layers();
	test_sizes();
	test_tensors();
	test_order();
	return tap_end();
}
