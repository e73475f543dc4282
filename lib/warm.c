#define _DEFAULT_SOURCE /* madvise */
#include "warm.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PIECE = 16 << 20 };

struct warm {
	const struct gguf *g;
	atomic_int stop;
	pthread_t thread;
};

#ifndef MADV_POPULATE_READ /* Linux 5.14; older ones refuse it */
#define MADV_POPULATE_READ 22
#endif

static void *
run(void *arg)
{
	struct warm *w = arg;

	for (int i = 0; i < w->g->n_files; i++) {
		const struct gguf_file *f = &w->g->file[i];

		for (uint64_t at = 0; at < f->size; at += PIECE) {
			size_t n = f->size - at < PIECE ?
			    (size_t)(f->size - at) : PIECE;

			/* fails at the end of a file that was cut */
			if (atomic_load(&w->stop) ||
			    madvise((uint8_t *)f->map + at, n,
			        MADV_POPULATE_READ) < 0)
				return NULL;
		}
	}
	return NULL;
}

struct warm *
warm_start(const struct gguf *g)
{
	struct warm *w = malloc(sizeof *w);
	sigset_t all, old;
	int rc;

	if (!w)
		return NULL;
	w->g = g;
	for (int i = 0; i < g->n_files; i++)
		/* what is not in the page cache yet comes there in huge pages */
		madvise((void *)g->file[i].map, (size_t)g->file[i].size,
		    MADV_HUGEPAGE);
	atomic_init(&w->stop, 0);
	/* signals are for the thread that works */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		return w;
	free(w);
	return NULL;
}

void
warm_stop(struct warm *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, 1);
	pthread_join(w->thread, NULL);
	free(w);
}
