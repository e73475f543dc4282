/*
 * generations GOLDEN TRACE E: compare whole generations with the reference's.
 *
 * GOLDEN holds a JSON object a line: final (ids), and per step order (the
 * positions committed), doubt (1 - confidence of the least certain of them),
 * conf_gap (how much more doubtful the best one left out was, or null) and
 * logit_gap (the smallest distance between the two best logits).  TRACE is
 * dllm-trace(5) of the same prompts in the same order.  E is the largest error
 * of a logit, which moves a doubt by up to 4 E of it, or 10 E where it is an
 * entropy ("alg").  Prints a word a generation: same, or tie, when the first
 * step that differs was a near tie at that error.  Anything else fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "json.h"

static const struct json *
item(const struct json *array, size_t i)
{
	const struct json *v = array ? array->first : NULL;

	while (v && i--)
		v = v->next;
	return v;
}

static double
num(const struct json *object, const char *key, size_t i)
{
	const struct json *v = item(json_get(object, key), i);

	return v && v->type == JSON_NUMBER ? v->number : HUGE_VAL;
}

static int
has(const struct json *array, double number)
{
	for (const struct json *v = array->first; v; v = v->next)
		if (v->number == number)
			return 1;
	return 0;
}

/* Did both commit the same positions, and the tokens that stay? */
static int
same_step(const struct json *golden, size_t prompt, const struct json *order,
    const struct json *step)
{
	const struct json *positions = json_get(step, "positions");
	const struct json *ids = json_get(step, "ids");
	const struct json *final = json_get(golden, "final");
	const struct json *id;

	if (!positions || !ids || positions->n != order->n)
		return 0;
	id = ids->first;
	for (const struct json *p = positions->first; p; p = p->next) {
		const struct json *want =
		    item(final, (size_t)p->number - prompt);

		if (!has(order, p->number) || !want || !id ||
		    want->number != id->number)
			return 0;
		id = id->next;
	}
	return 1;
}

static int
near_tie(const struct json *golden, size_t step, double e)
{
	const struct json *alg = json_get(golden, "alg");
	double moves = alg && !strcmp(alg->text, "entropy") ? 10 * e : 4 * e;
	double doubt = num(golden, "doubt", step);
	double conf_gap = num(golden, "conf_gap", step);
	double logit_gap = num(golden, "logit_gap", step);

	/* Both sides rank confidences that were rounded to f32, near 1. */
	return logit_gap < 2 * e || conf_gap < moves * doubt ||
	       conf_gap < 0x1p-23 || doubt < 1e-6;
}

struct lines {
	FILE *f;
	char *buf;
	size_t cap;
	struct json_doc doc;
};

/* The next line's value, or NULL at the end. */
static const struct json *
next(struct lines *l)
{
	struct err err = { 0 };
	size_t n;

	json_free(&l->doc);
	l->doc = (struct json_doc){ 0 };
	if (io_line(l->f, &l->buf, &l->cap, &n) != 1)
		return NULL;
	if (json_parse(&l->doc, l->buf, n, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(2);
	}
	return l->doc.root;
}

/* Returns what to print, or NULL: wrong.  *at is the step that differs. */
static const char *
compare(const struct json *golden, struct lines *trace, double e, size_t *at)
{
	const struct json *line = next(trace);
	const struct json *order = json_get(golden, "order");
	const char *word = "same";
	size_t prompt, steps = 0;

	if (!line || !json_get(line, "dllm_trace") || !order)
		return NULL;
	prompt = (size_t)json_get(line, "prompt")->number;
	while ((line = next(trace)) && json_get(line, "step")) {
		const struct json *want = item(order, steps);

		*at = steps++;
		if (!want)
			return NULL;
		if (strcmp(word, "same") ||
		    same_step(golden, prompt, want, line))
			continue;
		if (!near_tie(golden, *at, e))
			return NULL;
		word = "tie";
	}
	*at = steps;
	return line && steps == order->n ? word : NULL;
}

static void
close_lines(struct lines *l)
{
	json_free(&l->doc);
	free(l->buf);
	fclose(l->f);
}

/* Prints a word for each generation, or what is wrong; returns 0 or 1. */
static int
compare_all(struct lines *golden, struct lines *trace, double e)
{
	const struct json *g;
	const char *word;
	size_t n = 0, at = 0;

	for (; (g = next(golden)); n++) {
		word = compare(g, trace, e, &at);
		if (!word) {
			printf("generation %zu: wrong at step %zu\n", n, at);
			return 1;
		}
		puts(word);
	}
	if (next(trace)) {
		printf("the trace goes on after generation %zu\n", n);
		return 1;
	}
	return n ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct lines golden = { 0 }, trace = { 0 };
	int status;

	if (argc != 4 || !(golden.f = fopen(argv[1], "r")) ||
	    !(trace.f = fopen(argv[2], "r"))) {
		fprintf(stderr, "usage: generations GOLDEN TRACE E\n");
		return 2;
	}
	status = compare_all(&golden, &trace, atof(argv[3]));
	close_lines(&golden);
	close_lines(&trace);
	return status;
}
