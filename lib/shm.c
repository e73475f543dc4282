#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io.h"
#include "mapped.h"

#define ENOUGH ((uint64_t)512 << 20)

/* An unlinked file in dir; -1 and errno. */
static int
create_in(const char *dir)
{
	static const char name[] = "/dllm-logits.XXXXXX";
	size_t n = strlen(dir);
	char *path = malloc(n + sizeof name);
	int fd, high = -1;
	sigset_t all, old;

	if (!path)
		return -1;
	memcpy(path, dir, n);
	memcpy(path + n, name, sizeof name);
	/* no signal may end us while the file has a name */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	fd = mkstemp(path);
	if (fd >= 0)
		unlink(path);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (fd >= 0) {
		/* above 2, so that the child's dup2 does not hit it */
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
	}
	free(path);
	return high;
}

/* Only a file of ours is emptied: an array of an earlier run, or nothing. */
static int
is_array(int fd)
{
	static const char magic[6] = { '\x93', 'N', 'U', 'M', 'P', 'Y' };
	char head[sizeof magic];
	ssize_t n = pread(fd, head, sizeof head, 0);

	return n == 0 || (n == sizeof head && !memcmp(head, magic, sizeof head));
}

static int
create_named(const char *path, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int high = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		err_sys(err, "cannot create '%s'", path);
	else if (!S_ISREG(st.st_mode) || !is_array(fd))
		err_set(err, "cannot create '%s': it exists and is no .npy "
		             "file",
		    path);
	else if (ftruncate(fd, 0) < 0 ||
	    (high = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
		err_sys(err, "cannot create '%s'", path);
	io_close(&fd);
	return high;
}

static int
has_room(const char *dir)
{
	struct statvfs v;

	return statvfs(dir, &v) == 0 &&
	    (uint64_t)v.f_bavail * v.f_frsize >= ENOUGH;
}

int
shm_create(struct shm *s, const struct shm_places *where, struct err *err)
{
	memset(s, 0, sizeof *s);
	s->fd = -1;
	if (where->path) {
		s->path = where->path;
		s->fd = create_named(where->path, err);
		return s->fd < 0 ? -1 : 0;
	}
	if (where->dllm_shm && *where->dllm_shm) {
		s->fd = create_in(where->dllm_shm);
		if (s->fd < 0)
			return err_sys(err, "cannot create a file in '%s' "
			                    "(DLLM_SHM)",
			    where->dllm_shm);
		return 0;
	}
	if (has_room("/dev/shm"))
		s->fd = create_in("/dev/shm");
	if (s->fd < 0 && where->tmpdir && *where->tmpdir)
		s->fd = create_in(where->tmpdir);
	if (s->fd < 0)
		s->fd = create_in("/tmp");
	if (s->fd < 0)
		return err_sys(err, "cannot create a file for the logits in "
		                    "/dev/shm, TMPDIR or /tmp (set DLLM_SHM)");
	return 0;
}

uint64_t
shm_bytes(uint64_t rows, uint64_t cols)
{
	if (cols && rows > (INT64_MAX - NPY_ALIGN_SHARED) / 4 / cols)
		return 0;
	return NPY_ALIGN_SHARED + 4 * rows * cols;
}

int
shm_reserve(struct shm *s, uint64_t bytes, struct err *err)
{
	int code;

	if (bytes <= s->size)
		return 0;
	mapped_close(s->map, s->size);
	s->map = NULL;
	s->size = 0;
	/* ftruncate would promise pages that a full tmpfs cannot give */
	do
		code = posix_fallocate(s->fd, 0, (off_t)bytes);
	while (code == EINTR);
	errno = code;
	if (code && s->path)
		return err_sys(err, "cannot reserve %llu bytes in '%s'",
		    (unsigned long long)bytes, s->path);
	if (code)
		return err_sys(err, "cannot reserve %llu bytes for the logits "
		                    "(DLLM_SHM names another folder)",
		    (unsigned long long)bytes);
	s->map = mapped_open(
	    s->fd, (size_t)bytes, PROT_READ, "the file of the logits");
	if (!s->map)
		return err_sys(err, "cannot map the logits");
	s->size = (size_t)bytes;
	return 0;
}

int
shm_array(const struct shm *s, uint64_t rows, uint64_t cols, uint64_t bytes,
    const float **data, struct err *err)
{
	struct stat st;
	struct npy a;
	uint64_t end;

	if (fstat(s->fd, &st) < 0 || (uint64_t)st.st_size < s->size)
		return err_set(err, "the file of the logits has shrunk");
	if (bytes > s->size)
		return err_set(err, "bytes=%llu is beyond the %zu reserved",
		    (unsigned long long)bytes, s->size);
	if (npy_parse(&a, s->map, (size_t)bytes, err) < 0)
		return err_prefix(err, "logits");
	end = (uint64_t)((const char *)a.data - (const char *)s->map) +
	    4 * a.count;
	if (a.type != NPY_F4 || a.n_dims != 2 || a.shape[0] != rows ||
	    a.shape[1] != cols || end != bytes)
		return err_set(err, "the logits are not %llu x %llu f32 in "
		                    "%llu bytes",
		    (unsigned long long)rows, (unsigned long long)cols,
		    (unsigned long long)bytes);
	if ((size_t)((const char *)a.data - (const char *)s->map) % 4)
		return err_set(err, "the logits are not aligned");
	*data = a.data;
	return 0;
}

void
shm_close(struct shm *s)
{
	mapped_close(s->map, s->size);
	io_close(&s->fd);
	s->map = NULL;
	s->size = 0;
}
