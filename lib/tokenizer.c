#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "nfc.h"
#include "utf8.h"

enum { MAX_TEXT = 1 << 30 };

/* Node 0 is no node: it ends lists. */
struct tokenizer_node {
	unsigned char byte;
	int32_t child, sibling;
	int32_t token; /* whose text ends here, or -1 */
};

struct tokenizer_match {
	uint32_t at, n; /* bytes of the text */
	int32_t token;
};

static int
is_special(int type)
{
	return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED ||
	    type == TOKEN_UNKNOWN;
}

static int32_t
new_node(struct tokenizer *t, char byte)
{
	size_t cap = t->cap_nodes ? 2 * t->cap_nodes : 1024;
	struct tokenizer_node *p;

	if (t->n_nodes == t->cap_nodes) {
		p = cap > INT32_MAX ? NULL :
			realloc(t->node, cap * sizeof *p);
		if (!p)
			return -1;
		t->node = p;
		t->cap_nodes = cap;
	}
	t->node[t->n_nodes] =
	    (struct tokenizer_node){ (unsigned char)byte, 0, 0, -1 };
	return (int32_t)t->n_nodes++;
}

/* The node of this byte in a list, or 0. */
static int32_t
find_node(const struct tokenizer *t, int32_t list, char byte)
{
	while (list && t->node[list].byte != (unsigned char)byte)
		list = t->node[list].sibling;
	return list;
}

static int
trie_add(struct tokenizer *t, int32_t token, struct err *err)
{
	struct gguf_str s = t->vocab.text[token];
	int32_t parent = 0, i;

	for (size_t k = 0; k < s.n; k++) {
		i = parent ? find_node(t, t->node[parent].child, s.p[k]) :
			     t->first[(unsigned char)s.p[0]];
		if (!i) {
			i = new_node(t, s.p[k]);
			if (i < 0)
				return err_set(err, "out of memory");
			if (parent) {
				t->node[i].sibling = t->node[parent].child;
				t->node[parent].child = i;
			} else {
				t->first[(unsigned char)s.p[0]] = i;
			}
		}
		parent = i;
	}
	if (parent)
		t->node[parent].token = token;
	return 0;
}

int
tokenizer_init(struct tokenizer *t, const struct gguf *g, struct err *err)
{
	memset(t, 0, sizeof *t);
	if (vocab_load(&t->vocab, g, err) < 0)
		return -1;
	if (bpe_init(&t->bpe, &t->vocab, g, err) < 0)
		goto fail;
	if (new_node(t, 0) < 0) {
		err_set(err, "out of memory");
		goto fail;
	}
	for (uint32_t i = 0; i < t->vocab.n; i++)
		if (is_special(t->vocab.type[i]) &&
		    trie_add(t, (int32_t)i, err) < 0)
			goto fail;
	return 0;
fail:
	tokenizer_free(t);
	return -1;
}

void
tokenizer_free(struct tokenizer *t)
{
	bpe_free(&t->bpe);
	vocab_free(&t->vocab);
	free(t->node);
	free(t->match);
	memset(t, 0, sizeof *t);
}

int32_t
tokenizer_control(const struct tokenizer *t, const char *text)
{
	int32_t id = bpe_find(&t->bpe, text, strlen(text));

	return id >= 0 && t->vocab.type[id] == TOKEN_CONTROL ? id : -1;
}

static int
words(struct tokenizer *t, const char *s, size_t n, struct tokens *out,
    struct err *err)
{
	size_t len;

	for (; n > 0; s += len, n -= len) {
		len = pretok_next(t->bpe.pre, s, n);
		if (bpe_word(&t->bpe, s, len, out, err) < 0)
			return -1;
	}
	return 0;
}

/* Bytes from s on that are well-formed. */
static size_t
valid_prefix(const char *s, size_t n)
{
	size_t i = 0, len;
	uint32_t cp;

	while (i < n) {
		if ((unsigned char)s[i] < 0x80) {
			i++;
			continue;
		}
		len = utf8_decode(s + i, n - i, &cp);
		if (len == 0)
			break;
		i += len;
	}
	return i;
}

/* Bad bytes replaced, then cut into words. */
static int
replaced(struct tokenizer *t, const char *s, size_t n, struct tokens *out,
    struct err *err)
{
	size_t good = valid_prefix(s, n), len = 0;
	char *copy;
	int rc;

	if (good == n)
		return words(t, s, n, out, err);
	copy = malloc(3 * n);
	if (!copy)
		return err_set(err, "out of memory");
	for (;;) {
		memcpy(copy + len, s, good);
		len += good;
		if (good == n)
			break;
		len += utf8_encode(UTF8_REPLACEMENT, copy + len);
		s += good + 1;
		n -= good + 1;
		good = valid_prefix(s, n);
	}
	rc = words(t, copy, len, out, err);
	free(copy);
	return rc;
}

/* Text between special tokens. */
static int
fragment(struct tokenizer *t, const char *s, size_t n, struct tokens *out,
    struct err *err)
{
	char *normal;
	size_t len;
	int rc;

	if (!t->nfc)
		return replaced(t, s, n, out, err);
	if (nfc(s, n, &normal, &len, err) < 0)
		return -1;
	rc = replaced(t, normal, len, out, err);
	free(normal);
	return rc;
}

static int
add_match(struct tokenizer *t, size_t at, size_t n, int32_t token)
{
	size_t cap = t->cap_matches ? 2 * t->cap_matches : 64;
	struct tokenizer_match *p;

	if (t->n_matches == t->cap_matches) {
		p = realloc(t->match, cap * sizeof *p);
		if (!p)
			return -1;
		t->match = p;
		t->cap_matches = cap;
	}
	t->match[t->n_matches++] =
	    (struct tokenizer_match){ (uint32_t)at, (uint32_t)n, token };
	return 0;
}

/* Every place where the text of a special token stands. */
static int
find_matches(struct tokenizer *t, const char *s, size_t n, int special,
    struct err *err)
{
	const struct tokenizer_node *node;
	int32_t i;

	t->n_matches = 0;
	for (size_t at = 0; at < n; at++) {
		i = t->first[(unsigned char)s[at]];
		for (size_t k = at + 1; i; k++) {
			node = &t->node[i];
			if (node->token >= 0 && (special ||
			    t->vocab.type[node->token] == TOKEN_USER_DEFINED) &&
			    add_match(t, at, k - at, node->token) < 0)
				return err_set(err, "out of memory");
			i = k < n ? find_node(t, node->child, s[k]) : 0;
		}
	}
	return 0;
}

/* Longest texts first, then low ids, then from left to right. */
static int
by_priority(const void *pa, const void *pb)
{
	const struct tokenizer_match *a = pa, *b = pb;

	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/*
 * Keep each match that overlaps none kept before it.  Those are at least as
 * long, so one that overlaps covers the first or the last byte.  cut (n)
 * becomes 1 + token at the first byte of a kept match, -1 in the rest of it.
 */
static void
choose(struct tokenizer *t, int32_t *cut)
{
	const struct tokenizer_match *m;

	qsort(t->match, t->n_matches, sizeof *t->match, by_priority);
	for (size_t i = 0; i < t->n_matches; i++) {
		m = &t->match[i];
		if (cut[m->at] || cut[m->at + m->n - 1])
			continue;
		memset(cut + m->at, 0xFF, m->n * sizeof *cut);
		cut[m->at] = m->token + 1;
	}
}

int
tokenizer_encode(struct tokenizer *t, const char *s, size_t n, int special,
    struct tokens *out, struct err *err)
{
	size_t from = 0, i = 0;
	int32_t *cut, token;
	int rc = 0;

	if (n > MAX_TEXT)
		return err_set(err, "a text of %zu bytes is too long", n);
	if (find_matches(t, s, n, special, err) < 0)
		return -1;
	if (t->n_matches == 0)
		return fragment(t, s, n, out, err);
	cut = calloc(n, sizeof *cut);
	if (!cut)
		return err_set(err, "out of memory");
	choose(t, cut);
	while (i < n && rc == 0) {
		if (cut[i] <= 0) {
			i++;
			continue;
		}
		token = cut[i] - 1;
		rc = fragment(t, s + from, i - from, out, err);
		if (rc == 0)
			rc = tokens_push(out, token, err);
		i += t->vocab.text[token].n;
		from = i;
	}
	if (rc == 0)
		rc = fragment(t, s + from, n - from, out, err);
	free(cut);
	return rc;
}
