#include "report.h"

#include <string.h>

#include "json.h"

void
report_step(FILE *f, const struct generation *n)
{
	const struct step *t = &n->step;
	double sum = 0;
	float low = 0;
	uint64_t masks = 0;

	for (uint64_t i = 0; i < n->sampler.length; i++)
		masks += n->canvas[i] == n->sampler.mask;
	for (size_t i = 0; i < t->n_chosen; i++) {
		if (i == 0 || t->chosen[i].confidence < low)
			low = t->chosen[i].confidence;
		sum += (double)t->chosen[i].confidence;
	}
	fprintf(f, "step=%llu block=%llu committed=%zu masks=%llu ",
	    (unsigned long long)t->number, (unsigned long long)t->at.block,
	    t->n_chosen, (unsigned long long)masks);
	if (t->n_chosen)
		fprintf(f, "conf_min=%.6g conf_mean=%.6g", (double)low,
		    sum / (double)t->n_chosen);
	else
		fputs("conf_min=- conf_mean=-", f);
	fprintf(f, " rows=%zu ms=%.1f\n", n->step_rows, n->step_ms);
}

/* A terminal may show it, so no control characters. */
static void
put_fact(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s: ", name);
	for (const char *c = *value ? value : "unknown"; *c; c++)
		putc((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c, f);
	putc('\n', f);
}

void
report_model(FILE *f, const struct greeting *g)
{
	put_fact(f, "model", g->model);
	put_fact(f, "quantization", g->quant);
	put_fact(f, "device", g->device);
	fprintf(f, "threads: %llu\n", (unsigned long long)g->threads);
}

void
report_sizes(FILE *f, const struct sampler *s, const int32_t *canvas)
{
	uint64_t n = s->length - s->prompt;

	if (s->block == 0)
		for (uint64_t i = 0; i < s->length; i++)
			n += canvas[i] == s->mask;
	fprintf(f, "prompt tokens: %llu\ngeneration tokens: %llu\n"
	           "diffusion steps: %llu\n",
	    (unsigned long long)s->prompt,
	    (unsigned long long)n, (unsigned long long)s->steps);
}

uint64_t
report_tokens(const struct generation *n)
{
	const struct sampler *s = &n->sampler;
	uint64_t count = 0;

	if (s->block == 0)
		return n->committed;
	for (uint64_t i = s->prompt; i < s->length; i++) {
		if (sampler_is_eos(s, n->canvas[i]))
			break;
		count += n->canvas[i] != s->mask;
	}
	return count;
}

static double
tokens_per_s(const struct generation *n)
{
	double tokens = (double)report_tokens(n);

	return n->total_ms > 0 ? tokens / n->total_ms * 1e3 : 0;
}

void
report_speed(FILE *f, const struct generation *n)
{
	fprintf(f, "generation: %.2f s\ntokens per second: %.2f\n",
	    n->total_ms / 1e3, tokens_per_s(n));
}

void
report_bytes(FILE *f, const char *name, uint64_t bytes)
{
	if (bytes >= 1000000000)
		fprintf(f, "%s: %.1f GB\n", name, (double)bytes / 1e9);
	else
		fprintf(f, "%s: %.1f MB\n", name, (double)bytes / 1e6);
}

static void
put_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, ",\"%s\":", key);
	json_put_string(f, text, strlen(text));
}

static void
put_times(FILE *f, const char *key, const double *ms, uint64_t count)
{
	fprintf(f, ",\"%s\":[", key);
	for (uint64_t i = 0; i < count; i++)
		fprintf(f, "%s%.3f", i ? "," : "", ms[i]);
	putc(']', f);
}

void
report_json(FILE *f, const struct generation *n, const int32_t *id,
    uint64_t count, double load_ms, uint64_t peak_bytes)
{
	const struct sampler *s = &n->sampler;
	const struct greeting *g = &n->client->greeting;

	fputs("{\"tokens\":", f);
	json_put_ids(f, id, (size_t)count);
	fprintf(f, ",\"prompt_tokens\":%llu,\"generated_tokens\":%llu,"
	           "\"steps\":%llu,\"forwards\":%llu,\"seed\":%llu",
	    (unsigned long long)s->prompt,
	    (unsigned long long)report_tokens(n),
	    (unsigned long long)n->steps, (unsigned long long)n->forwards,
	    (unsigned long long)s->stats.seed);
	put_text(f, "finish",
	    sampler_end(s, n->canvas) < s->length ? "end" : "length");
	put_text(f, "model", g->model);
	put_text(f, "device", g->device);
	fprintf(f, ",\"threads\":%llu,\"load_ms\":%.3f",
	    (unsigned long long)g->threads, load_ms);
	put_times(f, "step_ms", n->ms, n->n_ms);
	put_times(f, "forward_ms", n->forward_ms, n->n_ms);
	fprintf(f, ",\"total_ms\":%.3f,\"tokens_per_s\":%.3f,"
	           "\"peak_rss_bytes\":%llu}\n",
	    n->total_ms, tokens_per_s(n), (unsigned long long)peak_bytes);
}

uint64_t
process_peak_bytes(long pid)
{
	char path[64], line[256];
	unsigned long long kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %llu kB", &kb) == 1)
			break;
	fclose(f);
	return 1024 * (uint64_t)kb;
}
