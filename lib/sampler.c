#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmath.h"
#include "philox.h"

static const struct family_defaults families[] = {
	{ "llada", ALG_LLADA, 0, 1, 32 },
	{ "dream", ALG_ENTROPY, 0.2, 0.95, 0 },
};

const struct family_defaults *
family_defaults(const char *arch)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (!strcmp(families[i].arch, arch))
			return &families[i];
	return NULL;
}

uint64_t
sampler_blocks(uint64_t block, uint64_t n)
{
	return block ? (n + block - 1) / block : 1;
}

uint64_t
sampler_default_block(uint64_t block, uint64_t n, uint64_t steps)
{
	if (block == 0 || block > n)
		return n;
	if (sampler_blocks(block, n) > steps)
		return (n + steps - 1) / steps;
	return block;
}

struct place
sampler_place(const struct sampler *s, uint64_t step)
{
	uint64_t n = s->length - s->prompt, lo = 0, hi, first = 0, last;
	struct place at = { 0, 0, s->length, step, s->steps };

	if (s->block == 0)
		return at;
	for (;; at.block++, lo = hi, first = last) {
		hi = n - lo > s->block ? lo + s->block : n;
		last = s->steps * hi / n;
		if (step < last)
			break;
	}
	at.lo = s->prompt + lo;
	at.hi = s->prompt + hi;
	at.step = step - first;
	at.steps = last - first;
	return at;
}

static uint64_t
llada_quota(const struct sampler *s, const struct place *at, uint64_t m)
{
	uint64_t left = at->steps - at->step, n = at->hi - at->lo;

	if (s->prompt_masks == MASKS_REFERENCE)
		return n / at->steps + (at->step < n % at->steps);
	return (m + left - 1) / left;
}

/* The share of the masks that a step of Dream commits: 1 - t[s+1]/t[s]. */
static double
dream_share(const struct sampler *s, const struct place *at)
{
	double n = (double)at->steps, t, next;

	if (at->step + 1 == at->steps)
		return 1;
	t = 1 + (s->eps - 1) * ((double)at->step / n);
	next = 1 + (s->eps - 1) * ((double)(at->step + 1) / n);
	return 1 - next / t;
}

static uint64_t
dream_quota(const struct sampler *s, const struct place *at, uint64_t m)
{
	return (uint64_t)floor((double)m * dream_share(s, at));
}

static float
prob(const struct stats_row *r)
{
	return r->p;
}

static float
margin(const struct stats_row *r)
{
	return r->margin;
}

static float
negent(const struct stats_row *r)
{
	return r->negent;
}

/* Quotas of an unchanged canvas never grow: nothing now, nothing later. */
static uint64_t
llada_first(const struct sampler *s, const struct place *at, uint64_t m)
{
	return llada_quota(s, at, m) ? at->step : at->steps;
}

/*
 * A share of 1/m or more is reached m steps before t would be 0, at step
 * S/(1 - eps) - m.  At twice that distance it is about 1/(2m): no rounding
 * makes m of it a token.
 */
static uint64_t
dream_first(const struct sampler *s, const struct place *at, uint64_t m)
{
	double first = (double)at->steps / (1 - s->eps) - 2 * (double)m - 2;
	uint64_t last = at->steps - 1;

	if (!(first > (double)at->step))
		return at->step;
	return first < (double)last ? (uint64_t)first : last;
}

/* Every mask draws in every step. */
static uint64_t
origin_first(const struct sampler *s, const struct place *at, uint64_t m)
{
	(void)s;
	(void)m;
	return at->step;
}

/*
 * The algorithms, in the order of the enum.  origin draws how many it commits
 * (sampler_begin), so its quota is not a function of counts alone.  first: no
 * step of the block before it commits any of m > 0 masks.
 */
static const struct policy {
	uint64_t (*quota)(const struct sampler *, const struct place *,
	    uint64_t);
	uint64_t (*first)(const struct sampler *, const struct place *,
	    uint64_t);
	float (*confidence)(const struct stats_row *);
} policies[N_ALGORITHMS] = {
	[ALG_LLADA] = { llada_quota, llada_first, prob },
	[ALG_ORIGIN] = { dream_quota, origin_first, prob },
	[ALG_MASKGIT_PLUS] = { dream_quota, dream_first, prob },
	[ALG_TOPK_MARGIN] = { dream_quota, dream_first, margin },
	[ALG_ENTROPY] = { dream_quota, dream_first, negent },
};

uint64_t
sampler_quota(const struct sampler *s, const struct place *at, uint64_t m)
{
	uint64_t q = policies[s->stats.algorithm].quota(s, at, m);

	return q < m ? q : m;
}

uint64_t
sampler_next(const struct sampler *s, const int32_t *canvas, uint64_t step)
{
	struct place at;
	uint64_t m, first;

	while (step < s->steps) {
		at = sampler_place(s, step);
		m = 0;
		for (uint64_t i = 0; i < at.hi; i++)
			m += canvas[i] == s->mask;
		first = m ? policies[s->stats.algorithm].first(s, &at, m) :
		            at.steps;
		step += first - at.step;
		if (first < at.steps)
			break;
	}
	return step;
}

static double
origin_draw(const struct sampler *s, const struct step *t, int32_t pos)
{
	return random_draw(s->stats.seed, STREAM_ORIGIN, t->number,
	    (uint64_t)pos, 0);
}

static int
reserve(struct step *t, size_t n, struct err *err)
{
	if (n <= t->cap)
		return 0;
	step_free(t);
	t->undecided = malloc(n * sizeof *t->undecided);
	t->row = calloc(n, sizeof *t->row);
	t->candidate = malloc(n * sizeof *t->candidate);
	t->chosen = malloc(n * sizeof *t->chosen);
	if (!t->undecided || !t->row || !t->candidate || !t->chosen) {
		step_free(t);
		return err_set(err, "out of memory");
	}
	t->cap = n;
	return 0;
}

void
step_free(struct step *t)
{
	free(t->undecided);
	free(t->row);
	free(t->candidate);
	free(t->chosen);
	memset(t, 0, sizeof *t);
}

int
sampler_begin(const struct sampler *s, struct step *t, const int32_t *canvas,
    uint64_t number, struct err *err)
{
	if (reserve(t, (size_t)s->length, err) < 0)
		return -1;
	t->number = number;
	t->at = sampler_place(s, number);
	t->n = 0;
	t->n_chosen = 0;
	for (uint64_t i = 0; i < t->at.hi; i++)
		if (canvas[i] == s->mask)
			t->undecided[t->n++] = (int32_t)i;
	t->quota = sampler_quota(s, &t->at, t->n);
	if (s->stats.algorithm == ALG_ORIGIN) {
		t->quota = 0;
		for (size_t i = 0; i < t->n; i++)
			t->quota += origin_draw(s, t, t->undecided[i]) <
			    dream_share(s, &t->at);
	}
	t->wanted = t->quota > 0 && !sampler_done(s, canvas);
	return 0;
}

/*
 * What ranks a candidate.  origin: the smallest draws are those below the
 * step's share.  alg_temp: Gumbel-top-k, which draws without replacement.
 */
static double
score(const struct sampler *s, const struct step *t,
    const struct candidate *c)
{
	double u;

	if (s->stats.algorithm == ALG_LLADA)
		return (double)c->confidence;
	if (s->stats.algorithm == ALG_ORIGIN)
		return -origin_draw(s, t, c->pos);
	if (s->alg_temp == 0)
		return (double)c->confidence;
	u = random_draw(s->stats.seed, STREAM_ALG_TEMP, t->number,
	    (uint64_t)c->pos, 0);
	return (double)c->confidence / s->alg_temp - f64_log(-f64_log(u));
}

static void
judge(const struct sampler *s, const struct step *t, struct candidate *c,
    const struct stats_row *r)
{
	c->pos = r->pos;
	c->id = r->id;
	c->confidence = policies[s->stats.algorithm].confidence(r);
	if (s->stats.algorithm == ALG_LLADA && s->remasking == REMASK_RANDOM)
		c->confidence = (float)random_draw(s->stats.seed,
		    STREAM_REMASK, t->number, (uint64_t)c->pos, 0);
	c->demoted = 0;
	for (int i = 0; i < s->stats.n_demote; i++)
		c->demoted |= c->id == s->stats.demote[i];
	c->score = score(s, t, c);
}

static int
by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->demoted != y->demoted)
		return x->demoted ? 1 : -1;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->pos < y->pos ? -1 : 1;
}

static int
by_pos(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->pos < y->pos ? -1 : 1;
}

size_t
sampler_rank(struct candidate *c, size_t n, uint64_t quota)
{
	qsort(c, n, sizeof *c, by_rank);
	return quota < n ? (size_t)quota : n;
}

void
sampler_select(const struct sampler *s, struct step *t)
{
	if (!t->wanted)
		return;
	for (size_t i = 0; i < t->n; i++)
		judge(s, t, &t->candidate[i], &t->row[i]);
	memcpy(t->chosen, t->candidate, t->n * sizeof *t->chosen);
	t->n_chosen = sampler_rank(t->chosen, t->n, t->quota);
	qsort(t->chosen, t->n_chosen, sizeof *t->chosen, by_pos);
}

void
sampler_update(const struct step *t, int32_t *canvas)
{
	for (size_t i = 0; i < t->n_chosen; i++)
		canvas[t->chosen[i].pos] = t->chosen[i].id;
}

int
sampler_is_eos(const struct sampler *s, int32_t id)
{
	for (int i = 0; i < s->n_eos; i++)
		if (s->eos[i] == id)
			return 1;
	return 0;
}

uint64_t
sampler_end(const struct sampler *s, const int32_t *canvas)
{
	for (uint64_t i = s->prompt; i < s->length; i++) {
		if (canvas[i] == s->mask)
			break;
		if (sampler_is_eos(s, canvas[i]))
			return i;
	}
	return s->length;
}

int
sampler_done(const struct sampler *s, const int32_t *canvas)
{
	return s->early_stop && sampler_end(s, canvas) < s->length;
}

void
sampler_guide(float *out, const float *c, const float *u, size_t n,
    float scale)
{
	float w = scale + 1, d;

	for (size_t i = 0; i < n; i++) {
		d = c[i] - u[i];
		d = w * d;
		out[i] = u[i] + d;
	}
}
