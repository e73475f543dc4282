/*
 * A child process that the parent owns: started with pipes to its standard
 * input and output, spoken to in lines, reaped, and its death explained.
 *
 * Closing the request pipe is the order to end.  The child inherits no other
 * descriptor than the one asked for, so it always sees that end, however the
 * parent dies; and then it gets SIGTERM, so as not to finish a long step.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "err.h"

struct child {
	const char *name; /* argv[0], the caller's */
	pid_t pid;        /* 0: none, or reaped */
	FILE *to, *from;  /* its standard input and output */
	int status;       /* from waitpid, once reaped */
	int outstayed;    /* it had to be killed */
	char *line;       /* the last line it printed */
	size_t line_cap;
};

/*
 * Run argv (argv[0] found through PATH).  Descriptor keep, if not negative,
 * is inherited and named in the child's environment as keep_name.  -1 if the
 * command cannot be run; then nothing is left.  The caller ignores SIGPIPE
 * (child_ignore_sigpipe); the child starts with it at its default.
 */
int child_start(struct child *c, char *const argv[], int keep,
    const char *keep_name, struct err *err);

/* Writing to a dead child must be an error, not a death. */
void child_ignore_sigpipe(void);

/*
 * Read a line into c->line without its LF; its length, or -1: the child ended
 * (inside a line, perhaps), and err says how, and "where": "in step 3".
 */
ssize_t child_line(struct child *c, const char *where, struct err *err);

/* After a failed write: wait for the child and say how it died.  -1. */
int child_died(struct child *c, const char *where, struct err *err);

/*
 * Close the request pipe and wait.  -1 unless the child printed nothing more
 * and exited with status 0.
 */
int child_end(struct child *c, struct err *err);

/* Close everything, wait for nothing. */
void child_drop(struct child *c);

#endif
