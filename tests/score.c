/*
 * The likelihood of answers against values of the reference's estimator, and
 * against the sum over all masks.  Runs from the top of the source tree.
 */
#include <math.h>
#include <stdlib.h>

#include "io.h"
#include "json.h"
#include "score.h"
#include "tap.h"

#define GOLDEN "tests/golden/score/"

static struct client client;
static struct scorer scorer;
static struct generation run;

static void
die(const struct err *err)
{
	printf("Bail out! %s\n", err->msg);
	exit(1);
}

/* A golden file and the pair in it. */
static struct json_doc doc;
static int32_t ids[128];
static struct pair pair = { .id = ids };

static uint64_t
get_ids(int32_t *to, const char *key)
{
	uint64_t n = 0;

	for (const struct json *v = json_get(doc.root, key)->first; v;
	     v = v->next)
		to[n++] = (int32_t)v->number;
	return n;
}

static void
open_pair(const char *name)
{
	struct err err = { 0 };
	char path[128], *text;
	size_t n;

	snprintf(path, sizeof path, GOLDEN "%s.json", name);
	if (io_slurp_file(path, &text, &n, &err) < 0 ||
	    json_parse(&doc, text, n, &err) < 0)
		die(&err);
	free(text);
	pair.prompt = get_ids(ids, "prompt_ids");
	pair.length = pair.prompt +
	    get_ids(ids + pair.prompt, "answer_ids");
	scorer.cfg = 0;
	if (scorer_reserve(&scorer, &pair, &err) < 0)
		die(&err);
}

static double
number(const struct json *object, const char *key)
{
	const struct json *v = object ? json_get(object, key) : NULL;

	return v && v->type == JSON_NUMBER ? v->number : (double)NAN;
}

/* The loss of every masked token of every case. */
static void
test_losses(const char *name)
{
	const struct json *c = json_get(doc.root, "cases")->first;
	double worst = 0, sum, weighted, l = (double)(pair.length - pair.prompt);
	struct err err = { 0 };
	int cases = 0;

	for (; c; c = c->next, cases++) {
		const struct json *m = json_get(c, "masked")->first;
		const struct json *want = json_get(c, "token_loss")->first;

		scorer.cfg = (float)number(c, "cfg_scale");
		for (scorer.n = 0; m; m = m->next)
			scorer.pos[scorer.n++] = (int32_t)pair.prompt +
			    (int32_t)m->number;
		if (score_masked(&scorer, &pair, &sum, &err) < 0)
			die(&err);
		for (size_t i = 0; i < scorer.n; i++, want = want->next)
			worst = fmax(worst,
			    fabs(scorer.loss[i] - want->number));
		weighted = number(c, "loss_weighted");
		worst = fmax(worst, fabs(sum - number(c, "loss_sum")) / l);
		worst = fmax(worst, fabs(sum * l / (double)scorer.n - weighted) /
		    l / l);
	}
	ok(cases >= 5 && worst < 1e-4,
	    "%s: losses of %d cases within 1e-4 (worst %.1e)", name, cases,
	    worst);
	scorer.cfg = 0;
}

static void
test_estimate(const char *name)
{
	const struct json *want = json_get(doc.root, "reference_estimate");
	double se = number(want, "standard_error"), all, d;
	struct estimate e;
	struct err err = { 0 };

	if (score_estimate(&scorer, &pair, 256, 16, &e, &err) < 0)
		die(&err);
	all = sqrt(e.variance + se * se);
	d = fabs(e.log_likelihood - number(want, "mean"));
	ok(d < 3 * all, "%s: %.4f is the reference's estimate within %.1f "
	    "standard errors", name, e.log_likelihood, d / all);
}

static void
test_greedy(const char *name)
{
	int32_t want[64], out[64];
	uint64_t n = get_ids(want, "greedy_suffix_ids");
	struct err err = { 0 };

	if (score_greedy(&scorer, &pair, &run, out, &err) < 0)
		die(&err);
	ok(n == pair.length - pair.prompt && !memcmp(out, want, n * 4),
	    "%s: the greedy answer", name);
}

/* Masks of `n` of l tokens: each once, as bits. */
static int
bits(unsigned m)
{
	int n = 0;

	for (; m; m >>= 1)
		n += (int)(m & 1);
	return n;
}

/* The expectation itself: the mean over counts of the mean over masks. */
static void
test_direct(const char *name, double *exact)
{
	uint64_t l = pair.length - pair.prompt;
	double sum, by_count[16] = { 0 }, many[16] = { 0 }, d, se;
	struct estimate e;
	struct err err = { 0 };

	for (unsigned m = 1; m < 1u << l; m++) {
		scorer.n = 0;
		for (uint64_t i = 0; i < l; i++)
			if (m >> i & 1)
				scorer.pos[scorer.n++] =
				    (int32_t)(pair.prompt + i);
		if (score_masked(&scorer, &pair, &sum, &err) < 0)
			die(&err);
		by_count[bits(m)] += sum * (double)l / (double)scorer.n;
		many[bits(m)]++;
	}
	*exact = 0;
	for (uint64_t n = 1; n <= l; n++)
		*exact -= by_count[n] / many[n] / (double)l;
	for (uint64_t strata = 1; strata <= 16; strata *= 4) {
		scorer.seed = strata;
		if (score_estimate(&scorer, &pair, 40000, strata, &e, &err) <
		    0)
			die(&err);
		d = fabs(e.log_likelihood - *exact);
		se = sqrt(e.variance);
		ok(d < 4 * se && se < 0.01 * fabs(*exact),
		    "%s: %.4f +- %.4f, strata %d, is the sum over all masks, "
		    "%.4f", name, e.log_likelihood, se, (int)strata, *exact);
	}
	scorer.seed = 42;
}

/* Counts are uniform, places too, and no draw depends on another sample. */
static void
test_choice(void)
{
	int32_t id[11] = { 0 };
	struct pair p = { id, 4, 11 };
	double count[8] = { 0 }, place[7] = { 0 }, all = 0;
	struct err err = { 0 };
	int good = 1;
	enum { N = 70000 };

	if (scorer_reserve(&scorer, &p, &err) < 0)
		die(&err);
	for (uint64_t i = 0; i < N; i++) {
		score_choose(&scorer, &p, i, 16);
		good &= scorer.n >= 1 && scorer.n <= 7;
		count[scorer.n]++;
		for (size_t k = 0; k < scorer.n; k++) {
			good &= scorer.pos[k] >= 4 && scorer.pos[k] < 11;
			good &= k == 0 || scorer.pos[k] > scorer.pos[k - 1];
			place[scorer.pos[k] - 4]++;
			all++;
		}
	}
	ok(good, "masks are of the answer, ascending");
	for (int n = 1; n <= 7; n++)
		good &= fabs(count[n] / N * 7 - 1) < 0.05;
	for (int i = 0; i < 7; i++)
		good &= fabs(place[i] / all * 7 - 1) < 0.05;
	ok(good, "counts 1 to 7 and all places are equally likely");
}

int
main(void)
{
	static const char *const names[] = { "01-sum-right", "02-sum-wrong",
		"03-capital-right", "04-capital-wrong", "05-word-problem",
		"06-unrelated" };
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	struct shm_places where = { NULL, getenv("DLLM_SHM"),
		getenv("TMPDIR") };
	char words[][64] = { "--serve", "--activations", "f32", "--model",
		"lib/models/pocket-llada-f16-00001-of-00002.gguf" };
	char program[256], *command[7] = { program };
	struct err err = { 0 };
	double exact = 0;

	snprintf(program, sizeof program, "%s/bin/dllm-forward", build);
	for (int i = 0; i < 5; i++)
		command[i + 1] = words[i];
	if (client_start(&client, command, &where, &err) < 0)
		die(&err);
	scorer.client = &client;
	scorer.seed = 42;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		open_pair(names[i]);
		test_losses(names[i]);
		test_greedy(names[i]);
		if (i == 5)
			test_direct(names[i], &exact);
		else if (i % 2 == 1)
			test_estimate(names[i]);
		json_free(&doc);
	}
	test_choice();
	if (client_end(&client, &err) < 0)
		die(&err);
	client_drop(&client);
	scorer_free(&scorer);
	generation_free(&run);
	return tap_end();
}
