/*
 * dllm-sample: the denoising loop.  Prompt token lines in, finished token
 * lines out; the model is a child process that speaks the forward protocol.
 */
#include <sys/resource.h>

#include "generate.h"
#include "npy.h"
#include "report.h"
#include "tokline.h"
#include "trace.h"

#define PROG "dllm-sample"
#define TOOL_MIXED 0
#define USAGE "dllm-sample [options] -- COMMAND [ARG...]"
#include "tool.h"

static const char *const remasking_words[] = { "low_confidence", "random",
	NULL };
static const char *const masks_words[] = { "fill", "reference", NULL };

/* The command line.  X_given: was it there? */
static struct {
	uint64_t max_tokens, steps, block, seed, top_k, step, prompt_length;
	int max_tokens_given, steps_given, block_given, step_given,
	    prompt_length_given, temperature_given, top_p_given,
	    algorithm_given, cfg_given;
	double temperature, top_p, cfg, alg_temp, eps;
	int remasking, algorithm, prompt_masks;
	int no_eos, demote_eos, allow_mask, greedy;
	int canvas, early_stop, stream, json, plan;
	int dump_step_stats, verbose;
	const char *greeting, *logits, *uncond, *share, *trace;
} opt = { .max_tokens = 128, .seed = 42, .top_p = 1, .eps = 1e-3,
	.early_stop = 1 };

#define UINT(name_, field, low, high, help_) \
	{ .name = name_, .type = OPT_UINT, .to = &opt.field, .arg = "N", \
		.help = help_, .min = low, .max = high }
#define GIVEN(name_, field, low, high, help_) \
	{ .name = name_, .type = OPT_UINT, .to = &opt.field, .arg = "N", \
		.help = help_, .min = low, .max = high, \
		.given = &opt.field##_given }
#define FLAG(name_, field, help_) \
	{ .name = name_, .type = OPT_FLAG, .to = &opt.field, .help = help_ }
#define PATH(name_, field, help_) \
	{ .name = name_, .type = OPT_STR, .to = &opt.field, .arg = "PATH", \
		.help = help_ }

static const struct opt options[] = {
	GIVEN("max-tokens", max_tokens, 0, 0,
	    "tokens to generate (128; 0: fill the line's masks)"),
	GIVEN("steps", steps, 1, 0, "denoising steps (max-tokens)"),
	GIVEN("block-length", block, 1, 0,
	    "tokens decoded together (llada 32, dream all)"),
	UINT("seed", seed, 0, UINT64_MAX, "seed of all random draws (42)"),
	{ .name = "temperature", .type = OPT_REAL, .to = &opt.temperature,
	    .arg = "F", .given = &opt.temperature_given,
	    .help = "noise on the logits (llada 0, dream 0.2)" },
	{ .name = "top-p", .type = OPT_REAL, .to = &opt.top_p, .arg = "F",
	    .fmax = 1, .given = &opt.top_p_given,
	    .help = "keep the likeliest tokens up to this sum (dream 0.95)" },
	UINT("top-k", top_k, 0, 0, "keep the N likeliest tokens (0: all)"),
	{ .name = "cfg-scale", .type = OPT_REAL, .to = &opt.cfg, .arg = "F",
	    .given = &opt.cfg_given,
	    .help = "classifier-free guidance, two forwards a step (0: off)" },
	{ .name = "algorithm", .type = OPT_WORD, .to = &opt.algorithm,
	    .arg = "WORD", .words = algorithm_names,
	    .given = &opt.algorithm_given,
	    .help = "llada, origin, maskgit_plus, topk_margin, entropy" },
	{ .name = "remasking", .type = OPT_WORD, .to = &opt.remasking,
	    .arg = "WORD", .words = remasking_words,
	    .help = "llada ranks by low_confidence or random" },
	{ .name = "alg-temp", .type = OPT_REAL, .to = &opt.alg_temp,
	    .arg = "F", .help = "dream: noise on the ranking (0: none)" },
	{ .name = "eps", .type = OPT_REAL, .to = &opt.eps, .arg = "F",
	    .fmax = 1, .help = "dream: the last time step (0.001)" },
	FLAG("greedy", greedy, "take the likeliest token, rank as sampled"),
	FLAG("no-eos", no_eos, "never choose the end-of-text token"),
	FLAG("demote-eos", demote_eos, "commit end tokens last"),
	FLAG("allow-mask", allow_mask, "let the mask token be chosen"),
	{ .name = "prompt-masks", .type = OPT_WORD, .to = &opt.prompt_masks,
	    .arg = "WORD", .words = masks_words,
	    .help = "masks in the prompt: fill, or as the reference does" },
	FLAG("canvas", canvas, "print the whole canvas; no early stop"),
	{ .name = "no-early-stop", .type = OPT_CLEAR, .to = &opt.early_stop,
	    .help = "go on after the end of the answer" },
	FLAG("stream", stream, "print ids as soon as they are decided"),
	FLAG("json", json, "print one JSON object for each line"),
	PATH("trace", trace, "write every decision as JSON lines"),
	FLAG("dump-step-stats", dump_step_stats,
	    "one line a step on standard error"),
	FLAG("verbose", verbose, "facts and times on standard error"),
	PATH("share", share, "pass logits through this file"),
	{ .name = "step", .type = OPT_UINT, .to = &opt.step, .arg = "J",
	    .max = INT32_MAX, .given = &opt.step_given,
	    .help = "make this one step, counted from 0, of a canvas" },
	FLAG("plan", plan, "with --step: print the rows it needs"),
	GIVEN("prompt-length", prompt_length, 0, 0,
	    "with --step: where the generated part begins"),
	PATH("greeting", greeting, "with --step: the forward's first line"),
	PATH("logits", logits, "with --step: the rows' logits (.npy)"),
	PATH("uncond", uncond, "with --step: the same without the prompt"),
	{ .name = NULL },
};

/* ---- usage ---------------------------------------------------------- */

__attribute__((noreturn)) static void
usage(const char *msg)
{
	struct err err = { 0 };

	err_set(&err, "%s", msg);
	tool_usage(&err);
}

/* Options that only one of the two modes knows. */
static void
check_mode(int rest, int argc, char **argv)
{
	if (!opt.step_given) {
		if (opt.plan || opt.prompt_length_given || opt.greeting ||
		    opt.logits || opt.uncond)
			usage("--plan, --prompt-length, --greeting, --logits "
			      "and --uncond need --step");
		if (rest == argc)
			usage("the command to run is missing (-- dllm-forward "
			      "--serve --model PATH)");
		return;
	}
	tool_no_operands(rest, argc, argv);
	if (!opt.prompt_length_given || !opt.greeting)
		usage("--step needs --prompt-length and --greeting");
	if (opt.plan && (opt.logits || opt.uncond))
		usage("--plan needs no --logits and no --uncond");
	if (!opt.plan && !opt.logits)
		usage("--step needs --plan or --logits");
	if (!opt.plan && (opt.cfg > 0) != (opt.uncond != NULL))
		usage("--cfg-scale and --uncond go together");
	if (opt.trace || opt.share || opt.stream || opt.json || opt.canvas ||
	    opt.dump_step_stats || opt.verbose)
		usage("--trace, --share, --stream, --json, --canvas, "
		      "--dump-step-stats and --verbose do not go with --step");
}

/* Steps and blocks of n tokens, as far as the command line decides. */
static void
check_blocks(uint64_t n)
{
	uint64_t steps = opt.steps_given ? opt.steps : n;
	uint64_t blocks;
	struct err err = { 0 };

	if (n == 0) {
		if (opt.block_given)
			usage("--block-length: without new tokens the line is "
			      "one block");
		if (opt.prompt_masks == MASKS_REFERENCE)
			usage("--prompt-masks reference: without new tokens "
			      "all masks are counted");
		return;
	}
	if (!opt.block_given)
		return;
	blocks = sampler_blocks(opt.block, n);
	if (steps >= blocks)
		return;
	err_set(&err, "--steps %llu: fewer than the %llu blocks of "
	              "--block-length %llu",
	    (unsigned long long)steps, (unsigned long long)blocks,
	    (unsigned long long)opt.block);
	tool_usage(&err);
}

static void
check_usage(int rest, int argc, char **argv)
{
	check_mode(rest, argc, argv);
	if (opt.stream && opt.json)
		usage("--stream and --json exclude each other");
	if (!opt.step_given || opt.max_tokens_given)
		check_blocks(opt.max_tokens);
	if (!opt.step_given && opt.max_tokens == 0)
		opt.canvas = 1;
	if (opt.canvas)
		opt.early_stop = 0;
}

/* ---- a sampler for one line ----------------------------------------- */

/* What the family and the command line decide together. */
static int
set_family(struct sampler *s, const struct greeting *g, struct err *err)
{
	const struct family *f = family_find(g->arch);

	if (!f && !opt.algorithm_given)
		return err_set(err, "no defaults for the model family '%s': "
		                    "give --algorithm",
		    g->arch);
	if (!f)
		f = family_find(opt.algorithm == ALG_LLADA ? "llada" : "dream");
	s->stats.algorithm = opt.algorithm_given ?
	    (enum algorithm)opt.algorithm :
	    f->algorithm;
	s->stats.temperature = opt.temperature_given ? opt.temperature :
	                                               f->temperature;
	s->stats.top_p = f->top_p;
	if (opt.temperature_given && opt.temperature == 0)
		s->stats.top_p = 1;
	if (opt.top_p_given)
		s->stats.top_p = opt.top_p;
	s->block = opt.block_given ? opt.block : f->block;
	return 0;
}

static void
set_ids(struct sampler *s, const struct greeting *g)
{
	struct stats_params *p = &s->stats;

	s->mask = g->mask;
	s->n_eos = g->n_eos;
	memcpy(s->eos, g->eos, sizeof s->eos);
	if (!opt.allow_mask)
		p->ban[p->n_ban++] = g->mask;
	if (opt.no_eos && g->n_eos)
		p->ban[p->n_ban++] = g->eos[0];
	if (opt.demote_eos) {
		p->n_demote = g->n_eos;
		memcpy(p->demote, g->eos, sizeof p->demote);
	}
}

/* Can this model take P ids and n more? */
static int
check_length(uint64_t prompt, uint64_t n, const struct greeting *g,
    struct err *err)
{
	uint64_t most = g->ctx ? g->ctx : INT32_MAX;

	if (prompt + n <= most)
		return 0;
	return err_set(err, "%llu tokens of prompt and %llu new ones exceed "
	                    "the longest request of %llu",
	    (unsigned long long)prompt, (unsigned long long)n,
	    (unsigned long long)most);
}

static int
check_ids(const struct sampler *s, const int32_t *canvas,
    const struct greeting *g, struct err *err)
{
	for (uint64_t i = 0; i < s->length; i++)
		if ((uint64_t)canvas[i] >= g->vocab)
			return err_set(err, "token %d is outside the "
			                    "vocabulary of %llu",
			    (int)canvas[i], (unsigned long long)g->vocab);
	if (g->first > 0 && s->length && canvas[0] == s->mask)
		return err_set(err, "position 0 is masked, and this model "
		                    "cannot predict it");
	return 0;
}

static uint64_t
count_masks(const struct sampler *s, const int32_t *canvas, uint64_t from,
    uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += canvas[i] == s->mask;
	return n;
}

/*
 * The sampler of a canvas whose last n tokens are generated; n 0: infilling,
 * where P is the line's length.
 */
static int
make_sampler(struct sampler *s, const struct tokens *canvas, uint64_t n,
    const struct greeting *g, struct err *err)
{
	memset(s, 0, sizeof *s);
	s->length = canvas->n;
	s->prompt = canvas->n - n;
	s->stats.seed = opt.seed;
	s->stats.top_k = opt.top_k;
	s->stats.greedy = opt.greedy;
	s->remasking = (enum remasking)opt.remasking;
	s->prompt_masks = (enum prompt_masks)opt.prompt_masks;
	s->alg_temp = opt.alg_temp;
	s->eps = opt.eps;
	s->early_stop = opt.early_stop;
	if (set_family(s, g, err) < 0)
		return -1;
	set_ids(s, g);
	if (check_length(s->prompt, n, g, err) < 0 ||
	    check_ids(s, canvas->id, g, err) < 0)
		return -1;
	s->steps = opt.steps;
	if (!opt.steps_given)
		s->steps = n ? n : count_masks(s, canvas->id, 0, s->length);
	if (n == 0)
		s->block = 0;
	else if (!opt.block_given)
		s->block = sampler_default_block(s->block, n, s->steps);
	return 0;
}

/* ---- one step ------------------------------------------------------- */

static void
read_greeting(struct greeting *g)
{
	struct err err = { 0 };
	char *text;
	size_t n, line;

	if (io_slurp_file(opt.greeting, &text, &n, &err) < 0)
		tool_fail(&err);
	line = strcspn(text, "\n");
	if (greeting_parse(g, text, line, &err) < 0) {
		err_prefix(&err, "%s", opt.greeting);
		tool_fail(&err);
	}
	free(text);
}

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
print_ids(const int32_t *id, uint64_t n)
{
	struct err err = { 0 };

	if (tokline_write(stdout, id, (size_t)n, &err) == 0)
		return;
	if (errno == EPIPE)
		tool_broken_pipe();
	tool_fail(&err);
}

static void
print_plan(const struct sampler *s, const struct step *t,
    const int32_t *canvas)
{
	struct ranges r = { 0 };
	struct err err = { 0 };
	int32_t *uncond;

	for (size_t i = 0; t->wanted && i < t->n; i++)
		if (ranges_add(&r, (uint64_t)t->undecided[i], &err) < 0)
			tool_fail(&err);
	ranges_write(stdout, &r);
	putchar('\n');
	ranges_free(&r);
	if (opt.cfg == 0)
		return;
	uncond = calloc((size_t)s->length + 1, sizeof *uncond);
	if (!uncond) {
		err_set(&err, "out of memory");
		tool_fail(&err);
	}
	uncond_canvas(s, uncond, canvas);
	print_ids(uncond, s->length);
	free(uncond);
}

/* Rows as planned, or of every position that the model can predict. */
static struct logits
open_logits(struct npy *a, const char *path, const struct sampler *s,
    const struct step *t, const struct greeting *g)
{
	struct logits l = { .vocab = (size_t)g->vocab };
	uint64_t all = s->length - (uint64_t)g->first;
	struct err err = { 0 };

	if (npy_open(a, path, &err) < 0)
		tool_fail(&err);
	if (a->type != NPY_F4 || a->n_dims != 2 || a->shape[1] != g->vocab ||
	    (a->shape[0] != t->n && a->shape[0] != all)) {
		err_set(&err, "%s: not %zu or %llu rows of %llu f32", path,
		    t->n, (unsigned long long)all,
		    (unsigned long long)g->vocab);
		tool_fail(&err);
	}
	l.data = a->data;
	l.by_position = a->shape[0] != t->n;
	l.first = (uint64_t)g->first;
	return l;
}

static void
decide(const struct sampler *s, struct step *t, int32_t *canvas,
    const struct greeting *g)
{
	struct npy a = { 0 }, b = { 0 };
	struct logits cond, uncond;
	struct reducer r = { 0 };
	struct err err = { 0 };

	cond = open_logits(&a, opt.logits, s, t, g);
	if (opt.uncond)
		uncond = open_logits(&b, opt.uncond, s, t, g);
	if (step_reduce(s, t, &cond, opt.uncond ? &uncond : NULL,
	        (float)opt.cfg, &r, &err) < 0)
		tool_fail(&err);
	sampler_select(s, t);
	sampler_update(t, canvas);
	reducer_free(&r);
	npy_close(&a);
	npy_close(&b);
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
	else if (opt.max_tokens_given && opt.max_tokens != canvas->n - p)
		err_set(&err, "--max-tokens %llu: the line has %zu ids after "
		              "--prompt-length",
		    (unsigned long long)opt.max_tokens, canvas->n - p);
	else if (p == canvas->n && !opt.steps_given)
		err_set(&err, "--step without new tokens needs --steps");
	if (err.set)
		tool_usage(&err);
	check_blocks(canvas->n - p);
}

static int
run_step(void)
{
	struct greeting g;
	struct tokens canvas = { 0 };
	struct sampler s;
	struct step t = { 0 };
	struct err err = { 0 };

	read_greeting(&g);
	read_canvas(&canvas);
	check_step(&canvas);
	if (make_sampler(&s, &canvas, canvas.n - opt.prompt_length, &g, &err) <
	    0)
		tool_fail(&err);
	if (opt.step >= s.steps) {
		err_set(&err, "--step %llu: there are only %llu steps",
		    (unsigned long long)opt.step, (unsigned long long)s.steps);
		tool_usage(&err);
	}
	if (sampler_begin(&s, &t, canvas.id, opt.step, &err) < 0)
		tool_fail(&err);
	if (opt.plan) {
		print_plan(&s, &t, canvas.id);
	} else {
		if (t.wanted)
			decide(&s, &t, canvas.id, &g);
		print_ids(canvas.id, canvas.n);
	}
	step_free(&t);
	tokens_free(&canvas);
	return tool_finish();
}

/* ---- the live loop -------------------------------------------------- */

static struct live {
	struct client client;
	struct generation run;
	struct outfile trace;
	double load_ms;
	uint64_t line;    /* from 0 */
	uint64_t printed; /* ids that --stream has written */
	int progress;     /* draw it? */
	int drawn;        /* width of what stands on the terminal */
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

__attribute__((noreturn)) static void
output_failed(const char *what)
{
	int code = errno;

	erase_progress();
	errno = code;
	tool_write_failed(what);
}

static void
trace_failed(void)
{
	struct err err = { 0 };

	err_sys(&err, "cannot write '%s'", opt.trace);
	fail(&err);
}

/* The end of what is printed: after the end token, or of the canvas. */
static uint64_t
print_to(const struct generation *n)
{
	const struct sampler *s = &n->sampler;
	uint64_t i;

	if (!s->early_stop)
		return s->length;
	for (i = s->prompt; i < s->length; i++)
		if (sampler_is_eos(s, n->canvas[i]))
			return i + 1;
	return s->length;
}

static uint64_t
print_from(const struct generation *n)
{
	return opt.canvas ? 0 : n->sampler.prompt;
}

/* Write the ids before `to` that are not written yet. */
static void
stream_ids(const struct generation *n, uint64_t to)
{
	uint64_t from = print_from(n), i = from + live.printed;

	if (i >= to)
		return;
	for (; i < to; i++)
		printf("%s%d", i > from ? " " : "", (int)n->canvas[i]);
	live.printed = to - from;
	if (fflush(stdout) != 0)
		output_failed("token lines");
}

/* Ids that nothing will change: up to the first mask. */
static void
stream_decided(const struct generation *n)
{
	uint64_t i = print_from(n), to = print_to(n);

	while (i < to && n->canvas[i] != n->sampler.mask)
		i++;
	stream_ids(n, i);
}

static int
on_step(void *arg, struct generation *n, struct err *err)
{
	(void)arg;
	(void)err;
	if (live.trace.f && trace_step(live.trace.f, n) < 0)
		trace_failed();
	if (opt.verbose)
		fprintf(stderr, "step %llu: %.1f ms\n",
		    (unsigned long long)n->steps, n->step_ms);
	if (opt.dump_step_stats)
		report_step(stderr, n);
	if (live.progress)
		draw_progress(n);
	if (opt.stream)
		stream_decided(n);
	return 0;
}

static void
print_json(const struct generation *n, uint64_t from, uint64_t to)
{
	report_json(stdout, n, n->canvas + from, to - from, live.load_ms,
	    process_peak_bytes((long)live.client.child.pid));
	if (fflush(stdout) != 0)
		output_failed("standard output");
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
	uint64_t from = print_from(n), to = print_to(n);

	warn_masks(count_masks(&n->sampler, n->canvas, from, to));
	if (opt.json) {
		print_json(n, from, to);
	} else if (opt.stream) {
		stream_ids(n, to);
		print_ids(NULL, 0);
	} else {
		print_ids(n->canvas + from, to - from);
	}
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

/* Space for the most rows that a step of this line is likely to want. */
static void
reserve_rows(const struct generation *n)
{
	const struct sampler *s = &n->sampler;
	uint64_t rows = s->block ? s->block : s->length;
	struct err err = { 0 };

	rows += count_masks(s, n->canvas, 0, s->prompt);
	if (rows > s->length)
		rows = s->length;
	if (n->client->greeting.stats && !n->want_logits && n->cfg == 0)
		return;
	if (client_reserve(&live.client, rows, &err) < 0)
		fail(&err);
}

/* Append the masks, choose the sampler. */
static int
make_canvas(struct sampler *s, struct tokens *canvas, struct err *err)
{
	const struct greeting *g = &live.client.greeting;

	if (check_length(canvas->n, opt.max_tokens, g, err) < 0)
		return -1;
	for (uint64_t i = 0; i < opt.max_tokens; i++)
		if (tokens_push(canvas, g->mask, err) < 0)
			return -1;
	return make_sampler(s, canvas, opt.max_tokens, g, err);
}

static void
begin_line(struct generation *n, struct tokens *canvas)
{
	struct err err = { 0 };

	if (make_canvas(&n->sampler, canvas, &err) < 0) {
		err_prefix(&err, "standard input: line %llu",
		    (unsigned long long)live.line + 1);
		fail(&err);
	}
	n->canvas = canvas->id;
	live.printed = 0;
	reserve_rows(n);
	if (opt.verbose) {
		report_sizes(stderr, &n->sampler);
		if (live.line == 0)
			fprintf(stderr, "load time: %.2f s\n",
			    live.load_ms / 1e3);
	}
	if (live.trace.f &&
	    trace_begin(live.trace.f, live.line, &n->sampler, n->cfg,
	        &live.client.greeting, n->canvas) < 0)
		trace_failed();
}

static void
finish_line(struct generation *n)
{
	erase_progress();
	if (live.trace.f && trace_end(live.trace.f, n) < 0)
		trace_failed();
	if (opt.verbose)
		report_speed(stderr, n);
	print_line(n);
	live.line++;
}

static void
finish(void)
{
	struct rusage usage_;
	struct err err = { 0 };

	if (client_end(&live.client, &err) < 0)
		fail(&err);
	if (opt.verbose && getrusage(RUSAGE_CHILDREN, &usage_) == 0)
		report_bytes(stderr, "peak RSS",
		    1024 * (uint64_t)usage_.ru_maxrss);
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

	live.run.client = &live.client;
	live.run.cfg = (float)opt.cfg;
	live.run.want_logits = opt.share != NULL;
	live.run.on_step = on_step;
	live.progress = isatty(2) && !opt.verbose && !opt.dump_step_stats &&
	    !opt.stream;
	while ((got = tokline_read(&in, &canvas, &err)) > 0) {
		if (live.line == 0) {
			if (opt.trace &&
			    io_create(&live.trace, opt.trace, &err) < 0)
				fail(&err);
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
	return opt.step_given ? run_step() : run_live(argv + rest);
}
