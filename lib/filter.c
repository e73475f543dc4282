#include "filter.h"

#include <sys/wait.h>

int
filter_ask(struct child *c, const int32_t *id, size_t n,
    struct tokens *answer, struct err *err)
{
	struct err broken = { 0 };
	ssize_t len;

	/* If this fails the child ended; what it printed before counts. */
	tokline_write(c->to, id, n, &broken);
	len = child_line(c, "before it answered", err);
	if (len < 0)
		return -1;
	if (tokline_parse(c->line, (size_t)len, answer, err) < 0)
		return err_prefix(err, "%s", c->name);
	return 0;
}

int
filter_status(const struct child *c)
{
	return c->pid == 0 && WIFEXITED(c->status) && c->status != 0 ?
	    WEXITSTATUS(c->status) : 1;
}
