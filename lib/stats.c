#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmath.h"
#include "philox.h"

const char *const algorithm_names[] = { "llada", "origin", "maskgit_plus",
	"topk_margin", "entropy", NULL };

/* One row while it is being reduced. */
struct row {
	size_t n;
	float *l;       /* (n) logits, -inf where banned */
	float *e;       /* (n) exp(l - max), 0 where not kept */
	uint64_t *heap; /* (n) keys, for top-p and top-k */
	uint64_t cut;   /* ids with a key below are not kept */
	double den;     /* sum of e */
	size_t best;    /* id of the largest l, the lowest among equals */
};

void
stats_scratch_free(struct stats_scratch *s)
{
	free(s->buf);
	s->buf = NULL;
	s->size = 0;
}

static int
reserve(struct stats_scratch *s, struct row *r, struct err *err)
{
	size_t n = r->n;
	size_t size = n * (sizeof *r->heap + sizeof *r->l + sizeof *r->e);

	if (s->size < size) {
		free(s->buf);
		s->buf = malloc(size);
		s->size = s->buf ? size : 0;
		if (!s->buf)
			return err_set(err, "out of memory");
	}
	r->heap = s->buf;
	r->l = (float *)(r->heap + n);
	r->e = r->l + n;
	return 0;
}

/* Orders by logit descending, then by id ascending: larger comes first. */
static uint64_t
order_key(float logit, size_t id)
{
	uint32_t u;

	memcpy(&u, &logit, sizeof u);
	u = u & 0x80000000u ? ~u : u | 0x80000000u;
	return (uint64_t)u << 32 | (uint32_t)~(uint32_t)id;
}

static int
kept(const struct row *r, size_t id)
{
	return r->cut == 0 || order_key(r->l[id], id) >= r->cut;
}

/* The largest logit; -1 where none is above -inf. */
static int
find_best(struct row *r)
{
	r->best = 0;
	for (size_t i = 1; i < r->n; i++)
		if (r->l[i] > r->l[r->best])
			r->best = i;
	return r->l[r->best] > -INFINITY ? 0 : -1;
}

/* Copy the logits, ban, check. */
static int
load(struct row *r, const float *logits, const struct stats_params *p,
    int32_t pos, struct err *err)
{
	int bad = 0;

	for (size_t i = 0; i < r->n; i++) {
		r->l[i] = logits[i] + 0.0f; /* -0 becomes 0 */
		bad |= !(logits[i] < INFINITY);
	}
	for (size_t i = 0; bad && i < r->n; i++)
		if (!(logits[i] < INFINITY))
			return err_set(err,
			    "position %d: the logit of token %zu is %s",
			    (int)pos, i, isnan(logits[i]) ? "NaN" : "infinite");
	for (int i = 0; i < p->n_ban; i++)
		if ((size_t)p->ban[i] < r->n)
			r->l[p->ban[i]] = -INFINITY;
	if (find_best(r) < 0)
		return err_set(err, "position %d: no token is possible",
		    (int)pos);
	return 0;
}

/* 16 partial sums, folded. */
static double
fold(double s[16])
{
	for (int half = 8; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			s[i] += s[i + half];
	return s[0];
}

static int
tempered(const struct stats_params *p)
{
	return p->algorithm != ALG_LLADA && p->temperature > 0;
}

/* e and den over the kept ids, relative to the largest logit. */
static void
weigh(struct row *r, const struct stats_params *p)
{
	float max = r->l[r->best], d;
	double s[16] = { 0 };
	int temper = tempered(p);

	for (size_t i = 0; i < r->n; i++) {
		r->e[i] = 0;
		if (!kept(r, i))
			continue;
		d = r->l[i] - max;
		if (temper)
			d = (float)((double)d / p->temperature);
		r->e[i] = f32_exp(d);
		s[i & 15] += (double)r->e[i];
	}
	r->den = fold(s);
}

/* Restore the heap below i, of n keys, largest on top. */
static void
sift_down(uint64_t *heap, size_t i, size_t n)
{
	uint64_t key = heap[i];
	size_t c;

	while ((c = 2 * i + 1) < n) {
		if (c + 1 < n && heap[c + 1] > heap[c])
			c++;
		if (heap[c] <= key)
			break;
		heap[i] = heap[c];
		i = c;
	}
	heap[i] = key;
}

/*
 * Top-p and top-k keep a prefix of the order; only that prefix is sorted out
 * of the heap, usually a few ids.
 */
static void
truncate_row(struct row *r, const struct stats_params *p)
{
	double limit = p->top_p * r->den, sum = 0;
	uint64_t last = 0;
	size_t n = r->n, count = 0, id;

	for (size_t i = 0; i < n; i++)
		r->heap[i] = order_key(r->l[i], i);
	for (size_t i = n / 2; i-- > 0;)
		sift_down(r->heap, i, n);
	while (n > 0) {
		if (count && p->top_p < 1 && sum > limit)
			break;
		if (p->top_k && count >= p->top_k &&
		    r->heap[0] >> 32 < last >> 32)
			break;
		last = r->heap[0];
		id = (uint32_t)~(uint32_t)last;
		sum += (double)r->e[id];
		count++;
		r->heap[0] = r->heap[--n];
		if (n)
			sift_down(r->heap, 0, n);
	}
	r->cut = last;
}

/*
 * Gumbel-max.  As -log u >= 1 - u, the noise is at most -log(1 - u): an id
 * whose 1 - u is too large to win even so needs no logarithm.  The test leaves
 * room for rounding, so it never changes the choice.
 */
static size_t
draw(const struct row *r, const struct stats_params *p, int32_t pos)
{
	const double T = p->temperature;
	const int llada = p->algorithm == ALG_LLADA;
	double u[2] = { 0, 0 }, best = -INFINITY, score, gap, g;
	size_t id = r->best;

	for (size_t i = 0; i < r->n; i++) {
		if (i % 2 == 0)
			random_pair(u, p->seed, STREAM_TOKEN, p->step,
			    (uint64_t)pos, (uint32_t)(i / 2));
		if (!(r->l[i] > -INFINITY) || !kept(r, i))
			continue;
		score = llada ? (double)r->l[i] : (double)r->l[i] / T;
		gap = score - best + 1e-13 * (fabs(score) + fabs(best));
		if (llada)
			gap /= T;
		if (gap < 0 && 1 - u[i % 2] > 1.001 * f64_exp(gap))
			continue;
		g = f64_log(-f64_log(u[i % 2]));
		score = llada ? score - T * g : score - g;
		if (score > best) {
			best = score;
			id = i;
		}
	}
	return id;
}

/* p, margin and negative entropy of the candidate; demoted ids are gone. */
static void
judge(struct stats_row *out, const struct row *r, enum algorithm algorithm)
{
	double s[16] = { 0 };
	float p, first = 0, second = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->e[i] > first) {
			second = first;
			first = r->e[i];
		} else if (r->e[i] > second) {
			second = r->e[i];
		}
	}
	out->margin = (float)((double)first / r->den) -
	    (float)((double)second / r->den);
	out->p = (float)((double)r->e[out->id] / r->den);
	if (algorithm != ALG_ENTROPY)
		return;
	for (size_t i = 0; i < r->n; i++) {
		if (r->e[i] == 0)
			continue;
		p = (float)((double)r->e[i] / r->den);
		s[i & 15] += (double)(p * f32_log(p + 1e-10f));
	}
	out->negent = (float)fold(s);
}

/* The best id that is kept and not demoted, for the final distribution. */
static int
demote(struct row *r, const struct stats_params *p)
{
	for (int i = 0; i < p->n_demote; i++)
		if ((size_t)p->demote[i] < r->n)
			r->l[p->demote[i]] = -INFINITY;
	return find_best(r) == 0 && kept(r, r->best) ? 0 : -1;
}

int
stats_row(struct stats_row *out, const float *logits, size_t n_vocab,
    int32_t pos, const struct stats_params *p, struct stats_scratch *scratch,
    struct err *err)
{
	int truncating = p->algorithm != ALG_LLADA &&
	    (p->top_p < 1 || (p->top_k > 0 && p->top_k < n_vocab));
	struct row r = { .n = n_vocab };

	memset(out, 0, sizeof *out);
	out->pos = pos;
	if (reserve(scratch, &r, err) < 0 ||
	    load(&r, logits, p, pos, err) < 0)
		return -1;
	if (truncating) {
		weigh(&r, p);
		truncate_row(&r, p);
	}
	out->id = (int32_t)(p->greedy || p->temperature == 0 ?
	        r.best :
	        draw(&r, p, pos));
	out->logit = logits[out->id];
	if (demote(&r, p) < 0)
		return 0; /* nothing but demoted ids: no confidence */
	weigh(&r, p);
	judge(out, &r, p->algorithm);
	return 0;
}
