#include "stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmath.h"
#include "philox.h"

const char *const algorithm_names[] = { "llada", "origin", "maskgit_plus",
	"topk_margin", "entropy", NULL };

enum { SOME_IDS = 1024 }; /* between looks at the best score so far */

/* One row while it is being reduced. */
struct row {
	const struct kern *k;
	size_t n;
	float *l;       /* (n) logits, -inf where no longer possible */
	float *e;       /* (n) exp(l - max) */
	uint64_t *heap; /* (n) keys, for top-p and top-k */
	struct weights w;
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

/* The ids of a list become impossible. */
static void
remove_ids(struct row *r, const int32_t *id, int n)
{
	for (int i = 0; i < n; i++)
		if ((size_t)id[i] < r->n)
			r->l[id[i]] = -INFINITY;
}

/* The largest logit; -1 where none is above -inf. */
static int
find_best(struct row *r)
{
	r->best = r->k->largest(r->l, r->n);
	return r->l[r->best] > -INFINITY ? 0 : -1;
}

/* Copy the logits, ban, check. */
static int
load(struct row *r, const float *logits, const struct stats_params *p,
    int32_t pos, struct err *err)
{
	size_t i = 0;

	if (!r->k->clean_logits(r->l, logits, r->n)) {
		while (logits[i] < INFINITY)
			i++;
		return err_set(err, "position %d: the logit of token %zu is %s",
		    (int)pos, i, isnan(logits[i]) ? "NaN" : "infinite");
	}
	remove_ids(r, p->ban, p->n_ban);
	if (find_best(r) < 0)
		return err_set(err, "position %d: no token is possible",
		    (int)pos);
	return 0;
}

/* What differences of logits are divided by; 0: nothing. */
static double
tempering(const struct stats_params *p)
{
	return p->algorithm == ALG_LLADA ? 0 : p->temperature;
}

/* e and its sum, relative to the largest logit. */
static void
weigh(struct row *r, const struct stats_params *p)
{
	r->k->weigh(&r->w, r->e, r->l, r->n, r->l[r->best], tempering(p));
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

static size_t
key_id(uint64_t key)
{
	return (uint32_t)~(uint32_t)key;
}

static float
key_logit(uint64_t key)
{
	uint32_t u = (uint32_t)(key >> 32);
	float logit;

	u = u & 0x80000000u ? u & 0x7fffffffu : ~u;
	memcpy(&logit, &u, sizeof logit);
	return logit;
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
 * Take ids out of the heap, the likeliest first, while they are kept; their
 * keys end up behind those that are left, the number returned.  *full: would no
 * more have been kept, had there been more?
 */
static size_t
take_kept(struct row *r, size_t n, const struct stats_params *p, int *full)
{
	double limit = p->top_p * r->w.sum, sum = 0;
	size_t count = 0;
	uint64_t top, last = 0;

	for (size_t i = n / 2; i-- > 0;)
		sift_down(r->heap, i, n);
	for (; n > 0; count++) {
		top = r->heap[0];
		if (count && p->top_p < 1 && sum > limit)
			break;
		if (p->top_k && count >= p->top_k && top >> 32 < last >> 32)
			break;
		sum += (double)r->e[key_id(top)];
		r->heap[0] = r->heap[--n];
		if (n)
			sift_down(r->heap, 0, n);
		r->heap[n] = last = top;
	}
	*full = n > 0 || (p->top_p < 1 && sum > limit);
	return n;
}

/*
 * A logit such that the ids from it up suffice for top-p, with room for
 * rounding; if they do not, all are looked at.  The others, n at most, weigh
 * less than half of what top-p leaves out.
 */
static float
cutoff(const struct row *r, const struct stats_params *p)
{
	double share = (1 - p->top_p) / 2 * r->w.sum / (double)r->n;
	double t = tempering(p) > 0 ? tempering(p) : 1;

	if (!(share > 0))
		return -INFINITY;
	return (float)((double)r->l[r->best] + t * f64_log(share));
}

/*
 * Top-p and top-k keep a prefix of the order; only that prefix is sorted out
 * of the heap, usually a few ids.  All others become impossible.
 */
static void
truncate_row(struct row *r, const struct stats_params *p)
{
	float low = cutoff(r, p);
	size_t n, left;
	int full;

	for (;; low = -INFINITY) {
		n = 0;
		for (size_t i = 0; i < r->n; i++)
			if (r->l[i] >= low)
				r->heap[n++] = order_key(r->l[i], i);
		left = take_kept(r, n, p, &full);
		if (full || n == r->n)
			break;
	}
	for (size_t i = 0; i < r->n; i++)
		r->l[i] = -INFINITY;
	for (size_t i = left; i < n; i++)
		r->l[key_id(r->heap[i])] = key_logit(r->heap[i]);
}

/* The score of an id in a draw; -inf if it is impossible. */
static double
score(const struct row *r, const struct stats_params *p, int32_t pos, size_t id)
{
	double l = (double)r->l[id], u, g;

	if (!(l > -INFINITY))
		return -INFINITY;
	u = random_draw(p->seed, STREAM_TOKEN, p->step, (uint64_t)pos,
	    (uint32_t)id);
	g = f64_log(-f64_log(u));
	return p->algorithm == ALG_LLADA ? l - p->temperature * g :
	                                   l / p->temperature - g;
}

/*
 * As -log u >= 1 - u, the noise is at most -log(1 - u): an id can reach the
 * score `best` only if 1 - u <= exp(logit / T - best / T) (llada; the others'
 * scores are divided by T already).  The room for rounding is a thousandth,
 * and what the difference of two large numbers needs.
 */
static void
set_bound(struct noise *z, const struct stats_params *p, double best)
{
	const double T = p->temperature;
	double top = (double)z->max / T, gap;

	if (p->algorithm == ALG_LLADA)
		best /= T;
	gap = top - best + 1e-13 * (fabs(top) + fabs(best));
	z->scale = T > 1e30 ? 0 : (float)fmin(1 / T, FLT_MAX);
	z->bound = (float)(1.001 * f64_exp(gap));
}

/*
 * Gumbel-max.  Few ids need a logarithm: those whose random number is so large
 * that they may win.
 */
static size_t
draw(const struct row *r, const struct stats_params *p, int32_t pos)
{
	struct noise z = { .key = { (uint32_t)p->seed,
		(uint32_t)(p->seed >> 32) }, .position = (uint32_t)pos,
		.step = (uint32_t)p->step, .stream = STREAM_TOKEN,
		.max = r->l[r->best] };
	uint32_t id[SOME_IDS];
	size_t winner = r->best, n, found;
	double best = score(r, p, pos, winner), s;

	for (size_t i = 0; i < r->n; i += n) {
		n = r->n - i < SOME_IDS ? r->n - i : SOME_IDS;
		set_bound(&z, p, best);
		found = r->k->contenders(id, r->l, i, n, &z);
		for (size_t j = 0; j < found; j++) {
			s = score(r, p, pos, id[j]);
			if (s > best || (s == best && s > -INFINITY &&
			        id[j] < winner)) {
				best = s;
				winner = id[j];
			}
		}
	}
	return winner;
}

static float
probability(const struct row *r, float e)
{
	return (float)((double)e / r->w.sum);
}

/* p, margin and negative entropy of the candidate; demoted ids are gone. */
static void
judge(struct stats_row *out, const struct row *r, enum algorithm algorithm)
{
	out->margin = probability(r, r->w.first) - probability(r, r->w.second);
	out->p = probability(r, r->e[out->id]);
	if (algorithm == ALG_ENTROPY)
		out->negent = (float)r->k->negentropy(r->e, r->n, r->w.sum);
}

int
stats_row(struct stats_row *out, const float *logits, size_t n_vocab,
    int32_t pos, const struct stats_params *p, struct stats_scratch *scratch,
    struct err *err)
{
	int truncating = p->algorithm != ALG_LLADA &&
	    (p->top_p < 1 || (p->top_k > 0 && p->top_k < n_vocab));
	struct row r = { .k = scratch->kern, .n = n_vocab };

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
	remove_ids(&r, p->demote, p->n_demote);
	if (p->n_demote && find_best(&r) < 0)
		return 0; /* nothing but demoted ids: no confidence */
	weigh(&r, p);
	judge(out, &r, p->algorithm);
	return 0;
}
