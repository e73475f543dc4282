/*
 * Bytes in and out: whole transfers whatever signals do, and output files that
 * appear complete or not at all.
 */
#ifndef IO_H
#define IO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "err.h"

/* Write all n bytes, retrying short writes and EINTR.  0, or -1 and errno. */
int io_write_all(int fd, const void *buf, size_t n);

/* The same at a file offset. */
int io_pwrite_all(int fd, const void *buf, size_t n, uint64_t off);

/* Read until n bytes or the end.  Returns the count, or -1 and errno. */
ssize_t io_read_all(int fd, void *buf, size_t n);

/* Input without an end must not fill memory: far above any use. */
enum { IO_MAX_LINE = 1 << 26, IO_MAX_FILE = 1 << 29 };

/*
 * Read a descriptor to its end into *buf (malloc, NUL-terminated, owned by the
 * caller), of IO_MAX_FILE bytes at most.  `path` names it in errors; NULL:
 * standard input.  0 or -1.
 */
int io_slurp(int fd, const char *path, char **buf, size_t *len,
    struct err *err);

/* The same for a path; "-" is standard input. */
int io_slurp_file(const char *path, char **buf, size_t *len, struct err *err);

/*
 * Read one line up to LF into *buf (grown as needed, *cap its size, both
 * starting as NULL and 0), without the LF, NUL-terminated.  Returns 1 for a
 * line, 0 at a clean end, 2 at an end inside a line, -1 and errno on a read
 * error; EMSGSIZE: a line of IO_MAX_LINE bytes or more.
 */
int io_line(FILE *f, char **buf, size_t *cap, size_t *len);

/*
 * An output file.  A regular file or a new path is written beside its
 * destination and moved there by io_commit; anything else that exists (a
 * terminal, pipe, FIFO, /dev/null) is written directly.  A symbolic link is
 * followed; one to nothing is an error, and so is the name "-".
 */
struct outfile {
	FILE *f;
	char *path; /* where it shall appear; NULL when closed */
	char *temp; /* where it is written; NULL when direct */
	char *buffer; /* of f; NULL: the library's */
};

int io_create(struct outfile *o, const char *path, struct err *err);

/*
 * For a file of gigabytes that will be mapped: written in pieces of 4 MB, of
 * which Linux makes huge pages in its cache where the file system can.
 */
int io_create_large(struct outfile *o, const char *path, struct err *err);

/* Flush, check, move into place.  On failure nothing appears. */
int io_commit(struct outfile *o, struct err *err);

/* Drop it: no file appears.  Harmless on a closed one. */
void io_abort(struct outfile *o);

/* Remove the temporaries of every outfile still open (async-signal-safe). */
void io_discard_outputs(void);

/* On signals that end a process remove temporaries, then die of the signal. */
void io_clean_on_signals(void);

/*
 * Where a descriptor of 0 to 2 is closed, open one in its place on which
 * reading (0) or writing (1, 2) fails with EBADF as before, so that no file
 * opened later becomes standard output.
 */
void io_take_standard(void);

/* Close a descriptor unless it is negative, and make it -1. */
void io_close(int *fd);

#endif
