#include "forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "forward_state.h"

/* Everything up to the last norm, for the rows in ROWS. */
static int
run(struct forward *f, struct err *err)
{
	const struct model *m = f->m;
	int last = (int)m->n_layers - 1;
	const struct stage_name names[3] = { { -1, "norm" }, { last, "out" } };
	double start = now_ms(), t;

	atomic_store(&f->bad, SIZE_MAX);
	f->gathered = 0;
	f->n_cur = f->n;
	memset(f->ms_part, 0, sizeof f->ms_part);
	f->lap = start;
	forward_embed(f);
	if (forward_stage(f, -1, "embd", fbuf(f, X), m->n_embd, err) < 0)
		return -1;
	t = now_ms();
	f->ms_embd = t - start;
	for (int i = 0; i <= last; i++) {
		if (forward_layer(f, i, err) < 0)
			return -1;
		start = t;
		t = now_ms();
		f->ms_layer[i] = t - start;
	}
	if (forward_norm(f, names, m->norm, fbuf(f, T), &m->head, NULL, NULL,
	        err) < 0 ||
	    forward_stage(f, last, "out", fbuf(f, X), m->n_embd, err) < 0)
		return -1;
	f->ms_head = now_ms() - t;
	return forward_stage(f, -1, "norm", fbuf(f, H), m->n_embd, err);
}

static int
check_ids(const struct forward *f, const int32_t *ids, size_t n,
    struct err *err)
{
	if (n == 0)
		return err_set(err, "the sequence is empty");
	if (n > f->o.max_length)
		return err_set(err, "the sequence has %zu tokens, more than "
		    "the %zu of --max-length", n, f->o.max_length);
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (size_t)ids[i] >= f->m->n_vocab)
			return err_set(err, "token %d at position %zu is "
			    "outside the vocabulary of %zu", ids[i], i,
			    f->m->n_vocab);
	return 0;
}

/* Fill ROWS with the rows of the head behind the wanted positions. */
static int
set_rows(struct forward *f, const struct ranges *wanted, struct err *err)
{
	size_t *row = f->buf[ROWS], shift = f->m->shift;
	const struct ranges all = { .r = &(struct range){ shift, f->n - shift },
		.n = 1 };

	if (!wanted)
		wanted = &all;
	f->n_rows = 0;
	for (size_t i = 0; i < wanted->n; i++) {
		struct range r = wanted->r[i];

		if (r.count && r.from < shift)
			return err_set(err, "position 0 cannot be predicted by "
			    "a model that predicts from the row before");
		if (r.from > f->n || r.count > f->n - r.from)
			return err_set(err, "rows %llu:%llu are outside the "
			    "sequence of %zu tokens",
			    (unsigned long long)r.from,
			    (unsigned long long)r.count, f->n);
		if (f->n_rows && r.count && r.from - shift <= row[f->n_rows - 1])
			return err_set(err, "rows are not ascending");
		for (uint64_t p = r.from; p < r.from + r.count; p++)
			row[f->n_rows++] = (size_t)p - shift;
	}
	return 0;
}

int
forward_hidden(struct forward *f, const int32_t *ids, size_t n,
    const struct ranges *wanted, struct err *err)
{
	f->n_rows = 0;
	if (check_ids(f, ids, n, err) < 0 || forward_reserve(f, n, err) < 0)
		return -1;
	f->ids = ids;
	f->n = n;
	f->stage_fn = NULL;
	if (set_rows(f, wanted, err) < 0 ||
	    (f->n_rows && run(f, err) < 0)) {
		f->n_rows = 0;
		return -1;
	}
	return 0;
}

size_t
forward_rows(const struct forward *f)
{
	return f->n_rows;
}

size_t
forward_position(const struct forward *f, size_t i)
{
	return ((const size_t *)f->buf[ROWS])[i] + f->m->shift;
}

struct logits_check {
	struct forward *f;
	const float *out;
	size_t first;
};

static void
logits_job(void *arg, unsigned thread, size_t from, size_t to)
{
	const struct logits_check *c = arg;
	size_t v = c->f->m->n_vocab;

	(void)thread;
	for (size_t i = from; i < to; i++)
		if (!c->f->k->all_finite(c->out + i * v, v))
			forward_note_bad(c->f, c->first + i, 0);
}

int
forward_head(struct forward *f, size_t first, size_t count, float *out,
    struct err *err)
{
	static const struct stage_name logits[3] = { { -1, "logits" } };
	struct products job = forward_products(f, first, count);
	struct logits_check c = { f, out, first };
	double start = now_ms();

	if (count == 0)
		return 0;
	f->lap = start;
	product_add(&job, &f->m->head, out, NULL);
	product_run(&job, f->pool);
	pool_run(f->pool, logits_job, &c, count, 1);
	forward_lap(f, FORWARD_HEAD);
	f->ms_head += now_ms() - start;
	return forward_check(f, logits, err);
}

int
forward_stages(struct forward *f, const int32_t *ids, size_t n,
    forward_stage_fn *fn, void *arg, struct err *err)
{
	size_t *row;
	float *out;
	int rc;

	if (check_ids(f, ids, n, err) < 0 || forward_reserve(f, n, err) < 0)
		return -1;
	f->ids = ids;
	f->n = f->n_rows = n;
	row = f->buf[ROWS];
	for (size_t i = 0; i < n; i++)
		row[i] = i;
	f->stage_fn = fn;
	f->stage_arg = arg;
	out = malloc(n * f->m->n_vocab * sizeof *out);
	if (!out)
		return err_set(err, "out of memory");
	rc = run(f, err);
	if (rc == 0)
		rc = forward_head(f, 0, n, out, err);
	if (rc == 0)
		rc = forward_stage(f, -1, "logits", out, f->m->n_vocab, err);
	free(out);
	return rc;
}

void
forward_times(const struct forward *f, struct forward_times *t)
{
	t->embd = f->ms_embd;
	t->head = f->ms_head;
	t->layer = f->ms_layer;
	memcpy(t->part, f->ms_part, sizeof t->part);
}

int
forward_open(struct forward **to, const struct model *m,
    const struct forward_options *o, struct err *err)
{
	struct forward *f = calloc(1, sizeof *f);

	*to = NULL;
	if (!f)
		return err_set(err, "out of memory");
	f->m = m;
	f->o = *o;
	f->k = o->kern;
	f->pool = o->pool;
	f->scale = (float)(1.0 / sqrt((double)m->head_dim));
	f->ms_layer = calloc(m->n_layers, sizeof *f->ms_layer);
	f->scratch_bytes = forward_scratch(m);
	if (!f->ms_layer) {
		forward_close(f);
		return err_set(err, "out of memory");
	}
	*to = f;
	return 0;
}

void
forward_close(struct forward *f)
{
	if (!f)
		return;
	for (int i = 0; i < N_BUFFERS; i++)
		free(f->buf[i]);
	free(f->ms_layer);
	free(f);
}
