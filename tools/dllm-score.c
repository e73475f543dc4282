/*
 * dllm-score: the likelihood of answers.  Token lines in, a prompt and an
 * answer in turn; one line of figures out for each pair.
 */
#include <math.h>

#include "report.h"
#include "score.h"
#include "tokline.h"

#define PROG "dllm-score"
#define TOOL_MIXED 0
#define USAGE "dllm-score [options] -- COMMAND [ARG...]"
#include "tool_kern.h"

enum { STRATA = 16 }; /* the reference's batch */

static uint64_t samples = 128, strata, seed = 42;
static int samples_given, strata_given, greedy, json, verbose;
static double cfg;
static const char *mask;

static const struct opt options[] = {
	{ "samples", OPT_UINT, &samples, "N",
	    "masked copies of the answer to look at (128)", .min = 1,
	    .given = &samples_given },
	{ "strata", OPT_UINT, &strata, "N",
	    "copies drawn together (the largest divisor up to 16)", .min = 1,
	    .given = &strata_given },
	{ "seed", OPT_UINT, &seed, "N", "seed of all random draws (42)",
	    .max = UINT64_MAX },
	{ "cfg-scale", OPT_REAL, &cfg, "F",
	    "classifier-free guidance, two forwards a copy (0: off)" },
	{ "mask", OPT_STR, &mask, "POSITIONS",
	    "instead: losses where just these FROM:COUNT,... are masked" },
	{ "greedy", OPT_FLAG, &greedy,
	    .help = "also: does greedy decoding give the answer?" },
	{ "json", OPT_FLAG, &json, .help = "one JSON object for each pair" },
	{ "verbose", OPT_FLAG, &verbose,
	    .help = "the model and times on standard error" },
	{ 0 }
};

static struct {
	struct client client;
	struct scorer scorer;
	struct generation run; /* of --greedy */
	struct ranges masked;
	struct tokens prompt, answer, all, decoded;
	uint64_t pairs;
} the;

static void
check_usage(int rest, int argc)
{
	struct err err = { 0 };

	if (rest == argc)
		tool_misuse("the command to run is missing (-- dllm-forward --serve "
		      "--model PATH)");
	if (mask && (samples_given || strata_given))
		tool_misuse("--mask excludes --samples and --strata");
	if (mask && ranges_parse(&the.masked, mask, strlen(mask), 1, &err) < 0) {
		err_prefix(&err, "--mask '%s'", mask);
		tool_usage(&err);
	}
	if (!strata_given)
		for (strata = STRATA; samples % strata != 0;)
			strata--;
	if (samples % strata != 0) {
		err_set(&err, "--samples %llu: not a multiple of --strata %llu",
		    (unsigned long long)samples, (unsigned long long)strata);
		tool_usage(&err);
	}
}

static void
start(char **command)
{
	struct shm_places where = { NULL, getenv("DLLM_SHM"),
		getenv("TMPDIR") };
	struct err err = { 0 };

	if (client_start(&the.client, command, &where, &err) < 0)
		tool_fail(&err);
	if (verbose)
		report_model(stderr, &the.client.greeting);
	the.scorer.client = &the.client;
	the.scorer.seed = seed;
	the.scorer.cfg = (float)cfg;
}

static int
check_ids(const struct tokens *t, const char *what, struct err *err)
{
	const struct greeting *g = &the.client.greeting;

	for (size_t i = 0; i < t->n; i++) {
		if ((uint64_t)t->id[i] >= g->vocab)
			return err_set(err, "token %d is outside the "
			    "vocabulary of %llu", (int)t->id[i],
			    (unsigned long long)g->vocab);
		if (t->id[i] == g->mask)
			return err_set(err, "the %s holds the mask token",
			    what);
	}
	return 0;
}

static int
check_answer(struct err *err)
{
	const struct greeting *g = &the.client.greeting;
	const struct range *last;
	size_t n = the.answer.n;

	if (n == 0)
		return err_set(err, "the answer is empty");
	if (check_ids(&the.answer, "answer", err) < 0)
		return -1;
	if (g->first > 0 && the.prompt.n == 0)
		return err_set(err, "the prompt is empty, and this model "
		    "cannot predict position 0");
	if (g->ctx && the.prompt.n + n > g->ctx)
		return err_set(err, "%zu tokens of prompt and %zu of answer "
		    "exceed the longest request of %llu", the.prompt.n, n,
		    (unsigned long long)g->ctx);
	if (!mask)
		return 0;
	last = &the.masked.r[the.masked.n - 1];
	if (last->from + last->count > n)
		return err_set(err, "--mask %s: the answer has only %zu tokens",
		    mask, n);
	return 0;
}

/* Read the second line of a pair. */
static void
read_answer(struct tokline *in)
{
	struct err err = { 0 };
	int got = tokline_read(in, &the.answer, &err);

	if (got == 0)
		err_set(&err, "standard input ended before the answer of line "
		    "%lu", in->line);
	if (got <= 0)
		tool_fail(&err);
}

static void
print_number(const char *name, double v, const char *unknown)
{
	if (isnan(v))
		printf(json ? "\"%s\":%s" : "%s=%s", name, unknown);
	else
		printf(json ? "\"%s\":%.9g" : "%s=%.9g", name, v);
	putchar(json ? ',' : ' ');
}

static void
print_count(const char *name, uint64_t n, int last)
{
	printf(json ? "\"%s\":%llu" : "%s=%llu", name, (unsigned long long)n);
	if (!last)
		putchar(json ? ',' : ' ');
}

/* Which positions are masked, and the loss at each. */
static int
score_mask(const struct pair *p, struct err *err)
{
	struct scorer *s = &the.scorer;
	double sum;

	s->n = 0;
	for (size_t i = 0; i < the.masked.n; i++)
		for (uint64_t k = 0; k < the.masked.r[i].count; k++)
			s->pos[s->n++] = (int32_t)(p->prompt +
			    the.masked.r[i].from + k);
	strcpy(the.client.where, "in sample 0");
	if (score_masked(s, p, &sum, err) < 0)
		return -1;
	print_number("loss_sum", sum, "");
	print_number("loss_weighted", sum * (double)the.answer.n /
	    (double)s->n, "");
	for (size_t i = 0; i < s->n; i++)
		printf("%s%d", i ? "," : json ? "\"masked\":[" : "masked=",
		    (int)(s->pos[i] - (int32_t)p->prompt));
	fputs(json ? "]," : " ", stdout);
	for (size_t i = 0; i < s->n; i++)
		printf("%s%.9g", i ? "," : json ? "\"token_loss\":[" :
		    "token_loss=", s->loss[i]);
	fputs(json ? "]," : " ", stdout);
	return 0;
}

static int
score_samples(const struct pair *p, struct err *err)
{
	struct estimate e;

	if (score_estimate(&the.scorer, p, samples, strata, &e, err) < 0)
		return -1;
	print_number("log_likelihood", e.log_likelihood, "");
	print_number("standard_error", sqrt(e.variance),
	    json ? "null" : "unknown");
	if (json)
		print_number("variance", e.variance, "null");
	print_count("samples", samples, 0);
	return 0;
}

static int
check_greedy(const struct pair *p, struct err *err)
{
	struct tokens *d = &the.decoded;
	int same;

	d->n = 0;
	if (tokens_append(d, the.answer.id, the.answer.n, err) < 0 ||
	    score_greedy(&the.scorer, p, &the.run, d->id, err) < 0)
		return -1;
	same = !memcmp(d->id, the.answer.id, d->n * sizeof *d->id);
	if (!json) {
		printf("greedy=%s ", same ? "yes" : "no");
		return 0;
	}
	printf("\"greedy\":%s,\"greedy_ids\":[", same ? "true" : "false");
	for (size_t i = 0; i < d->n; i++)
		printf("%s%d", i ? "," : "", (int)d->id[i]);
	fputs("],", stdout);
	return 0;
}

/* All figures of the pair, on a line. */
static int
score_pair(struct err *err)
{
	uint64_t before = the.client.forwards;
	struct pair p = { .prompt = the.prompt.n,
		.length = the.prompt.n + the.answer.n };

	the.all.n = 0;
	if (tokens_append(&the.all, the.prompt.id, the.prompt.n, err) < 0 ||
	    tokens_append(&the.all, the.answer.id, the.answer.n, err) < 0)
		return -1;
	p.id = the.all.id;
	if (scorer_reserve(&the.scorer, &p, err) < 0)
		return -1;
	if (json)
		putchar('{');
	if ((mask ? score_mask(&p, err) : score_samples(&p, err)) < 0 ||
	    (greedy && check_greedy(&p, err) < 0))
		return -1;
	print_count("tokens", the.answer.n, 0);
	print_count("forwards", the.client.forwards - before, 1);
	fputs(json ? "}\n" : "\n", stdout);
	return 0;
}

/* Standard output has a buffer for one line, sent when it is whole. */
static void
flush(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		tool_write_failed("standard output");
}

/* An error of a line of input, from 1. */
__attribute__((noreturn)) static void
fail_line(unsigned long line, struct err *err)
{
	err_prefix(err, "standard input: line %lu", line);
	tool_fail(err);
}

int
main(int argc, char **argv)
{
	struct tokline in = { .f = stdin };
	struct err err = { 0 };
	double begin;
	int got;

	int rest = tool_start(options, argc, argv,
	    "Estimate how likely answers are.  Standard input: token lines, a "
	    "prompt and its\nanswer in turn, as tok-encode --pairs writes "
	    "them.");

	check_usage(rest, argc);
	the.run.reducer.scratch.kern = tool_kern();
	while ((got = tokline_read(&in, &the.prompt, &err)) > 0) {
		read_answer(&in);
		if (the.pairs++ == 0)
			start(argv + rest);
		if (check_ids(&the.prompt, "prompt", &err) < 0)
			fail_line(in.line - 1, &err);
		if (check_answer(&err) < 0)
			fail_line(in.line, &err);
		begin = now_ms();
		if (score_pair(&err) < 0)
			tool_fail(&err);
		flush();
		if (verbose)
			fprintf(stderr, "pair %llu: %.2f s\n",
			    (unsigned long long)the.pairs,
			    (now_ms() - begin) / 1e3);
	}
	if (got < 0 || client_end(&the.client, &err) < 0)
		tool_fail(&err);
	client_drop(&the.client);
	scorer_free(&the.scorer);
	generation_free(&the.run);
	ranges_free(&the.masked);
	tokens_free(&the.prompt);
	tokens_free(&the.answer);
	tokens_free(&the.all);
	tokens_free(&the.decoded);
	tokline_free(&in);
	return tool_finish();
}
