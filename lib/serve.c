#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "clock.h"
#include "io.h"
#include "mapped.h"
#include "npy.h"
#include "proto.h"
#include "stats.h"

/* Memory of the loop, kept from request to request. */
struct loop {
	const struct server *s;
	struct request q;
	char *line;
	size_t line_cap;
	void *map; /* of the shared file */
	size_t map_size;
	float *logits; /* for a named file, or some rows of statistics */
	size_t logits_cap;
	struct stats_row *row;
	size_t row_cap;
	struct stats_scratch *scratch; /* one per thread */

	/* The statistics being computed. */
	size_t first;     /* row of logits[0] */
	struct err *errs; /* one per thread */
	size_t *err_row;  /* its row; SIZE_MAX without an error */
};

/* Memory for n items of a size instead of p; contents are lost. */
static void *
room(void *p, size_t *cap, size_t n, size_t size, struct err *err)
{
	if (n <= *cap)
		return p;
	free(p);
	*cap = 0;
	p = malloc(n * size);
	if (p)
		*cap = n;
	else
		err_set(err, "out of memory");
	return p;
}

/*
 * Map the shared file as large as it is now: its owner reserves the space after
 * the greeting.
 */
static int
map_shared(struct loop *l, size_t need, struct err *err)
{
	struct stat st;

	if (fstat(l->s->logits.fd, &st) < 0)
		return err_sys(err, "cannot look at the shared file");
	if ((uint64_t)st.st_size < need)
		return err_set(err, "the shared file has %lld bytes, %zu are "
		    "needed", (long long)st.st_size, need);
	if (l->map_size >= need)
		return 0;
	mapped_close(l->map, l->map_size);
	l->map_size = 0;
	l->map = mapped_open(l->s->logits.fd, (size_t)st.st_size,
	    PROT_READ | PROT_WRITE, "the shared file");
	if (!l->map)
		return err_sys(err, "cannot map the shared file");
	l->map_size = (size_t)st.st_size;
	return 0;
}

/* The header goes last: without it the file never looks complete. */
static int
shared_logits(struct loop *l, uint64_t *bytes, struct err *err)
{
	const struct server *s = l->s;
	uint64_t shape[2] = { l->q.rows.total, s->m->n_vocab };
	char header[NPY_ALIGN_SHARED];
	size_t n = npy_header(header, NPY_ALIGN_SHARED, NPY_F4, 2, shape);

	*bytes = n + shape[0] * shape[1] * sizeof(float);
	if (map_shared(l, (size_t)*bytes, err) < 0)
		return -1;
	memset(l->map, 0, n);
	if (forward_hidden(s->f, l->q.ids.id, l->q.ids.n, &l->q.rows, err) < 0 ||
	    forward_head(s->f, 0, forward_rows(s->f),
	        (float *)((char *)l->map + n), err) < 0)
		return -1;
	memcpy(l->map, header, n);
	return 0;
}

static int
named_logits(struct loop *l, uint64_t *bytes, struct err *err)
{
	const struct server *s = l->s;
	size_t rows = (size_t)l->q.rows.total;
	uint64_t shape[2] = { rows, s->m->n_vocab };
	char header[NPY_ALIGN_SHARED];

	*bytes = npy_header(header, NPY_ALIGN, NPY_F4, 2, shape) +
	    shape[0] * shape[1] * sizeof(float);
	if (forward_hidden(s->f, l->q.ids.id, l->q.ids.n, &l->q.rows, err) < 0)
		return -1;
	l->logits = room(l->logits, &l->logits_cap, rows * s->m->n_vocab,
	    sizeof *l->logits, err);
	if (!l->logits ||
	    forward_head(s->f, 0, forward_rows(s->f), l->logits, err) < 0)
		return -1;
	return npy_save_f32(s->logits.path, rows, s->m->n_vocab, l->logits,
	    err);
}

static void
stats_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct loop *l = arg;
	size_t v = l->s->m->n_vocab;

	for (size_t i = from; i < to; i++) {
		size_t row = l->first + i;
		struct err err = { 0 };

		if (stats_row(&l->row[row], l->logits + i * v, v,
		        (int32_t)forward_position(l->s->f, row), &l->q.stats,
		        &l->scratch[thread], &err) < 0 &&
		    row < l->err_row[thread]) {
			l->err_row[thread] = row;
			l->errs[thread] = err;
		}
	}
}

/* The error of the lowest row, whichever thread met it. */
static int
first_error(struct loop *l, struct err *err)
{
	unsigned n = pool_threads(l->s->pool), best = 0;

	for (unsigned i = 1; i < n; i++)
		if (l->err_row[i] < l->err_row[best])
			best = i;
	if (l->err_row[best] == SIZE_MAX)
		return 0;
	return err_set(err, "%s", l->errs[best].msg);
}

/* Some rows at a time, so that no canvas x vocabulary matrix is needed. */
static int
statistics(struct loop *l, struct err *err)
{
	struct forward *f = l->s->f;
	size_t rows, n, v = l->s->m->n_vocab;

	for (int i = 0; i < l->q.stats.n_ban; i++)
		if ((size_t)l->q.stats.ban[i] >= v)
			return err_set(err, "ban=%d is outside the vocabulary "
			    "of %zu", l->q.stats.ban[i], v);
	for (int i = 0; i < l->q.stats.n_demote; i++)
		if ((size_t)l->q.stats.demote[i] >= v)
			return err_set(err, "demote=%d is outside the "
			    "vocabulary of %zu", l->q.stats.demote[i], v);
	if (forward_hidden(f, l->q.ids.id, l->q.ids.n, &l->q.rows, err) < 0)
		return -1;
	rows = forward_rows(f);
	n = rows < FORWARD_ROWS ? rows : FORWARD_ROWS;
	l->logits = room(
	    l->logits, &l->logits_cap, n * v, sizeof *l->logits, err);
	l->row = room(l->row, &l->row_cap, rows, sizeof *l->row, err);
	if (!l->logits || !l->row)
		return -1;
	for (unsigned i = 0; i < pool_threads(l->s->pool); i++)
		l->err_row[i] = SIZE_MAX;
	for (l->first = 0; l->first < rows; l->first += n) {
		n = rows - l->first < FORWARD_ROWS ? rows - l->first :
		                                     FORWARD_ROWS;
		if (forward_head(f, l->first, n, l->logits, err) < 0)
			return -1;
		pool_run(l->s->pool, stats_job, l, n, 1);
	}
	return first_error(l, err);
}

/* Do what the request wants. */
static int
fulfil(struct loop *l, uint64_t *bytes, struct err *err)
{
	*bytes = 0;
	if (l->q.rows.total > l->q.ids.n)
		return err_set(err, "more rows than the %zu tokens",
		    l->q.ids.n);
	if (l->q.want == WANT_STATS)
		return statistics(l, err);
	if (l->s->logits.fd >= 0)
		return shared_logits(l, bytes, err);
	if (l->s->logits.path)
		return named_logits(l, bytes, err);
	return err_set(err, "no place for logits: neither DLLM_LOGITS_FD nor "
	    "--logits was given");
}

static int
answer(struct loop *l, size_t len, struct err *err)
{
	const struct server *s = l->s;
	struct err why = { 0 };
	struct serve_note note = { 0 };
	double start = now_ms();
	uint64_t bytes;

	if (request_parse(&l->q, l->line, len, &why) < 0 ||
	    fulfil(l, &bytes, &why) < 0) {
		reply_error_write(s->out, l->q.seq, why.msg);
	} else {
		note.seq = l->q.seq;
		note.tokens = l->q.ids.n;
		note.rows = forward_rows(s->f);
		note.ms = now_ms() - start;
		if (s->note)
			s->note(s->arg, &note);
		reply_ok_write(s->out, note.seq, note.rows, bytes, note.ms);
		for (size_t i = 0; l->q.want == WANT_STATS && i < note.rows;
		     i++)
			stats_row_write(s->out, &l->row[i]);
	}
	if (fflush(s->out) != 0 || ferror(s->out))
		return err_sys(err, "cannot write a reply");
	return 0;
}

static int
loop(struct loop *l, struct err *err)
{
	size_t len;

	for (;;) {
		switch (io_line(l->s->in, &l->line, &l->line_cap, &len)) {
		case 0:
			return 0;
		case 1:
			if (answer(l, len, err) < 0)
				return -1;
			break;
		case 2:
			return err_set(err,
			    "standard input ended inside a request");
		default:
			return err_sys(err, "cannot read standard input");
		}
	}
}

int
serve(const struct server *s, struct err *err)
{
	struct loop l = { .s = s };
	unsigned n = pool_threads(s->pool);
	int rc;

	l.scratch = calloc(n, sizeof *l.scratch);
	l.errs = calloc(n, sizeof *l.errs);
	l.err_row = calloc(n, sizeof *l.err_row);
	for (unsigned i = 0; l.scratch && i < n; i++)
		l.scratch[i].kern = s->kern;
	if (l.scratch && l.errs && l.err_row)
		rc = loop(&l, err);
	else
		rc = err_set(err, "out of memory");
	for (unsigned i = 0; l.scratch && i < n; i++)
		stats_scratch_free(&l.scratch[i]);
	mapped_close(l.map, l.map_size);
	free(l.scratch);
	free(l.errs);
	free(l.err_row);
	free(l.logits);
	free(l.row);
	free(l.line);
	request_free(&l.q);
	return rc;
}
