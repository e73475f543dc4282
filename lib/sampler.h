/*
 * The denoising loop's decisions: how many masks each step commits, which,
 * and to what.
 *
 * A decision is a pure function of canvas, logits, step, seed and options;
 * nothing is remembered between steps.  A step is
 *
 *     sampler_begin   which rows are wanted (none: the step changes nothing)
 *     ...             the caller fills step.row from logits (stats_row) or
 *                     from a forward process that offers statistics
 *     sampler_select  rank the candidates, choose the quota's best
 *     sampler_update  write them into the canvas
 *
 * An algorithm is an entry of one table: a quota, a confidence, a score.
 *
 * Sources: generate() of LLaDA, diffusion_generate() of Dream; where they are
 * undefined or wrong: dllm-sample(1).
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "proto.h"
#include "stats.h"

enum remasking { REMASK_LOW_CONFIDENCE, REMASK_RANDOM };
enum prompt_masks { MASKS_FILL, MASKS_REFERENCE };

/* What a model family does without options. */
struct family_defaults {
	const char *arch;
	enum algorithm algorithm;
	double temperature, top_p;
	uint64_t block; /* 0: one block */
};

/* NULL if the family is not known. */
const struct family_defaults *family_defaults(const char *arch);

struct sampler {
	struct stats_params stats; /* all but the step */
	enum remasking remasking;
	enum prompt_masks prompt_masks;
	double alg_temp; /* 0: off */
	double eps;      /* Dream's last time */
	int early_stop;
	int32_t mask;
	int32_t eos[PROTO_MAX_EOS];
	int n_eos;

	uint64_t prompt; /* P: where the generated part begins */
	uint64_t length; /* of the canvas */
	uint64_t steps;  /* S, over all blocks */
	uint64_t block;  /* B; 0: the whole canvas is one block (infilling) */
};

/*
 * ceil(n/steps) where the block is only a default and there are fewer steps
 * than blocks of it.
 */
uint64_t sampler_default_block(uint64_t block, uint64_t n, uint64_t steps);

/* Blocks of `block` in n tokens. */
uint64_t sampler_blocks(uint64_t block, uint64_t n);

/* Where a step lies. */
struct place {
	uint64_t block;
	uint64_t lo, hi; /* the block's positions: lo <= p < hi */
	uint64_t step;   /* within the block, from 0 */
	uint64_t steps;  /* of the block */
};

/* step below s->steps, every block at least one step. */
struct place sampler_place(const struct sampler *s, uint64_t step);

/* How many of m masks before the block's end this step commits. */
uint64_t sampler_quota(const struct sampler *s, const struct place *at,
    uint64_t m);

/*
 * The first step from this one on that may change the canvas, s->steps if none
 * does: steps before it commit nothing.
 */
uint64_t sampler_next(const struct sampler *s, const int32_t *canvas,
    uint64_t step);

struct candidate {
	int32_t pos, id;
	float confidence; /* what is shown */
	double score;     /* what ranks: larger first, ties to the lower pos */
	int demoted;      /* ranks behind all that are not */
};

struct step {
	uint64_t number; /* over all blocks, from 0 */
	struct place at;
	uint64_t quota;
	size_t n;                    /* masks before the block's end */
	int32_t *undecided;          /* (n) their positions */
	int wanted;                  /* are their rows needed? */
	struct stats_row *row;       /* (n) the caller's, if wanted */
	struct candidate *candidate; /* (n) in order of position */
	size_t n_chosen;
	struct candidate *chosen; /* (n_chosen) in order of position */
	size_t cap;
};

void step_free(struct step *t);

/* Prepare a step; reuses the memory of t (zero before first use). */
int sampler_begin(const struct sampler *s, struct step *t,
    const int32_t *canvas, uint64_t number, struct err *err);

/* Choose; if the rows were not wanted, nothing. */
void sampler_select(const struct sampler *s, struct step *t);

void sampler_update(const struct step *t, int32_t *canvas);

/*
 * The rule of choice: order n candidates by rank, best first, and return how
 * many of them a quota takes.
 */
size_t sampler_rank(struct candidate *c, size_t n, uint64_t quota);

int sampler_is_eos(const struct sampler *s, int32_t id);

/*
 * The position of the end token that ends the answer (no mask stands before
 * it, from P on), or the canvas's length if there is none yet.
 */
uint64_t sampler_end(const struct sampler *s, const int32_t *canvas);

/* Is the answer final, so that the loop ends? */
int sampler_done(const struct sampler *s, const int32_t *canvas);

/* out[i] = u[i] + (scale + 1) * (c[i] - u[i]), f32, not fused. */
void sampler_guide(float *out, const float *c, const float *u, size_t n,
    float scale);

#endif
