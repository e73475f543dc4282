/*
 * Errors as values: one message, set by the first thing that went wrong.
 * Library functions fill the last argument and return -1; only tools print.
 */
#ifndef ERR_H
#define ERR_H

#if defined(__GNUC__)
#define ERR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define ERR_PRINTF(fmt, first)
#endif

struct err {
	int set;
	char msg[2048]; /* no newline, no period */
};

/* Set the message unless one is set already.  Always returns -1. */
int err_set(struct err *e, const char *fmt, ...) ERR_PRINTF(2, 3);

/* The same, with ": " and the text of errno behind it; errno stays. */
int err_sys(struct err *e, const char *fmt, ...) ERR_PRINTF(2, 3);

/* Put "PREFIX: " before the message that is set.  Always returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) ERR_PRINTF(2, 3);

/*
 * Build the line a tool writes to standard error, "PROG: ERROR: MSG\n", with
 * control characters replaced by '?'.  Returns its length, below size.
 */
unsigned err_line(char *buf, unsigned size, const char *prog, const char *kind,
    const char *msg);

#endif
