/*
 * The file through which a forward process hands over logits: a regular file
 * that both map, one .npy array in it.  Created with mode 0600 and unlinked at
 * once, so that nothing is left however either process dies; or named, to be
 * looked at while it runs.
 */
#ifndef SHM_H
#define SHM_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "npy.h"

struct shm {
	int fd;
	const char *path; /* the caller's; NULL without a name */
	void *map; /* the whole file, read-only */
	size_t size;
};

/* Where to put it, in this order; a NULL is left out. */
struct shm_places {
	const char *path;     /* this file, and it stays */
	const char *dllm_shm; /* this folder or none */
	const char *tmpdir;   /* after /dev/shm, if 512 MiB are free there */
};

/* An empty file.  shm_close() in any case. */
int shm_create(struct shm *s, const struct shm_places *where,
    struct err *err);

/* Bytes of a .npy of rows x cols f32 with its header; 0 on overflow. */
uint64_t shm_bytes(uint64_t rows, uint64_t cols);

/* Grow to at least `bytes`, reserved on disk, and map it. */
int shm_reserve(struct shm *s, uint64_t bytes, struct err *err);

/*
 * The array in the file: f32, exactly rows x cols, `bytes` in all, inside the
 * file.  The data stays valid until the next request or reserve.
 */
int shm_array(const struct shm *s, uint64_t rows, uint64_t cols,
    uint64_t bytes, const float **data, struct err *err);

void shm_close(struct shm *s);

#endif
