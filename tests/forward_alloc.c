/*
 * A step like the last one allocates nothing.  Linked with every allocating
 * function wrapped, see the Makefile.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "cpu.h"
#include "forward.h"
#include "tap.h"

static atomic_int calls;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n);

void *
__wrap_malloc(size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	atomic_fetch_add(&calls, 1);
	return __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __real_realloc(p, n);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __real_aligned_alloc(align, n);
}

int
__wrap_posix_memalign(void **p, size_t align, size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __real_posix_memalign(p, align, n);
}

/* Allocations of one step over n tokens that wants `rows` of them. */
static int
step(struct forward *f, size_t n, size_t rows, float *out)
{
	int32_t id[64] = { 0 };
	struct range r = { n - rows, rows };
	struct ranges want = { .r = &r, .n = 1, .total = rows };
	struct err err = { 0 };
	int before = atomic_load(&calls);

	if (forward_hidden(f, id, n, &want, &err) < 0 ||
	    forward_head(f, 0, rows, out, &err) < 0)
		return -1;
	return atomic_load(&calls) - before;
}

int
main(void)
{
	struct forward_options o = { .max_length = 64 };
	struct err err = { 0 };
	struct model m;
	struct pool *pool;
	struct forward *f;
	float *out;

	if (model_open(&m, "tests/golden/models/tiny-dream-q4km.gguf", &err) < 0 ||
	    pool_open(&pool, 2, &err) < 0 ||
	    kern_select(&o.kern, NULL, cpu_flags(), &err) != KERN_OK)
		return 2;
	o.pool = pool;
	if (forward_open(&f, &m, &o, &err) < 0)
		return 2;
	out = malloc(64 * m.n_vocab * sizeof *out);
	ok(step(f, 40, 20, out) > 0, "the first step allocates");
	ok(step(f, 40, 20, out) == 0, "one like it does not");
	ok(step(f, 40, 39, out) == 0, "nor one that wants more rows");
	ok(step(f, 7, 3, out) == 0, "nor a shorter one");
	ok(step(f, 40, 20, out) == 0, "nor the first one again");
	ok(step(f, 41, 1, out) > 0, "a longer one does");
	ok(step(f, 41, 40, out) == 0, "once");
	free(out);
	forward_close(f);
	pool_close(pool);
	model_close(&m);
	return tap_end();
}
