/*
 * Likelihood of an answer given a prompt, by a masked diffusion model.
 *
 * One sample masks n of the answer's L tokens and sums the cross-entropy of
 * the true tokens there; times L/n this is an unbiased estimate of (a bound
 * on) minus the log-likelihood, if n is uniform over 1..L and the places are
 * too.  Samples come in batches of B, stratified as in get_log_likelihood() of
 * LLaDA: with k uniform over 1..L, sample j of a batch masks k + round(j*L/B)
 * tokens, wrapped into 1..L.  Halves are rounded up, not to even as there, so
 * that every count is equally likely.  Batches are independent: the spread of
 * their means gives the standard error.
 *
 * Cross-entropy is log-sum-exp in f64 over the f32 logits of the whole
 * vocabulary, mask token included.
 */
#ifndef SCORE_H
#define SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "err.h"
#include "generate.h"

/* The longest answer of which every mask is run only once. */
enum { SCORE_MEMO = 12 };

/* What is scored: id[prompt..length-1] behind id[0..prompt-1]. */
struct pair {
	const int32_t *id; /* (length) */
	uint64_t prompt, length;
};

struct scorer {
	struct client *client;
	uint64_t seed;
	float cfg; /* 0: no guidance; else as in the sampler */

	/* the last sample; pos is the caller's for score_masked */
	int32_t *pos; /* (n) masked positions of the canvas, ascending */
	double *loss; /* (n) cross-entropy of the true token there */
	size_t n;

	/* memory, kept from one pair to the next */
	uint64_t cap;
	int32_t *canvas, *uncond; /* (cap) */
	double *key;              /* (cap) */
	double memo[1 << SCORE_MEMO];
	float *kept, *guided;
	size_t kept_size;
};

/* Make room for a pair; before any other call with it. */
int scorer_reserve(struct scorer *s, const struct pair *p, struct err *err);
void scorer_free(struct scorer *s);

/* Mask s->pos[0..n-1], fill s->loss[0..n-1]; *sum is their sum. */
int score_masked(struct scorer *s, const struct pair *p, double *sum,
    struct err *err);

/*
 * Set pos and n to what a sample masks: n from a draw of the batch (stream
 * STREAM_SCORE_COUNT, step: the batch), the places are those with the n
 * smallest draws (stream STREAM_SCORE_PLACE, step: the sample, position: in
 * the canvas).
 */
void score_choose(struct scorer *s, const struct pair *p, uint64_t sample,
    uint64_t strata);

struct estimate {
	double log_likelihood;
	double variance; /* of it; NAN with one batch only */
};

/* samples is a multiple of strata, both at least 1. */
int score_estimate(struct scorer *s, const struct pair *p, uint64_t samples,
    uint64_t strata, struct estimate *e, struct err *err);

/*
 * Decode the answer's positions, all masked, one a step, the most confident
 * first, always the most likely token: out (length - prompt) are the ids.
 * run: zero but for reducer.scratch.kern before use, freed by generation_free.
 */
int score_greedy(struct scorer *s, const struct pair *p,
    struct generation *run, int32_t *out, struct err *err);

#endif
