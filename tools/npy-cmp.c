/*
 * npy-cmp: how far an array is from its reference, in a form that people and
 * scripts can read, with an exit status like that of cmp(1).
 */
#define PROG "npy-cmp"
#define USAGE PROG " [options] FILE REFERENCE"
#define TOOL_FAILED 2
#include "tool.h"

#include <math.h>

#include "npy.h"
#include "npycmp.h"
#include "proto.h"

static const char *const argmax_words[] = { "all", "clear", NULL };
enum { ARGMAX_ALL, ARGMAX_CLEAR };

static const char *rows_text;
static double max_abs, max_rel_l2, max_row_rel_l2, min_cosine;
static int have_abs, have_rel, have_row_rel, have_cosine, have_argmax;
static int argmax, json, quiet;

static const struct opt options[] = {
	{ "max-abs", OPT_REAL, &max_abs, .arg = "F", .given = &have_abs,
	    .help = "allow absolute differences up to F" },
	{ "max-rel-l2", OPT_REAL, &max_rel_l2, .arg = "F", .given = &have_rel,
	    .help = "allow a relative L2 up to F" },
	{ "max-row-rel-l2", OPT_REAL, &max_row_rel_l2, .arg = "F",
	    .given = &have_row_rel, .help = "the same for every row" },
	{ "min-cosine", OPT_REAL, &min_cosine, .arg = "F", .fmin = -1,
	    .fmax = 1, .given = &have_cosine,
	    .help = "ask for a cosine of at least F in every row" },
	{ "argmax", OPT_WORD, &argmax, .arg = "all|clear",
	    .words = argmax_words, .given = &have_argmax,
	    .help = "ask for the same arg-max in all rows, or in clear ones" },
	{ "rows", OPT_STR, &rows_text, .arg = "FROM:COUNT,...",
	    .help = "compare these rows only" },
	{ "json", OPT_FLAG, &json, .help = "print one JSON object" },
	{ "quiet", OPT_FLAG, &quiet, .help = "print nothing" }, { 0 }
};

/* The tolerances that the arrays exceed, first to last. */
struct verdict {
	int differ;
	const char *what[5];
	int n;
};

static void
hold(struct verdict *v, int asked, int kept, const char *name)
{
	if (asked && !kept)
		v->what[v->n++] = name;
}

static void
judge(struct verdict *v, const struct npycmp *c)
{
	memset(v, 0, sizeof *v);
	hold(v, have_abs, c->max_abs <= max_abs, "max-abs");
	hold(v, have_rel, c->rel_l2 <= max_rel_l2, "rel-l2");
	hold(v, have_row_rel, c->row_rel_l2 <= max_row_rel_l2, "row-rel-l2");
	hold(v, have_cosine, c->cosine_worst >= min_cosine, "cosine-worst");
	hold(v, have_argmax,
	    argmax == ARGMAX_ALL ? c->argmax_same == c->rows
				 : c->clear_same == c->clear,
	    "argmax");
	v->differ = v->n > 0 || c->nans > 0;
	if (!(have_abs || have_rel || have_row_rel || have_cosine ||
		have_argmax))
		v->differ = c->differing > 0;
}

typedef unsigned long long ull;

/* The index of an element, "3,45". */
static void
print_index(const struct npy *a, uint64_t i)
{
	uint64_t stride = a->count;

	if (a->n_dims == 0)
		putchar('0');
	for (int d = 0; d < a->n_dims; d++) {
		stride /= a->shape[d];
		printf("%s%llu", d ? "," : "", (ull)(i / stride));
		i %= stride;
	}
}

static void
print_shape(const struct npy *a, const char *separator)
{
	for (int d = 0; d < a->n_dims; d++)
		printf("%s%llu", d ? separator : "", (ull)a->shape[d]);
}

static void
print_facts(const struct npycmp *c, const struct npy *a)
{
	printf("shape ");
	print_shape(a, ",");
	printf("\nrows %llu\n", (ull)c->rows);
	printf("differing %llu of %llu\n", (ull)c->differing,
	    (ull)(c->rows * c->width));
	printf("nan %llu\n", (ull)c->nans);
	printf("max-abs %.9g", c->max_abs);
	if (c->differing) {
		printf(" at ");
		print_index(a, c->worst);
		printf(": %.9g, reference %.9g", c->worst_a, c->worst_b);
	}
	printf("\nrel-l2 %.9g\n", c->rel_l2);
	printf("row-rel-l2 %.9g at row %llu\n", c->row_rel_l2,
	    (ull)c->row_rel_l2_at);
	printf("cosine-median %.9g\n", c->cosine_median);
	printf("cosine-worst %.9g at row %llu\n", c->cosine_worst,
	    (ull)c->cosine_at);
	printf("argmax %llu of %llu", (ull)c->argmax_same, (ull)c->rows);
	if (c->argmax_at != (uint64_t)NPYCMP_NONE)
		printf(", not row %llu", (ull)c->argmax_at);
	printf(
	    "\nargmax-clear %llu of %llu\n", (ull)c->clear_same, (ull)c->clear);
	printf("top5 %llu of %llu, %.3g in common\n", (ull)c->top_same,
	    (ull)c->rows, c->top_common);
}

static void
print_verdict(const struct verdict *v)
{
	printf("result %s", v->differ ? "differ" : "same");
	for (int i = 0; i < v->n; i++)
		printf("%s%s", i ? ", " : ": ", v->what[i]);
	putchar('\n');
}

/* JSON has no NaN and no infinity. */
static void
put_number(const char *key, double v)
{
	printf("\"%s\":", key);
	if (isfinite(v))
		printf("%.17g,", v);
	else
		printf("null,");
}

static void
print_json(const struct npycmp *c, const struct npy *a, const struct verdict *v)
{
	printf("{\"shape\":[");
	print_shape(a, ",");
	printf("],\"rows\":%llu,\"width\":%llu,\"differing\":%llu,"
	       "\"nan\":%llu,",
	    (ull)c->rows, (ull)c->width, (ull)c->differing, (ull)c->nans);
	put_number("max_abs", c->max_abs);
	printf("\"max_abs_index\":[");
	if (c->differing)
		print_index(a, c->worst);
	printf("],");
	put_number("rel_l2", c->rel_l2);
	put_number("row_rel_l2", c->row_rel_l2);
	printf("\"row_rel_l2_row\":%llu,", (ull)c->row_rel_l2_at);
	put_number("cosine_median", c->cosine_median);
	put_number("cosine_worst", c->cosine_worst);
	printf("\"cosine_worst_row\":%llu,\"argmax_same\":%llu,"
	       "\"clear\":%llu,\"clear_same\":%llu,\"top5_same\":%llu,",
	    (ull)c->cosine_at, (ull)c->argmax_same, (ull)c->clear,
	    (ull)c->clear_same, (ull)c->top_same);
	put_number("top5_common", c->top_common);
	printf("\"exceeded\":[");
	for (int i = 0; i < v->n; i++)
		printf("%s\"%s\"", i ? "," : "", v->what[i]);
	printf("],\"same\":%s}\n", v->differ ? "false" : "true");
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Compare two .npy arrays of the same shape, row by row.\n"
	    "Exit status: 0 all tolerances hold (without one: no difference),\n"
	    "1 the arrays differ, 2 trouble.");
	struct ranges rows = { 0 };
	struct verdict v;
	struct npy a, b;
	struct npycmp c;
	int status;

	if (argc - rest != 2)
		err_set(&err, "two files are needed");
	else if (json && quiet)
		err_set(&err, "--json and --quiet exclude each other");
	else if (rows_text &&
		 ranges_parse(&rows, rows_text, strlen(rows_text), 1, &err) < 0)
		err_prefix(&err, "--rows '%s'", rows_text);
	if (err.set)
		tool_usage(&err);
	if (npy_open(&a, argv[rest], &err) < 0 ||
	    npy_open(&b, argv[rest + 1], &err) < 0)
		tool_fail(&err);
	if (npycmp(&c, &a, &b, rows_text ? &rows : NULL, &err) < 0) {
		err_prefix(&err, "%s, %s", argv[rest], argv[rest + 1]);
		tool_fail(&err);
	}
	judge(&v, &c);
	if (json)
		print_json(&c, &a, &v);
	else if (!quiet) {
		print_facts(&c, &a);
		print_verdict(&v);
	}
	npy_close(&a);
	npy_close(&b);
	ranges_free(&rows);
	status = tool_finish();
	return status ? status : v.differ;
}
