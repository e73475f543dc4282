#include "pretok.h"

#include <string.h>

#include "unicode.h"
#include "utf8.h"

/*
 * The bailingmoe expression differs from qwen2's only in possessive marks and
 * in [\r\n] for [\r\n]+ behind a greedy \s*: the same words.
 */
static const struct pretok known[] = {
	{ "bailingmoe", 1, 0 },
	{ "bailingmoe2", 1, 0 },
	{ "llada-moe", 1, 0 },
	{ "qwen2", 1, 0 },
	{ "llama-bpe", 3, 1 },
};

const struct pretok *
pretok_find(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strlen(known[i].name) == n &&
		    !memcmp(known[i].name, name, n))
			return &known[i];
	return NULL;
}

const char *
pretok_names(void)
{
	return "bailingmoe, bailingmoe2, llada-moe, qwen2, llama-bpe";
}

/* One character: its length and class; bytes that are not UTF-8 are other. */
struct ch {
	uint32_t cp;
	size_t len;
	enum unicode_class class;
};

static struct ch
peek(const char *s, size_t n)
{
	struct ch c = { 0, 0, UNICODE_OTHER };

	if (n == 0)
		return c;
	c.len = utf8_decode(s, n, &c.cp);
	if (c.len == 0) {
		c.len = 1;
		c.cp = UTF8_REPLACEMENT;
	}
	c.class = unicode_class(c.cp);
	return c;
}

static int
is_break(char c)
{
	return c == '\r' || c == '\n';
}

/* 's 't 'd 'm, 'll 've 're in any case: bytes behind the apostrophe, or 0. */
static size_t
contraction(const char *s, size_t n)
{
	int a = n > 1 ? s[1] | 0x20 : 0, b = n > 2 ? s[2] | 0x20 : 0;

	if (a == 's' || a == 't' || a == 'd' || a == 'm')
		return 1;
	if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e') ||
	    (a == 'r' && b == 'e'))
		return 2;
	return 0;
}

/* From i on, all characters of a class, at most max of them. */
static size_t
run(const char *s, size_t n, size_t i, enum unicode_class class, size_t max)
{
	struct ch c;

	while (max-- > 0) {
		c = peek(s + i, n - i);
		if (c.len == 0 || c.class != class)
			break;
		i += c.len;
	}
	return i;
}

/*
 * Up to and with its last line break; without one all of it at the end of the
 * text, else all but the last character, which belongs to what follows.
 */
static size_t
spaces(const char *s, size_t n)
{
	size_t i = 0, last = 0, after_break = 0;
	struct ch c;

	for (;;) {
		c = peek(s + i, n - i);
		if (c.len == 0 || c.class != UNICODE_SPACE)
			break;
		last = i;
		i += c.len;
		if (is_break(s[last]))
			after_break = i;
	}
	if (after_break)
		return after_break;
	return i == n || last == 0 ? i : last;
}

size_t
pretok_next(const struct pretok *pre, const char *s, size_t n)
{
	struct ch c = peek(s, n), next = peek(s + c.len, n - c.len);
	size_t i;

	if (*s == '\'' && (i = contraction(s, n)) > 0)
		return 1 + i;
	if (c.class == UNICODE_LETTER)
		return run(s, n, 0, UNICODE_LETTER, n);
	if (c.class == UNICODE_NUMBER)
		return run(s, n, 0, UNICODE_NUMBER, (size_t)pre->max_digits);
	if (!is_break(*s) && next.class == UNICODE_LETTER)
		return run(s, n, c.len, UNICODE_LETTER, n);
	i = *s == ' ' && next.len && next.class == UNICODE_OTHER;
	if (i || c.class == UNICODE_OTHER) {
		i = run(s, n, i, UNICODE_OTHER, n);
		while (i < n && is_break(s[i]))
			i++;
		return i;
	}
	return spaces(s, n);
}
