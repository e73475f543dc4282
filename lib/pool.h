/*
 * Threads that work through a list of items together.  Which thread gets which
 * item is left to chance; items must not depend on each other, so results do
 * not depend on the number of threads.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>

#include "err.h"

enum { POOL_MAX_THREADS = 1024 };

struct pool;

/*
 * Start n_threads - 1 threads; the caller of pool_run is the last one.  They
 * spin for a moment after each piece of work and then sleep.
 */
int pool_open(struct pool **p, unsigned n_threads, struct err *err);
void pool_close(struct pool *p);

unsigned pool_threads(const struct pool *p);

/* Work on items from to to-1; thread is from 0 to n_threads - 1. */
typedef void pool_fn(void *arg, unsigned thread, size_t from, size_t to);

/*
 * Call fn for all of 0..n_items-1, in pieces of at most `piece` items that the
 * threads claim as they get free.  Returns when all are done.  With one thread
 * or one piece fn runs in the caller alone.
 */
void pool_run(struct pool *p, pool_fn *fn, void *arg, size_t n_items,
    size_t piece);

#endif
