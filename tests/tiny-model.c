/*
 * Writes the tiny golden models in F32: two layers of numbers from a linear
 * congruential generator, the same bytes everywhere, so that the golden logits
 * and stages of other software apply and five megabytes need not be kept.
 * Damaged ones too, on request.
 */
#define PROG "tiny-model"
#define USAGE "tiny-model [options] --output FILE"

#include <math.h>

#include "gguf_write.h"
#include "tool.h"
#include "utf8.h"
#include "vocab.h"

enum { LLADA, DREAM };
enum { VOCAB = 272, EMBD = 256, FFN = 512, HEADS = 4, HEAD = 64, LAYERS = 2 };
enum { MAX_TENSORS = 32 };

static const char *const archs[] = { "llada", "dream", NULL };
static const char *output, *nan_tensor, *arch_text;
static int arch, huge;

static const struct opt options[] = {
	{ "output", OPT_STR, &output, .arg = "FILE", .help = "where to write" },
	{ "arch", OPT_WORD, &arch, .arg = "llada|dream", .words = archs,
	    .help = "family" },
	{ "nan", OPT_STR, &nan_tensor, .arg = "TENSOR",
	    .help = "make its last element NaN" },
	{ "name-arch", OPT_STR, &arch_text, .arg = "NAME",
	    .help = "value of general.architecture" },
	{ "huge", OPT_FLAG, &huge,
	    .help = "terabytes of feed-forward, as a hole in the file" },
	{ 0 }
};

struct tensor {
	char name[GGUF_MAX_NAME];
	uint64_t n_in, n_out; /* n_out 0: a vector */
	float scale, one;
};

static struct tensor list[MAX_TENSORS];
static int n_list;

static void
add(const char *name, uint64_t n_in, uint64_t n_out, float scale, float one)
{
	struct tensor *t = &list[n_list++];

	snprintf(t->name, sizeof t->name, "%s", name);
	t->n_in = n_in;
	t->n_out = n_out;
	t->scale = scale;
	t->one = one;
}

static void
add_blk(int i, const char *rest, uint64_t n_in, uint64_t n_out, float scale,
    float one)
{
	char name[GGUF_MAX_NAME];

	snprintf(name, sizeof name, "blk.%d.%s", i, rest);
	add(name, n_in, n_out, scale, one);
}

static void
list_tensors(uint64_t ffn)
{
	uint64_t q = HEADS * HEAD, kv = arch == DREAM ? q / 2 : q;

	add("token_embd.weight", EMBD, VOCAB, 1, 0);
	for (int i = 0; i < LAYERS; i++) {
		add_blk(i, "attn_norm.weight", EMBD, 0, 0.25f, 1);
		add_blk(i, "attn_q.weight", EMBD, q, 0.125f, 0);
		add_blk(i, "attn_k.weight", EMBD, kv, 0.125f, 0);
		add_blk(i, "attn_v.weight", EMBD, kv, 0.0625f, 0);
		add_blk(i, "attn_output.weight", q, EMBD, 0.0625f, 0);
		if (arch == DREAM) {
			add_blk(i, "attn_q.bias", q, 0, 0.5f, 0);
			add_blk(i, "attn_k.bias", kv, 0, 0.5f, 0);
			add_blk(i, "attn_v.bias", kv, 0, 0.5f, 0);
		}
		add_blk(i, "ffn_norm.weight", EMBD, 0, 0.25f, 1);
		add_blk(i, "ffn_gate.weight", EMBD, ffn, 0.0625f, 0);
		add_blk(i, "ffn_up.weight", EMBD, ffn, 0.0625f, 0);
		add_blk(i, "ffn_down.weight", ffn, EMBD, 0.0625f, 0);
	}
	add("output_norm.weight", EMBD, 0, 0.25f, 1);
	add("output.weight", EMBD, VOCAB, 0.0625f, 0);
}

static void
put_u32(struct gguf_writer *w, const char *name, uint32_t v)
{
	char key[96];

	snprintf(key, sizeof key, "%s.%s", archs[arch], name);
	gguf_put_u32(w, key, v);
}

static void
put_f32(struct gguf_writer *w, const char *name, float v)
{
	char key[96];

	snprintf(key, sizeof key, "%s.%s", archs[arch], name);
	gguf_put_f32(w, key, v);
}

static void
put_tokens(struct gguf_writer *w)
{
	static const char *const special[] = { "ab", "<|bos|>", "<|eos|>",
		"<|mask|>" };
	char text[16];
	size_t n;

	gguf_put_array(w, "tokenizer.ggml.tokens", GGUF_STRING, VOCAB);
	for (int i = 0; i < VOCAB; i++) {
		if (i < 256)
			n = utf8_encode(vocab_byte_to_char((uint8_t)i), text);
		else if (i < 260)
			n = (size_t)snprintf(
			    text, sizeof text, "%s", special[i - 256]);
		else
			n = (size_t)snprintf(
			    text, sizeof text, "[PAD%d]", i);
		gguf_item_str(w, text, n);
	}
	gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, VOCAB);
	for (int i = 0; i < VOCAB; i++)
		gguf_item_i32(w, i < 257 ? 1 : i < 260 ? 3 : 5);
}

static void
put_keys(struct gguf_writer *w, uint32_t ffn)
{
	char key[96];

	gguf_put_str(w, "general.architecture",
	    arch_text ? arch_text : archs[arch]);
	gguf_put_str(w, "general.name", "tiny");
	gguf_put_u32(w, "general.alignment", GGUF_ALIGNMENT);
	put_u32(w, "block_count", LAYERS);
	put_u32(w, "context_length", 512);
	put_u32(w, "embedding_length", EMBD);
	put_u32(w, "feed_forward_length", ffn);
	put_u32(w, "attention.head_count", HEADS);
	put_u32(w, "attention.head_count_kv", arch == DREAM ? 2 : HEADS);
	put_f32(w, "attention.layer_norm_rms_epsilon",
	    arch == DREAM ? 1e-6f : 1e-5f);
	put_f32(w, "rope.freq_base", arch == DREAM ? 1e6f : 5e5f);
	put_u32(w, "rope.dimension_count", HEAD);
	put_u32(w, "vocab_size", VOCAB);
	snprintf(key, sizeof key, "%s.attention.causal", archs[arch]);
	gguf_put_bool(w, key, 0);
	gguf_put_bool(w, "diffusion.shift_logits", arch == DREAM);
	gguf_put_str(w, "tokenizer.ggml.model", "gpt2");
	gguf_put_str(w, "tokenizer.ggml.pre",
	    arch == DREAM ? "qwen2" : "bailingmoe");
	put_tokens(w);
	gguf_put_array(w, "tokenizer.ggml.merges", GGUF_STRING, 1);
	gguf_item_str(w, "a b", 3);
	gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 257);
	gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 258);
	gguf_put_u32(w, "tokenizer.ggml.padding_token_id", 258);
	gguf_put_u32(w, "tokenizer.ggml.mask_token_id", 259);
	gguf_put_u32(w, "general.file_type", 0);
}

/* Tensor k has seed 1000 + k; numbers run row by row. */
static int
write_tensor(struct gguf_writer *w, FILE *f, int k, struct err *err)
{
	const struct tensor *t = &list[k];
	uint64_t n = t->n_in * (t->n_out ? t->n_out : 1);
	uint32_t s = (uint32_t)(1000 + k);
	float *v = malloc((size_t)n * sizeof *v);
	int rc;

	if (!v)
		return err_set(err, "out of memory");
	for (uint64_t i = 0; i < n; i++) {
		s = s * 1664525u + 1013904223u;
		v[i] = t->one +
		    (float)((int32_t)(s >> 8) - 8388608) / 8388608.0f *
		        t->scale;
	}
	if (nan_tensor && !strcmp(nan_tensor, t->name))
		v[n - 1] = (float)NAN;
	rc = gguf_write_data(w, f, v, (size_t)n * sizeof *v, err);
	free(v);
	return rc;
}

static int
write_all(struct gguf_writer *w, FILE *f, struct err *err)
{
	if (gguf_write_head(w, f, err) < 0)
		return -1;
	if (huge) {
		if (fflush(f) != 0 ||
		    ftruncate(fileno(f), ftello(f) + (off_t)w->end) < 0)
			return err_sys(err, "cannot make a hole");
		return 0;
	}
	for (int k = 0; k < n_list; k++)
		if (write_tensor(w, f, k, err) < 0)
			return -1;
	return gguf_write_end(w, err);
}

int
main(int argc, char **argv)
{
	struct gguf_writer w = { 0 };
	struct outfile o;
	struct err err = { 0 };
	uint64_t ffn;

	tool_no_operands(tool_start(options, argc, argv, "Tiny models."), argc,
	    argv);
	ffn = huge ? 1 << 28 : FFN;
	list_tensors(ffn);
	put_keys(&w, (uint32_t)ffn);
	for (int k = 0; k < n_list; k++) {
		uint64_t ne[2] = { list[k].n_in, list[k].n_out };

		gguf_add_tensor(
		    &w, list[k].name, list[k].n_out ? 2 : 1, ne, GGML_F32);
	}
	if (!output)
		err_set(&err, "--output is required");
	if (err.set || io_create(&o, output, &err) < 0 ||
	    write_all(&w, o.f, &err) < 0 || io_commit(&o, &err) < 0)
		tool_fail(&err);
	gguf_writer_free(&w);
	return tool_finish();
}
