#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE_PIECE = 4 << 20 };

/* Paths to unlink if the process ends early; NULL entries are free. */
enum { MAX_TEMPS = 16 };
static char *volatile temps[MAX_TEMPS];

int
io_write_all(int fd, const void *buf, size_t n)
{
	const char *p = buf;
	ssize_t w;

	while (n > 0) {
		w = write(fd, p, n);
		if (w < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int
io_pwrite_all(int fd, const void *buf, size_t n, uint64_t off)
{
	const char *p = buf;
	ssize_t w;

	while (n > 0) {
		w = pwrite(fd, p, n, (off_t)off);
		if (w < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		p += w;
		off += (uint64_t)w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t
io_read_all(int fd, void *buf, size_t n)
{
	char *p = buf;
	size_t got = 0;
	ssize_t r;

	while (got < n) {
		r = read(fd, p + got, n - got);
		if (r < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int
io_slurp(int fd, const char *path, char **buf, size_t *len, struct err *err)
{
	const char *what = path ? path : "standard input";
	const char *quote = path ? "'" : "";
	size_t cap = 65536, n = 0;
	char *p = malloc(cap), *q;
	ssize_t r;

	while (p) {
		r = io_read_all(fd, p + n, cap - n - 1);
		if (r < 0) {
			free(p);
			return err_sys(
			    err, "cannot read %s%s%s", quote, what, quote);
		}
		n += (size_t)r;
		if (n < cap - 1) {
			p[n] = '\0';
			*buf = p;
			*len = n;
			return 0;
		}
		if (cap >= IO_MAX_FILE) {
			free(p);
			return err_set(err,
			    "cannot read %s%s%s: more than %d MiB", quote,
			    what, quote, IO_MAX_FILE >> 20);
		}
		cap *= 2;
		q = realloc(p, cap);
		if (!q)
			free(p);
		p = q;
	}
	return err_set(
	    err, "cannot read %s%s%s: out of memory", quote, what, quote);
}

int
io_slurp_file(const char *path, char **buf, size_t *len, struct err *err)
{
	int fd, rc;

	if (!strcmp(path, "-"))
		return io_slurp(0, NULL, buf, len, err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	rc = io_slurp(fd, path, buf, len, err);
	close(fd);
	return rc;
}

static int
grow_line(char **buf, size_t *cap)
{
	size_t size = *cap ? 2 * *cap : 256;
	char *p = size > IO_MAX_LINE ? NULL : realloc(*buf, size);

	if (!p) {
		errno = size > IO_MAX_LINE ? EMSGSIZE : ENOMEM;
		return -1;
	}
	*buf = p;
	*cap = size;
	return 0;
}

int
io_line(FILE *f, char **buf, size_t *cap, size_t *len)
{
	size_t n = 0;
	int c;

	*len = 0;
	do {
		if (n + 1 >= *cap && grow_line(buf, cap) < 0)
			return -1;
		c = getc_unlocked(f);
		if (c != EOF)
			(*buf)[n++] = (char)c;
	} while (c != EOF && c != '\n');
	if (ferror(f))
		return -1;
	if (n == 0)
		return 0;
	if (c == EOF) {
		(*buf)[n] = '\0';
		*len = n;
		return 2;
	}
	(*buf)[--n] = '\0';
	*len = n;
	return 1;
}

static void
remember_temp(char *path)
{
	for (int i = 0; i < MAX_TEMPS; i++)
		if (!temps[i]) {
			temps[i] = path;
			return;
		}
}

static void
forget_temp(const char *path)
{
	for (int i = 0; i < MAX_TEMPS; i++)
		if (temps[i] == path)
			temps[i] = NULL;
}

void
io_discard_outputs(void)
{
	for (int i = 0; i < MAX_TEMPS; i++)
		if (temps[i])
			unlink(temps[i]);
}

static void
die_clean(int sig)
{
	io_discard_outputs();
	signal(sig, SIG_DFL);
	raise(sig);
}

void
io_clean_on_signals(void)
{
	static const int sigs[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM,
		SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU };
	struct sigaction old, act = { .sa_handler = die_clean };

	sigemptyset(&act.sa_mask);
	act.sa_flags = SA_NODEFER;
	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		if (sigaction(sigs[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(sigs[i], &act, NULL);
}

/*
 * "DIR/NAME" becomes "DIR/.NAME.XXXXXX"; the beginning of the name is enough,
 * all of it and six letters can be more than the file system takes.
 */
static char *
temp_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
	size_t size = strlen(path) + 16;
	char *t = malloc(size);

	if (t)
		snprintf(t, size, "%.*s.%.100s.XXXXXX", (int)dir, path,
		    path + dir);
	return t;
}

/* What a symbolic link points to is what gets replaced, not the link. */
static char *
resolve(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

/* mkstemp and remember_temp, with no signal between that would end us. */
static int
make_temp(char *path)
{
	sigset_t all, old;
	int fd, code;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	fd = mkstemp(path);
	code = errno;
	if (fd >= 0)
		remember_temp(path);
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = code;
	return fd;
}

static int
create_beside(struct outfile *o, const struct stat *old, struct err *err)
{
	mode_t mask;
	int fd;

	o->temp = temp_name(o->path);
	if (!o->temp)
		return err_set(err, "out of memory");
	fd = make_temp(o->temp);
	if (fd < 0)
		return err_sys(err, "cannot create '%s'", o->path);
	mask = umask(0);
	umask(mask);
	if (fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mask) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || !(o->f = fdopen(fd, "w"))) {
		err_sys(err, "cannot create '%s'", o->path);
		close(fd);
		return -1;
	}
	return 0;
}

static int
create_direct(struct outfile *o, struct err *err)
{
	int fd = open(o->path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || !(o->f = fdopen(fd, "w"))) {
		err_sys(err, "cannot open '%s' for writing", o->path);
		io_close(&fd);
		return -1;
	}
	return 0;
}

int
io_create(struct outfile *o, const char *path, struct err *err)
{
	struct stat st;
	int exists = stat(path, &st) == 0;
	int rc;

	memset(o, 0, sizeof *o);
	if (!*path)
		return err_set(err, "cannot create '': the name is empty");
	if (!strcmp(path, "-"))
		return err_set(err, "cannot create '-': it stands for standard "
		    "output elsewhere (./- is a file)");
	if (!exists && lstat(path, &st) == 0)
		return err_set(err, "cannot create '%s': it is a symbolic link "
		    "to what does not exist", path);
	if (exists && S_ISDIR(st.st_mode))
		return err_set(err, "cannot write '%s': Is a directory", path);
	if (exists && S_ISREG(st.st_mode) && access(path, W_OK) < 0)
		return err_sys(err, "cannot write '%s'", path);
	o->path = exists && S_ISREG(st.st_mode) ? resolve(path) : strdup(path);
	if (!o->path)
		return err_set(err, "out of memory");
	if (exists && !S_ISREG(st.st_mode))
		rc = create_direct(o, err);
	else
		rc = create_beside(o, exists ? &st : NULL, err);
	if (rc < 0)
		io_abort(o);
	return rc;
}

int
io_create_large(struct outfile *o, const char *path, struct err *err)
{
	if (io_create(o, path, err) < 0)
		return -1;
	o->buffer = malloc(LARGE_PIECE);
	/* with the library's buffer it is as right, in small pages */
	if (o->buffer)
		setvbuf(o->f, o->buffer, _IOFBF, LARGE_PIECE);
	return 0;
}

static void
release(struct outfile *o)
{
	if (o->temp)
		forget_temp(o->temp);
	free(o->buffer);
	free(o->temp);
	free(o->path);
	memset(o, 0, sizeof *o);
}

int
io_commit(struct outfile *o, struct err *err)
{
	int bad = ferror(o->f) || fflush(o->f) != 0;

	if (bad || fclose(o->f) != 0) {
		err_sys(err, "cannot write '%s'", o->path);
		if (bad)
			fclose(o->f);
		o->f = NULL;
		io_abort(o);
		return -1;
	}
	o->f = NULL;
	if (o->temp && rename(o->temp, o->path) < 0) {
		err_sys(err, "cannot write '%s'", o->path);
		io_abort(o);
		return -1;
	}
	release(o);
	return 0;
}

void
io_abort(struct outfile *o)
{
	if (o->f)
		fclose(o->f);
	if (o->temp)
		unlink(o->temp);
	release(o);
}

void
io_take_standard(void)
{
	/* the lowest that is free is the one that is wanted */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

void
io_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
