/*
 * The serving side of the forward protocol: a loop over request lines, which
 * do not depend on each other.  See dllm-forward-protocol(5).
 */
#ifndef SERVE_H
#define SERVE_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "forward.h"
#include "model.h"
#include "pool.h"

/* Where logits go: into a shared file, a named one, or nowhere. */
struct serve_logits {
	int fd;           /* inherited, or -1 */
	const char *path; /* a file, new with each request; or NULL */
};

/* What a request took, for --verbose. */
struct serve_note {
	uint64_t seq;
	size_t tokens, rows;
	double ms;
};

struct server {
	struct forward *f;
	const struct model *m;
	const struct kern *kern; /* of statistics */
	struct pool *pool;
	FILE *in, *out;
	struct serve_logits logits;
	void (*note)(void *arg, const struct serve_note *n); /* may be NULL */
	void *arg;
};

/*
 * Answer requests until the input ends: 0 at an end between lines.  -1 at an
 * end inside one, or when reading or writing fails (errno EPIPE: the reader
 * went away).  What is wrong with a request is an error reply and no failure.
 */
int serve(const struct server *s, struct err *err);

#endif
