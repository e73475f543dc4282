/*
 * Runs a command and writes down what it took: wall time, CPU time and the
 * memory of the largest process among it and its descendants, the time at
 * which a text first appeared in its standard error, and how many CPUs were
 * busy with other things before and while it ran (time that a hypervisor took
 * away counts as busy).  One JSON object on one line.  Exits as the command
 * does.
 */
#define PROG "timed"
#define USAGE "timed [options] --output FILE -- COMMAND [ARG...]"
#define TOOL_MIXED 0

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "busy.h"
#include "tool.h"

enum { QUIET = 10 }; /* hundredths of a CPU: the machine's own noise */

static const char *output, *log_path, *first;
static uint64_t quiet_wait;

static const struct opt options[] = {
	{ "output", OPT_STR, &output, .arg = "FILE", .required = 1,
	    .given = &(int){ 0 }, .help = "where the facts go" },
	{ "stderr", OPT_STR, &log_path, .arg = "FILE",
	    .help = "where the command's standard error goes" },
	{ "first", OPT_STR, &first, .arg = "TEXT",
	    .help = "note when it appears in standard error" },
	{ "quiet-wait", OPT_UINT, &quiet_wait, .arg = "N",
	    .help = "wait that many seconds at most for a quiet machine" },
	{ 0 }
};

static volatile sig_atomic_t child;

static void
pass_on(int sig)
{
	kill((pid_t)child, sig);
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Start the command; the read end of its standard error in *from. */
static void
start(char **command, int *from)
{
	struct err err = { 0 };
	sigset_t both, old;
	int fd[2];

	if (pipe(fd) < 0) {
		err_sys(&err, "cannot make a pipe");
		tool_fail(&err);
	}
	/* until the child can be told, a signal waits; before, it ended us */
	sigemptyset(&both);
	sigaddset(&both, SIGTERM);
	sigaddset(&both, SIGHUP);
	sigprocmask(SIG_BLOCK, &both, &old);
	child = fork();
	if (child < 0) {
		err_sys(&err, "cannot start a process");
		tool_fail(&err);
	}
	if (child == 0) {
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		signal(SIGXFSZ, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		sigprocmask(SIG_SETMASK, &old, NULL);
		execvp(command[0], command);
		err_sys(&err, "cannot run '%s'", command[0]);
		tool_say("ERROR: ", err.msg);
		_exit(127);
	}
	signal(SIGTERM, pass_on);
	signal(SIGHUP, pass_on);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fd[1]);
	*from = fd[0];
}

/* Copy standard error until its end.  When the text came, or -1. */
static double
copy(int from, FILE *to, double begin)
{
	static char window[1 << 16];
	size_t have = 0, keep = first ? strlen(first) : 0;
	double found = -1;
	ssize_t n;

	for (;;) {
		n = read(from, window + have, sizeof window / 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return found;
		fwrite(window + have, 1, (size_t)n, to);
		have += (size_t)n;
		window[have] = 0;
		for (size_t i = 0; first && found < 0 && i + keep <= have; i++)
			if (!memcmp(window + i, first, keep))
				found = now_ms() - begin;
		if (have > keep) {
			memmove(window, window + have - keep, keep);
			have = keep;
		}
	}
}

static void
report(FILE *f, double ms, double first_ms, double before, double others,
    int status, const struct rusage *use)
{
	fprintf(f, "{\"wall_ms\":%.3f,\"first_ms\":", ms);
	fprintf(f, first_ms < 0 ? "null" : "%.3f", first_ms);
	fprintf(f, ",\"cpu_ms\":%.3f,\"peak_rss_bytes\":%llu,"
	           "\"busy_before\":%.2f,\"busy_others\":%.2f,\"quiet\":%s,"
	           "\"status\":%d}\n",
	    (seconds(use->ru_utime) + seconds(use->ru_stime)) * 1e3,
	    (unsigned long long)use->ru_maxrss * 1024, before, others,
	    before * 100 > QUIET || others * 100 > QUIET ? "false" : "true",
	    status);
}

int
main(int argc, char **argv)
{
	int rest = tool_start(options, argc, argv, "Time a command."), from;
	double before, busy, begin, ms, first_ms, others, waited = now_ms();
	struct outfile facts = { 0 }, log = { 0 };
	struct err err = { 0 };
	struct rusage use;
	int status;

	if (rest == argc)
		tool_misuse("the command to run is missing");
	if (first && strlen(first) > 1024)
		tool_misuse("--first: the text is too long");
	if (log_path && !strcmp(log_path, output))
		tool_misuse("--output and --stderr are one file");
	if (io_create(&facts, output, &err) < 0 ||
	    (log_path && io_create(&log, log_path, &err) < 0))
		tool_fail(&err);
	do
		before = busy_now();
	while (before * 100 > QUIET &&
	    now_ms() - waited < (double)quiet_wait * 1e3);

	busy = busy_seconds();
	begin = now_ms();
	start(argv + rest, &from);
	first_ms = copy(from, log.f ? log.f : stderr, begin);
	while (waitpid((pid_t)child, &status, 0) < 0 && errno == EINTR)
		;
	ms = now_ms() - begin;
	getrusage(RUSAGE_CHILDREN, &use);
	others = (busy_seconds() - busy - seconds(use.ru_utime) -
	    seconds(use.ru_stime)) / ms * 1e3;
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	                               WEXITSTATUS(status);
	report(facts.f, ms, first_ms, before, others > 0 ? others : 0, status,
	    &use);
	if (io_commit(&facts, &err) < 0 ||
	    (log.f && io_commit(&log, &err) < 0))
		tool_fail(&err);
	return status;
}
