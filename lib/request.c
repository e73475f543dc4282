/* The requests of proto.h, and the ranges of rows in them. */
#include "proto.h"

#include <stdlib.h>
#include <string.h>

#include "proto_word.h"

/* Positions are 32-bit; this also bounds every sum of them. */
enum { POS_LIMIT = INT32_MAX };

void
ranges_free(struct ranges *r)
{
	free(r->r);
	memset(r, 0, sizeof *r);
}

/* Append [from, from + count), above all before it. */
static int
push_range(struct ranges *r, uint64_t from, uint64_t count, struct err *err)
{
	struct range *last = r->n ? &r->r[r->n - 1] : NULL;
	struct range *p;
	size_t cap;

	if (last && last->from + last->count == from) {
		last->count += count;
		r->total += count;
		return 0;
	}
	if (r->n == r->cap) {
		cap = r->cap ? 2 * r->cap : 16;
		p = realloc(r->r, cap * sizeof *p);
		if (!p)
			return err_set(err, "out of memory");
		r->r = p;
		r->cap = cap;
	}
	r->r[r->n].from = from;
	r->r[r->n++].count = count;
	r->total += count;
	return 0;
}

int
ranges_add(struct ranges *r, uint64_t pos, struct err *err)
{
	return push_range(r, pos, 1, err);
}

/* One FROM:COUNT (or FROM). */
static int
parse_range(struct ranges *r, struct word w, int short_ok, struct err *err)
{
	const char *colon = memchr(w.p, ':', w.n);
	struct word from = w, count;
	uint64_t a, n = 1, end = 0;

	if (colon) {
		from.n = (size_t)(colon - w.p);
		count.p = colon + 1;
		count.n = w.n - from.n - 1;
	}
	if ((!colon && !short_ok) || word_uint(from, POS_LIMIT, &a) < 0 ||
	    (colon && word_uint(count, POS_LIMIT, &n) < 0) || n == 0 ||
	    a + n > POS_LIMIT)
		return err_set(err, "bad range of rows '%.*s'",
		    w.n < 40 ? (int)w.n : 40, w.p);
	if (r->n)
		end = r->r[r->n - 1].from + r->r[r->n - 1].count;
	if (a < end)
		return err_set(err, "rows must ascend: '%.*s'",
		    w.n < 40 ? (int)w.n : 40, w.p);
	return push_range(r, a, n, err);
}

int
ranges_parse(struct ranges *r, const char *text, size_t n, int short_ok,
    struct err *err)
{
	const char *end = text + n, *comma;
	struct word w;

	r->n = 0;
	r->total = 0;
	for (;;) {
		comma = memchr(text, ',', (size_t)(end - text));
		w.p = text;
		w.n = (size_t)((comma ? comma : end) - text);
		if (parse_range(r, w, short_ok, err) < 0)
			return -1;
		if (!comma)
			return 0;
		text = comma + 1;
	}
}

void
ranges_write(FILE *f, const struct ranges *r)
{
	for (size_t i = 0; i < r->n; i++)
		fprintf(f, "%s%llu:%llu", i ? "," : "",
		    (unsigned long long)r->r[i].from,
		    (unsigned long long)r->r[i].count);
}

/* The shortest decimal that reads back as the same number. */
static void
put_real(FILE *f, const char *key, double v)
{
	char buf[40];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	fprintf(f, " %s=%s", key, buf);
}

static void
put_ids(FILE *f, const char *key, const int32_t *id, int n)
{
	if (n)
		fprintf(f, " %s=", key);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%d", i ? "," : "", (int)id[i]);
}

static void
put_stats(FILE *f, const struct stats_params *p)
{
	fprintf(f, " want=stats algorithm=%s greedy=%d seed=%llu step=%llu",
	    algorithm_names[p->algorithm], p->greedy,
	    (unsigned long long)p->seed, (unsigned long long)p->step);
	put_real(f, "temperature", p->temperature);
	put_real(f, "top-p", p->top_p);
	fprintf(f, " top-k=%llu", (unsigned long long)p->top_k);
	put_ids(f, "ban", p->ban, p->n_ban);
	put_ids(f, "demote", p->demote, p->n_demote);
}

int
request_write(FILE *f, const struct request *q, struct err *err)
{
	fprintf(f, "forward %llu rows=", (unsigned long long)q->seq);
	ranges_write(f, &q->rows);
	if (q->want == WANT_STATS)
		put_stats(f, &q->stats);
	fputs(" : ", f);
	return tokline_write(f, q->ids.id, q->ids.n, err);
}

/* A key of the statistics.  1 if it was one, 0 if not, -1 bad value. */
static int
stats_key(struct stats_params *p, struct word w)
{
	struct word v;
	uint64_t u;

	if (word_value(w, "algorithm", &v)) {
		for (int i = 0; algorithm_names[i]; i++)
			if (word_is(v, algorithm_names[i])) {
				p->algorithm = (enum algorithm)i;
				return 1;
			}
		return -1;
	}
	if (word_value(w, "greedy", &v)) {
		if (word_uint(v, 1, &u) < 0)
			return -1;
		p->greedy = (int)u;
		return 1;
	}
	if (word_value(w, "seed", &v))
		return word_uint(v, UINT64_MAX, &p->seed) < 0 ? -1 : 1;
	if (word_value(w, "step", &v))
		return word_uint(v, INT32_MAX, &p->step) < 0 ? -1 : 1;
	if (word_value(w, "top-k", &v))
		return word_uint(v, INT32_MAX, &p->top_k) < 0 ? -1 : 1;
	if (word_value(w, "temperature", &v))
		return word_real(v, &p->temperature) < 0 || p->temperature < 0 ?
		    -1 :
		    1;
	if (word_value(w, "top-p", &v))
		return word_real(v, &p->top_p) < 0 || p->top_p < 0 ||
		        p->top_p > 1 ?
		    -1 :
		    1;
	if (word_value(w, "ban", &v)) {
		p->n_ban = word_ids(v, INT32_MAX, p->ban, STATS_MAX_IDS);
		return p->n_ban < 0 ? -1 : 1;
	}
	if (word_value(w, "demote", &v)) {
		p->n_demote = word_ids(v, INT32_MAX, p->demote, STATS_MAX_IDS);
		return p->n_demote < 0 ? -1 : 1;
	}
	return 0;
}

static int
request_key(struct request *q, struct word w, struct err *err)
{
	struct word v;
	int rc;

	if (word_value(w, "rows", &v))
		return ranges_parse(&q->rows, v.p, v.n, 0, err);
	if (word_value(w, "want", &v)) {
		if (word_is(v, "stats"))
			q->want = WANT_STATS;
		else if (word_is(v, "logits"))
			q->want = WANT_LOGITS;
		else
			return err_set(err, "want= is logits or stats");
		return 0;
	}
	rc = stats_key(&q->stats, w);
	if (rc == 1)
		return 0;
	return err_set(err, "%s in the request: '%.*s'",
	    rc < 0 ? "bad value" : "unknown key", w.n < 40 ? (int)w.n : 40,
	    w.p);
}

int
request_parse(struct request *q, const char *line, size_t n, struct err *err)
{
	struct word rest = { line, n }, w;

	q->seq = 0;
	q->want = WANT_LOGITS;
	q->rows.n = 0;
	q->rows.total = 0;
	q->ids.n = 0;
	memset(&q->stats, 0, sizeof q->stats);
	q->stats.top_p = 1;
	if (!word_next(&rest, &w) || !word_is(w, "forward") ||
	    !word_next(&rest, &w) || word_uint(w, UINT64_MAX, &q->seq) < 0)
		return err_set(err, "a request begins with 'forward SEQ'");
	for (;;) {
		if (!word_next(&rest, &w))
			return err_set(err, "no ' : ' and ids in the request");
		if (word_is(w, ":"))
			break;
		if (request_key(q, w, err) < 0)
			return -1;
	}
	if (!q->rows.n)
		return err_set(err, "no rows= in the request");
	if (tokline_parse(rest.p, rest.n, &q->ids, err) < 0)
		return err_prefix(err, "ids");
	return 0;
}

void
request_free(struct request *q)
{
	ranges_free(&q->rows);
	tokens_free(&q->ids);
}
