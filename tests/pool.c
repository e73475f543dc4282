/*
 * The thread pool: every item once, in any number of rounds and threads, and
 * after the threads have gone to sleep.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "pool.h"
#include "tap.h"

enum { MAX_ITEMS = 1000 };

struct job {
	atomic_uint seen[MAX_ITEMS];
	atomic_uint pieces;
	unsigned threads;
	size_t piece;
	atomic_int wrong;
};

static void
count(void *arg, unsigned thread, size_t from, size_t to)
{
	struct job *j = arg;

	if (thread >= j->threads || from >= to ||
	    (j->threads > 1 && to - from > j->piece))
		atomic_store(&j->wrong, 1);
	for (size_t i = from; i < to; i++)
		atomic_fetch_add(&j->seen[i], 1);
	atomic_fetch_add(&j->pieces, 1);
}

static void
run(struct pool *p, struct job *j, size_t n, size_t piece)
{
	j->threads = pool_threads(p);
	j->piece = piece;
	atomic_store(&j->pieces, 0);
	for (size_t i = 0; i < MAX_ITEMS; i++)
		atomic_store(&j->seen[i], 0);
	pool_run(p, count, j, n, piece);
	for (size_t i = 0; i < MAX_ITEMS; i++)
		if (atomic_load(&j->seen[i]) != (i < n))
			atomic_store(&j->wrong, 1);
}

static void
test_threads(unsigned threads)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 7, 64, 65, 999, 1000 };
	static struct job j;
	struct timespec nap = { 0, 5 * 1000 * 1000 };
	struct err err = { 0 };
	struct pool *p;

	if (!ok(pool_open(&p, threads, &err) == 0, "%u threads start", threads))
		return;
	ok(pool_threads(p) == threads, "and are counted");
	atomic_store(&j.wrong, 0);
	for (int round = 0; round < 200; round++)
		run(p, &j, sizes[round % 9], 1 + (size_t)(round % 5));
	ok(!atomic_load(&j.wrong), "%u threads do every item once", threads);
	for (int round = 0; round < 5; round++) {
		nanosleep(&nap, NULL); /* long enough to sleep */
		run(p, &j, 100, 1);
	}
	ok(!atomic_load(&j.wrong), "and after a sleep");
	run(p, &j, 3, 3);
	ok(atomic_load(&j.pieces) == 1, "one piece is not cut");
	pool_close(p);
}

int
main(void)
{
	static const unsigned threads[] = { 1, 2, 3, 7, 16 };

	for (int i = 0; i < 5; i++)
		test_threads(threads[i]);
	pool_close(NULL);
	return tap_end();
}
