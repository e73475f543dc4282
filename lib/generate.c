#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "sampling.h"

void
reducer_free(struct reducer *r)
{
	stats_scratch_free(&r->scratch);
	free(r->guided);
	r->guided = NULL;
}

static const float *
row_of(const struct logits *l, size_t i, int32_t pos)
{
	if (l->by_position)
		i = (size_t)pos - (size_t)l->first;
	return l->data + i * l->vocab;
}

int
step_reduce(const struct sampler *s, struct step *t,
    const struct logits *cond, const struct logits *uncond, float cfg,
    struct reducer *r, struct err *err)
{
	struct stats_params p = s->stats;
	const float *row;
	int32_t pos;

	p.step = t->number;
	if (uncond && !r->guided) {
		r->guided = malloc(cond->vocab * sizeof *r->guided);
		if (!r->guided)
			return err_set(err, "out of memory");
	}
	for (size_t i = 0; i < t->n; i++) {
		pos = t->undecided[i];
		row = row_of(cond, i, pos);
		if (uncond) {
			sampler_guide(r->guided, row, row_of(uncond, i, pos),
			    cond->vocab, cfg);
			row = r->guided;
		}
		if (stats_row(&t->row[i], row, cond->vocab, pos, &p,
		        &r->scratch, err) < 0)
			return err_prefix(err, "step %llu",
			    (unsigned long long)t->number);
	}
	return 0;
}

void
uncond_canvas(const struct sampler *s, int32_t *out, const int32_t *canvas)
{
	for (uint64_t i = 0; i < s->length; i++)
		out[i] = i < s->prompt ? s->mask : canvas[i];
}

static int
keep_rows(struct generation *n, const float *data, size_t size,
    struct err *err)
{
	if (n->kept_size < size) {
		free(n->kept);
		n->kept = malloc(size);
		n->kept_size = n->kept ? size : 0;
		if (!n->kept)
			return err_set(err, "out of memory");
	}
	memcpy(n->kept, data, size);
	return 0;
}

/* Does the child reduce logits itself, so that none pass through the file? */
static int
uses_stats(const struct generation *n)
{
	return n->client->greeting.stats && !n->want_logits && n->cfg == 0;
}

static int
reduce_logits(struct generation *n, const int32_t *pos, size_t rows,
    struct err *err)
{
	struct step *t = &n->step;
	size_t vocab = (size_t)n->client->greeting.vocab;
	struct logits cond = { .vocab = vocab, .by_position = n->all_rows,
		.first = (uint64_t)n->client->greeting.first };
	struct logits uncond = cond;
	uint64_t length = n->sampler.length;

	if (client_logits(n->client, n->canvas, length, pos, rows, &cond.data,
	        err) < 0)
		return -1;
	if (n->cfg == 0)
		return step_reduce(&n->sampler, t, &cond, NULL, 0, &n->reducer,
		    err);
	if (keep_rows(n, cond.data, rows * vocab * sizeof *n->kept, err) < 0)
		return -1;
	cond.data = n->kept;
	uncond_canvas(&n->sampler, n->uncond, n->canvas);
	if (client_logits(n->client, n->uncond, length, pos, rows,
	        &uncond.data, err) < 0)
		return -1;
	return step_reduce(&n->sampler, t, &cond, &uncond, n->cfg, &n->reducer,
	    err);
}

static int
ask(struct generation *n, struct err *err)
{
	struct stats_params p = n->sampler.stats;
	struct step *t = &n->step;
	const int32_t *pos = n->all_rows ? n->all_pos : t->undecided;
	int32_t first = n->client->greeting.first;

	n->step_rows = n->all_rows ? (size_t)n->sampler.length - (size_t)first :
	                             t->n;
	if (!uses_stats(n))
		return reduce_logits(n, pos, n->step_rows, err);
	p.step = t->number;
	if (client_stats(n->client, n->canvas, n->sampler.length, pos,
	        n->step_rows, &p, n->all_rows ? n->all_row : t->row, err) < 0)
		return -1;
	for (size_t i = 0; n->all_rows && i < t->n; i++)
		t->row[i] = n->all_row[t->undecided[i] - first];
	return 0;
}

/* Room for cap doubles. */
static int
grow(double **list, size_t cap, struct err *err)
{
	double *p = realloc(*list, cap * sizeof *p);

	if (!p)
		return err_set(err, "out of memory");
	*list = p;
	return 0;
}

/* Append the time of a step that asked, and how much of it the child had. */
static int
note_time(struct generation *n, double ms, double forward_ms, struct err *err)
{
	size_t cap = n->ms_cap ? 2 * n->ms_cap : 128;

	if (n->n_ms == n->ms_cap) {
		if (grow(&n->ms, cap, err) < 0 ||
		    grow(&n->forward_ms, cap, err) < 0)
			return -1;
		n->ms_cap = cap;
	}
	n->forward_ms[n->n_ms] = forward_ms;
	n->ms[n->n_ms++] = ms;
	return 0;
}

static int
one_step(struct generation *n, uint64_t number, struct err *err)
{
	uint64_t before = n->client->forwards;
	double start = now_ms(), forward_ms = n->client->ms;

	n->step_rows = 0;
	snprintf(n->client->where, sizeof n->client->where, "in step %llu",
	    (unsigned long long)number);
	if (sampler_begin(&n->sampler, &n->step, n->canvas, number, err) < 0)
		return -1;
	if (n->step.wanted && ask(n, err) < 0)
		return -1;
	sampler_select(&n->sampler, &n->step);
	sampler_update(&n->step, n->canvas);
	n->step_forwards = (int)(n->client->forwards - before);
	n->forwards += n->client->forwards - before;
	for (size_t i = 0; i < n->step.n_chosen; i++)
		n->committed += n->step.chosen[i].id != n->sampler.mask;
	n->steps = number + 1;
	n->step_ms = now_ms() - start;
	if (n->step_forwards &&
	    note_time(n, n->step_ms, n->client->ms - forward_ms, err) < 0)
		return -1;
	return n->on_step ? n->on_step(n->arg, n, err) : 0;
}

/* Memory that goes with the length of a canvas. */
static int
reserve(struct generation *n, struct err *err)
{
	size_t length = (size_t)n->sampler.length;

	free(n->uncond);
	free(n->all_pos);
	free(n->all_row);
	n->uncond = calloc(length + 1, sizeof *n->uncond);
	n->all_pos = n->all_rows ? calloc(length + 1, sizeof *n->all_pos) :
	                           NULL;
	n->all_row = n->all_rows ? calloc(length + 1, sizeof *n->all_row) :
	                           NULL;
	if (!n->uncond || (n->all_rows && (!n->all_pos || !n->all_row)))
		return err_set(err, "out of memory");
	for (size_t i = 0; n->all_rows && i < length; i++)
		n->all_pos[i] = (int32_t)i + n->client->greeting.first;
	return 0;
}

int
generation_reserve(const struct generation *n, struct err *err)
{
	const struct sampler *s = &n->sampler;
	uint64_t generated = s->length - s->prompt;
	uint64_t rows = s->block < generated ? s->block : generated;

	if (uses_stats(n))
		return 0;
	rows += count_masks(s, n->canvas, 0, s->prompt);
	if (n->all_rows)
		rows = s->length;
	return client_reserve(n->client, rows, err);
}

int
generate(struct generation *n, struct err *err)
{
	double start = now_ms();

	if (reserve(n, err) < 0)
		return -1;
	n->steps = 0;
	n->n_ms = 0;
	n->forwards = 0;
	n->committed = 0;
	while (n->steps < n->sampler.steps &&
	    !sampler_done(&n->sampler, n->canvas)) {
		if (!n->every_step)
			n->steps = sampler_next(
			    &n->sampler, n->canvas, n->steps);
		if (n->steps < n->sampler.steps &&
		    one_step(n, n->steps, err) < 0)
			return -1;
	}
	n->total_ms = now_ms() - start;
	return 0;
}

void
generation_free(struct generation *n)
{
	step_free(&n->step);
	reducer_free(&n->reducer);
	free(n->ms);
	free(n->forward_ms);
	free(n->kept);
	free(n->uncond);
	free(n->all_pos);
	free(n->all_row);
}
