#include "trace.h"

#include <string.h>

#include "json.h"

static void
put_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\":", key);
	json_put_string(f, text, strlen(text));
	putc(',', f);
}

static void
put_model(FILE *f, const struct greeting *g)
{
	fputs("\"model\":{", f);
	put_text(f, "arch", g->arch);
	put_text(f, "name", g->model);
	put_text(f, "quantization", g->quant);
	put_text(f, "device", g->device);
	fprintf(f, "\"vocab\":%llu,\"mask\":%d,\"eos\":",
	    (unsigned long long)g->vocab, (int)g->mask);
	json_put_ids(f, g->eos, (size_t)g->n_eos);
	putc('}', f);
}

/* Option names without dashes; lists of ids as they came out. */
static void
put_options(FILE *f, const struct sampler *s, float cfg)
{
	fputs("\"options\":{", f);
	put_text(f, "algorithm", algorithm_names[s->stats.algorithm]);
	fprintf(f, "\"max-tokens\":%llu,\"steps\":%llu,\"block-length\":%llu,",
	    (unsigned long long)(s->length - s->prompt),
	    (unsigned long long)s->steps,
	    (unsigned long long)(s->block ? s->block : s->length));
	fprintf(f, "\"temperature\":%.9g,\"top-p\":%.9g,\"top-k\":%llu,",
	    s->stats.temperature, s->stats.top_p,
	    (unsigned long long)s->stats.top_k);
	fprintf(f, "\"cfg-scale\":%.9g,\"alg-temp\":%.9g,\"eps\":%.9g,",
	    (double)cfg, s->alg_temp, s->eps);
	put_text(f, "remasking",
	    s->remasking == REMASK_RANDOM ? "random" : "low_confidence");
	put_text(f, "prompt-masks",
	    s->prompt_masks == MASKS_REFERENCE ? "reference" : "fill");
	fprintf(f, "\"greedy\":%s,\"early-stop\":%s,\"ban\":",
	    s->stats.greedy ? "true" : "false",
	    s->early_stop ? "true" : "false");
	json_put_ids(f, s->stats.ban, (size_t)s->stats.n_ban);
	fputs(",\"demote\":", f);
	json_put_ids(f, s->stats.demote, (size_t)s->stats.n_demote);
	putc('}', f);
}

static int
end_line(FILE *f)
{
	putc('\n', f);
	return fflush(f) != 0 || ferror(f) ? -1 : 0;
}

int
trace_begin(FILE *f, uint64_t line, const struct sampler *s, float cfg,
    const struct greeting *g, const int32_t *canvas)
{
	fprintf(f, "{\"dllm_trace\":1,\"line\":%llu,\"prompt\":%llu,"
	           "\"canvas\":",
	    (unsigned long long)line, (unsigned long long)s->prompt);
	json_put_ids(f, canvas, (size_t)s->length);
	putc(',', f);
	put_model(f, g);
	putc(',', f);
	put_options(f, s, cfg);
	fprintf(f, ",\"seed\":%llu}", (unsigned long long)s->stats.seed);
	return end_line(f);
}

/* One member of each candidate: a list named key. */
static void
put_candidates(FILE *f, const char *key, const struct candidate *c, size_t n,
    int which)
{
	fprintf(f, ",\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		if (i)
			putc(',', f);
		if (which == 'c')
			fprintf(f, "%.9g", (double)c[i].confidence);
		else
			fprintf(f, "%d", which == 'p' ? (int)c[i].pos :
			                                (int)c[i].id);
	}
	putc(']', f);
}

int
trace_step(FILE *f, const struct generation *n)
{
	const struct step *t = &n->step;
	size_t known = t->wanted ? t->n : 0;

	fprintf(f, "{\"step\":%llu,\"block\":%llu,\"undecided\":",
	    (unsigned long long)t->number, (unsigned long long)t->at.block);
	json_put_ids(f, t->undecided, t->n);
	put_candidates(f, "candidates", t->candidate, known, 'i');
	put_candidates(f, "confidences", t->candidate, known, 'c');
	put_candidates(f, "positions", t->chosen, t->n_chosen, 'p');
	put_candidates(f, "ids", t->chosen, t->n_chosen, 'i');
	fprintf(f, ",\"rows\":%zu,\"forwards\":%d,\"ms\":%.3f,\"canvas\":",
	    n->step_rows, n->step_forwards, n->step_ms);
	json_put_ids(f, n->canvas, (size_t)n->sampler.length);
	putc('}', f);
	return end_line(f);
}

int
trace_end(FILE *f, const struct generation *n)
{
	fprintf(f, "{\"end\":\"%s\",\"steps\":%llu,\"forwards\":%llu,"
	           "\"ms\":%.3f}",
	    sampler_end(&n->sampler, n->canvas) < n->sampler.length ? "end" :
	                                                              "length",
	    (unsigned long long)n->steps, (unsigned long long)n->forwards,
	    n->total_ms);
	return end_line(f);
}
