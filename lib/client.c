#include "client.h"

#include <string.h>

int
client_start(struct client *c, char *const argv[],
    const struct shm_places *where, struct err *err)
{
	ssize_t n;

	memset(c, 0, sizeof *c);
	strcpy(c->where, "before it was ready");
	if (shm_create(&c->shm, where, err) < 0)
		return -1;
	child_ignore_sigpipe();
	if (child_start(&c->child, argv, c->shm.fd, "DLLM_LOGITS_FD", err) < 0)
		return -1;
	n = child_line(&c->child, c->where, err);
	if (n < 0)
		return -1;
	if (greeting_parse(&c->greeting, c->child.line, (size_t)n, err) < 0)
		return err_prefix(err, "%s", c->child.name);
	return 0;
}

int
client_reserve(struct client *c, uint64_t n, struct err *err)
{
	uint64_t bytes = shm_bytes(n, c->greeting.vocab);

	if (!bytes)
		return err_set(err, "too many rows of logits");
	return shm_reserve(&c->shm, bytes, err);
}

/* Send a request and read the line that answers it. */
static int
ask(struct client *c, const int32_t *id, uint64_t length, const int32_t *pos,
    size_t n, struct reply *reply, struct err *err)
{
	struct request *q = &c->request;
	struct err broken = { 0 };
	ssize_t len;

	q->seq = c->seq++;
	q->rows.n = 0;
	q->rows.total = 0;
	for (size_t i = 0; i < n; i++)
		if (ranges_add(&q->rows, (uint64_t)pos[i], err) < 0)
			return -1;
	q->ids.n = 0;
	if (tokens_append(&q->ids, id, (size_t)length, err) < 0)
		return -1;
	if (request_write(c->child.to, q, &broken) < 0)
		return child_died(&c->child, c->where, err);
	len = child_line(&c->child, c->where, err);
	if (len < 0)
		return -1;
	if (reply_parse(reply, c->child.line, (size_t)len, err) < 0)
		return err_prefix(err, "%s", c->child.name);
	if (reply->seq != q->seq)
		return err_set(err, "%s: answered request %llu instead of %llu",
		    c->child.name, (unsigned long long)reply->seq,
		    (unsigned long long)q->seq);
	if (!reply->ok)
		return err_set(err, "%s: %s", c->child.name, reply->text);
	if (reply->rows != n)
		return err_set(err, "%s: answered with %llu rows instead of "
		                    "%zu",
		    c->child.name, (unsigned long long)reply->rows, n);
	c->forwards++;
	c->ms += reply->ms;
	return 0;
}

int
client_stats(struct client *c, const int32_t *id, uint64_t length,
    const int32_t *pos, size_t n, const struct stats_params *params,
    struct stats_row *out, struct err *err)
{
	struct reply reply;
	ssize_t len;

	c->request.want = WANT_STATS;
	c->request.stats = *params;
	if (ask(c, id, length, pos, n, &reply, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		len = child_line(&c->child, c->where, err);
		if (len < 0)
			return -1;
		if (stats_row_parse(&out[i], c->child.line, (size_t)len, err) <
		    0)
			return err_prefix(err, "%s", c->child.name);
		if (out[i].pos != pos[i])
			return err_set(err, "%s: row %d instead of row %d",
			    c->child.name, (int)out[i].pos, (int)pos[i]);
		if ((uint64_t)out[i].id >= c->greeting.vocab)
			return err_set(err, "%s: row %d: token %d is outside "
			                    "the vocabulary",
			    c->child.name, (int)pos[i], (int)out[i].id);
	}
	return 0;
}

int
client_logits(struct client *c, const int32_t *id, uint64_t length,
    const int32_t *pos, size_t n, const float **data, struct err *err)
{
	struct reply reply;

	c->request.want = WANT_LOGITS;
	if (client_reserve(c, n, err) < 0 ||
	    ask(c, id, length, pos, n, &reply, err) < 0)
		return -1;
	if (shm_array(&c->shm, n, c->greeting.vocab, reply.bytes, data, err) <
	    0)
		return err_prefix(err, "%s", c->child.name);
	return 0;
}

int
client_end(struct client *c, struct err *err)
{
	return child_end(&c->child, err);
}

void
client_drop(struct client *c)
{
	child_drop(&c->child);
	shm_close(&c->shm);
	request_free(&c->request);
}
