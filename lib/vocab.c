#include "vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "utf8.h"

static int
printable(unsigned byte)
{
	return (byte >= 0x21 && byte <= 0x7E) ||
	    (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

/* Bytes below this one that are not printable: their place from U+0100 on. */
static unsigned
hidden_below(unsigned byte)
{
	if (byte <= 0x20)
		return byte;
	if (byte <= 0xA0)
		return 0x21 + (byte - 0x7F);
	return 0x21 + 0x22; /* 0xAD, the last of the 68 */
}

uint32_t
vocab_byte_to_char(uint8_t byte)
{
	return printable(byte) ? byte : 0x100 + hidden_below(byte);
}

int
vocab_char_to_byte(uint32_t cp)
{
	if (cp < 0x100)
		return printable(cp) ? (int)cp : -1;
	cp -= 0x100;
	if (cp <= 0x20)
		return (int)cp;
	if (cp < 0x21 + 0x22)
		return (int)(0x7F + (cp - 0x21));
	return cp == 0x21 + 0x22 ? 0xAD : -1;
}

static int
missing(const struct gguf *g, const char *key, struct err *err)
{
	struct gguf_str arch = { "", 0 };
	const char *foreign;

	if (gguf_get_str(g, "general.architecture", &arch, err) < 0)
		return -1;
	foreign = foreign_layout(arch);
	return err_set(err, "%s: required metadata key missing: %s%s%s",
	    g->file[0].path, key, foreign ? "; " : "", foreign ? foreign : "");
}

static int
load_texts(struct vocab *v, const struct gguf *g, struct err *err)
{
	const char *key = "tokenizer.ggml.tokens";
	const struct gguf_kv *kv = NULL;
	const uint8_t *p;

	if (gguf_get_array(g, key, GGUF_STRING, &kv, err) < 0)
		return -1;
	if (!kv)
		return missing(g, key, err);
	if (kv->count == 0 || kv->count > INT32_MAX)
		return err_set(err, "%s: key %s has %" PRIu64 " entries",
		    g->file[0].path, key, kv->count);
	v->n = (uint32_t)kv->count;
	v->text = calloc(v->n, sizeof *v->text);
	v->type = calloc(v->n, sizeof *v->type);
	if (!v->text || !v->type)
		return err_set(err, "out of memory");
	p = kv->data;
	for (uint32_t i = 0; i < v->n; i++) {
		v->text[i] = gguf_next_str(&p);
		if (v->text[i].n > VOCAB_MAX_TEXT)
			return err_set(err, "%s: the text of token %u has %zu "
			    "bytes, at most %d are allowed", g->file[0].path,
			    i, v->text[i].n, VOCAB_MAX_TEXT);
	}
	return 0;
}

static int
load_types(struct vocab *v, const struct gguf *g, struct err *err)
{
	const struct gguf_kv *kv;

	if (special_token_types(g, v->n, &kv, err) < 0)
		return -1;
	for (uint32_t i = 0; i < v->n; i++)
		v->type[i] = kv ? (uint8_t)gguf_array_int(kv, i) : TOKEN_NORMAL;
	return 0;
}

/* A model can have more rows than the file has tokens. */
static int
load_rows(struct vocab *v, const struct gguf *g, struct err *err)
{
	struct gguf_str arch = { "", 0 };
	uint64_t rows = v->n;
	char key[256];

	if (gguf_get_str(g, "general.architecture", &arch, err) < 0)
		return -1;
	if (arch.n < 128) {
		snprintf(key, sizeof key, "%.*s.vocab_size", (int)arch.n,
		    arch.p);
		if (gguf_get_uint(g, key, 0, INT32_MAX, &rows, err) < 0)
			return -1;
	}
	v->n_rows = rows > v->n ? (uint32_t)rows : v->n;
	return 0;
}

int
vocab_load(struct vocab *v, const struct gguf *g, struct err *err)
{
	const char *key = "tokenizer.ggml.model";
	struct gguf_str model;
	int rc;

	memset(v, 0, sizeof *v);
	rc = gguf_get_str(g, key, &model, err);
	if (rc == 0)
		missing(g, key, err);
	if (rc > 0 && !gguf_str_is(model, "gpt2"))
		rc = err_set(err, "%s: unsupported tokenizer: %.*s (supported: "
		    "gpt2)", g->file[0].path,
		    (int)(model.n < 64 ? model.n : 64), model.p);
	if (rc <= 0 || load_texts(v, g, err) < 0 || load_types(v, g, err) < 0 ||
	    load_rows(v, g, err) < 0 ||
	    special_tokens_load(g, &v->special, err) < 0 ||
	    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &v->add_bos,
	    err) < 0) {
		vocab_free(v);
		return -1;
	}
	return 0;
}

void
vocab_free(struct vocab *v)
{
	free(v->text);
	free(v->type);
	memset(v, 0, sizeof *v);
}

/* Characters back to bytes; what is no byte's character stays as it is. */
static size_t
unmap(struct gguf_str s, char *out)
{
	size_t n = 0, len;
	uint32_t cp;
	int byte;

	for (size_t i = 0; i < s.n; i += len) {
		len = utf8_decode(s.p + i, s.n - i, &cp);
		byte = len ? vocab_char_to_byte(cp) : -1;
		if (len == 0)
			len = 1;
		if (byte >= 0) {
			out[n++] = (char)byte;
		} else {
			memcpy(out + n, s.p + i, len);
			n += len;
		}
	}
	return n;
}

/* "<0x41>": one byte; anything else none. */
static size_t
byte_token(struct gguf_str s, char *out)
{
	if (s.n != 6 || memcmp(s.p, "<0x", 3) || s.p[5] != '>' ||
	    hex_digit(s.p[3]) < 0 || hex_digit(s.p[4]) < 0)
		return 0;
	*out = (char)(hex_digit(s.p[3]) * 16 + hex_digit(s.p[4]));
	return 1;
}

size_t
vocab_piece_max(const struct vocab *v, int32_t id)
{
	return (uint32_t)id < v->n ? v->text[id].n : 0;
}

size_t
vocab_piece(const struct vocab *v, int32_t id, int special, char *out)
{
	struct gguf_str s;

	if ((uint32_t)id >= v->n)
		return 0;
	s = v->text[id];
	switch ((enum token_type)v->type[id]) {
	case TOKEN_NORMAL:
		return unmap(s, out);
	case TOKEN_CONTROL:
	case TOKEN_UNKNOWN:
		if (!special)
			return 0;
		break;
	case TOKEN_USER_DEFINED:
		break;
	case TOKEN_BYTE:
		return byte_token(s, out);
	default:
		return 0;
	}
	memcpy(out, s.p, s.n);
	return s.n;
}

int
vocab_wants_bos(const struct vocab *v, const struct gguf *g, struct err *err)
{
	struct gguf_str arch = { "", 0 };

	if (gguf_get_str(g, "general.architecture", &arch, err) < 0)
		return -1;
	return v->add_bos && !gguf_str_is(arch, "llada") &&
	    !gguf_str_is(arch, "llada-moe");
}

int
vocab_write(const struct vocab *v, const int32_t *id, size_t n, FILE *f)
{
	char *piece = malloc(VOCAB_MAX_TEXT);
	size_t len;

	if (!piece)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (id[i] == v->special.mask)
			continue;
		len = vocab_piece(v, id[i], 0, piece);
		fwrite(piece, 1, len, f);
	}
	free(piece);
	return ferror(f) ? -1 : 0;
}
