/*
 * What every tool's main needs: messages, usage, and an honest exit status.
 * The only place that prints errors.  PROG is set by each tool before the
 * include, as is USAGE: the text behind "usage: ", one line.
 */
#ifndef TOOL_H
#define TOOL_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "mapped.h"
#include "opt.h"

#ifndef DLLM_VERSION
#define DLLM_VERSION "unknown"
#endif

/* Comparing tools, after cmp(1), keep 1 for "differs" and fail with 2. */
#ifndef TOOL_FAILED
#define TOOL_FAILED 1
#endif

/* Tools that run a command: the first operand ends their own options. */
#ifndef TOOL_MIXED
#define TOOL_MIXED 1
#endif

/* One write(2), so that messages of several processes never interleave. */
static inline void
tool_say(const char *kind, const char *msg)
{
	char line[sizeof(struct err) + 128];

	io_write_all(2, line, err_line(line, sizeof line, PROG, kind, msg));
}

static inline void
tool_warn(const char *msg)
{
	tool_say("warning: ", msg);
}

/*
 * Report and exit with TOOL_FAILED.  Pending standard output is discarded, so
 * that a stage that failed never passes on half a line; unfinished output
 * files go too.
 */
__attribute__((noreturn)) static inline void
tool_fail(const struct err *err)
{
	tool_say("ERROR: ", err->msg);
	io_discard_outputs();
	_exit(TOOL_FAILED);
}

/*
 * The command line was wrong: the message, one usage line, exit 2.  A script
 * that has made the command line of its own arguments puts its own usage line
 * into DLLM_USAGE.
 */
__attribute__((noreturn)) static inline void
tool_usage(const struct err *err)
{
	const char *usage = getenv("DLLM_USAGE");

	tool_say("ERROR: ", err->msg);
	tool_say("", usage ? usage : "usage: " USAGE);
	io_discard_outputs();
	_exit(2);
}

/* The same for a message that needs no composing. */
__attribute__((noreturn)) static inline void
tool_misuse(const char *msg)
{
	struct err err = { 0 };

	err_set(&err, "%s", msg);
	tool_usage(&err);
}

/*
 * What to do after writing standard output failed with errno EPIPE: the reader
 * went away, which ends the tool by SIGPIPE, silently, though a tool with a
 * child ignores that signal until here.
 */
static inline void
tool_broken_pipe(void)
{
	io_discard_outputs();
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
}

/* Standard output could not be written: errno says why.  `what` was lost. */
__attribute__((noreturn)) static inline void
tool_write_failed(const char *what)
{
	struct err err = { 0 };

	if (errno == EPIPE)
		tool_broken_pipe();
	err_sys(&err, "cannot write %s", what);
	tool_fail(&err);
}

/*
 * Flush and close standard output, an error or (the reader went away) a silent
 * death where that fails.  Returns the exit status.
 */
static inline int
tool_finish(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout) && fclose(stdout) == 0)
		return 0;
	tool_write_failed("standard output");
}

/*
 * A mapped file has become shorter, or the disk cannot read it.  The signal
 * comes from touching the file, not from amid another call, so that messages
 * can be composed here.
 */
static inline void
tool_bus_error(int sig, siginfo_t *info, void *context)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	const char *name = mapped_name(info->si_addr);
	struct err err = { 0 };

	(void)context;
	if (name) {
		while (atomic_flag_test_and_set(&reported))
			pause(); /* another thread says it and exits */
		err_set(&err, "%s: became shorter while in use, or cannot be "
		              "read",
		    name);
		tool_fail(&err);
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static inline void
tool_catch_bus_errors(void)
{
	struct sigaction act = { .sa_sigaction = tool_bus_error };

	sigemptyset(&act.sa_mask);
	act.sa_flags = SA_SIGINFO;
	sigaction(SIGBUS, &act, NULL);
}

/*
 * Start-up: descriptors 0 to 2 taken, default SIGPIPE, a limit on file sizes an
 * error and no death, clean-up of unfinished files on signals, the file behind
 * a bus error named, options.  Prints --help and --version itself.  `about` is
 * one or more lines for the help text; returns the index of the first operand.
 */
static inline int
tool_start(const struct opt *table, int argc, char **argv, const char *about)
{
	struct err err = { 0 };
	int rest = argc;

	io_take_standard();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	io_clean_on_signals();
	tool_catch_bus_errors();
	switch (opt_parse(table, TOOL_MIXED, argc, argv, &rest, &err)) {
	case OPT_HELP:
		printf("usage: %s\n%s\n\n", USAGE, about);
		opt_help(stdout, table);
		exit(tool_finish());
	case OPT_VERSION:
		printf("%s (dllm) %s\n", PROG, DLLM_VERSION);
		exit(tool_finish());
	case OPT_ERROR:
		tool_usage(&err);
	case OPT_OK:
		break;
	}
	return rest;
}

/* For tools without operands. */
static inline void
tool_no_operands(int rest, int argc, char **argv)
{
	struct err err = { 0 };

	if (rest < argc) {
		err_set(&err, "unexpected argument '%s'", argv[rest]);
		tool_usage(&err);
	}
}

#endif
