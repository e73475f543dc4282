#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * How often to look for work before sleeping: some 20 microseconds.  Longer
 * would burn the time of other processes where cores are shared.
 */
enum { SPINS = 500 };

struct worker {
	struct pool *pool;
	unsigned index;
	pthread_t id;
};

struct pool {
	unsigned n_threads;
	struct worker *workers; /* n_threads - 1 */

	/* The work; written while no thread works. */
	pool_fn *fn;
	void *arg;
	size_t n_items, piece;
	atomic_size_t next; /* first item that nobody has claimed */

	/* A new value of round starts the threads; 0 left in busy: done. */
	atomic_uint round, busy;
	int stop;
	pthread_mutex_t lock; /* for sleeping, both ways */
	pthread_cond_t start, done;
};

static inline void
relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void
work(struct pool *p, unsigned thread)
{
	size_t from, to;

	for (;;) {
		from = atomic_fetch_add_explicit(
		    &p->next, p->piece, memory_order_relaxed);
		if (from >= p->n_items)
			return;
		to = p->n_items - from > p->piece ? from + p->piece :
		                                    p->n_items;
		p->fn(p->arg, thread, from, to);
	}
}

/* Wait until round differs from seen; returns the new one. */
static unsigned
await_round(struct pool *p, unsigned seen)
{
	unsigned now;

	for (int i = 0; i < SPINS; i++) {
		now = atomic_load_explicit(&p->round, memory_order_acquire);
		if (now != seen)
			return now;
		relax();
	}
	pthread_mutex_lock(&p->lock);
	while ((now = atomic_load(&p->round)) == seen)
		pthread_cond_wait(&p->start, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return now;
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;
	unsigned seen = 0;

	for (;;) {
		seen = await_round(p, seen);
		if (p->stop)
			return NULL;
		work(p, w->index);
		if (atomic_fetch_sub_explicit(
		        &p->busy, 1, memory_order_acq_rel) == 1) {
			pthread_mutex_lock(&p->lock);
			pthread_cond_signal(&p->done);
			pthread_mutex_unlock(&p->lock);
		}
	}
}

static void
start_round(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add_explicit(&p->round, 1, memory_order_release);
	pthread_cond_broadcast(&p->start);
	pthread_mutex_unlock(&p->lock);
}

static void
await_done(struct pool *p)
{
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&p->busy, memory_order_acquire) == 0)
			return;
		relax();
	}
	pthread_mutex_lock(&p->lock);
	while (atomic_load(&p->busy) != 0)
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

void
pool_run(struct pool *p, pool_fn *fn, void *arg, size_t n_items, size_t piece)
{
	if (n_items == 0)
		return;
	if (p->n_threads == 1 || n_items <= piece) {
		fn(arg, 0, 0, n_items);
		return;
	}
	p->fn = fn;
	p->arg = arg;
	p->n_items = n_items;
	p->piece = piece;
	atomic_store_explicit(&p->next, 0, memory_order_relaxed);
	atomic_store_explicit(
	    &p->busy, p->n_threads - 1, memory_order_relaxed);
	start_round(p);
	work(p, p->n_threads - 1);
	await_done(p);
}

unsigned
pool_threads(const struct pool *p)
{
	return p->n_threads;
}

/* Stop and join the first n workers. */
static void
stop(struct pool *p, unsigned n)
{
	p->stop = 1;
	start_round(p);
	for (unsigned i = 0; i < n; i++)
		pthread_join(p->workers[i].id, NULL);
}

static void
release(struct pool *p)
{
	pthread_cond_destroy(&p->done);
	pthread_cond_destroy(&p->start);
	pthread_mutex_destroy(&p->lock);
	free(p->workers);
	free(p);
}

/*
 * Signals are for the thread that started the pool, but not those that a
 * thread brings upon itself: blocked, they would kill without a handler.
 */
static int
start_worker(struct worker *w)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->id, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int
pool_open(struct pool **to, unsigned n_threads, struct err *err)
{
	struct pool *p = calloc(1, sizeof *p);

	*to = NULL;
	if (!p || !(p->workers = calloc(n_threads, sizeof *p->workers))) {
		free(p);
		return err_set(err, "out of memory");
	}
	p->n_threads = n_threads;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->start, NULL);
	pthread_cond_init(&p->done, NULL);
	for (unsigned i = 0; i + 1 < n_threads; i++) {
		int rc;

		p->workers[i].pool = p;
		p->workers[i].index = i;
		rc = start_worker(&p->workers[i]);
		if (rc) {
			stop(p, i);
			release(p);
			return err_set(err, "cannot start thread %u: %s", i + 2,
			    strerror(rc));
		}
	}
	*to = p;
	return 0;
}

void
pool_close(struct pool *p)
{
	if (!p)
		return;
	stop(p, p->n_threads - 1);
	release(p);
}
