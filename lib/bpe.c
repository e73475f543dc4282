#include "bpe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* A run of characters; n is 0 once it is part of the one to its left. */
struct bpe_symbol {
	uint32_t at, n; /* bytes of bpe.text */
	int32_t prev, next; /* neighbours, -1 at the ends */
};

/* Two neighbours that can be joined; stale when either has changed. */
struct bpe_pair {
	uint64_t order; /* rank, then index of the left one: least first */
	uint32_t n_left, n_right; /* their sizes then */
};

static int
load_merges(struct bpe *b, const struct gguf *g, struct err *err)
{
	const char *key = "tokenizer.ggml.merges";
	const struct gguf_kv *kv = NULL;
	const uint8_t *p;
	int32_t n;

	if (gguf_get_array(g, key, GGUF_STRING, &kv, err) < 0)
		return -1;
	if (!kv)
		return err_set(err, "%s: required metadata key missing: %s",
		    g->file[0].path, key);
	if (kv->count > INT32_MAX)
		return err_set(err, "%s: key %s has %" PRIu64 " entries",
		    g->file[0].path, key, kv->count);
	n = (int32_t)kv->count;
	b->merge = calloc((size_t)n + 1, sizeof *b->merge);
	if (!b->merge)
		return err_set(err, "out of memory");
	if (strmap_init(&b->rank, b->merge, (size_t)n, err) < 0)
		return -1;
	p = kv->data;
	for (int32_t i = 0; i < n; i++) {
		b->merge[i] = gguf_next_str(&p);
		if (b->merge[i].n > b->longest)
			b->longest = b->merge[i].n;
		/* of equal merges the first counts */
		if (strmap_add(&b->rank, i) < 0)
			return err_set(err, "%s: key %s: too many collisions",
			    g->file[0].path, key);
	}
	return 0;
}

static int
load_tokens(struct bpe *b, const struct gguf *g, struct err *err)
{
	const struct vocab *v = b->vocab;
	int32_t same;

	if (strmap_init(&b->token, v->text, v->n, err) < 0)
		return -1;
	for (int32_t i = 0; i < (int32_t)v->n; i++) {
		same = strmap_add(&b->token, i);
		if (same < 0)
			return err_set(err, "%s: key tokenizer.ggml.tokens: "
			    "too many collisions", g->file[0].path);
		if (same != i)
			return err_set(err,
			    "%s: tokens %" PRId32 " and %" PRId32
			    " have the same text", g->file[0].path, same, i);
	}
	return 0;
}

/* The token of a piece of text.  Text never becomes a control token. */
static int32_t
piece_token(const struct bpe *b, struct gguf_str s)
{
	int32_t id = strmap_find(&b->token, s);

	if (id >= 0 && (b->vocab->type[id] == TOKEN_CONTROL ||
	    b->vocab->type[id] == TOKEN_UNKNOWN))
		return -1;
	return id;
}

static int
load_pre(struct bpe *b, const struct gguf *g, struct err *err)
{
	const char *key = "tokenizer.ggml.pre";
	struct gguf_str name;
	int rc = gguf_get_str(g, key, &name, err);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, "%s: required metadata key missing: %s",
		    g->file[0].path, key);
	b->pre = pretok_find(name.p, name.n);
	if (!b->pre)
		return err_set(err,
		    "%s: unsupported pre-tokenizer: %.*s (supported: %s)",
		    g->file[0].path, (int)(name.n < 64 ? name.n : 64), name.p,
		    pretok_names());
	return 0;
}

int
bpe_init(struct bpe *b, const struct vocab *v, const struct gguf *g,
    struct err *err)
{
	char c[4];

	memset(b, 0, sizeof *b);
	b->vocab = v;
	if (load_pre(b, g, err) < 0 || load_tokens(b, g, err) < 0 ||
	    load_merges(b, g, err) < 0) {
		bpe_free(b);
		return -1;
	}
	for (int i = 0; i < 256; i++)
		b->byte[i] = piece_token(b, (struct gguf_str){ c,
		    utf8_encode(vocab_byte_to_char((uint8_t)i), c) });
	return 0;
}

void
bpe_free(struct bpe *b)
{
	strmap_free(&b->token);
	strmap_free(&b->rank);
	free(b->merge);
	free(b->text);
	free(b->symbol);
	free(b->heap);
	memset(b, 0, sizeof *b);
}

int32_t
bpe_find(const struct bpe *b, const char *text, size_t n)
{
	return strmap_find(&b->token, (struct gguf_str){ text, n });
}

static void
heap_push(struct bpe *b, struct bpe_pair p)
{
	size_t i = b->n_heap++, up;

	for (; i > 0; i = up) {
		up = (i - 1) / 2;
		if (p.order > b->heap[up].order)
			break;
		b->heap[i] = b->heap[up];
	}
	b->heap[i] = p;
}

static struct bpe_pair
heap_pop(struct bpe *b)
{
	struct bpe_pair top = b->heap[0], p = b->heap[--b->n_heap];
	size_t i = 0, down;

	while ((down = 2 * i + 1) < b->n_heap) {
		if (down + 1 < b->n_heap)
			down += b->heap[down + 1].order < b->heap[down].order;
		if (p.order < b->heap[down].order)
			break;
		b->heap[i] = b->heap[down];
		i = down;
	}
	b->heap[i] = p;
	return top;
}

static struct gguf_str
symbol_text(const struct bpe *b, const struct bpe_symbol *s)
{
	return (struct gguf_str){ b->text + s->at, s->n };
}

/* Put a symbol and its right neighbour into the heap if they can be joined. */
static void
consider(struct bpe *b, int32_t left)
{
	const struct bpe_symbol *l = &b->symbol[left], *r;
	int32_t rank;

	if (l->next < 0)
		return;
	r = &b->symbol[l->next];
	if ((size_t)l->n + 1 + r->n > b->longest)
		return;
	rank = strmap_find_pair(&b->rank, symbol_text(b, l),
	    symbol_text(b, r));
	if (rank >= 0)
		heap_push(b, (struct bpe_pair){ (uint64_t)rank << 32 |
		    (uint32_t)left, l->n, r->n });
}

/* Room for a word of n bytes: each is one symbol of at most two bytes. */
static int
reserve(struct bpe *b, size_t n, struct err *err)
{
	size_t room = b->room ? b->room : 64;

	if (n <= b->room)
		return 0;
	while (room < n)
		room *= 2;
	free(b->text);
	free(b->symbol);
	free(b->heap);
	b->room = 0;
	b->text = malloc(2 * room);
	b->symbol = malloc(room * sizeof *b->symbol);
	/* n - 1 pairs to begin with; a join pops one and pushes up to two */
	b->heap = malloc(2 * room * sizeof *b->heap);
	if (!b->text || !b->symbol || !b->heap)
		return err_set(err, "out of memory");
	b->room = room;
	return 0;
}

static void
split(struct bpe *b, const char *s, size_t n)
{
	uint32_t at = 0, len;

	for (size_t i = 0; i < n; i++) {
		len = (uint32_t)utf8_encode(
		    vocab_byte_to_char((uint8_t)s[i]), b->text + at);
		b->symbol[i].at = at;
		b->symbol[i].n = len;
		b->symbol[i].prev = (int32_t)i - 1;
		b->symbol[i].next = i + 1 < n ? (int32_t)i + 1 : -1;
		at += len;
	}
}

static void
join_all(struct bpe *b, size_t n)
{
	struct bpe_symbol *l, *r;
	struct bpe_pair p;
	int32_t left;

	b->n_heap = 0;
	for (size_t i = 0; i + 1 < n; i++)
		consider(b, (int32_t)i);
	while (b->n_heap > 0) {
		p = heap_pop(b);
		left = (int32_t)(p.order & UINT32_MAX);
		l = &b->symbol[left];
		if (l->n != p.n_left || l->next < 0)
			continue;
		r = &b->symbol[l->next];
		if (r->n != p.n_right)
			continue;
		l->n += r->n;
		r->n = 0;
		l->next = r->next;
		if (l->next >= 0)
			b->symbol[l->next].prev = left;
		if (l->prev >= 0)
			consider(b, l->prev);
		consider(b, left);
	}
}

static int
push_byte(const struct bpe *b, uint8_t byte, struct tokens *out,
    struct err *err)
{
	if (b->byte[byte] < 0)
		return err_set(err,
		    "the vocabulary has no token for the byte 0x%02x", byte);
	return tokens_push(out, b->byte[byte], err);
}

/* A symbol's token; where it has none, those of its bytes. */
static int
push_symbol(const struct bpe *b, const struct bpe_symbol *s,
    struct tokens *out, struct err *err)
{
	struct gguf_str text = symbol_text(b, s);
	int32_t id = piece_token(b, text);
	uint32_t cp;

	if (id >= 0)
		return tokens_push(out, id, err);
	for (size_t i = 0; i < text.n;) {
		i += utf8_decode(text.p + i, text.n - i, &cp);
		if (push_byte(b, (uint8_t)vocab_char_to_byte(cp), out, err) < 0)
			return -1;
	}
	return 0;
}

int
bpe_word(struct bpe *b, const char *s, size_t n, struct tokens *out,
    struct err *err)
{
	struct bpe_symbol whole = { 0 };
	int32_t id;

	if (n == 1)
		return push_byte(b, (uint8_t)*s, out, err);
	if (n > BPE_MAX_WORD)
		return err_set(err, "a word of %zu bytes is too long", n);
	if (reserve(b, n, err) < 0)
		return -1;
	split(b, s, n);
	if (b->pre->ignore_merges) {
		whole.n = b->symbol[n - 1].at + b->symbol[n - 1].n;
		id = piece_token(b, symbol_text(b, &whole));
		if (id >= 0)
			return tokens_push(out, id, err);
	}
	join_all(b, n);
	for (int32_t i = 0; i >= 0; i = b->symbol[i].next)
		if (push_symbol(b, &b->symbol[i], out, err) < 0)
			return -1;
	return 0;
}
