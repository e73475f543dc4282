/*
 * One step of a canvas with files in place of a forward process: what
 * dllm-sample --step does.
 */
#ifndef ONESTEP_H
#define ONESTEP_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "proto.h"
#include "sampler.h"

/* The greeting in the first line of a file. */
int onestep_greeting(struct greeting *g, const char *path, struct err *err);

/*
 * Write the rows that a step wants as FROM:COUNT,..., and if guided the
 * unconditional canvas on a second line.  -1: errno is the stream's.
 */
int onestep_plan(FILE *f, const struct sampler *s, const struct step *t,
    const int32_t *canvas, int guided, struct err *err);

/*
 * Make the decisions of a step that wants rows, from arrays (.npy) of the
 * wanted rows or of every position that the model can predict, and write them
 * into the canvas.  uncond NULL: no guidance.
 */
int onestep_decide(const struct sampler *s, struct step *t, int32_t *canvas,
    const struct greeting *g, const char *logits, const char *uncond,
    float cfg, const struct kern *kern, struct err *err);

#endif
