/*
 * What real models need, by the count that dllm-forward makes before it loads
 * one: the file and the activations of a canvas.  A result for each model.  No
 * weights are needed.
 *
 * Shapes: config.json of LLaDA-8B and Dream-7B.  Files: tensor data of their
 * Q4_K_M and F16 files by llama.cpp's rule for that mix.
 */
#define PROG "memory"
#define USAGE "memory [options]"

#include "forward.h"
#include "machine.h"
#include "tool.h"

static const char *output;

static const struct opt options[] = {
	{ "output", OPT_STR, &output, .arg = "FILE",
	    .help = "write there, not to standard output" },
	{ 0 }
};

struct shape {
	const char *name;
	size_t n_vocab, n_embd, n_ff, n_layers, n_heads, n_kv_heads, head_dim;
	double file; /* bytes, Q4_K_M */
};

static const struct shape shapes[] = {
	{ "LLaDA-8B", 126464, 4096, 12288, 32, 32, 32, 128, 4920049664.0 },
	{ "Dream-7B", 152064, 3584, 18944, 28, 28, 4, 128, 4677120000.0 },
};

static int
measure(struct results *to, const struct shape *s, struct pool *pool,
    const struct kern *kern, struct err *err)
{
	static struct layer layers[64];
	struct model m = { .family = NULL, .layer = layers };
	struct forward_options o = {
		.kern = kern, .pool = pool, .max_length = 4096
	};
	struct forward *f;

	m.n_vocab = s->n_vocab;
	m.n_embd = s->n_embd;
	m.n_ff = s->n_ff;
	m.n_layers = s->n_layers;
	m.n_heads = s->n_heads;
	m.n_kv_heads = s->n_kv_heads;
	m.head_dim = s->head_dim;
	m.context = o.max_length;
	if (forward_open(&f, &m, &o, err) < 0)
		return -1;
	results_next(to);
	fprintf(to->f, "{\"model\":\"%s\",\"file_gb\":%.1f,"
	               "\"gb_at_512\":%.1f,\"gb_at_4096\":%.1f}",
	    s->name, s->file / 1e9,
	    (s->file + (double)forward_bytes(f, 512)) / 1e9,
	    (s->file + (double)forward_bytes(f, 4096)) / 1e9);
	forward_close(f);
	return 0;
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	struct results to;
	const struct kern *kern;
	struct pool *pool;

	tool_no_operands(tool_start(options, argc, argv,
	    "Count the memory that real models need."), argc, argv);
	if (kern_select(&kern, NULL, 0, &err) != KERN_OK ||
	    pool_open(&pool, 1, &err) < 0 ||
	    results_begin(&to, output, "memory", argc, argv, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (measure(&to, &shapes[i], pool, kern, &err) < 0)
			tool_fail(&err);
	if (results_end(&to, &err) < 0)
		tool_fail(&err);
	pool_close(pool);
	return tool_finish();
}
