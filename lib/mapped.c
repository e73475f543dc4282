#include "mapped.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct mapped {
	struct mapped *next;
	uintptr_t start;
	size_t n;
	char name[];
};

static struct mapped *volatile list;

void *
mapped_open(int fd, size_t n, int protection, const char *name)
{
	size_t size = strlen(name) + 1;
	struct mapped *m = malloc(sizeof *m + size);
	void *p;

	if (!m)
		return NULL;
	p = mmap(NULL, n, protection, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		free(m);
		return NULL;
	}
	m->start = (uintptr_t)p;
	m->n = n;
	memcpy(m->name, name, size);
	m->next = list;
	list = m;
	return p;
}

void
mapped_close(void *p, size_t n)
{
	struct mapped *m = list, *before = NULL;

	if (!p)
		return;
	for (; m && m->start != (uintptr_t)p; m = m->next)
		before = m;
	if (m && before)
		before->next = m->next;
	else if (m)
		list = m->next;
	free(m);
	munmap(p, n);
}

const char *
mapped_name(const void *address)
{
	uintptr_t a = (uintptr_t)address;

	for (struct mapped *m = list; m; m = m->next)
		if (a >= m->start && a - m->start < m->n)
			return m->name;
	return NULL;
}
