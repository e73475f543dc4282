/*
 * What selection needs to know of one row of logits, reduced by one function
 * for the sampler and the forward process, so that the bits are equal.
 *
 * Arithmetic: dllm-numbers(7).  Algorithms: LLaDA's generate.py and Dream's
 * generation_utils.py, with dllm's rules for ties, precision and noise.
 */
#ifndef STATS_H
#define STATS_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "kern.h"

enum algorithm {
	ALG_LLADA,
	ALG_ORIGIN,
	ALG_MASKGIT_PLUS,
	ALG_TOPK_MARGIN,
	ALG_ENTROPY,
	N_ALGORITHMS
};

/* NULL-terminated, in the order of the enum: "llada", "origin", ... */
extern const char *const algorithm_names[];

enum { STATS_MAX_IDS = 16 };

struct stats_params {
	enum algorithm algorithm;
	int greedy; /* rank as temperature, top-p, top-k say, take the arg-max */
	uint64_t seed;
	uint64_t step;      /* counted from 0 over all blocks, skipped ones too */
	double temperature; /* 0: no noise */
	double top_p;       /* 1: off; not for llada */
	uint64_t top_k;     /* 0: off; not for llada */
	int32_t ban[STATS_MAX_IDS]; /* logit -inf before anything else */
	int n_ban;
	int32_t demote[STATS_MAX_IDS]; /* ranked last */
	int n_demote;
};

struct stats_row {
	int32_t pos;  /* absolute position: part of the noise's counter */
	int32_t id;   /* the candidate token */
	float logit;  /* its logit */
	float p;      /* its probability: llada's, maskgit_plus's confidence */
	float margin; /* the largest probability less the second */
	float negent; /* negative entropy, nats; 0 but for ALG_ENTROPY */
};

/* What stats_row() works with, one per thread. */
struct stats_scratch {
	const struct kern *kern; /* the caller's choice; the bits are equal */
	void *buf;               /* memory; NULL before use */
	size_t size;
};
void stats_scratch_free(struct stats_scratch *s);

/*
 * Reduce the row that predicts position pos.  logits (n_vocab) are only read.
 * -1 on a NaN, on +infinity, on a row without any possible token (or without
 * memory), naming position and token.
 *
 * The rules, in this order:
 *   1. Banned ids have probability 0.  -0 equals 0.
 *   2. llada: d = logit - max, as it is.  The others: d is divided by the
 *      temperature (in f64, rounded to f32) unless that is 0.
 *   3. e = f32_exp(d), den = the sum of e in f64 over 16 partial sums.
 *   4. Not llada: ids ordered by logit descending, then id ascending.  An id is
 *      kept while the e (f64, in this order) of those before it sum to at most
 *      top_p * den, and while it is among the first top_k or equals the last
 *      of these; the first is always kept.
 *   5. The candidate: with temperature 0 or greedy the first in that order;
 *      else the largest of logit - T*log(-log u) (llada) or logit/T -
 *      log(-log u) over the kept ids, in f64, ties to the lowest id.
 *   6. Demoted ids go; 2 and 3 once more over what is left, with its maximum:
 *      p = (float)(e/den) of the candidate, 0 if it is demoted; margin = the
 *      largest p less the second, in f32; negent = the sum of p*log(p + 1e-10),
 *      only for ALG_ENTROPY (it costs a logarithm an id), else 0.
 */
int stats_row(struct stats_row *out, const float *logits, size_t n_vocab,
    int32_t pos, const struct stats_params *p, struct stats_scratch *scratch,
    struct err *err);

#endif
