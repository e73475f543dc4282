#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "utf8.h"

enum { MAX_DEPTH = 64, CHUNK = 65536 };

/* Allocations are carved from chunks that are freed together. */
struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct parser {
	struct json_doc *doc;
	const char *start, *p, *end;
	struct err *err;
};

static void *
carve(struct parser *ps, size_t n)
{
	struct chunk *c = ps->doc->chunks;
	size_t size;
	void *p;

	n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) *
	    sizeof(max_align_t);
	if (!c || c->size - c->used < n) {
		size = n > CHUNK ? n : CHUNK;
		c = malloc(sizeof *c + size);
		if (!c) {
			err_set(ps->err, "out of memory");
			return NULL;
		}
		c->next = ps->doc->chunks;
		c->used = 0;
		c->size = size;
		ps->doc->chunks = c;
	}
	p = (char *)c->data + c->used;
	c->used += n;
	return p;
}

static int
bad(struct parser *ps, const char *what)
{
	return err_set(ps->err, "byte %zu: %s",
	    (size_t)(ps->p - ps->start) + 1, what);
}

static void
skip_spaces(struct parser *ps)
{
	while (ps->p < ps->end && strchr(" \t\r\n", *ps->p) && *ps->p)
		ps->p++;
}

static int
hex4(struct parser *ps, uint32_t *v)
{
	*v = 0;
	for (int i = 0; i < 4; i++, ps->p++) {
		if (ps->p == ps->end || hex_digit(*ps->p) < 0)
			return bad(ps, "four hexadecimal digits expected");
		*v = *v << 4 | (uint32_t)hex_digit(*ps->p);
	}
	return 0;
}

/* Behind a backslash; surrogate pairs join, lone surrogates become U+FFFD. */
static int
escape(struct parser *ps, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *q;
	uint32_t cp, low;

	if (ps->p == ps->end)
		return bad(ps, "the string does not end");
	if (*ps->p != 'u') {
		q = *ps->p ? strchr(from, *ps->p) : NULL;
		if (!q)
			return bad(ps, "unknown escape in a string");
		ps->p++;
		*(*out)++ = to[q - from];
		return 0;
	}
	ps->p++;
	if (hex4(ps, &cp) < 0)
		return -1;
	if (cp >= 0xD800 && cp < 0xDC00 && ps->end - ps->p >= 6 &&
	    ps->p[0] == '\\' && ps->p[1] == 'u') {
		const char *back = ps->p;

		ps->p += 2;
		if (hex4(ps, &low) < 0)
			return -1;
		if (low >= 0xDC00 && low < 0xE000)
			cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
		else
			ps->p = back;
	}
	if (cp >= 0xD800 && cp < 0xE000)
		cp = UTF8_REPLACEMENT;
	*out += utf8_encode(cp, *out);
	return 0;
}

static int
string(struct parser *ps, const char **text, size_t *len)
{
	const char *close;
	char *buf, *out;

	if (ps->p == ps->end || *ps->p != '"')
		return bad(ps, "a string expected");
	ps->p++;
	for (close = ps->p; close < ps->end && *close != '"'; close++)
		if (*close == '\\')
			close++;
	if (close >= ps->end)
		return bad(ps, "the string does not end");
	buf = out = carve(ps, (size_t)(close - ps->p) + 1);
	if (!buf)
		return -1;
	while (*ps->p != '"') {
		if ((unsigned char)*ps->p < 0x20)
			return bad(ps, "control character in a string");
		if (*ps->p == '\\') {
			ps->p++;
			if (escape(ps, &out) < 0)
				return -1;
		} else {
			*out++ = *ps->p++;
		}
	}
	ps->p++;
	*out = '\0';
	*text = buf;
	*len = (size_t)(out - buf);
	return 0;
}

/* JSON's grammar is checked here, the value is strtod's. */
static int
number(struct parser *ps, struct json *v)
{
	const char *s = ps->p, *q = s;
	char copy[64];
	size_t n;

#define DIGITS(q) \
	do { \
		if ((q) == ps->end || *(q) < '0' || *(q) > '9') \
			return bad(ps, "not a JSON value"); \
		while ((q) < ps->end && *(q) >= '0' && *(q) <= '9') \
			(q)++; \
	} while (0)
	if (*q == '-')
		q++;
	if (q < ps->end && *q == '0')
		q++;
	else
		DIGITS(q);
	if (q < ps->end && *q == '.') {
		q++;
		DIGITS(q);
	}
	if (q < ps->end && (*q == 'e' || *q == 'E')) {
		q++;
		if (q < ps->end && (*q == '+' || *q == '-'))
			q++;
		DIGITS(q);
	}
#undef DIGITS
	n = (size_t)(q - s);
	if (n >= sizeof copy)
		return bad(ps, "the number is too long");
	memcpy(copy, s, n);
	copy[n] = '\0';
	v->type = JSON_NUMBER;
	v->number = strtod(copy, NULL);
	ps->p = q;
	return 0;
}

static int
literal(struct parser *ps, struct json *v, const char *word,
    enum json_type type)
{
	size_t n = strlen(word);

	if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n))
		return bad(ps, "not a JSON value");
	ps->p += n;
	v->type = type;
	return 0;
}

static int value(struct parser *ps, struct json *v, int depth);

static int
members(struct parser *ps, struct json *v, int depth)
{
	int object = *ps->p == '{';
	char close = object ? '}' : ']';
	struct json *m, **tail = &v->first;

	v->type = object ? JSON_OBJECT : JSON_ARRAY;
	ps->p++;
	skip_spaces(ps);
	if (ps->p < ps->end && *ps->p == close) {
		ps->p++;
		return 0;
	}
	for (;;) {
		m = carve(ps, sizeof *m);
		if (!m)
			return -1;
		memset(m, 0, sizeof *m);
		skip_spaces(ps);
		if (object) {
			if (string(ps, &m->key, &m->key_len) < 0)
				return -1;
			skip_spaces(ps);
			if (ps->p == ps->end || *ps->p != ':')
				return bad(ps, "':' expected");
			ps->p++;
		}
		if (value(ps, m, depth + 1) < 0)
			return -1;
		*tail = m;
		tail = &m->next;
		v->n++;
		skip_spaces(ps);
		if (ps->p == ps->end || (*ps->p != ',' && *ps->p != close))
			return bad(ps, object ? "',' or '}' expected" :
						"',' or ']' expected");
		if (*ps->p++ == close)
			return 0;
	}
}

static int
value(struct parser *ps, struct json *v, int depth)
{
	skip_spaces(ps);
	if (ps->p == ps->end)
		return bad(ps, "a JSON value expected");
	if (depth > MAX_DEPTH)
		return bad(ps, "nested too deep");
	switch (*ps->p) {
	case '{':
	case '[':
		return members(ps, v, depth);
	case '"':
		v->type = JSON_STRING;
		return string(ps, &v->text, &v->text_len);
	case 't':
		return literal(ps, v, "true", JSON_TRUE);
	case 'f':
		return literal(ps, v, "false", JSON_FALSE);
	case 'n':
		return literal(ps, v, "null", JSON_NULL);
	default:
		return number(ps, v);
	}
}

int
json_parse(struct json_doc *d, const char *text, size_t n, struct err *err)
{
	struct parser ps = { d, text, text, text + n, err };

	memset(d, 0, sizeof *d);
	d->root = carve(&ps, sizeof *d->root);
	if (!d->root)
		return -1;
	memset(d->root, 0, sizeof *d->root);
	if (value(&ps, d->root, 0) < 0)
		return -1;
	skip_spaces(&ps);
	if (ps.p != ps.end)
		return bad(&ps, "text behind the JSON value");
	return 0;
}

void
json_free(struct json_doc *d)
{
	struct chunk *c, *next;

	for (c = d->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	memset(d, 0, sizeof *d);
}

const struct json *
json_get(const struct json *object, const char *key)
{
	const struct json *found = NULL;

	if (object->type == JSON_OBJECT)
		for (const struct json *m = object->first; m; m = m->next)
			if (strlen(key) == m->key_len &&
			    !memcmp(m->key, key, m->key_len))
				found = m;
	return found;
}

void
json_put_string(FILE *f, const char *s, size_t n)
{
	uint32_t cp;
	size_t len;

	putc('"', f);
	for (size_t i = 0; i < n; i += len) {
		len = utf8_decode(s + i, n - i, &cp);
		if (len == 0) {
			fputs("\xEF\xBF\xBD", f);
			len = 1;
		} else if (cp == '"' || cp == '\\') {
			fprintf(f, "\\%c", (int)cp);
		} else if (cp == '\n') {
			fputs("\\n", f);
		} else if (cp == '\r') {
			fputs("\\r", f);
		} else if (cp == '\t') {
			fputs("\\t", f);
		} else if (cp < 0x20 || cp == 0x7f) {
			fprintf(f, "\\u%04x", (unsigned)cp);
		} else {
			fwrite(s + i, 1, len, f);
		}
	}
	putc('"', f);
}

void
json_put_ids(FILE *f, const int32_t *id, size_t n)
{
	putc('[', f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%d", i ? "," : "", (int)id[i]);
	putc(']', f);
}
