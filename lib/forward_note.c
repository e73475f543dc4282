/*
 * What is noted during a forward pass: times, bad numbers, stages.
 */
#include <stdio.h>

#include "clock.h"
#include "forward_state.h"

void
forward_lap(struct forward *f, enum forward_part part)
{
	double t = now_ms();

	f->ms_part[part] += t - f->lap;
	f->lap = t;
}

void
forward_note_bad(struct forward *f, size_t row, unsigned stage)
{
	size_t v = 4 * row + stage, old = atomic_load(&f->bad);

	while (v < old && !atomic_compare_exchange_weak(&f->bad, &old, v))
		;
}

int
forward_check(struct forward *f, const struct stage_name names[3],
    struct err *err)
{
	size_t bad = atomic_load(&f->bad);
	const struct stage_name *n = &names[bad % 4];
	char where[16] = "";

	if (bad == SIZE_MAX)
		return 0;
	if (n->layer >= 0)
		snprintf(where, sizeof where, "%02d.", n->layer);
	return err_set(err, "stage %s%s, position %zu: a number is not finite "
	    "or above 2^100", where, n->name, raw_row(f, bad / 4));
}

int
forward_stage(struct forward *f, int layer, const char *name, const float *data,
    size_t width, struct err *err)
{
	if (!f->stage_fn)
		return 0;
	return f->stage_fn(
	    f->stage_arg, layer, name, data, f->n_cur, width, err);
}
