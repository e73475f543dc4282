/*
 * fake-forward: a stand-in for dllm-forward that needs no model.  It answers
 * from recorded logits or from a seeded pseudo-random model, and misbehaves on
 * order.
 */
#include <fcntl.h>

#include "json.h"
#include "npy.h"
#include "philox.h"
#include "proto.h"
#include "stats.h"

#define PROG "fake-forward"
#define USAGE "fake-forward [options]"
#include "tool_kern.h"

enum how {
	WELL,
	DIE_LOADING, /* before the greeting, status 3 */
	SILENT,      /* the same with status 0 */
	GREETING,    /* not a greeting */
	EXIT,        /* status 4 instead of a reply */
	KILL,        /* killed by signal 9 instead of a reply */
	HALF,        /* half a reply, then status 5 */
	SEQ,         /* another request's reply */
	ROWS,        /* one row too few */
	BYTES,       /* more bytes than the file has */
	HEADER,      /* an array of another width */
	NOT_NPY,     /* no array at all */
	SHRINK,      /* the file is cut */
	NAN_LOGIT,
	ERROR_REPLY,
	NO_REPLY_WORD, /* a line that is no reply */
	WRONG_ROW,     /* statistics of another position */
	BAD_ID,        /* a token outside the vocabulary */
	FEW_ROWS,      /* status 6 in the middle of the statistics */
	LATE,          /* status 7 at the end of requests */
	MORE,          /* prints something at the end */
	HANG           /* answers no more, until its input ends */
};

static const char *const how_words[] = { "well", "die-loading", "silent",
	"greeting", "exit", "kill", "half", "seq", "rows", "bytes", "header",
	"not-npy", "shrink", "nan", "error", "no-reply", "wrong-row", "bad-id",
	"few-rows", "late", "more", "hang", NULL };

static struct {
	const char *replay, *log, *arch, *rows, *logits;
	uint64_t seed, vocab, mask, at, ctx, first, eos;
	int how, stats;
	double scale;
} opt = { .vocab = 40, .mask = 38, .eos = 2, .ctx = 512, .seed = 1,
	.stats = 1, .scale = 3, .arch = "llada" };

static const struct opt options[] = {
	{ .name = "replay", .type = OPT_STR, .to = &opt.replay, .arg = "DIR",
	    .help = "answer from a folder of recorded logits" },
	{ .name = "seed", .type = OPT_UINT, .to = &opt.seed, .arg = "N",
	    .help = "of the pseudo-random model" },
	{ .name = "vocab", .type = OPT_UINT, .to = &opt.vocab, .arg = "N",
	    .help = "tokens" },
	{ .name = "mask", .type = OPT_UINT, .to = &opt.mask, .arg = "N",
	    .help = "the mask token" },
	{ .name = "eos", .type = OPT_UINT, .to = &opt.eos, .arg = "N",
	    .help = "the first end token; the next one ends too" },
	{ .name = "ctx", .type = OPT_UINT, .to = &opt.ctx, .arg = "N",
	    .help = "longest request" },
	{ .name = "first", .type = OPT_UINT, .to = &opt.first, .arg = "N",
	    .help = "lowest position" },
	{ .name = "arch", .type = OPT_STR, .to = &opt.arch, .arg = "NAME",
	    .help = "model family" },
	{ .name = "scale", .type = OPT_REAL, .to = &opt.scale, .arg = "F",
	    .help = "standard deviation of the logits" },
	{ .name = "no-stats", .type = OPT_CLEAR, .to = &opt.stats,
	    .help = "offer only logits" },
	{ .name = "rows", .type = OPT_STR, .to = &opt.rows, .arg = "RANGES",
	    .help = "answer one token line with these rows" },
	{ .name = "logits", .type = OPT_STR, .to = &opt.logits,
	    .arg = "PATH", .help = "in this file" },
	{ .name = "log", .type = OPT_STR, .to = &opt.log, .arg = "PATH",
	    .help = "append the requests to this file" },
	{ .name = "how", .type = OPT_WORD, .to = &opt.how, .arg = "WORD",
	    .words = how_words, .help = "what to do wrong" },
	{ .name = "at", .type = OPT_UINT, .to = &opt.at, .arg = "N",
	    .max = INT32_MAX, .help = "at this request, from 0" },
	{ .name = NULL },
};

static struct err err;

/* ---- recorded logits ------------------------------------------------ */

static struct {
	struct tokens *canvas; /* (n) before each call */
	size_t n;
	uint64_t prompt;
} record;

static FILE *
open_record(const char *file)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", opt.replay, file);
	f = fopen(path, "r");
	if (!f) {
		err_sys(&err, "cannot open '%s'", path);
		tool_fail(&err);
	}
	return f;
}

static void
load_record(void)
{
	struct tokline in = { .f = open_record("canvas.txt") };
	FILE *f = open_record("case.json");
	struct json_doc doc;
	char text[8192];
	size_t n = fread(text, 1, sizeof text, f);

	if (json_parse(&doc, text, n, &err) < 0)
		tool_fail(&err);
	opt.vocab = (uint64_t)json_get(doc.root, "vocab")->number;
	opt.mask = (uint64_t)json_get(doc.root, "mask")->number;
	record.prompt = json_get(doc.root, "prompt")->n;
	record.canvas = calloc(1024, sizeof *record.canvas);
	while (record.n < 1024 &&
	    tokline_read(&in, &record.canvas[record.n], &err) == 1)
		record.n++;
	if (err.set || record.n < 2)
		tool_fail(&err);
	record.n--; /* the last one is behind the last call */
	json_free(&doc);
	fclose(f);
	fclose(in.f);
	tokline_free(&in);
}

static int
same_from(const struct tokens *a, const struct tokens *b, uint64_t from)
{
	return a->n == b->n &&
	    !memcmp(a->id + from, b->id + from, (a->n - from) * sizeof *a->id);
}

/* The prompt wholly masked: the unconditional call. */
static int
without_prompt(const struct tokens *t)
{
	for (uint64_t i = 0; i < record.prompt; i++)
		if (t->id[i] != (int32_t)opt.mask)
			return 0;
	return 1;
}

/* The recorded call with this canvas; of several equal ones the last. */
static void
open_call(struct npy *a, const struct tokens *t)
{
	char path[512];
	int uncond = t->n > record.prompt && without_prompt(t);
	size_t i = record.n;

	while (i > 0 &&
	    !same_from(&record.canvas[i - 1], t, uncond ? record.prompt : 0))
		i--;
	if (i == 0) {
		err_set(&err, "no recorded call has this canvas");
		tool_fail(&err);
	}
	snprintf(path, sizeof path, "%s/%s-%03d.npy", opt.replay,
	    uncond ? "uncond" : "step", (int)i - 1);
	if (npy_open(a, path, &err) < 0)
		tool_fail(&err);
}

/* ---- the pseudo-random model ---------------------------------------- */

static double
hash_canvas(const struct tokens *t)
{
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < t->n; i++)
		h = (h ^ (uint64_t)t->id[i]) * 1099511628211u;
	return (double)(h >> 12);
}

/*
 * The sum of four uniform draws, about normal: exact in any order of
 * evaluation, and without libm.
 */
static void
random_row(float *row, const struct tokens *t, uint64_t pos)
{
	uint64_t key = opt.seed + (uint64_t)hash_canvas(t);
	double u[4];

	for (uint32_t v = 0; v < opt.vocab; v++) {
		random_pair(u, key, STREAM_TOKEN, 0, pos, 2 * v);
		random_pair(u + 2, key, STREAM_TOKEN, 0, pos, 2 * v + 1);
		row[v] = (float)(opt.scale * 1.7 *
		    (u[0] + u[1] + u[2] + u[3] - 2));
	}
}

/* ---- requests ------------------------------------------------------- */

/* Fill rows (n, vocab). */
static void
predict(float *rows, const struct request *q)
{
	struct npy a = { 0 };

	if (opt.replay)
		open_call(&a, &q->ids);
	for (size_t i = 0; i < q->rows.n; i++)
		for (uint64_t k = 0; k < q->rows.r[i].count; k++) {
			uint64_t pos = q->rows.r[i].from + k;

			if (pos >= q->ids.n || pos < opt.first) {
				err_set(&err, "row %d was not to be asked for",
				    (int)pos);
				tool_fail(&err);
			}
			if (opt.replay)
				memcpy(rows,
				    (const float *)a.data + pos * opt.vocab,
				    opt.vocab * sizeof *rows);
			else
				random_row(rows, &q->ids, pos);
			rows += opt.vocab;
		}
	npy_close(&a);
}

static uint64_t
store(const float *rows, uint64_t n, enum how how)
{
	char head[NPY_ALIGN_SHARED];
	uint64_t shape[2] = { n, opt.vocab - (how == HEADER) };
	size_t size = npy_header(head, NPY_ALIGN_SHARED, NPY_F4, 2, shape);
	const char *fd_text = getenv("DLLM_LOGITS_FD");
	int fd = fd_text ? atoi(fd_text) : -1;
	size_t bytes = n * opt.vocab * sizeof *rows;

	if (how == NOT_NPY)
		memset(head, 'x', size);
	if (io_pwrite_all(fd, head, size, 0) < 0 ||
	    io_pwrite_all(fd, rows, bytes, size) < 0 ||
	    (how == SHRINK && ftruncate(fd, 100) < 0)) {
		err_sys(&err, "cannot store logits");
		tool_fail(&err);
	}
	return size + bytes + (how == BYTES ? 1u << 30 : 0);
}

static void
put_stats(const float *rows, const struct request *q, enum how how)
{
	struct stats_scratch scratch = { .kern = tool_kern() };
	struct stats_row r;

	for (size_t i = 0; i < q->rows.n; i++)
		for (uint64_t k = 0; k < q->rows.r[i].count; k++) {
			if (stats_row(&r, rows, (size_t)opt.vocab,
			        (int32_t)(q->rows.r[i].from + k), &q->stats,
			        &scratch, &err) < 0)
				tool_fail(&err);
			if (how == FEW_ROWS && k == 1) {
				fflush(stdout);
				_exit(6);
			}
			r.pos += how == WRONG_ROW;
			if (how == BAD_ID)
				r.id = (int32_t)opt.vocab;
			stats_row_write(stdout, &r);
			rows += opt.vocab;
		}
	stats_scratch_free(&scratch);
}

/* What needs no prediction.  1 if it was done. */
static int
instead(const struct request *q, enum how how)
{
	switch (how) {
	case EXIT:
		_exit(4);
	case KILL:
		raise(SIGKILL);
		break;
	case HALF:
		fputs("ok 1", stdout);
		fflush(stdout);
		_exit(5);
	case ERROR_REPLY:
		reply_error_write(stdout, q->seq, "out of paper");
		return 1;
	case NO_REPLY_WORD:
		puts("segmentation fault");
		return 1;
	case HANG:
		return 1;
	default:
		break;
	}
	return 0;
}

static void
answer(const struct request *q, enum how how)
{
	uint64_t n = q->rows.total, bytes = 0;
	float *rows = malloc((size_t)(n * opt.vocab) * sizeof *rows);

	if (!rows)
		abort();
	predict(rows, q);
	if (how == NAN_LOGIT)
		rows[5] = 0.0f / 0.0f;
	if (q->want == WANT_LOGITS)
		bytes = store(rows, n, how);
	reply_ok_write(stdout, q->seq + (how == SEQ), n - (how == ROWS), bytes,
	    1.5);
	if (q->want == WANT_STATS)
		put_stats(rows, q, how);
	free(rows);
}

static void
serve(void)
{
	struct request q = { 0 };
	char *line = NULL;
	size_t cap = 0, n;
	FILE *log = opt.log ? fopen(opt.log, "ae") : NULL;
	enum how how;

	for (uint64_t i = 0; io_line(stdin, &line, &cap, &n) == 1; i++) {
		how = i == opt.at ? (enum how)opt.how : WELL;
		if (log) {
			fprintf(log, "%s\n", line);
			fflush(log);
		}
		if (request_parse(&q, line, n, &err) < 0)
			tool_fail(&err);
		if (!instead(&q, how))
			answer(&q, how);
		fflush(stdout);
	}
	if (log)
		fclose(log);
	free(line);
	request_free(&q);
}

/* The filter: a token line in, an array out. */
static void
filter(void)
{
	struct request q = { 0 };
	struct tokline in = { .f = stdin };
	float *rows;

	if (ranges_parse(&q.rows, opt.rows, strlen(opt.rows), 1, &err) < 0 ||
	    tokline_read(&in, &q.ids, &err) < 0)
		tool_fail(&err);
	rows = malloc((size_t)(q.rows.total * opt.vocab) * sizeof *rows);
	if (!rows)
		abort();
	predict(rows, &q);
	if (npy_save_f32(opt.logits, q.rows.total, opt.vocab, rows, &err) < 0)
		tool_fail(&err);
	free(rows);
	tokline_free(&in);
	request_free(&q);
}

static void
greet(void)
{
	struct greeting g = { .vocab = opt.vocab, .mask = (int32_t)opt.mask,
		.ctx = opt.ctx, .threads = 1, .first = (int)opt.first,
		.stats = opt.stats, .device = "cpu", .model = "fake model",
		.quant = "F32", .n_eos = 2 };

	snprintf(g.arch, sizeof g.arch, "%s", opt.arch);
	g.eos[0] = (int32_t)opt.eos;
	g.eos[1] = (int32_t)opt.eos + 1;
	if (opt.how == DIE_LOADING)
		_exit(3);
	if (opt.how == SILENT)
		_exit(0);
	if (opt.how == GREETING) {
		puts("hello");
		return;
	}
	if (greeting_write(stdout, &g, &err) < 0)
		tool_fail(&err);
}

int
main(int argc, char **argv)
{
	int rest = tool_start(options, argc, argv, "Answer forward requests.");

	tool_no_operands(rest, argc, argv);
	if (opt.replay)
		load_record();
	if (opt.rows) {
		filter();
		return tool_finish();
	}
	greet();
	fflush(stdout);
	serve();
	if (opt.how == LATE)
		_exit(7);
	if (opt.how == MORE)
		puts("one more thing");
	return tool_finish();
}
