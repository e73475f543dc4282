/*
 * Logits of llama.cpp, for npy-cmp: every row of the head, in order, float32.
 * usage: dump-llamacpp MODEL.gguf LOGITS.npy <TOKEN-LINE
 *
 * cc -o dump-llamacpp tests/ref/dump-llamacpp.c -I llama.cpp/include \
 *     -I llama.cpp/ggml/include -L llama.cpp/build/bin -lllama -lggml
 */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX = 4096 };

static void
fail(const char *what)
{
	fprintf(stderr, "dump-llamacpp: ERROR: %s\n", what);
	exit(1);
}

/* Version 1.0 of the format; the header's 128 bytes end with a line feed. */
static void
write_npy(const char *path, const float *x, int rows, int width)
{
	FILE *f = fopen(path, "wb");
	size_t n = (size_t)rows * (size_t)width;
	char header[118];
	int len = snprintf(header, sizeof header, "{'descr': '<f4', "
	    "'fortran_order': False, 'shape': (%d, %d), }", rows, width);

	if (!f)
		fail("cannot open the output");
	fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
	fprintf(f, "%s%*s\n", header, 117 - len, "");
	if (fwrite(x, sizeof *x, n, f) != n || fclose(f) != 0)
		fail("cannot write the output");
}

int
main(int argc, char **argv)
{
	struct llama_model_params mp = llama_model_default_params();
	struct llama_context_params cp = llama_context_default_params();
	struct llama_model *model;
	struct llama_context *ctx;
	struct llama_batch batch = llama_batch_init(MAX, 0, 1);
	int id;

	if (argc != 3)
		fail("usage: dump-llamacpp MODEL.gguf LOGITS.npy <TOKEN-LINE");
	while (batch.n_tokens < MAX && scanf("%d", &id) == 1) {
		int i = batch.n_tokens++;

		batch.token[i] = id;
		batch.pos[i] = i;
		batch.n_seq_id[i] = 1;
		batch.seq_id[i][0] = 0;
		batch.logits[i] = 1;
	}
	if (batch.n_tokens == 0)
		fail("no token line");
	llama_backend_init();
	mp.n_gpu_layers = 0;
	model = llama_model_load_from_file(argv[1], mp);
	if (!model)
		fail("cannot load the model");
	/* Attention over all positions: they have to be one micro-batch. */
	cp.n_ctx = cp.n_batch = cp.n_ubatch = (uint32_t)batch.n_tokens;
	ctx = llama_init_from_model(model, cp);
	if (!ctx)
		fail("cannot make a context");
	llama_set_causal_attn(ctx, false);
	if (llama_decode(ctx, batch) != 0)
		fail("cannot decode");
	write_npy(argv[2], llama_get_logits(ctx), batch.n_tokens,
	    llama_vocab_n_tokens(llama_model_get_vocab(model)));
	llama_batch_free(batch);
	llama_free(ctx);
	llama_model_free(model);
	llama_backend_free();
	return 0;
}
