#include "sampling.h"

#include <string.h>

int
sampling_check(const struct sampling *o, uint64_t n, struct err *err)
{
	uint64_t steps = o->steps_given ? o->steps : n;
	uint64_t blocks;

	if (n == 0 && o->block_given)
		return err_set(err, "--block-length: without new tokens the "
		                    "line is one block");
	if (n == 0 && o->prompt_masks == MASKS_REFERENCE)
		return err_set(err, "--prompt-masks reference: without new "
		                    "tokens all masks are counted");
	if (!o->block_given)
		return 0;
	blocks = sampler_blocks(o->block, n);
	if (steps >= blocks)
		return 0;
	return err_set(err, "--steps %llu: fewer than the %llu blocks of "
	                    "--block-length %llu",
	    (unsigned long long)steps, (unsigned long long)blocks,
	    (unsigned long long)o->block);
}

/* Can this model take P ids and n more? */
static int
check_length(uint64_t prompt, uint64_t n, const struct greeting *g,
    struct err *err)
{
	uint64_t most = g->ctx ? g->ctx : INT32_MAX;

	if (prompt + n <= most)
		return 0;
	return err_set(err, "%llu tokens of prompt and %llu new ones exceed "
	                    "the longest request of %llu",
	    (unsigned long long)prompt, (unsigned long long)n,
	    (unsigned long long)most);
}

int
sampling_extend(struct tokens *canvas, uint64_t n, const struct greeting *g,
    struct err *err)
{
	if (check_length(canvas->n, n, g, err) < 0)
		return -1;
	for (uint64_t i = 0; i < n; i++)
		if (tokens_push(canvas, g->mask, err) < 0)
			return -1;
	return 0;
}

/* What the family and the options decide together. */
static int
set_family(struct sampler *s, const struct sampling *o,
    const struct greeting *g, struct err *err)
{
	const struct family_defaults *d = family_defaults(g->arch);

	if (!d && !o->algorithm_given)
		return err_set(err, "no defaults for the model family '%s': "
		                    "give --algorithm",
		    g->arch);
	if (!d)
		d = family_defaults(
		    o->algorithm == ALG_LLADA ? "llada" : "dream");
	s->stats.algorithm = o->algorithm_given ?
	    (enum algorithm)o->algorithm :
	    d->algorithm;
	s->stats.temperature =
	    o->temperature_given ? o->temperature : d->temperature;
	s->stats.top_p = d->top_p;
	if (o->temperature_given && o->temperature == 0)
		s->stats.top_p = 1;
	if (o->top_p_given)
		s->stats.top_p = o->top_p;
	s->block = o->block_given ? o->block : d->block;
	return 0;
}

static void
set_ids(struct sampler *s, const struct sampling *o, const struct greeting *g)
{
	struct stats_params *p = &s->stats;

	s->mask = g->mask;
	s->n_eos = g->n_eos;
	memcpy(s->eos, g->eos, sizeof s->eos);
	if (!o->allow_mask)
		p->ban[p->n_ban++] = g->mask;
	if (o->no_eos && g->n_eos)
		p->ban[p->n_ban++] = g->eos[0];
	if (o->demote_eos) {
		p->n_demote = g->n_eos;
		memcpy(p->demote, g->eos, sizeof p->demote);
	}
}

static int
check_ids(const struct sampler *s, const int32_t *canvas,
    const struct greeting *g, struct err *err)
{
	for (uint64_t i = 0; i < s->length; i++)
		if ((uint64_t)canvas[i] >= g->vocab)
			return err_set(err, "token %d is outside the "
			                    "vocabulary of %llu",
			    (int)canvas[i], (unsigned long long)g->vocab);
	if (g->first > 0 && s->length && canvas[0] == s->mask)
		return err_set(err, "position 0 is masked, and this model "
		                    "cannot predict it");
	return 0;
}

uint64_t
count_masks(const struct sampler *s, const int32_t *canvas, uint64_t from,
    uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += canvas[i] == s->mask;
	return n;
}

int
sampling_sampler(struct sampler *s, const struct sampling *o,
    const struct tokens *canvas, uint64_t n, const struct greeting *g,
    struct err *err)
{
	memset(s, 0, sizeof *s);
	s->length = canvas->n;
	s->prompt = canvas->n - n;
	s->stats.seed = o->seed;
	s->stats.top_k = o->top_k;
	s->stats.greedy = o->greedy;
	s->remasking = (enum remasking)o->remasking;
	s->prompt_masks = (enum prompt_masks)o->prompt_masks;
	s->alg_temp = o->alg_temp;
	s->eps = o->eps;
	s->early_stop = o->early_stop;
	if (set_family(s, o, g, err) < 0)
		return -1;
	set_ids(s, o, g);
	if (check_length(s->prompt, n, g, err) < 0 ||
	    check_ids(s, canvas->id, g, err) < 0)
		return -1;
	s->steps = o->steps;
	if (!o->steps_given)
		s->steps = n ? n : count_masks(s, canvas->id, 0, s->length);
	if (n == 0)
		s->block = 0;
	else if (!o->block_given)
		s->block = sampler_default_block(s->block, n, s->steps);
	return 0;
}
