#include "quantmix.h"

#include <string.h>

static const struct {
	uint32_t file_type;
	enum ggml_type base;
} mixes[] = {
	[QUANTMIX_Q4_K_M] = { 15, GGML_Q4_K },
	[QUANTMIX_Q4_K_S] = { 14, GGML_Q4_K },
	[QUANTMIX_Q5_K_M] = { 17, GGML_Q5_K },
	[QUANTMIX_Q5_K_S] = { 16, GGML_Q5_K },
	[QUANTMIX_Q6_K] = { 18, GGML_Q6_K },
	[QUANTMIX_Q8_0] = { 7, GGML_Q8_0 },
	[QUANTMIX_Q4_0] = { 2, GGML_Q4_0 },
	[QUANTMIX_Q4_1] = { 3, GGML_Q4_1 },
	[QUANTMIX_Q5_0] = { 8, GGML_Q5_0 },
	[QUANTMIX_Q5_1] = { 9, GGML_Q5_1 },
	[QUANTMIX_F16] = { 1, GGML_F16 },
	[QUANTMIX_BF16] = { 32, GGML_BF16 },
	[QUANTMIX_F32] = { 0, GGML_F32 },
};

const char *const quantmix_names[] = { "Q4_K_M", "Q4_K_S", "Q5_K_M", "Q5_K_S",
	"Q6_K", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "F16", "BF16", "F32",
	NULL };

uint32_t
quantmix_file_type(enum quantmix mix)
{
	return mixes[mix].file_type;
}

int64_t
quantmix_layer(const char *name)
{
	int64_t n = 0;
	const char *p = name + 4;

	if (strncmp(name, "blk.", 4) || *p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = 10 * n + (*p - '0');
		if (n > INT32_MAX)
			return -1;
	}
	return *p == '.' ? n : -1;
}

struct quantmix_model
quantmix_model(const struct gguf *g)
{
	struct quantmix_model m = { .tied =
					!gguf_find_tensor(g, "output.weight") };

	for (uint64_t i = 0; i < g->n_tensors; i++) {
		int64_t layer = quantmix_layer(g->tensor[i].name);

		if (layer >= (int64_t)m.n_layers)
			m.n_layers = (uint64_t)layer + 1;
	}
	return m;
}

static int
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n >= k && !strcmp(name + n - k, end);
}

/* Layers that the _M mixes give more bits: both ends and every third. */
static int
more_bits(int64_t i, int64_t n)
{
	return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/* The type that the mix wants, whatever the shape. */
static enum ggml_type
wanted(enum quantmix mix, const struct quantmix_model *m, const char *name)
{
	enum ggml_type base = mixes[mix].base;
	int64_t i = quantmix_layer(name), n = (int64_t)m->n_layers;
	int v = ends_with(name, "attn_v.weight") ||
		ends_with(name, "attn_qkv.weight");
	int down = ends_with(name, "ffn_down.weight");

	if (ggml_type_info(base)->block == 1)
		return base;
	if (!strcmp(name, "output.weight") ||
	    (m->tied && !strcmp(name, "token_embd.weight")))
		return base == GGML_Q8_0 ? base : GGML_Q6_K;
	if (mix == QUANTMIX_Q4_K_M || mix == QUANTMIX_Q5_K_M)
		return (v || down) && more_bits(i, n) ? GGML_Q6_K : base;
	if (mix == QUANTMIX_Q4_K_S)
		return (v && i < 4) || (down && i < n / 8) ? GGML_Q5_K : base;
	return base;
}

enum ggml_type
quantmix_matrix(enum quantmix mix, const struct quantmix_model *m,
    const char *name, uint64_t n, int *fell_back)
{
	enum ggml_type type = wanted(mix, m, name);
	int falls = n % ggml_type_info(type)->block != 0;

	if (fell_back)
		*fell_back = falls;
	if (!falls)
		return type;
	if (n % 32)
		return GGML_F16;
	switch (type) {
	case GGML_Q4_K:
		return GGML_Q5_0;
	case GGML_Q5_K:
		return GGML_Q5_1;
	default: /* Q6_K: no other type here has blocks above 32 */
		return GGML_Q8_0;
	}
}

enum ggml_type
quantmix_tensor(enum quantmix mix, const struct quantmix_model *m,
    const struct gguf_tensor *t, int *fell_back)
{
	int n_dims = t->n_dims;

	while (n_dims > 0 && t->ne[n_dims - 1] == 1)
		n_dims--;
	if (fell_back)
		*fell_back = 0;
	if (n_dims < 2 || !ends_with(t->name, "weight") ||
	    strstr(t->name, "_norm.weight") ||
	    strstr(t->name, "ffn_gate_inp.weight"))
		return t->type;
	return quantmix_matrix(mix, m, t->name, t->ne[0], fell_back);
}

int
quantmix_order(const char *a, const char *b)
{
	int64_t i = quantmix_layer(a), j = quantmix_layer(b);

	return i != j ? (i > j) - (i < j) : strcmp(a, b);
}
