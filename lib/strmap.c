#include "strmap.h"

#include <stdlib.h>
#include <string.h>

/* Far above what texts reach that were not chosen to collide. */
enum { MAX_PROBES = 1000 };

/* FNV-1a, 64 bits: it can go on where it stopped. */
static const uint64_t hash_start = 0xCBF29CE484222325u;

static uint64_t
hash(uint64_t h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 0x100000001B3u;
	return h;
}

int
strmap_init(struct strmap *m, const struct gguf_str *key, size_t n,
    struct err *err)
{
	size_t size = 16;

	while (size < 2 * n)
		size *= 2;
	m->key = key;
	m->mask = size - 1;
	m->slot = calloc(size, sizeof *m->slot);
	return m->slot ? 0 : err_set(err, "out of memory");
}

void
strmap_free(struct strmap *m)
{
	free(m->slot);
	memset(m, 0, sizeof *m);
}

int32_t
strmap_add(struct strmap *m, int32_t i)
{
	struct gguf_str s = m->key[i];
	uint64_t h = hash(hash_start, s.p, s.n);
	size_t at = h & m->mask;
	const struct gguf_str *k;
	int probes = 0;

	for (; m->slot[at].index; at = (at + 1) & m->mask) {
		k = &m->key[m->slot[at].index - 1];
		if (m->slot[at].tag == h >> 32 && k->n == s.n &&
		    !memcmp(k->p, s.p, s.n))
			return (int32_t)(m->slot[at].index - 1);
		if (++probes > MAX_PROBES)
			return -1;
	}
	m->slot[at].tag = (uint32_t)(h >> 32);
	m->slot[at].index = (uint32_t)i + 1;
	return i;
}

int32_t
strmap_find(const struct strmap *m, struct gguf_str s)
{
	uint64_t h = hash(hash_start, s.p, s.n);
	size_t at = h & m->mask;
	const struct gguf_str *k;

	for (; m->slot[at].index; at = (at + 1) & m->mask) {
		k = &m->key[m->slot[at].index - 1];
		if (m->slot[at].tag == h >> 32 && k->n == s.n &&
		    !memcmp(k->p, s.p, s.n))
			return (int32_t)(m->slot[at].index - 1);
	}
	return -1;
}

int32_t
strmap_find_pair(const struct strmap *m, struct gguf_str a, struct gguf_str b)
{
	uint64_t h = hash(hash(hash(hash_start, a.p, a.n), " ", 1), b.p, b.n);
	size_t at = h & m->mask;
	const struct gguf_str *k;

	for (; m->slot[at].index; at = (at + 1) & m->mask) {
		k = &m->key[m->slot[at].index - 1];
		if (m->slot[at].tag == h >> 32 && k->n == a.n + 1 + b.n &&
		    !memcmp(k->p, a.p, a.n) && k->p[a.n] == ' ' &&
		    !memcmp(k->p + a.n + 1, b.p, b.n))
			return (int32_t)(m->slot[at].index - 1);
	}
	return -1;
}
