#include "proto.h"

#include <float.h>
#include <string.h>

#include "hex.h"
#include "proto_word.h"

/* Spaces, '%', control characters and bytes above 127 as %XX. */
static void
put_encoded(FILE *f, const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s == '%' || *s == 0x7f || *s & 0x80)
			fprintf(f, "%%%02X", (unsigned char)*s);
		else
			putc(*s, f);
}

/* Decode into buf (PROTO_TEXT), cut to fit; NUL bytes are dropped. */
static void
decode(char *buf, struct word w)
{
	size_t n = 0;
	char c;

	for (size_t i = 0; i < w.n && n < PROTO_TEXT - 1; i++) {
		c = w.p[i];
		if (c == '%' && i + 2 < w.n && hex_digit(w.p[i + 1]) >= 0 &&
		    hex_digit(w.p[i + 2]) >= 0) {
			c = (char)(hex_digit(w.p[i + 1]) * 16 +
			    hex_digit(w.p[i + 2]));
			i += 2;
		}
		if (c)
			buf[n++] = c;
	}
	buf[n] = '\0';
}

static void
put_text(FILE *f, const char *key, const char *value)
{
	if (!*value)
		return;
	fprintf(f, " %s=", key);
	put_encoded(f, value);
}

int
greeting_write(FILE *f, const struct greeting *g, struct err *err)
{
	fprintf(f, "dllm-forward %d", PROTO_VERSION);
	put_text(f, "arch", g->arch);
	fprintf(f, " vocab=%llu mask=%d", (unsigned long long)g->vocab,
	    (int)g->mask);
	for (int i = 0; i < g->n_eos; i++)
		fprintf(f, "%s%d", i ? "," : " eos=", (int)g->eos[i]);
	fprintf(f, " ctx=%llu", (unsigned long long)g->ctx);
	put_text(f, "device", g->device);
	put_text(f, "kernel", g->kernel);
	fprintf(f, " threads=%llu first=%d want=logits%s",
	    (unsigned long long)g->threads, g->first, g->stats ? ",stats" : "");
	put_text(f, "quant", g->quant);
	put_text(f, "model", g->model);
	putc('\n', f);
	if (fflush(f) != 0 || ferror(f))
		return err_sys(err, "cannot write the greeting");
	return 0;
}

/* The comma-separated list v holds this item. */
static int
lists(struct word v, const char *item)
{
	size_t n = strlen(item);

	for (size_t i = 0; i + n <= v.n; i++)
		if ((i == 0 || v.p[i - 1] == ',') && !memcmp(v.p + i, item, n) &&
		    (i + n == v.n || v.p[i + n] == ','))
			return 1;
	return 0;
}

/* One KEY=VALUE of a greeting; -1 names the key. */
static int
greeting_key(struct greeting *g, struct word w, struct word *eos,
    uint64_t *mask, struct err *err)
{
	uint64_t v;
	struct word t;

	if (word_value(w, "arch", &t))
		decode(g->arch, t);
	else if (word_value(w, "model", &t))
		decode(g->model, t);
	else if (word_value(w, "quant", &t))
		decode(g->quant, t);
	else if (word_value(w, "device", &t))
		decode(g->device, t);
	else if (word_value(w, "kernel", &t))
		decode(g->kernel, t);
	else if (word_value(w, "eos", &t))
		*eos = t;
	else if (word_value(w, "want", &t))
		g->stats = lists(t, "stats");
	else if (word_value(w, "vocab", &t)) {
		if (word_uint(t, INT32_MAX, &g->vocab) < 0 || g->vocab == 0)
			return err_set(err, "bad vocab= in the greeting");
	} else if (word_value(w, "mask", &t)) {
		if (word_uint(t, INT32_MAX, mask) < 0)
			return err_set(err, "bad mask= in the greeting");
	} else if (word_value(w, "ctx", &t)) {
		if (word_uint(t, INT32_MAX, &g->ctx) < 0)
			return err_set(err, "bad ctx= in the greeting");
	} else if (word_value(w, "threads", &t)) {
		if (word_uint(t, INT32_MAX, &g->threads) < 0)
			return err_set(err, "bad threads= in the greeting");
	} else if (word_value(w, "first", &t)) {
		if (word_uint(t, 1, &v) < 0)
			return err_set(err, "bad first= in the greeting");
		g->first = (int)v;
	}
	return 0;
}

int
greeting_parse(struct greeting *g, const char *line, size_t n, struct err *err)
{
	struct word rest = { line, n }, w, eos = { line, 0 };
	uint64_t version, mask = UINT64_MAX;

	memset(g, 0, sizeof *g);
	if (!word_next(&rest, &w) || !word_is(w, "dllm-forward") ||
	    !word_next(&rest, &w) || word_uint(w, INT32_MAX, &version) < 0)
		return err_set(err, "not a greeting of a forward process");
	if (version != PROTO_VERSION)
		return err_set(err,
		    "protocol version %llu is not supported (this is %d)",
		    (unsigned long long)version, PROTO_VERSION);
	while (word_next(&rest, &w))
		if (greeting_key(g, w, &eos, &mask, err) < 0)
			return -1;
	if (!g->vocab)
		return err_set(err, "no vocab= in the greeting");
	if (mask == UINT64_MAX)
		return err_set(err, "no mask= in the greeting");
	if (mask >= g->vocab)
		return err_set(err, "mask=%llu is outside the vocabulary of "
		                    "%llu",
		    (unsigned long long)mask, (unsigned long long)g->vocab);
	g->mask = (int32_t)mask;
	g->n_eos = word_ids(eos, g->vocab, g->eos, PROTO_MAX_EOS);
	if (g->n_eos < 0) {
		g->n_eos = 0;
		return err_set(err, "bad eos= in the greeting");
	}
	return 0;
}

void
reply_ok_write(FILE *f, uint64_t seq, uint64_t rows, uint64_t bytes, double ms)
{
	fprintf(f, "ok %llu rows=%llu", (unsigned long long)seq,
	    (unsigned long long)rows);
	if (bytes)
		fprintf(f, " bytes=%llu", (unsigned long long)bytes);
	fprintf(f, " ms=%.3f\n", ms);
}

void
reply_error_write(FILE *f, uint64_t seq, const char *text)
{
	fprintf(f, "error %llu %s\n", (unsigned long long)seq, text);
}

static int
reply_ok(struct reply *r, struct word rest, struct err *err)
{
	struct word w, v;
	int rows = 0;

	while (word_next(&rest, &w)) {
		if (word_value(w, "rows", &v)) {
			if (word_uint(v, INT32_MAX, &r->rows) < 0)
				return err_set(err, "bad rows= in a reply");
			rows = 1;
		} else if (word_value(w, "bytes", &v)) {
			if (word_uint(v, INT64_MAX, &r->bytes) < 0)
				return err_set(err, "bad bytes= in a reply");
		} else if (word_value(w, "ms", &v)) {
			if (word_real(v, &r->ms) < 0)
				return err_set(err, "bad ms= in a reply");
		}
	}
	if (!rows)
		return err_set(err, "no rows= in a reply");
	return 0;
}

int
reply_parse(struct reply *r, const char *line, size_t n, struct err *err)
{
	struct word rest = { line, n }, w;
	size_t len;

	memset(r, 0, sizeof *r);
	if (!word_next(&rest, &w))
		return err_set(err, "an empty line instead of a reply");
	r->ok = word_is(w, "ok");
	if (!r->ok && !word_is(w, "error"))
		return err_set(err, "not a reply: '%.*s'",
		    n < 60 ? (int)n : 60, line);
	if (!word_next(&rest, &w) || word_uint(w, UINT64_MAX, &r->seq) < 0)
		return err_set(err, "a reply without a sequence number");
	if (r->ok)
		return reply_ok(r, rest, err);
	len = rest.n < sizeof r->text ? rest.n : sizeof r->text - 1;
	memcpy(r->text, rest.p, len);
	r->text[len] = '\0';
	return 0;
}

void
stats_row_write(FILE *f, const struct stats_row *r)
{
	fprintf(f, "row %d id=%d logit=%a p=%a margin=%a negent=%a\n",
	    (int)r->pos, (int)r->id, (double)r->logit, (double)r->p,
	    (double)r->margin, (double)r->negent);
}

int
stats_row_parse(struct stats_row *r, const char *line, size_t n,
    struct err *err)
{
	struct word rest = { line, n }, w, v;
	static const char *const key[] = { "logit", "p", "margin", "negent" };
	float *to[4];
	uint64_t pos, id = UINT64_MAX;
	unsigned seen = 0;
	double x;

	memset(r, 0, sizeof *r);
	to[0] = &r->logit, to[1] = &r->p, to[2] = &r->margin, to[3] = &r->negent;
	if (!word_next(&rest, &w) || !word_is(w, "row") ||
	    !word_next(&rest, &w) || word_uint(w, INT32_MAX, &pos) < 0)
		return err_set(err, "not a row of statistics: '%.*s'",
		    n < 60 ? (int)n : 60, line);
	while (word_next(&rest, &w)) {
		if (word_value(w, "id", &v) && word_uint(v, INT32_MAX, &id) < 0)
			return err_set(err, "row %llu: bad id=",
			    (unsigned long long)pos);
		for (int k = 0; k < 4; k++) {
			if (!word_value(w, key[k], &v))
				continue;
			if (word_real(v, &x) < 0 ||
			    !(x >= -FLT_MAX && x <= FLT_MAX))
				return err_set(err, "row %llu: bad %s=",
				    (unsigned long long)pos, key[k]);
			*to[k] = (float)x;
			seen |= 1u << k;
		}
	}
	if (seen != 15 || id == UINT64_MAX)
		return err_set(err, "row %llu: a value is missing",
		    (unsigned long long)pos);
	if (!(r->p >= 0 && r->p <= 1 && r->margin >= 0 && r->margin <= 1))
		return err_set(err, "row %llu: p or margin outside 0 to 1",
		    (unsigned long long)pos);
	r->pos = (int32_t)pos;
	r->id = (int32_t)id;
	return 0;
}
