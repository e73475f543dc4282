#include "answer.h"

#include "sampling.h"

uint64_t
answer_from(const struct answer *a, const struct generation *n)
{
	return a->canvas ? 0 : n->sampler.prompt;
}

uint64_t
answer_to(const struct generation *n)
{
	const struct sampler *s = &n->sampler;

	for (uint64_t i = s->prompt; s->early_stop && i < s->length; i++)
		if (sampler_is_eos(s, n->canvas[i]))
			return i + 1;
	return s->length;
}

/* Write the ids before `to` that are not written yet. */
static void
put_ids(struct answer *a, const struct generation *n, uint64_t to)
{
	uint64_t from = answer_from(a, n);

	for (uint64_t i = from + a->printed; i < to; i++, a->printed++)
		fprintf(a->f, "%s%d", i > from ? " " : "", (int)n->canvas[i]);
}

static int
flush(FILE *f, struct err *err)
{
	if (fflush(f) == 0 && !ferror(f))
		return 0;
	return err_sys(err, "cannot write token lines");
}

int
answer_stream(struct answer *a, const struct generation *n, struct err *err)
{
	uint64_t i = answer_from(a, n), to = answer_to(n);

	while (i < to && n->canvas[i] != n->sampler.mask)
		i++;
	put_ids(a, n, i);
	return flush(a->f, err);
}

int
answer_end(struct answer *a, const struct generation *n, struct err *err)
{
	put_ids(a, n, answer_to(n));
	putc('\n', a->f);
	a->printed = 0;
	return flush(a->f, err);
}

uint64_t
answer_masks(const struct answer *a, const struct generation *n)
{
	return count_masks(
	    &n->sampler, n->canvas, answer_from(a, n), answer_to(n));
}
