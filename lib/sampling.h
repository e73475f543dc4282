/*
 * A sampler from what the user asked for, what the model's family does without
 * being asked, and what the forward process's greeting says.
 */
#ifndef SAMPLING_H
#define SAMPLING_H

#include <stdint.h>

#include "err.h"
#include "proto.h"
#include "sampler.h"
#include "tokline.h"

/* Options of dllm-sample(1).  X_given: else the family's default holds. */
struct sampling {
	uint64_t max_tokens, steps, block, seed, top_k;
	double temperature, top_p, cfg, alg_temp, eps;
	int algorithm, remasking, prompt_masks; /* of their enums */
	int no_eos, demote_eos, allow_mask, greedy, early_stop;
	int steps_given, block_given, temperature_given, top_p_given,
	    algorithm_given;
};

/*
 * Do steps and blocks suit n new tokens, as far as the options decide?  n 0 is
 * infilling.  -1: a wrong command line.
 */
int sampling_check(const struct sampling *o, uint64_t n, struct err *err);

/* Append n masks to a prompt; -1 if the model cannot take so many. */
int sampling_extend(struct tokens *canvas, uint64_t n,
    const struct greeting *g, struct err *err);

/*
 * The sampler of a canvas whose last n tokens are generated; n 0: infilling,
 * where P is the line's length.
 */
int sampling_sampler(struct sampler *s, const struct sampling *o,
    const struct tokens *canvas, uint64_t n, const struct greeting *g,
    struct err *err);

/* Positions from..to-1 that are masked. */
uint64_t count_masks(const struct sampler *s, const int32_t *canvas,
    uint64_t from, uint64_t to);

#endif
