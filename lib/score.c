#include "score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmath.h"
#include "philox.h"
#include "sampler.h"

/* a = realloc(a, n items of size); 0 or -1 */
static int
grow(void *a, uint64_t n, size_t size, struct err *err)
{
	void **to = a, *p;

	p = n > SIZE_MAX / size ? NULL : realloc(*to, (size_t)n * size);
	if (!p)
		return err_set(err, "out of memory");
	*to = p;
	return 0;
}

int
scorer_reserve(struct scorer *s, const struct pair *p, struct err *err)
{
	uint64_t n = p->length;

	for (size_t i = 0; i < sizeof s->memo / sizeof *s->memo; i++)
		s->memo[i] = -1;
	if (n <= s->cap)
		return 0;
	if (grow(&s->pos, n, sizeof *s->pos, err) < 0 ||
	    grow(&s->loss, n, sizeof *s->loss, err) < 0 ||
	    grow(&s->canvas, n, sizeof *s->canvas, err) < 0 ||
	    grow(&s->uncond, n, sizeof *s->uncond, err) < 0 ||
	    grow(&s->key, n, sizeof *s->key, err) < 0)
		return -1;
	s->cap = n;
	return 0;
}

void
scorer_free(struct scorer *s)
{
	free(s->pos);
	free(s->loss);
	free(s->canvas);
	free(s->uncond);
	free(s->key);
	free(s->kept);
	free(s->guided);
	memset(s, 0, sizeof *s);
}

/* Cross-entropy of token id under the logits row[0..n-1]. */
static int
cross_entropy(double *loss, const float *row, size_t n, int32_t id,
    struct err *err)
{
	float max = row[0];
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(row[i]))
			return err_set(err, "a logit is not finite");
		if (row[i] > max)
			max = row[i];
	}
	for (size_t i = 0; i < n; i++)
		sum += f64_exp((double)row[i] - (double)max);
	*loss = (double)max - (double)row[id] + f64_log(sum);
	return 0;
}

/* Keep the conditional rows while the other half of guidance is computed. */
static int
guide(struct scorer *s, const struct pair *p, const float **data,
    struct err *err)
{
	size_t vocab = (size_t)s->client->greeting.vocab;
	size_t size = s->n * vocab;
	const float *u;

	if (s->kept_size < size) {
		if (grow(&s->kept, size, sizeof *s->kept, err) < 0 ||
		    grow(&s->guided, size, sizeof *s->guided, err) < 0)
			return -1;
		s->kept_size = size;
	}
	memcpy(s->kept, *data, size * sizeof *s->kept);
	for (uint64_t i = 0; i < p->length; i++)
		s->uncond[i] = i < p->prompt ? s->client->greeting.mask :
		                               s->canvas[i];
	if (client_logits(s->client, s->uncond, p->length, s->pos, s->n, &u,
	        err) < 0)
		return -1;
	sampler_guide(s->guided, s->kept, u, size, s->cfg);
	*data = s->guided;
	return 0;
}

int
score_masked(struct scorer *s, const struct pair *p, double *sum,
    struct err *err)
{
	size_t vocab = (size_t)s->client->greeting.vocab;
	const float *data;

	memcpy(s->canvas, p->id, (size_t)p->length * sizeof *s->canvas);
	for (size_t i = 0; i < s->n; i++)
		s->canvas[s->pos[i]] = s->client->greeting.mask;
	if (client_logits(s->client, s->canvas, p->length, s->pos, s->n, &data,
	        err) < 0)
		return -1;
	if (s->cfg != 0 && guide(s, p, &data, err) < 0)
		return -1;
	*sum = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (cross_entropy(&s->loss[i], data + i * vocab, vocab,
		        p->id[s->pos[i]], err) < 0)
			return err_prefix(err, "position %d", (int)s->pos[i]);
		*sum += s->loss[i];
	}
	return 0;
}

/* k + round(j*l/b), halves up, wrapped into 1..l; k in 1..l, j < b. */
static uint64_t
stratum(uint64_t k, uint64_t j, uint64_t l, uint64_t b)
{
	uint64_t n = k + (2 * j * l + b) / (2 * b);

	return (n - 1) % l + 1;
}

void
score_choose(struct scorer *s, const struct pair *p, uint64_t sample,
    uint64_t strata)
{
	uint64_t l = p->length - p->prompt, batch = sample / strata, n, rank;
	double u = random_draw(s->seed, STREAM_SCORE_COUNT, batch, 0, 0);

	n = stratum(1 + (uint64_t)(u * (double)l), sample % strata, l, strata);
	for (uint64_t i = 0; i < l; i++)
		s->key[i] = random_draw(s->seed, STREAM_SCORE_PLACE, sample,
		    p->prompt + i, 0);
	s->n = 0;
	for (uint64_t i = 0; i < l; i++) {
		rank = 0; /* draws before this one; equal ones by position */
		for (uint64_t j = 0; j < l; j++)
			rank += s->key[j] < s->key[i] ||
			    (s->key[j] == s->key[i] && j < i);
		if (rank < n)
			s->pos[s->n++] = (int32_t)(p->prompt + i);
	}
}

/* A sample's weighted loss; short answers have few masks, each run once. */
static int
one_sample(struct scorer *s, const struct pair *p, uint64_t sample,
    uint64_t strata, double *loss, struct err *err)
{
	uint64_t l = p->length - p->prompt;
	double none, *memo = &none, sum;
	size_t mask = 0;

	snprintf(s->client->where, sizeof s->client->where, "in sample %llu",
	    (unsigned long long)sample);
	score_choose(s, p, sample, strata);
	none = -1;
	if (l <= SCORE_MEMO) {
		for (size_t i = 0; i < s->n; i++)
			mask |= (size_t)1
			    << ((uint64_t)s->pos[i] - p->prompt);
		memo = &s->memo[mask - 1];
	}
	if (*memo < 0) {
		if (score_masked(s, p, &sum, err) < 0)
			return -1;
		*memo = sum * (double)l / (double)s->n;
	}
	*loss = *memo;
	return 0;
}

int
score_estimate(struct scorer *s, const struct pair *p, uint64_t samples,
    uint64_t strata, struct estimate *e, struct err *err)
{
	uint64_t batches = samples / strata;
	double mean = 0, squares = 0, sum, loss, d;

	for (uint64_t b = 0; b < batches; b++) {
		sum = 0;
		for (uint64_t j = 0; j < strata; j++) {
			if (one_sample(s, p, b * strata + j, strata, &loss,
			        err) < 0)
				return -1;
			sum += loss;
		}
		/* Welford's running mean and squared deviations */
		d = sum / (double)strata - mean;
		mean += d / (double)(b + 1);
		squares += d * (sum / (double)strata - mean);
	}
	e->log_likelihood = -mean;
	e->variance = batches > 1 ?
	    squares / (double)(batches - 1) / (double)batches :
	    (double)NAN;
	return 0;
}

int
score_greedy(struct scorer *s, const struct pair *p,
    struct generation *run, int32_t *out, struct err *err)
{
	const struct greeting *g = &s->client->greeting;
	uint64_t l = p->length - p->prompt;
	struct sampler *a = &run->sampler;

	memset(a, 0, sizeof *a);
	a->stats.algorithm = ALG_LLADA;
	a->stats.top_p = 1;
	a->prompt_masks = MASKS_REFERENCE; /* one a step, come what may */
	a->mask = g->mask;
	a->prompt = p->prompt;
	a->length = p->length;
	a->steps = l;
	a->block = l;
	memcpy(s->canvas, p->id, (size_t)p->prompt * sizeof *s->canvas);
	for (uint64_t i = p->prompt; i < p->length; i++)
		s->canvas[i] = g->mask;
	run->client = s->client;
	run->cfg = s->cfg;
	run->canvas = s->canvas;
	if (generate(run, err) < 0)
		return -1;
	memcpy(out, s->canvas + p->prompt, (size_t)l * sizeof *out);
	return 0;
}
