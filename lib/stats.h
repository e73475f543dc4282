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
	float negent; /* negative entropy, nats */
};

/* Scratch memory of stats_row(), one per thread.  Zero before use. */
struct stats_scratch {
	void *buf;
	size_t size;
};
void stats_scratch_free(struct stats_scratch *s);

/*
 * Reduce the row that predicts position pos.  logits (n_vocab).  -1 on a NaN
 * (or memory), naming position and token.
 */
int stats_row(struct stats_row *out, const float *logits, size_t n_vocab,
    int32_t pos, const struct stats_params *p, struct stats_scratch *scratch,
    struct err *err);

#endif
