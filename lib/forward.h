/*
 * The transformer: token ids to logits.
 *
 * Nothing is remembered between calls: equal calls give equal bits, whatever
 * the number of threads, the kernels or the other rows asked for.
 * Arithmetic: dllm-numbers(7).
 */
#ifndef FORWARD_H
#define FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "kern.h"
#include "model.h"
#include "pool.h"
#include "proto.h"

struct forward;

struct forward_options {
	const struct kern *kern;
	struct pool *pool;
	int float_activations; /* decode weights to f32, activations as are */
	size_t max_length;     /* longest sequence */
};

/* The model and the pool must live as long. */
int forward_open(struct forward **f, const struct model *m,
    const struct forward_options *o, struct err *err);
void forward_close(struct forward *f);

/* Bytes that a sequence of n tokens needs, all rows wanted, without logits. */
uint64_t forward_bytes(const struct forward *f, size_t n);

/*
 * Run ids[0..n-1] up to the last norm for the rows that predict the wanted
 * positions; NULL wants every position that can be predicted.  Only those rows
 * go through the last layer's feed-forward.  Buffers grow only if n is larger
 * than ever before.  Errors are about the request or about numbers that are not
 * finite.
 */
int forward_hidden(struct forward *f, const int32_t *ids, size_t n,
    const struct ranges *wanted, struct err *err);

/* How many rows the last forward_hidden left, and the position of row i. */
size_t forward_rows(const struct forward *f);
size_t forward_position(const struct forward *f, size_t i);

/*
 * Logits of rows first to first+count-1 of the last forward_hidden, each row
 * predicting its position: out (count, n_vocab).  first is a multiple of 16.
 * The head's weights are expanded once per call: FORWARD_ROWS rows at a time
 * keep that cheap and the memory small.
 */
enum { FORWARD_ROWS = 192 };
int forward_head(struct forward *f, size_t first, size_t count, float *out,
    struct err *err);

/*
 * Every stage of every layer, for all rows as they are (not shifted): layer
 * -1 for "embd", "norm" and "logits".  data (n, width) is valid during the
 * call.  -1 from the callback ends the run.
 */
typedef int forward_stage_fn(void *arg, int layer, const char *stage,
    const float *data, size_t n, size_t width, struct err *err);
int forward_stages(struct forward *f, const int32_t *ids, size_t n,
    forward_stage_fn *fn, void *arg, struct err *err);

/*
 * Milliseconds of the last run: of everything before the layers, of each layer,
 * of the last norm and all heads; and the same time by kind of work.
 */
enum forward_part {
	FORWARD_EMBD,
	FORWARD_NORM,      /* residuals and norms, with quantisation */
	FORWARD_QUANTISE,  /* of attention's output */
	FORWARD_PRODUCT,   /* matrices, without the head */
	FORWARD_ROPE,      /* rotation, panels of keys, checks */
	FORWARD_ATTENTION,
	FORWARD_ACT,       /* silu(gate) * up, with quantisation */
	FORWARD_HEAD,      /* with the check for finite logits */
	FORWARD_PARTS
};
struct forward_times {
	double embd, head;
	const double *layer; /* (n_layers) */
	double part[FORWARD_PARTS];
};
void forward_times(const struct forward *f, struct forward_times *t);

#endif
