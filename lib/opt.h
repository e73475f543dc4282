/*
 * Command lines: long options from one table that also prints --help.
 *
 * --name VALUE and --name=VALUE, exact names only, up to "--".  Of a repeated
 * option the last wins.  --help, -h and --version are known to every table; help anywhere
 * before "--" wins over everything else on the line.
 */
#ifndef OPT_H
#define OPT_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"

enum opt_type {
	OPT_FLAG,  /* int *to: set to .value, or to 1 where that is 0 */
	OPT_CLEAR, /* int *to: set to 0 (the --no-NAME of a flag) */
	OPT_STR,   /* const char **to */
	OPT_UINT,  /* uint64_t *to: decimal, from .min to .max */
	OPT_REAL,  /* double *to: finite, from .fmin to .fmax */
	OPT_WORD   /* int *to: index of the value in .words, in either case */
};

struct opt {
	const char *name; /* without dashes; NULL ends the table */
	enum opt_type type;
	void *to;
	const char *arg;  /* placeholder of the value in --help */
	const char *help; /* one line, lower case, no period */
	uint64_t min, max;   /* OPT_UINT; max 0 means 2^31-1 */
	double fmin, fmax;   /* OPT_REAL; fmax 0 means any */
	const char *const *words; /* OPT_WORD: NULL-terminated */
	int value;  /* OPT_FLAG: what to store */
	int *given; /* if not NULL: set to 1 when the option was given */
	int required;
};

enum opt_result { OPT_OK = 0, OPT_ERROR = -1, OPT_HELP = 1, OPT_VERSION = 2 };

/*
 * Parse argv[1..argc-1] into the variables of the table.  Where `mixed`, options
 * may stand behind operands, else the first operand ends them (a command to
 * run has options of its own).  On OPT_OK the operands have been moved to the
 * end, *rest being the index of the first (argc if there is none); what follows
 * "--" is among them.  OPT_ERROR is a
 * usage error: err names the option and the value.
 */
enum opt_result opt_parse(const struct opt *table, int mixed, int argc,
    char **argv, int *rest, struct err *err);

/* Print the option part of --help: two columns, in table order. */
void opt_help(FILE *out, const struct opt *table);

/* Parse a whole decimal number in [min, max] without sign or spaces. */
int opt_uint(const char *text, uint64_t min, uint64_t max, uint64_t *to);

/*
 * The word of the NULL-terminated list closest to text by edit distance, or
 * NULL where none is near (more than a third of its letters differ).
 */
const char *opt_closest(const char *text, const char *const *words);

#endif
