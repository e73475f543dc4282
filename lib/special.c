#include "special.h"

#include <inttypes.h>
#include <string.h>

static const char *const end_texts[] = { "<|endoftext|>", "<|eot_id|>",
	"<|im_end|>", "<|end|>", "<|end_of_text|>", "<end_of_turn>", "</s>",
	"<EOT>", "<|dlm_pad|>" };

static void
add_eos(struct special_tokens *s, int32_t id)
{
	if (!special_is_eos(s, id) && s->n_eos < SPECIAL_MAX_EOS)
		s->eos[s->n_eos++] = id;
}

int
special_is_eos(const struct special_tokens *s, int32_t id)
{
	for (int i = 0; i < s->n_eos; i++)
		if (s->eos[i] == id)
			return 1;
	return 0;
}

int
special_token_types(const struct gguf *g, uint64_t n_tokens,
    const struct gguf_kv **kv, struct err *err)
{
	const char *key = "tokenizer.ggml.token_type";
	int64_t type;

	*kv = NULL;
	if (gguf_get_array(g, key, GGUF_I32, kv, err) < 0)
		return -1;
	if (!*kv)
		return 0;
	if ((*kv)->count != n_tokens)
		return err_set(err, "%s: key %s has %" PRIu64 " entries for %"
		    PRIu64 " tokens", g->file[0].path, key, (*kv)->count,
		    n_tokens);
	for (uint64_t i = 0; i < n_tokens; i++) {
		type = gguf_array_int(*kv, i);
		if (type < 0 || type >= N_TOKEN_TYPES)
			return err_set(err, "%s: key %s gives token %" PRIu64
			    " the unknown type %" PRId64, g->file[0].path, key,
			    i, type);
	}
	return 0;
}

/* The id that a key names; *id stays where the key is missing. */
static int
id_of_key(const struct gguf *g, const char *key, uint64_t n_tokens,
    int32_t *id, struct err *err)
{
	uint64_t v = 0;
	int rc = gguf_get_uint(g, key, 0,
	    n_tokens ? n_tokens - 1 : INT32_MAX, &v, err);

	if (rc > 0)
		*id = (int32_t)v;
	return rc;
}

static int
is_end_text(struct gguf_str s)
{
	for (size_t i = 0; i < sizeof end_texts / sizeof *end_texts; i++)
		if (gguf_str_is(s, end_texts[i]))
			return 1;
	return 0;
}

/* Look at every token's text for ids that no key names. */
static void
scan_texts(struct special_tokens *s, const struct gguf_kv *tokens,
    const struct gguf_kv *types, int is_dream)
{
	const uint8_t *p = tokens->data;
	int32_t mask = -1;
	struct gguf_str text;

	for (uint64_t i = 0; i < tokens->count; i++) {
		text = gguf_next_str(&p);
		if (gguf_str_is(text, "<|mdm_mask|>") ||
		    gguf_str_is(text, "<|mask|>"))
			mask = (int32_t)i;
		if (!types || gguf_array_int(types, i) != TOKEN_CONTROL)
			continue;
		if (is_end_text(text))
			add_eos(s, (int32_t)i);
		if (is_dream && gguf_str_is(text, "<|beginoftext|>"))
			s->bos = (int32_t)i;
	}
	if (s->mask < 0)
		s->mask = mask;
}

int
special_tokens_load(const struct gguf *g, struct special_tokens *s,
    struct err *err)
{
	static const char *const end_keys[] = { "tokenizer.ggml.eos_token_id",
		"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id" };
	const struct gguf_kv *tokens = NULL, *types = NULL;
	struct gguf_str arch = { "", 0 };
	int32_t id;
	int rc;

	memset(s, 0, sizeof *s);
	s->bos = s->mask = -1;
	if (gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens,
	    err) < 0 || gguf_get_str(g, "general.architecture", &arch, err) < 0)
		return -1;
	if (tokens && tokens->count > INT32_MAX)
		return err_set(err, "%s: too many tokens: %" PRIu64,
		    g->file[0].path, tokens->count);
	s->n_tokens = tokens ? tokens->count : 0;
	for (size_t i = 0; i < sizeof end_keys / sizeof *end_keys; i++) {
		rc = id_of_key(g, end_keys[i], s->n_tokens, &id, err);
		if (rc < 0)
			return -1;
		if (rc > 0)
			add_eos(s, id);
	}
	if (id_of_key(g, "tokenizer.ggml.bos_token_id", s->n_tokens, &s->bos,
	    err) < 0 || id_of_key(g, "tokenizer.ggml.mask_token_id",
	    s->n_tokens, &s->mask, err) < 0)
		return -1;
	if (!tokens)
		return 0;
	if (special_token_types(g, s->n_tokens, &types, err) < 0)
		return -1;
	scan_texts(s, tokens, types, gguf_str_is(arch, "dream"));
	return 0;
}

const char *
foreign_layout(struct gguf_str arch)
{
	return !gguf_str_is(arch, "diffuse") ? NULL :
	    "a file of diffuse-cpp has no vocabulary, and q and k in another "
	    "order: convert the original model with llama.cpp";
}
