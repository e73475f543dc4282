/*
 * The denoising loop over one canvas, with a forward process at its other
 * end; and one step of it from logits in memory.
 */
#ifndef GENERATE_H
#define GENERATE_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "clock.h"
#include "err.h"
#include "sampler.h"

/* Logits in memory: row i is the i-th wanted row, or position i + first. */
struct logits {
	const float *data; /* (rows, vocab) */
	size_t vocab;
	int by_position;
	uint64_t first;
};

/* What statistics of logits need; zero but for scratch.kern before use. */
struct reducer {
	struct stats_scratch scratch;
	float *guided; /* (vocab) a row under guidance */
};
void reducer_free(struct reducer *r);

/*
 * Fill t->row from logits; uncond NULL, or the same rows of the unconditional
 * canvas, combined with guidance cfg.
 */
int step_reduce(const struct sampler *s, struct step *t,
    const struct logits *cond, const struct logits *uncond, float cfg,
    struct reducer *r, struct err *err);

/* The unconditional canvas: every position of the prompt masked. */
void uncond_canvas(const struct sampler *s, int32_t *out,
    const int32_t *canvas);

struct generation {
	/* the caller's */
	struct sampler sampler;
	struct client *client;
	float cfg;       /* 0: no guidance */
	int want_logits; /* do not use statistics that are offered */
	int all_rows;    /* ask for every row that can be predicted */
	int every_step;  /* call on_step also for steps known to be idle */
	int (*on_step)(void *arg, struct generation *n, struct err *err);
	void *arg;
	int32_t *canvas; /* (sampler.length) */

	/* results; zero before use */
	struct step step;     /* the last one */
	double step_ms;       /* time it took */
	int step_forwards;    /* requests it took: 0, 1 or 2 */
	size_t step_rows;     /* rows asked for, by each of them */
	double *ms;           /* (n_ms) times of the steps with a forward */
	double *forward_ms;   /* (n_ms) of that, in the child */
	size_t n_ms, ms_cap;
	uint64_t steps;       /* made or skipped */
	uint64_t committed;   /* masks that became a token */
	uint64_t forwards;
	double total_ms;

	/* memory, kept from one canvas to the next */
	struct reducer reducer; /* scratch.kern: the caller's */
	float *kept; /* the conditional rows, under guidance */
	size_t kept_size;
	int32_t *uncond; /* (sampler.length) */
	int32_t *all_pos;          /* (sampler.length) for all_rows */
	struct stats_row *all_row; /* (sampler.length) */
};

/*
 * Reserve space for the most rows of logits that a step of this canvas is
 * likely to want: the masks of a block, and those in the prompt (infilling: in
 * the line).
 */
int generation_reserve(const struct generation *n, struct err *err);

/*
 * Run all steps, calling on_step (if any; 0 or -1) after each that is made.
 * Where nothing can change before a later step, those between are skipped at
 * once, unless every_step.
 */
int generate(struct generation *n, struct err *err);

void generation_free(struct generation *n);

#endif
