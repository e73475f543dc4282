#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h> /* Linux: nothing else ends a child in mid-step */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

void
child_ignore_sigpipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

/*
 * A pipe of close-on-exec descriptors above 2: were one of them 0 or 1 (the
 * parent's own were closed), dup2 in the child would undo itself.
 */
static int
make_pipe(int fd[2])
{
	int raw[2];

	fd[0] = fd[1] = -1;
	if (pipe(raw) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		fd[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
	close(raw[0]);
	close(raw[1]);
	if (fd[0] >= 0 && fd[1] >= 0)
		return 0;
	io_close(&fd[0]);
	io_close(&fd[1]);
	return -1;
}

/* In the child: never returns. */
__attribute__((noreturn)) static void
become(char *const argv[], pid_t parent, int in, int out, int report,
    int keep, const char *keep_name)
{
	char number[16];
	int code;

	/*
	 * The end of its input would end it too, but only after the step it is
	 * in, which takes seconds with a large model.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() != parent)
		raise(SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	snprintf(number, sizeof number, "%d", keep);
	if ((keep < 0 || (fcntl(keep, F_SETFD, 0) == 0 &&
	                     setenv(keep_name, number, 1) == 0)) &&
	    dup2(in, 0) == 0 && dup2(out, 1) == 1)
		execvp(argv[0], argv);
	code = errno;
	io_write_all(report, &code, sizeof code);
	_exit(127);
}

/* Wait until exec has happened or failed. */
static int
started(struct child *c, int report, struct err *err)
{
	int code;

	if (io_read_all(report, &code, sizeof code) != sizeof code)
		return 0;
	waitpid(c->pid, &c->status, 0);
	c->pid = 0;
	errno = code;
	return err_sys(err, "cannot run '%s'", c->name);
}

int
child_start(struct child *c, char *const argv[], int keep,
    const char *keep_name, struct err *err)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, report[2] = { -1, -1 };
	pid_t parent = getpid();
	int rc = -1;

	memset(c, 0, sizeof *c);
	c->name = argv[0];
	if (make_pipe(in) < 0 || make_pipe(out) < 0 || make_pipe(report) < 0 ||
	    (c->pid = fork()) < 0) {
		c->pid = 0;
		err_sys(err, "cannot start '%s'", c->name);
		goto close_all;
	}
	if (c->pid == 0)
		become(argv, parent, in[0], out[1], report[1], keep, keep_name);
	io_close(&report[1]);
	if (started(c, report[0], err) < 0)
		goto close_all;
	c->to = fdopen(in[1], "w");
	if (c->to)
		in[1] = -1;
	c->from = fdopen(out[0], "r");
	if (c->from)
		out[0] = -1;
	if (c->to && c->from)
		rc = 0;
	else
		err_sys(err, "cannot start '%s'", c->name);
close_all:
	for (int i = 0; i < 2; i++) {
		io_close(&in[i]);
		io_close(&out[i]);
		io_close(&report[i]);
	}
	if (rc < 0)
		child_drop(c);
	return rc;
}

static void
close_stream(FILE **f)
{
	if (*f)
		fclose(*f);
	*f = NULL;
}

enum { PATIENCE_MS = 5000, POLL_MS = 2 };

/*
 * With both pipes closed, so that a child that goes on talking ends too.  One
 * that has closed its own ends and lives on has left the protocol: it is asked
 * to end after PATIENCE_MS, and killed after twice that.
 */
static void
reap(struct child *c)
{
	const struct timespec pause = { 0, POLL_MS * 1000000L };

	close_stream(&c->to);
	close_stream(&c->from);
	for (int ms = 0; c->pid > 0; ms += POLL_MS) {
		pid_t got = waitpid(c->pid, &c->status, WNOHANG);

		if (got > 0 || (got < 0 && errno != EINTR))
			break;
		c->outstayed = ms >= PATIENCE_MS;
		if (ms == PATIENCE_MS)
			kill(c->pid, SIGTERM);
		else if (ms == 2 * PATIENCE_MS)
			kill(c->pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
	c->pid = 0;
}

static int
explain(struct child *c, const char *inside, const char *where,
    struct err *err)
{
	reap(c);
	if (c->outstayed)
		return err_set(err, "%s closed its output, did not end and was "
		                    "killed %s%s",
		    c->name, where, inside);
	if (WIFSIGNALED(c->status))
		return err_set(err, "%s was killed by signal %d %s%s", c->name,
		    WTERMSIG(c->status), where, inside);
	return err_set(err, "%s exited with status %d %s%s", c->name,
	    WEXITSTATUS(c->status), where, inside);
}

int
child_died(struct child *c, const char *where, struct err *err)
{
	return explain(c, "", where, err);
}

ssize_t
child_line(struct child *c, const char *where, struct err *err)
{
	size_t len;

	switch (io_line(c->from, &c->line, &c->line_cap, &len)) {
	case 1:
		return (ssize_t)len;
	case 2:
		return explain(c, ", inside a line", where, err);
	case 0:
		return explain(c, "", where, err);
	}
	return err_sys(err, "cannot read from %s", c->name);
}

int
child_end(struct child *c, struct err *err)
{
	int more;

	close_stream(&c->to);
	more = getc(c->from) != EOF;
	close_stream(&c->from);
	reap(c);
	if (c->status != 0 || c->outstayed)
		explain(c, "", "at the end", err);
	else if (more)
		err_set(err, "%s printed more than it was asked for", c->name);
	child_drop(c);
	return err->set ? -1 : 0;
}

void
child_drop(struct child *c)
{
	close_stream(&c->to);
	close_stream(&c->from);
	free(c->line);
	c->line = NULL;
	c->line_cap = 0;
	c->pid = 0;
}
