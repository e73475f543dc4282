/*
 * The sampler's side of the forward protocol: a child that predicts rows.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdint.h>

#include "child.h"
#include "err.h"
#include "proto.h"
#include "shm.h"
#include "stats.h"

struct client {
	struct child child;
	struct shm shm;
	struct greeting greeting;
	uint64_t seq;      /* of the next request */
	uint64_t forwards; /* requests answered */
	double ms;         /* time they took there, by the child's own word */
	char where[64];    /* for messages: "in step 3" */
	struct request request;
};

/* Start argv and wait for its greeting.  client_drop() in any case. */
int client_start(struct client *c, char *const argv[],
    const struct shm_places *where, struct err *err);

/*
 * Ask for the rows pos[0..n-1] (ascending) of the canvas id (length).
 *
 * client_stats fills out (n); params as stats_row takes them.
 * client_logits points *data at (n, vocab) in the shared file, valid until
 * the next request.
 */
int client_stats(struct client *c, const int32_t *id, uint64_t length,
    const int32_t *pos, size_t n, const struct stats_params *params,
    struct stats_row *out, struct err *err);
int client_logits(struct client *c, const int32_t *id, uint64_t length,
    const int32_t *pos, size_t n, const float **data, struct err *err);

/* Reserve space for the logits of n rows, before the first request. */
int client_reserve(struct client *c, uint64_t n, struct err *err);

/* The end of requests; -1 unless the child exits with status 0. */
int client_end(struct client *c, struct err *err);

void client_drop(struct client *c);

#endif
