/*
 * NumPy .npy files, version 1.0, little-endian, C order: dumps, golden data,
 * logits.  The header is padded so that data starts at a multiple of 64, or of
 * 4096 in a file that two processes map.
 */
#ifndef NPY_H
#define NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

enum { NPY_MAX_DIMS = 8, NPY_ALIGN = 64, NPY_ALIGN_SHARED = 4096 };

enum npy_type { NPY_F4, NPY_F8, NPY_I1, NPY_U1, NPY_I4, NPY_I8 };

/* An array in memory or in a mapped file. */
struct npy {
	enum npy_type type;
	int n_dims;
	uint64_t shape[NPY_MAX_DIMS]; /* slowest dimension first */
	uint64_t count;               /* product of the shape */
	const void *data;             /* aligned to 64 where the file is */
	void *map;                    /* whole file; NULL if not ours */
	size_t map_size;
};

size_t npy_type_size(enum npy_type type);

/*
 * Build a header of exactly the returned length, a multiple of align, in buf
 * (at least NPY_ALIGN_SHARED bytes).
 */
size_t npy_header(char *buf, size_t align, enum npy_type type, int n_dims,
    const uint64_t *shape);

/*
 * Parse the header at the start of n bytes: fills type, shape, count; data
 * points behind the header.  Fails if the bytes end before the data does.
 */
int npy_parse(struct npy *a, const void *bytes, size_t n, struct err *err);

/* Map a file read-only and parse it. */
int npy_open(struct npy *a, const char *path, struct err *err);
void npy_close(struct npy *a);

/* Write header and data to a stream.  0, or -1 when the stream failed. */
int npy_write(FILE *f, enum npy_type type, int n_dims, const uint64_t *shape,
    const void *data);

/* Write a (rows, cols) f32 array as the file PATH, complete or not at all. */
int npy_save_f32(const char *path, uint64_t rows, uint64_t cols,
    const float *data, struct err *err);

#endif
