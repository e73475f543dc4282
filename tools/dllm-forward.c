/*
 * Token lines in, logits out: the transformer of a masked diffusion language
 * model, on the CPU.
 */
#define PROG "dllm-forward"
#define USAGE "dllm-forward [options] --model PATH"

#include <fcntl.h>

#include "clock.h"
#include "dump.h"
#include "forward.h"
#include "model.h"
#include "npy.h"
#include "pool.h"
#include "proto.h"
#include "serve.h"
#include "sysinfo.h"
#include "tokline.h"
#include "tool_kern.h"
#include "warm.h"

enum { DEFAULT_MAX_LENGTH = 4096 };

static const char *const devices[] = { "auto", "cpu", "gpu", "cuda", NULL };
enum { DEVICE_AUTO, DEVICE_CPU };
static const char *const activations[] = { "q8", "f32", NULL };

static const char *model_path, *rows_text, *logits_path, *dump_dir;
static uint64_t threads, max_length;
static int device, float_activations, serving, verbose, have_model;
static int memory_check = 1;

static const struct opt options[] = {
	{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
	    .given = &have_model, .help = "GGUF model, llada or dream" },
	{ "rows", OPT_STR, &rows_text, .arg = "FROM:COUNT,...",
	    .help = "positions to predict (default all)" },
	{ "logits", OPT_STR, &logits_path, .arg = "PATH",
	    .help = "write arrays here, not to standard output" },
	{ "serve", OPT_FLAG, &serving,
	    .help = "answer requests, see dllm-forward-protocol(5)" },
	{ "dump", OPT_STR, &dump_dir, .arg = "DIR",
	    .help = "write every stage of one token line as .npy" },
	{ "threads", OPT_UINT, &threads, .arg = "N", .min = 1,
	    .max = POOL_MAX_THREADS,
	    .help = "default the usable physical cores" },
	{ "device", OPT_WORD, &device, .arg = "auto|cpu|gpu",
	    .words = devices, .help = "this tool has the CPU only" },
	{ "max-length", OPT_UINT, &max_length, .arg = "N", .min = 1,
	    .max = MODEL_MAX_POSITIONS, .help = "longest token line (default "
	    "the context length, at most 4096)" },
	{ "activations", OPT_WORD, &float_activations, .arg = "q8|f32",
	    .words = activations,
	    .help = "of quantised matrices (default q8)" },
	{ "no-memory-check", OPT_CLEAR, &memory_check,
	    .help = "load even if memory seems too small" },
	{ "verbose", OPT_FLAG, &verbose,
	    .help = "report model and timing on standard error" },
	{ 0 }
};

/* Everything that is open. */
struct run {
	struct model m;
	const struct kern *kern;
	struct pool *pool;
	struct forward *f;
	struct warm *warm;
	struct ranges rows; /* of --rows */
};

/* What contradicts itself on the command line, before anything is touched. */
static void
check_options(struct run *r)
{
	struct err err = { 0 };

	if (dump_dir && (serving || rows_text || logits_path))
		err_set(&err, "--dump writes all rows of one token line: no "
		    "--serve, --rows or --logits");
	else if (serving && logits_path && !strcmp(logits_path, "-"))
		err_set(&err, "--logits -: with --serve standard output holds "
		    "replies");
	else if (serving && rows_text)
		err_set(&err, "--rows: with --serve every request names its "
		    "rows");
	else if (serving && logits_path && getenv("DLLM_LOGITS_FD"))
		err_set(&err, "--logits: DLLM_LOGITS_FD names a file already");
	else if (!serving && !logits_path && !dump_dir &&
	    getenv("DLLM_LOGITS_FD"))
		/* else both would wait for the other to speak */
		err_set(&err, "a sampler has started this (DLLM_LOGITS_FD is "
		    "set) and needs --serve");
	else if (rows_text && ranges_parse(&r->rows, rows_text,
	        strlen(rows_text), 1, &err) < 0)
		err_prefix(&err, "--rows");
	if (err.set)
		tool_usage(&err);
	r->kern = tool_kern();
	if (device > DEVICE_CPU) {
		err_set(&err, "no GPU found: this is the CPU tool (run with "
		    "--device cpu)");
		tool_fail(&err);
	}
	if (logits_path && !strcmp(logits_path, "-"))
		logits_path = NULL;
	if (!serving && !dump_dir && !logits_path && isatty(1))
		tool_misuse("standard output is a terminal: arrays go to a "
		    "pipe or to --logits PATH");
}

static void
warn_about(const struct run *r)
{
	char text[sizeof(struct err)];

	if (r->m.n_unused) {
		snprintf(text, sizeof text,
		    "%s: %llu tensors are not used, the first is %s",
		    model_path, (unsigned long long)r->m.n_unused,
		    r->m.unused);
		tool_warn(text);
	}
	if (max_length > r->m.context) {
		snprintf(text, sizeof text,
		    "--max-length %llu is above the model's context length "
		    "of %zu", (unsigned long long)max_length, r->m.context);
		tool_warn(text);
	}
}

/* Bytes of logits that are held at once; a shared file is its owner's. */
static uint64_t
logits_bytes(const struct run *r)
{
	uint64_t rows = max_length;

	if (serving && !logits_path && rows > FORWARD_ROWS)
		rows = FORWARD_ROWS; /* for statistics */
	if (rows_text && rows > r->rows.total)
		rows = r->rows.total;
	return rows * r->m.n_vocab * sizeof(float);
}

static void
open_all(struct run *r)
{
	struct forward_options o = { .kern = r->kern,
		.float_activations = float_activations };
	struct err err = { 0 };

	if (model_open(&r->m, model_path, &err) < 0)
		tool_fail(&err);
	if (logits_path &&
	    gguf_check_output(&r->m.gguf, logits_path, &err) < 0)
		tool_fail(&err);
	warn_about(r);
	if (!max_length)
		max_length = r->m.context < DEFAULT_MAX_LENGTH ?
		    r->m.context :
		    DEFAULT_MAX_LENGTH;
	if (!threads)
		threads = sysinfo_cores();
	o.max_length = (size_t)max_length;
	if (pool_open(&r->pool, (unsigned)threads, &err) < 0)
		tool_fail(&err);
	o.pool = r->pool;
	if (forward_open(&r->f, &r->m, &o, &err) < 0)
		tool_fail(&err);
	if (memory_check && model_check_memory(r->m.file_bytes +
	        forward_bytes(r->f, o.max_length) + logits_bytes(r),
	        sysinfo_memory(), &err) < 0)
		tool_fail(&err);
	r->warm = warm_start(&r->m.gguf);
}

static void
close_all(struct run *r)
{
	warm_stop(r->warm);
	forward_close(r->f);
	pool_close(r->pool);
	model_close(&r->m);
	ranges_free(&r->rows);
}

static void
report_model(const struct run *r, double ms)
{
	char text[512];

	snprintf(text, sizeof text, "%s, %s, %zu layers of width %zu, "
	    "vocabulary %zu, %.1f MB", r->m.family->arch,
	    model_quantisation(&r->m), r->m.n_layers, r->m.n_embd,
	    r->m.n_vocab, (double)r->m.file_bytes / 1e6);
	tool_say("model: ", text);
	snprintf(text, sizeof text, "cpu, %s kernels, %llu threads, opened in "
	    "%.1f ms", r->kern->name, (unsigned long long)threads, ms);
	tool_say("device: ", text);
}

/* One line for the whole and one for each part. */
static void
report_run(void *arg, const struct serve_note *n)
{
	const struct run *r = arg;
	struct forward_times t;
	char text[256];

	snprintf(text, sizeof text, "%llu: %zu tokens, %zu rows, %.3f ms",
	    (unsigned long long)n->seq, n->tokens, n->rows, n->ms);
	tool_say("request ", text);
	if (!n->rows)
		return;
	forward_times(r->f, &t);
	snprintf(text, sizeof text, "%.3f ms", t.embd);
	tool_say("  embedding: ", text);
	for (size_t i = 0; i < r->m.n_layers; i++) {
		snprintf(text, sizeof text, "%zu: %.3f ms", i, t.layer[i]);
		tool_say("  layer ", text);
	}
	snprintf(text, sizeof text, "%.3f ms", t.head);
	tool_say("  norm and head: ", text);
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void
greet(const struct run *r)
{
	struct greeting g = { .vocab = r->m.n_vocab, .mask = r->m.special.mask,
		.ctx = max_length, .threads = threads,
		.first = (int)r->m.shift, .stats = 1 };
	struct err err = { 0 };

	snprintf(g.arch, sizeof g.arch, "%s", r->m.family->arch);
	snprintf(g.model, sizeof g.model, "%s", base_name(model_path));
	snprintf(g.quant, sizeof g.quant, "%s", model_quantisation(&r->m));
	snprintf(g.device, sizeof g.device, "cpu");
	snprintf(g.kernel, sizeof g.kernel, "%s", r->kern->name);
	for (int i = 0; i < r->m.special.n_eos && i < PROTO_MAX_EOS; i++)
		g.eos[g.n_eos++] = r->m.special.eos[i];
	if (greeting_write(stdout, &g, &err) < 0)
		tool_fail(&err);
}

/* The descriptor that the sampler left us, or -1. */
static int
inherited_fd(void)
{
	const char *text = getenv("DLLM_LOGITS_FD");
	struct err err = { 0 };
	uint64_t fd;

	if (!text)
		return -1;
	if (opt_uint(text, 0, INT32_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_GETFD) < 0) {
		err_set(&err, "DLLM_LOGITS_FD '%s': not an open file", text);
		tool_fail(&err);
	}
	return (int)fd;
}

static void
run_server(struct run *r)
{
	struct server s = { .f = r->f, .m = &r->m, .kern = r->kern,
		.pool = r->pool, .in = stdin, .out = stdout,
		.logits.fd = inherited_fd(), .logits.path = logits_path,
		.arg = r };
	struct err err = { 0 };

	if (verbose)
		s.note = report_run;
	greet(r);
	if (serve(&s, &err) < 0)
		tool_fail(&err);
}

/* One array: the wanted rows of one token line. */
static int
write_array(struct run *r, FILE *to, const struct tokens *t,
    unsigned long line, struct err *err)
{
	struct serve_note note = { .tokens = t->n };
	double start = now_ms();
	size_t v = r->m.n_vocab, n;
	uint64_t shape[2] = { 0, v };
	float *out;
	int rc = 0;

	/* nothing in, nothing out; rows asked for by name are an error */
	if (t->n || rows_text) {
		if (forward_hidden(r->f, t->id, t->n,
		        rows_text ? &r->rows : NULL, err) < 0)
			return err_prefix(
			    err, "standard input: line %lu", line);
		shape[0] = forward_rows(r->f);
	}
	out = malloc((size_t)shape[0] * v * sizeof *out + 1);
	if (!out)
		return err_set(err, "out of memory for %llu rows of logits",
		    (unsigned long long)shape[0]);
	for (size_t i = 0; rc == 0 && i < shape[0]; i += n) {
		n = (size_t)shape[0] - i;
		n = n < FORWARD_ROWS ? n : FORWARD_ROWS;
		rc = forward_head(r->f, i, n, out + i * v, err);
	}
	note.rows = (size_t)shape[0];
	note.ms = now_ms() - start;
	if (rc == 0 && verbose)
		report_run(r, &note);
	if (rc < 0)
		err_prefix(err, "standard input: line %lu", line);
	else if (npy_write(to, NPY_F4, 2, shape, out) < 0 || fflush(to) != 0)
		rc = logits_path ?
		    err_sys(err, "cannot write '%s'", logits_path) :
		    err_sys(err, "cannot write standard output");
	free(out);
	return rc;
}

static void
run_filter(struct run *r)
{
	struct tokline in = { .f = stdin };
	struct tokens t = { 0 };
	struct outfile o = { 0 };
	struct err err = { 0 };
	int rc;

	if (logits_path && io_create(&o, logits_path, &err) < 0)
		tool_fail(&err);
	while ((rc = tokline_read(&in, &t, &err)) > 0)
		if (write_array(r, o.f ? o.f : stdout, &t, in.line, &err) < 0)
			tool_fail(&err);
	if (rc < 0 || (o.f && io_commit(&o, &err) < 0))
		tool_fail(&err);
	tokline_free(&in);
	tokens_free(&t);
}

static void
run_dump(struct run *r)
{
	struct tokline in = { .f = stdin };
	struct tokens t = { 0 }, more = { 0 };
	struct err err = { 0 };
	int rc = tokline_read(&in, &t, &err);

	if (rc > 0)
		rc = tokline_read(&in, &more, &err);
	if (rc > 0)
		err_set(&err, "--dump takes one token line");
	if (rc != 0)
		tool_fail(&err);
	if (dump_folder(dump_dir, &err) < 0)
		tool_fail(&err);
	if (dump_stages(dump_dir, r->f, &t, &err) < 0) {
		err_prefix(&err, "standard input: line 1");
		tool_fail(&err);
	}
	tokline_free(&in);
	tokens_free(&t);
	tokens_free(&more);
}

int
main(int argc, char **argv)
{
	struct run r = { 0 };
	double start = now_ms();
	int rest;

	rest = tool_start(options, argc, argv,
	    "Run a diffusion language model over token lines: one array of "
	    "logits for each.");
	tool_no_operands(rest, argc, argv);
	check_options(&r);
	open_all(&r);
	if (verbose)
		report_model(&r, now_ms() - start);
	if (serving)
		run_server(&r);
	else if (dump_dir)
		run_dump(&r);
	else
		run_filter(&r);
	close_all(&r);
	return tool_finish();
}
