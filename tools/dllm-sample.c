/*
 * dllm-sample: the denoising loop.  Prompt token lines in, finished token
 * lines out; the model is a child process that speaks the forward protocol.
 */
#include <float.h>
#include <sys/stat.h>

#include "answer.h"
#include "generate.h"
#include "onestep.h"
#include "report.h"
#include "sampling.h"
#include "tokline.h"
#include "trace.h"

#define PROG "dllm-sample"
#define TOOL_MIXED 0
#define USAGE "dllm-sample [options] -- COMMAND [ARG...]"
#include "tool_kern.h"

static const char *const remasking_words[] = { "low_confidence", "random",
	NULL };
static const char *const masks_words[] = { "fill", "reference", NULL };

/* The command line: what samples, and what is asked for around it. */
static struct sampling how = { .max_tokens = 128, .seed = 42, .top_p = 1,
	.eps = 1e-3, .early_stop = 1 };
static struct {
	uint64_t step, prompt_length;
	int max_tokens_given, step_given, prompt_length_given;
	int canvas, stream, json, plan, dump_step_stats, verbose, all_rows;
	const char *greeting, *logits, *uncond, *share, *trace;
} opt;

static const struct kern *kern; /* for statistics */

#define UINT(name_, to_, given_, low, high, help_) \
	{ .name = name_, .type = OPT_UINT, .to = &to_, .given = given_, \
		.arg = "N", .min = low, .max = high, .help = help_ }
#define REAL(name_, to_, given_, high, help_) \
	{ .name = name_, .type = OPT_REAL, .to = &to_, .given = given_, \
		.arg = "F", .fmax = high, .help = help_ }
#define WORD(name_, to_, given_, words_, help_) \
	{ .name = name_, .type = OPT_WORD, .to = &to_, .given = given_, \
		.arg = "WORD", .words = words_, .help = help_ }
#define FLAG(name_, to_, help_) \
	{ .name = name_, .type = OPT_FLAG, .to = &to_, .help = help_ }
#define PATH(name_, to_, help_) \
	{ .name = name_, .type = OPT_STR, .to = &to_, .arg = "PATH", \
		.help = help_ }

static const struct opt options[] = {
	UINT("max-tokens", how.max_tokens, &opt.max_tokens_given, 0, 0,
	    "tokens to generate (128; 0: fill the line's masks)"),
	UINT("steps", how.steps, &how.steps_given, 1, 0,
	    "denoising steps (max-tokens)"),
	UINT("block-length", how.block, &how.block_given, 1, 0,
	    "tokens decoded together (llada 32, dream all)"),
	UINT("seed", how.seed, NULL, 0, UINT64_MAX,
	    "seed of all random draws (42)"),
	REAL("temperature", how.temperature, &how.temperature_given, 0,
	    "noise on the logits (llada 0, dream 0.2)"),
	REAL("top-p", how.top_p, &how.top_p_given, 1,
	    "keep the likeliest tokens up to this sum (dream 0.95)"),
	UINT("top-k", how.top_k, NULL, 0, 0,
	    "keep the N likeliest tokens (0: all)"),
	REAL("cfg-scale", how.cfg, NULL, (double)FLT_MAX,
	    "classifier-free guidance, two forwards a step (0: off)"),
	WORD("algorithm", how.algorithm, &how.algorithm_given, algorithm_names,
	    "llada, origin, maskgit_plus, topk_margin, entropy"),
	WORD("remasking", how.remasking, NULL, remasking_words,
	    "llada ranks by low_confidence or random"),
	REAL("alg-temp", how.alg_temp, NULL, 0,
	    "dream: noise on the ranking (0: none)"),
	REAL("eps", how.eps, NULL, 1, "dream: the last time step (0.001)"),
	FLAG("greedy", how.greedy, "take the likeliest token, rank as sampled"),
	FLAG("no-eos", how.no_eos, "never choose the end-of-text token"),
	FLAG("demote-eos", how.demote_eos, "commit end tokens last"),
	FLAG("allow-mask", how.allow_mask, "let the mask token be chosen"),
	WORD("prompt-masks", how.prompt_masks, NULL, masks_words,
	    "masks in the prompt: fill, or as the reference does"),
	FLAG("canvas", opt.canvas, "print the whole canvas; no early stop"),
	{ .name = "no-early-stop", .type = OPT_CLEAR, .to = &how.early_stop,
	    .help = "go on after the end of the answer" },
	FLAG("stream", opt.stream, "print ids as soon as they are decided"),
	FLAG("json", opt.json, "print one JSON object for each line"),
	PATH("trace", opt.trace, "write every decision as JSON lines"),
	FLAG("dump-step-stats", opt.dump_step_stats,
	    "one line a step on standard error"),
	FLAG("verbose", opt.verbose, "facts and times on standard error"),
	FLAG("all-rows", opt.all_rows,
	    "ask for all rows, needed or not (to measure that)"),
	PATH("share", opt.share, "pass logits through this file"),
	UINT("step", opt.step, &opt.step_given, 0, INT32_MAX,
	    "make this one step, counted from 0, of a canvas"),
	FLAG("plan", opt.plan, "with --step: print the rows it needs"),
	UINT("prompt-length", opt.prompt_length, &opt.prompt_length_given, 0,
	    0, "with --step: where the generated part begins"),
	PATH("greeting", opt.greeting, "with --step: the forward's first line"),
	PATH("logits", opt.logits, "with --step: the rows' logits (.npy)"),
	PATH("uncond", opt.uncond, "with --step: the same without the prompt"),
	{ .name = NULL },
};

/* ---- usage ---------------------------------------------------------- */

/* Options that only one of the two modes knows. */
static void
check_mode(int rest, int argc, char **argv)
{
	if (!opt.step_given) {
		if (opt.plan || opt.prompt_length_given || opt.greeting ||
		    opt.logits || opt.uncond)
			tool_misuse("--plan, --prompt-length, --greeting, "
			            "--logits and --uncond need --step");
		if (rest == argc)
			tool_misuse("the command to run is missing (-- "
			            "dllm-forward --serve --model PATH)");
		return;
	}
	tool_no_operands(rest, argc, argv);
	if (!opt.prompt_length_given || !opt.greeting)
		tool_misuse("--step needs --prompt-length and --greeting");
	if (opt.plan && (opt.logits || opt.uncond))
		tool_misuse("--plan needs no --logits and no --uncond");
	if (!opt.plan && !opt.logits)
		tool_misuse("--step needs --plan or --logits");
	if (!opt.plan && (how.cfg > 0) != (opt.uncond != NULL))
		tool_misuse("--cfg-scale and --uncond go together");
	if (opt.trace || opt.share || opt.stream || opt.json || opt.canvas ||
	    opt.dump_step_stats || opt.verbose || opt.all_rows)
		tool_misuse("--trace, --share, --stream, --json, --canvas, "
		            "--dump-step-stats, --verbose and --all-rows do "
		            "not go with --step");
}

static void
check_blocks(uint64_t n)
{
	struct err err = { 0 };

	if (sampling_check(&how, n, &err) < 0)
		tool_usage(&err);
}

static void
check_usage(int rest, int argc, char **argv)
{
	how.cfg = (double)(float)how.cfg; /* what is computed with */
	check_mode(rest, argc, argv);
	if (opt.stream && opt.json)
		tool_misuse("--stream and --json exclude each other");
	if (!opt.step_given || opt.max_tokens_given)
		check_blocks(how.max_tokens);
	if (!opt.step_given && how.max_tokens == 0)
		opt.canvas = 1;
	if (opt.canvas)
		how.early_stop = 0;
}

/* ---- one step ------------------------------------------------------- */

/* The only line of standard input. */
static void
read_canvas(struct tokens *t)
{
	struct tokline in = { .f = stdin };
	struct tokens more = { 0 };
	struct err err = { 0 };

	if (tokline_read(&in, t, &err) < 0)
		tool_fail(&err);
	if (tokline_read(&in, &more, &err) > 0)
		err_set(&err, "--step takes one line");
	if (err.set)
		tool_fail(&err);
	tokline_free(&in);
	tokens_free(&more);
}

static void
check_step(const struct tokens *canvas)
{
	uint64_t p = opt.prompt_length;
	struct err err = { 0 };

	if (p > canvas->n)
		err_set(&err, "--prompt-length %llu: the line has only %zu "
		              "ids",
		    (unsigned long long)p, canvas->n);
	else if (opt.max_tokens_given && how.max_tokens != canvas->n - p)
		err_set(&err, "--max-tokens %llu: the line has %zu ids after "
		              "--prompt-length",
		    (unsigned long long)how.max_tokens, canvas->n - p);
	else if (p == canvas->n && !how.steps_given)
		err_set(&err, "--step without new tokens needs --steps");
	if (err.set)
		tool_usage(&err);
	check_blocks(canvas->n - p);
}

/* Print what --step asks for; errno EPIPE: nobody reads it. */
static int
print_step(const struct sampler *s, struct step *t, struct tokens *canvas,
    const struct greeting *g, struct err *err)
{
	if (opt.plan)
		return onestep_plan(
		    stdout, s, t, canvas->id, how.cfg > 0, err);
	if (t->wanted && onestep_decide(s, t, canvas->id, g, opt.logits,
	                     opt.uncond, (float)how.cfg, kern, err) < 0)
		return -1;
	return tokline_write(stdout, canvas->id, canvas->n, err);
}

static int
run_step(void)
{
	struct greeting g;
	struct tokens canvas = { 0 };
	struct sampler s;
	struct step t = { 0 };
	struct err err = { 0 };

	if (onestep_greeting(&g, opt.greeting, &err) < 0)
		tool_fail(&err);
	read_canvas(&canvas);
	check_step(&canvas);
	if (sampling_sampler(&s, &how, &canvas, canvas.n - opt.prompt_length,
	        &g, &err) < 0)
		tool_fail(&err);
	if (opt.step >= s.steps) {
		err_set(&err, "--step %llu: there are only %llu steps",
		    (unsigned long long)opt.step, (unsigned long long)s.steps);
		tool_usage(&err);
	}
	if (sampler_begin(&s, &t, canvas.id, opt.step, &err) < 0 ||
	    print_step(&s, &t, &canvas, &g, &err) < 0)
		tool_fail(&err);
	step_free(&t);
	tokens_free(&canvas);
	return tool_finish();
}

/* ---- the live loop -------------------------------------------------- */

static struct live {
	struct client client;
	struct generation run;
	struct outfile trace;
	struct answer answer;
	double load_ms;
	uint64_t line; /* from 0 */
	int progress;  /* draw it? */
	int drawn;     /* width of what stands on the terminal */
} live;

static void
erase_progress(void)
{
	if (live.drawn)
		fprintf(stderr, "\r%*s\r", live.drawn, "");
	live.drawn = 0;
}

static void
draw_progress(const struct generation *n)
{
	int width = live.drawn;

	live.drawn = fprintf(stderr, "\rstep %llu/%llu",
	    (unsigned long long)n->steps, (unsigned long long)n->sampler.steps);
	if (live.drawn < width)
		live.drawn = width;
}

__attribute__((noreturn)) static void
fail(const struct err *err)
{
	erase_progress();
	tool_fail(err);
}

/* After a failed write: errno EPIPE says that nobody reads any more. */
__attribute__((noreturn)) static void
output_failed(const struct err *err)
{
	int gone = errno == EPIPE;

	erase_progress();
	if (gone)
		tool_broken_pipe();
	tool_fail(err);
}

static void
trace_failed(void)
{
	struct err err = { 0 };

	err_sys(&err, "cannot write '%s'", opt.trace);
	fail(&err);
}

static int
on_step(void *arg, struct generation *n, struct err *err)
{
	(void)arg;
	if (live.trace.f && trace_step(live.trace.f, n) < 0)
		trace_failed();
	if (opt.verbose && n->step_forwards)
		fprintf(stderr, "step %llu: %.1f ms\n",
		    (unsigned long long)n->steps, n->step_ms);
	if (opt.dump_step_stats)
		report_step(stderr, n);
	if (live.progress)
		draw_progress(n);
	if (opt.stream && answer_stream(&live.answer, n, err) < 0)
		output_failed(err);
	return 0;
}

static int
print_json(const struct generation *n, struct err *err)
{
	uint64_t from = answer_from(&live.answer, n), to = answer_to(n);

	report_json(stdout, n, n->canvas + from, to - from, live.load_ms,
	    process_peak_bytes((long)live.client.child.pid));
	if (fflush(stdout) != 0)
		return err_sys(err, "cannot write standard output");
	return 0;
}

static void
warn_masks(uint64_t masks)
{
	char msg[96];

	if (!masks)
		return;
	snprintf(msg, sizeof msg, "line %llu: %llu mask%s left",
	    (unsigned long long)live.line + 1, (unsigned long long)masks,
	    masks == 1 ? " is" : "s are");
	tool_warn(msg);
}

static void
print_line(struct generation *n)
{
	struct err err = { 0 };

	warn_masks(answer_masks(&live.answer, n));
	if ((opt.json ? print_json(n, &err) :
	                answer_end(&live.answer, n, &err)) < 0)
		output_failed(&err);
}

static void
start_client(char **argv)
{
	struct shm_places where = { opt.share, getenv("DLLM_SHM"),
		getenv("TMPDIR") };
	double start = now_ms();
	struct err err = { 0 };

	if (client_start(&live.client, argv, &where, &err) < 0)
		fail(&err);
	live.load_ms = now_ms() - start;
	if (opt.verbose)
		report_model(stderr, &live.client.greeting);
}

static void
begin_line(struct generation *n, struct tokens *canvas)
{
	const struct greeting *g = &live.client.greeting;
	struct err err = { 0 };

	if (sampling_extend(canvas, how.max_tokens, g, &err) < 0 ||
	    sampling_sampler(&n->sampler, &how, canvas, how.max_tokens, g,
	        &err) < 0) {
		err_prefix(&err, "standard input: line %llu",
		    (unsigned long long)live.line + 1);
		fail(&err);
	}
	n->canvas = canvas->id;
	if (generation_reserve(n, &err) < 0)
		fail(&err);
	if (opt.verbose) {
		report_sizes(stderr, &n->sampler, n->canvas);
		if (live.line == 0)
			fprintf(stderr, "load time: %.2f s\n",
			    live.load_ms / 1e3);
	}
	if (live.trace.f &&
	    trace_begin(live.trace.f, live.line, &n->sampler, n->cfg,
	        g, n->canvas) < 0)
		trace_failed();
}

static void
finish_line(struct generation *n)
{
	erase_progress();
	if (live.trace.f && trace_end(live.trace.f, n) < 0)
		trace_failed();
	if (opt.verbose) {
		report_speed(stderr, n);
		report_bytes(stderr, "peak RSS",
		    process_peak_bytes((long)live.client.child.pid));
	}
	print_line(n);
	live.line++;
}

/* A count of steps on a terminal, unless something there shows more. */
static int
shows_progress(void)
{
	struct stat st;
	int watched = live.trace.f && fstat(fileno(live.trace.f), &st) == 0 &&
	    !S_ISREG(st.st_mode);

	return isatty(2) && !opt.verbose && !opt.dump_step_stats &&
	    !opt.stream && !watched;
}

static void
finish(void)
{
	struct err err = { 0 };

	if (client_end(&live.client, &err) < 0)
		fail(&err);
	if (live.trace.f && io_commit(&live.trace, &err) < 0)
		fail(&err);
	client_drop(&live.client);
	generation_free(&live.run);
}

static int
run_live(char **command)
{
	struct tokline in = { .f = stdin };
	struct tokens canvas = { 0 };
	struct err err = { 0 };
	int got;

	live.answer.f = stdout;
	live.answer.canvas = opt.canvas;
	live.run.client = &live.client;
	live.run.cfg = (float)how.cfg;
	live.run.want_logits = opt.share != NULL;
	live.run.all_rows = opt.all_rows;
	live.run.reducer.scratch.kern = kern;
	live.run.on_step = on_step;
	live.run.every_step = opt.trace || opt.dump_step_stats;
	while ((got = tokline_read(&in, &canvas, &err)) > 0) {
		if (live.line == 0) {
			if (opt.trace &&
			    io_create(&live.trace, opt.trace, &err) < 0)
				fail(&err);
			live.progress = shows_progress();
			start_client(command);
		}
		begin_line(&live.run, &canvas);
		if (generate(&live.run, &err) < 0)
			fail(&err);
		finish_line(&live.run);
	}
	if (got < 0)
		fail(&err);
	finish();
	tokline_free(&in);
	tokens_free(&canvas);
	return tool_finish();
}

int
main(int argc, char **argv)
{
	int rest = tool_start(options, argc, argv,
	    "Fill masked token lines with the model behind COMMAND; or make "
	    "one step of a\ncanvas: dllm-sample --step J --prompt-length P "
	    "--greeting FILE --plan | --logits F");

	check_usage(rest, argc, argv);
	kern = tool_kern();
	return opt.step_given ? run_step() : run_live(argv + rest);
}
