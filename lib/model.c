#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expand.h"

static const struct family families[] = {
	{ .arch = "llada" },
	{ .arch = "dream", .neox = 1, .qkv_bias = 1, .shift = 1 },
};

enum { N_FAMILIES = sizeof families / sizeof *families };

/* Largest sizes that are believed; products of two fit into 64 bits easily. */
enum { MAX_WIDTH = 1 << 24, MAX_HEADS = 1 << 16 };

/*
 * Passes over the tensors of the graph: types first, since what cannot be run
 * at all should not be blamed for its shape; then names and shapes; then, when
 * the data is known to be there, the vectors are copied.
 */
enum pass { TYPES, SHAPES, COPY };

struct loader {
	struct model *m;
	struct err *err;
	enum pass pass;
	uint8_t *used;   /* (n_tensors): some part of the graph reads it */
	float *next;     /* free part of m->vectors */
	size_t n_floats; /* of all vectors */
};

static int
find_family(struct model *m, struct err *err)
{
	char list[256] = "";
	struct gguf_str arch;
	size_t n = 0;
	int rc = gguf_get_str(&m->gguf, "general.architecture", &arch, err);
	const char *foreign;

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err,
		    "required metadata key missing: general.architecture");
	for (int i = 0; i < N_FAMILIES; i++) {
		if (gguf_str_is(arch, families[i].arch)) {
			m->family = &families[i];
			return 0;
		}
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
		    i ? ", " : "", families[i].arch);
	}
	foreign = foreign_layout(arch);
	return err_set(err,
	    "unsupported model architecture: %.*s (supported: %s)%s%s",
	    arch.n > 64 ? 64 : (int)arch.n, arch.p, list,
	    foreign ? "; " : "", foreign ? foreign : "");
}

/* "ARCH.NAME" into key (at least 96 bytes). */
static void
arch_key(char *key, const struct model *m, const char *name)
{
	snprintf(key, 96, "%s.%s", m->family->arch, name);
}

static int
missing(struct err *err, const char *key)
{
	return err_set(err, "required metadata key missing: %s", key);
}

/*
 * An integer from 1 to max, or a per-layer array in which all are equal.
 * *v is the default where it is not 0, else the key is required.
 */
static int
get_size(struct loader *l, const char *name, uint64_t max, size_t *v)
{
	const struct model *m = l->m;
	const struct gguf_kv *kv;
	uint64_t u;
	char key[96];
	int rc;

	arch_key(key, m, name);
	kv = gguf_find(&m->gguf, key);
	if (!kv)
		return *v ? 0 : missing(l->err, key);
	if (kv->type == GGUF_ARRAY) {
		if (kv->count == 0 || kv->item == GGUF_STRING ||
		    kv->item == GGUF_ARRAY)
			return err_set(l->err, "%s: not a number", key);
		for (uint64_t i = 1; i < kv->count; i++)
			if (gguf_number(kv, i) != gguf_number(kv, 0))
				return err_set(l->err, "%s: layers that differ "
				    "from each other are not supported", key);
		if (!(gguf_number(kv, 0) >= 1 &&
		        gguf_number(kv, 0) <= (double)max))
			return err_set(l->err, "%s: %g is not in 1..%" PRIu64,
			    key, gguf_number(kv, 0), max);
		*v = (size_t)gguf_number(kv, 0);
		return 0;
	}
	rc = gguf_get_uint(&m->gguf, key, 1, max, &u, l->err);
	if (rc > 0)
		*v = (size_t)u;
	return rc < 0 ? -1 : 0;
}

/* A finite number; *v is the default unless it is required. */
static int
get_real(struct loader *l, const char *name, int required, float min,
    float *v)
{
	char key[96];
	int rc;

	arch_key(key, l->m, name);
	rc = gguf_get_f32(&l->m->gguf, key, v, l->err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return required ? missing(l->err, key) : 0;
	if (!(*v >= min && *v <= 0x1.fffffep+127f))
		return err_set(
		    l->err, "%s: %g is not a number from %g", key, (double)*v,
		    (double)min);
	return 0;
}

/* Only positions as they are: no scaling of RoPE. */
static int
check_rope(struct loader *l)
{
	struct model *m = l->m;
	struct gguf_str type;
	size_t dims = m->head_dim;
	float factor = 1;
	char key[96];
	int rc;

	m->rope_base = 10000;
	if (get_real(l, "rope.freq_base", 0, 1, &m->rope_base) < 0 ||
	    get_size(l, "rope.dimension_count", MAX_WIDTH, &dims) < 0)
		return -1;
	if (dims != m->head_dim) {
		arch_key(key, m, "rope.dimension_count");
		return err_set(l->err, "%s: %zu, but a head has %zu elements",
		    key, dims, m->head_dim);
	}
	if (m->head_dim % 2)
		return err_set(l->err, "head dimension %zu is odd",
		    m->head_dim);
	arch_key(key, m, "rope.scaling.type");
	rc = gguf_get_str(&m->gguf, key, &type, l->err);
	if (rc < 0)
		return -1;
	if (rc > 0 && !gguf_str_is(type, "none") &&
	    !gguf_str_is(type, "linear"))
		return err_set(l->err, "%s: '%.*s' is not supported", key,
		    type.n > 64 ? 64 : (int)type.n, type.p);
	if (get_real(l, "rope.scaling.factor", 0, 0, &factor) < 0)
		return -1;
	arch_key(key, m, "rope.scaling.factor");
	if (factor != 1 && factor != 0 &&
	    !(rc > 0 && gguf_str_is(type, "none")))
		return err_set(l->err, "%s: %g is not supported", key,
		    (double)factor);
	return 0;
}

static int
check_heads(struct loader *l)
{
	struct model *m = l->m;
	size_t values;
	char key[96];

	if (get_size(l, "attention.head_count", MAX_HEADS, &m->n_heads) < 0)
		return -1;
	m->n_kv_heads = m->n_heads;
	if (get_size(l, "attention.head_count_kv", MAX_HEADS,
	        &m->n_kv_heads) < 0)
		return -1;
	if (m->n_heads % m->n_kv_heads) {
		arch_key(key, m, "attention.head_count_kv");
		return err_set(l->err, "%s: %zu does not divide %zu heads",
		    key, m->n_kv_heads, m->n_heads);
	}
	m->head_dim = m->n_embd / m->n_heads;
	if (m->head_dim == 0)
		return err_set(l->err, "%zu heads for a width of %zu",
		    m->n_heads, m->n_embd);
	if (get_size(l, "attention.key_length", MAX_WIDTH, &m->head_dim) < 0)
		return -1;
	values = m->head_dim;
	if (get_size(l, "attention.value_length", MAX_WIDTH, &values) < 0)
		return -1;
	arch_key(key, m, "attention.value_length");
	if (values != m->head_dim)
		return err_set(l->err,
		    "%s: %zu differs from a key's length of %zu", key, values,
		    m->head_dim);
	return 0;
}

/* Rows of embedding and head. */
static int
check_vocabulary(struct loader *l)
{
	struct model *m = l->m;
	const struct gguf_tensor *t =
	    gguf_find_tensor(&m->gguf, "token_embd.weight");
	const struct special_tokens *s = &m->special;

	if (special_tokens_load(&m->gguf, &m->special, l->err) < 0)
		return -1;
	m->n_vocab = (size_t)s->n_tokens;
	if (!m->n_vocab && t && t->ne[1] <= INT32_MAX)
		m->n_vocab = (size_t)t->ne[1];
	if (get_size(l, "vocab_size", INT32_MAX, &m->n_vocab) < 0)
		return -1;
	if (s->mask < 0)
		return missing(l->err, "tokenizer.ggml.mask_token_id");
	if ((size_t)s->mask >= m->n_vocab)
		return err_set(l->err, "tokenizer.ggml.mask_token_id: %d is "
		    "outside the vocabulary of %zu", s->mask, m->n_vocab);
	for (int i = 0; i < s->n_eos; i++)
		if ((size_t)s->eos[i] >= m->n_vocab)
			return err_set(l->err, "end token %d is outside the "
			    "vocabulary of %zu", s->eos[i], m->n_vocab);
	return 0;
}

static int
check_keys(struct loader *l)
{
	struct model *m = l->m;
	int shift = m->family->shift;

	if (get_size(l, "block_count", MODEL_MAX_LAYERS, &m->n_layers) < 0 ||
	    get_size(l, "context_length", INT32_MAX, &m->context) < 0 ||
	    get_size(l, "embedding_length", MAX_WIDTH, &m->n_embd) < 0 ||
	    get_size(l, "feed_forward_length", UINT32_MAX, &m->n_ff) < 0 ||
	    check_heads(l) < 0 || check_rope(l) < 0 ||
	    get_real(l, "attention.layer_norm_rms_epsilon", 1, 0, &m->eps) < 0)
		return -1;
	if (gguf_get_bool(&m->gguf, "diffusion.shift_logits", &shift,
	        l->err) < 0)
		return -1;
	m->shift = shift != 0;
	return check_vocabulary(l);
}

static int
shape_error(struct loader *l, const struct gguf_tensor *t, int n_dims,
    const uint64_t *want)
{
	char got[96] = "", expected[96] = "";
	size_t n = 0;
	int dims = t->n_dims > n_dims ? t->n_dims : n_dims;

	for (int i = 0; i < dims; i++)
		n += (size_t)snprintf(got + n, sizeof got - n, "%s%" PRIu64,
		    i ? ", " : "", t->ne[i]);
	n = 0;
	for (int i = 0; i < n_dims; i++)
		n += (size_t)snprintf(expected + n, sizeof expected - n,
		    "%s%" PRIu64, i ? ", " : "", want[i]);
	return err_set(l->err, "tensor shape mismatch for %s: [%s], "
	    "expected [%s]", t->name, got, expected);
}

static int
check_type(struct loader *l, const struct gguf_tensor *t, int n_dims)
{
	const struct ggml_type_info *type = ggml_type_info(t->type);

	if (type && (type->use == GGML_FLOAT ||
	    (type->use == GGML_QUANT && n_dims == 2)))
		return 0;
	return err_set(l->err, "unsupported GGUF tensor type: %s (tensor %s)",
	    ggml_type_name(t->type), t->name);
}

/* What this pass has to say about a tensor of this name and shape. */
static int
check(struct loader *l, const char *name, int n_dims, const uint64_t *want,
    const struct gguf_tensor **to)
{
	const struct gguf *g = &l->m->gguf;
	const struct gguf_tensor *t = gguf_find_tensor(g, name);

	*to = t;
	if (l->pass == TYPES)
		return t ? check_type(l, t, n_dims) : 0;
	if (!t)
		return err_set(l->err, "required tensor missing: %s", name);
	for (int i = 0; i < GGUF_MAX_DIMS; i++)
		if (t->ne[i] != (i < n_dims ? want[i] : 1))
			return shape_error(l, t, n_dims, want);
	l->used[t - g->tensor] = 1;
	return 0;
}

static int
get_matrix(struct loader *l, struct matrix *to, size_t n_in, size_t n_out,
    const char *name)
{
	uint64_t want[2] = { n_in, n_out };
	const struct gguf_tensor *t;

	if (check(l, name, 2, want, &t) < 0)
		return -1;
	if (l->pass != COPY)
		return 0;
	to->data = t->data;
	to->type = t->type;
	to->n_in = n_in;
	to->n_out = n_out;
	to->row_bytes = (size_t)ggml_row_bytes(t->type, n_in);
	return 0;
}

static int
get_vector(struct loader *l, const float **to, size_t n, const char *name)
{
	uint64_t want[1] = { n };
	const struct gguf_tensor *t;

	if (check(l, name, 1, want, &t) < 0)
		return -1;
	if (l->pass == SHAPES)
		l->n_floats += n;
	if (l->pass != COPY)
		return 0;
	decode_row(t->type, t->data, n, l->next);
	*to = l->next;
	l->next += n;
	return 0;
}

/* "blk.I.NAME" into a buffer of the caller. */
static const char *
blk(char name[GGUF_MAX_NAME], size_t i, const char *rest)
{
	snprintf(name, GGUF_MAX_NAME, "blk.%zu.%s", i, rest);
	return name;
}

static int
get_layer(struct loader *l, size_t i)
{
	const struct model *m = l->m;
	struct layer *y = &m->layer[i];
	size_t d = m->n_embd, f = m->n_ff, q = m->n_heads * m->head_dim;
	size_t kv = m->n_kv_heads * m->head_dim;
	char s[GGUF_MAX_NAME];

	if (get_vector(l, &y->attn_norm, d, blk(s, i, "attn_norm.weight")) < 0 ||
	    get_matrix(l, &y->q, d, q, blk(s, i, "attn_q.weight")) < 0 ||
	    get_matrix(l, &y->k, d, kv, blk(s, i, "attn_k.weight")) < 0 ||
	    get_matrix(l, &y->v, d, kv, blk(s, i, "attn_v.weight")) < 0 ||
	    get_matrix(
	        l, &y->attn_out, q, d, blk(s, i, "attn_output.weight")) < 0 ||
	    get_vector(l, &y->ffn_norm, d, blk(s, i, "ffn_norm.weight")) < 0 ||
	    get_matrix(l, &y->gate, d, f, blk(s, i, "ffn_gate.weight")) < 0 ||
	    get_matrix(l, &y->up, d, f, blk(s, i, "ffn_up.weight")) < 0 ||
	    get_matrix(l, &y->down, f, d, blk(s, i, "ffn_down.weight")) < 0)
		return -1;
	if (!m->family->qkv_bias)
		return 0;
	if (get_vector(l, &y->q_bias, q, blk(s, i, "attn_q.bias")) < 0 ||
	    get_vector(l, &y->k_bias, kv, blk(s, i, "attn_k.bias")) < 0 ||
	    get_vector(l, &y->v_bias, kv, blk(s, i, "attn_v.bias")) < 0)
		return -1;
	return 0;
}

static int
get_tensors(struct loader *l)
{
	struct model *m = l->m;

	if (get_matrix(l, &m->embd, m->n_embd, m->n_vocab,
	        "token_embd.weight") < 0)
		return -1;
	for (size_t i = 0; i < m->n_layers; i++)
		if (get_layer(l, i) < 0)
			return -1;
	if (get_vector(l, &m->norm, m->n_embd, "output_norm.weight") < 0)
		return -1;
	m->head = m->embd;
	if (!gguf_find_tensor(&m->gguf, "output.weight"))
		return 0;
	return get_matrix(l, &m->head, m->n_embd, m->n_vocab, "output.weight");
}

static int
load(struct loader *l)
{
	struct model *m = l->m;
	const struct gguf *g = &m->gguf;

	if (find_family(m, l->err) < 0 || check_keys(l) < 0)
		return -1;
	m->layer = calloc(m->n_layers, sizeof *m->layer);
	l->used = calloc(g->n_tensors + 1, 1);
	if (!m->layer || !l->used)
		return err_set(l->err, "out of memory");
	for (l->pass = TYPES; l->pass < COPY; l->pass++)
		if (get_tensors(l) < 0)
			return -1;
	if (gguf_check_data(g, l->err) < 0)
		return -1;
	m->vectors = malloc(l->n_floats * sizeof *m->vectors);
	if (!m->vectors)
		return err_set(l->err, "out of memory");
	l->next = m->vectors;
	if (get_tensors(l) < 0)
		return -1;
	for (uint64_t i = 0; i < g->n_tensors; i++)
		if (!l->used[i] && m->n_unused++ == 0)
			m->unused = g->tensor[i].name;
	for (int i = 0; i < g->n_files; i++)
		m->file_bytes += g->file[i].size;
	return 0;
}

int
model_open(struct model *m, const char *path, struct err *err)
{
	struct loader l = { .m = m, .err = err };
	size_t n = strlen(path);
	int rc;

	memset(m, 0, sizeof *m);
	if (gguf_open(&m->gguf, path, err) < 0)
		return -1;
	rc = load(&l);
	free(l.used);
	if (rc < 0) {
		/* some of the reader's own messages begin with the path */
		if (strncmp(err->msg, path, n) || err->msg[n] != ':')
			err_prefix(err, "%s", path);
		model_close(m);
	}
	return rc;
}

void
model_close(struct model *m)
{
	gguf_close(&m->gguf);
	free(m->layer);
	free(m->vectors);
	memset(m, 0, sizeof *m);
}

const char *
model_quantisation(const struct model *m)
{
	const char *name = gguf_quantization(&m->gguf);

	return name ? name : "unknown";
}

int
model_check_memory(uint64_t required, uint64_t available, struct err *err)
{
	if (required <= available)
		return 0;
	return err_set(err,
	    "model requires %.1f GB but available memory is %.1f GB",
	    (double)required / 1e9, (double)available / 1e9);
}
