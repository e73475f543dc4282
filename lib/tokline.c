#include "tokline.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"

static int
reserve(struct tokens *t, size_t n, struct err *err)
{
	size_t cap = t->cap ? t->cap : 256;
	int32_t *p;

	if (n <= t->cap)
		return 0;
	while (cap < n)
		cap *= 2;
	p = realloc(t->id, cap * sizeof *p);
	if (!p)
		return err_set(err, "out of memory");
	t->id = p;
	t->cap = cap;
	return 0;
}

int
tokens_push(struct tokens *t, int32_t id, struct err *err)
{
	if (reserve(t, t->n + 1, err) < 0)
		return -1;
	t->id[t->n++] = id;
	return 0;
}

int
tokens_append(struct tokens *t, const int32_t *id, size_t n, struct err *err)
{
	if (reserve(t, t->n + n, err) < 0)
		return -1;
	if (n)
		memcpy(t->id + t->n, id, n * sizeof *id);
	t->n += n;
	return 0;
}

void
tokens_free(struct tokens *t)
{
	free(t->id);
	memset(t, 0, sizeof *t);
}

int
tokline_parse(const char *text, size_t n, struct tokens *t, struct err *err)
{
	size_t i = 0, start;
	uint64_t v;

	t->n = 0;
	while (i < n) {
		start = i;
		v = 0;
		while (i < n && text[i] >= '0' && text[i] <= '9' &&
		    v <= INT32_MAX)
			v = v * 10 + (uint64_t)(text[i++] - '0');
		if (v > INT32_MAX)
			return err_set(err,
			    "byte %zu: the token id is above 2147483647",
			    start + 1);
		if (i == start || (text[start] == '0' && i - start > 1))
			return err_set(err, "byte %zu: not a token id",
			    (i == start ? i : start) + 1);
		if (tokens_push(t, (int32_t)v, err) < 0)
			return -1;
		if (i == n)
			break;
		if (text[i] != ' ' || i + 1 == n)
			return err_set(err, "byte %zu: not a token id", i + 1);
		i++;
	}
	return 0;
}

int
tokline_read(struct tokline *r, struct tokens *t, struct err *err)
{
	const char *name = r->name ? r->name : "standard input";
	size_t len;

	t->n = 0;
	switch (io_line(r->f, &r->buf, &r->cap, &len)) {
	case -1:
		return err_sys(err, "cannot read %s", name);
	case 0:
		if (r->line == 0)
			return err_set(
			    err, "%s ended before a token line", name);
		return 0;
	case 2:
		return err_set(err, "%s ended inside a token line", name);
	}
	r->line++;
	if (tokline_parse(r->buf, len, t, err) < 0)
		return err_prefix(err, "%s: line %lu", name, r->line);
	return 1;
}

void
tokline_free(struct tokline *r)
{
	free(r->buf);
	r->buf = NULL;
	r->cap = 0;
}

int
tokline_write(FILE *f, const int32_t *id, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%d", i ? " " : "", id[i]);
	putc('\n', f);
	if (fflush(f) != 0 || ferror(f))
		return err_sys(err, "cannot write token lines");
	return 0;
}
