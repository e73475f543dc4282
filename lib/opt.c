#include "opt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX_LEN = 63 };

/*
 * How many letters must be changed, added, removed or swapped with the next one
 * to make b of a; words longer than WORD_MAX_LEN are never near.
 */
static unsigned
distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX_LEN + 1], *row, *last, *before, d;
	size_t na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX_LEN || nb > WORD_MAX_LEN)
		return WORD_MAX_LEN + 1;
	for (unsigned j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= na; i++) {
		row = rows[i % 3];
		last = rows[(i + 2) % 3];
		before = rows[(i + 1) % 3];
		row[0] = i;
		for (unsigned j = 1; j <= nb; j++) {
			d = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < d)
				d = last[j] + 1;
			if (row[j - 1] + 1 < d)
				d = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && before[j - 2] + 1 < d)
				d = before[j - 2] + 1;
			row[j] = d;
		}
	}
	return rows[na % 3][nb];
}

const char *
opt_closest(const char *text, const char *const *words)
{
	const char *best = NULL;
	unsigned least = WORD_MAX_LEN, d;

	for (; *words; words++) {
		d = distance(text, *words);
		if (d < least && 3 * d <= strlen(*words) + 1) {
			least = d;
			best = *words;
		}
	}
	return best;
}

int
opt_uint(const char *text, uint64_t min, uint64_t max, uint64_t *to)
{
	uint64_t v = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		if (v > (UINT64_MAX - (uint64_t)(*text - '0')) / 10)
			return -1;
		v = v * 10 + (uint64_t)(*text - '0');
	}
	if (v < min || v > max)
		return -1;
	*to = v;
	return 0;
}

static uint64_t
uint_max(const struct opt *o)
{
	return o->max ? o->max : INT32_MAX;
}

static int
set_real(const struct opt *o, const char *text, struct err *err)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || *end || !isfinite(v) || *text == ' ' ||
	    *text == '\t' || strpbrk(text, "xXpP"))
		return err_set(err, "--%s '%s': not a number", o->name, text);
	if (v < o->fmin || (o->fmax != 0 && v > o->fmax)) {
		if (o->fmax != 0)
			return err_set(err, "--%s '%s': not in %g..%g", o->name,
			    text, o->fmin, o->fmax);
		return err_set(
		    err, "--%s '%s': below %g", o->name, text, o->fmin);
	}
	*(double *)o->to = v;
	return 0;
}

static int
set_word(const struct opt *o, const char *text, struct err *err)
{
	char list[256] = "";
	size_t n = 0;

	for (int i = 0; o->words[i]; i++) {
		if (!strcasecmp(o->words[i], text)) {
			*(int *)o->to = i;
			return 0;
		}
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
		    i ? ", " : "", o->words[i]);
		if (n >= sizeof list)
			n = sizeof list - 1;
	}
	return err_set(err, "--%s '%s': not one of %s", o->name, text, list);
}

static int
set_value(const struct opt *o, const char *text, struct err *err)
{
	switch (o->type) {
	case OPT_STR:
		*(const char **)o->to = text;
		break;
	case OPT_UINT:
		if (opt_uint(text, o->min, uint_max(o), o->to) < 0)
			return err_set(err, "--%s '%s': not in %llu..%llu",
			    o->name, text, (unsigned long long)o->min,
			    (unsigned long long)uint_max(o));
		break;
	case OPT_REAL:
		return set_real(o, text, err);
	case OPT_WORD:
		return set_word(o, text, err);
	case OPT_FLAG:
	case OPT_CLEAR:
		break;
	}
	return 0;
}

static int
takes_value(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_CLEAR;
}

static const struct opt *
find(const struct opt *table, const char *name, size_t len)
{
	for (; table->name; table++)
		if (strlen(table->name) == len &&
		    !memcmp(table->name, name, len))
			return table;
	return NULL;
}

static int
unknown(const struct opt *table, const char *arg, struct err *err)
{
	const char *words[128];
	const char *near;
	size_t n = 0, len = strcspn(arg, "=");
	char name[WORD_MAX_LEN + 1];

	for (; table->name && n < 125; table++)
		words[n++] = table->name;
	words[n++] = "help";
	words[n++] = "version";
	words[n] = NULL;
	near = NULL;
	if (len > 2 && len - 2 <= WORD_MAX_LEN) {
		memcpy(name, arg + 2, len - 2);
		name[len - 2] = '\0';
		near = opt_closest(name, words);
	}
	if (near)
		return err_set(err,
		    "unknown option '%.*s' (did you mean --%s?)", (int)len, arg,
		    near);
	return err_set(err, "unknown option '%.*s'", (int)len, arg);
}

/* Consume argv[i] and its value; returns the next index or -1. */
static int
parse_one(const struct opt *table, int argc, char **argv, int i,
    struct err *err)
{
	const char *arg = argv[i];
	size_t len = strcspn(arg, "=");
	const struct opt *o = NULL;

	if (arg[1] == '-')
		o = find(table, arg + 2, len - 2);
	if (!o)
		return unknown(table, arg, err);
	if (o->given)
		*o->given = 1;
	if (!takes_value(o)) {
		if (arg[len])
			return err_set(err, "--%s takes no value", o->name);
		*(int *)o->to = o->type == OPT_CLEAR ? 0 :
		    o->value                         ? o->value :
						       1;
		return i + 1;
	}
	if (arg[len])
		return set_value(o, arg + len + 1, err) < 0 ? -1 : i + 1;
	if (i + 1 >= argc)
		return err_set(err, "--%s: a value is missing", o->name);
	return set_value(o, argv[i + 1], err) < 0 ? -1 : i + 2;
}

/* Move argv[from] before argv[to], to <= from; the others keep their order. */
static void
move_word(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof *argv);
	argv[to] = word;
}

/*
 * Each option found is moved before the operands seen so far, argv[i] to
 * argv[k-1].
 */
enum opt_result
opt_parse(const struct opt *table, int mixed, int argc, char **argv,
    int *rest, struct err *err)
{
	int i = 1, end;

	for (int k = 1; k < argc && strcmp(argv[k], "--"); k++)
		if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h"))
			return OPT_HELP;
	for (int k = 1; k < argc; k++) {
		if (argv[k][0] != '-' || !argv[k][1]) {
			if (mixed)
				continue;
			break;
		}
		if (!strcmp(argv[k], "--version"))
			return OPT_VERSION;
		if (!strcmp(argv[k], "--")) {
			move_word(argv, k, i++);
			break;
		}
		end = parse_one(table, argc, argv, k, err);
		if (end < 0)
			return OPT_ERROR;
		for (; k < end; k++)
			move_word(argv, k, i++);
		k--;
	}
	*rest = i;
	for (const struct opt *o = table; o->name; o++)
		if (o->required && o->given && !*o->given) {
			err_set(err, "--%s is required", o->name);
			return OPT_ERROR;
		}
	return OPT_OK;
}

void
opt_help(FILE *out, const struct opt *table)
{
	char left[64];

	for (; table->name; table++) {
		snprintf(left, sizeof left, "--%s%s%s", table->name,
		    takes_value(table) ? " " : "",
		    takes_value(table) ? table->arg : "");
		fprintf(out, "  %-28s %s\n", left, table->help);
	}
	fprintf(out, "  %-28s %s\n", "--help", "print this and exit");
	fprintf(out, "  %-28s %s\n", "--version", "print the version and exit");
}
