/*
 * What the tokeniser costs: opening a vocabulary, a word of a million equal
 * characters, a megabyte of prose, a megabyte of Chinese.  One JSON record per
 * measurement; each is the best of some runs.
 *
 *   build/bench/tokenize MODEL...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"
#include "tokenizer.h"

enum { RUNS = 5, MEGABYTE = 1 << 20, MILLION = 1000000 };

static void
record(const char *model, const char *what, size_t bytes, size_t tokens,
    double ms)
{
	fputs("{\"bench\":\"tokenize\",\"model\":", stdout);
	json_put_string(stdout, model, strlen(model));
	printf(",\"what\":\"%s\",\"bytes\":%zu,\"tokens\":%zu,\"ms\":%.2f}\n",
	    what, bytes, tokens, ms);
	fflush(stdout);
}

static int
fail(const struct err *err)
{
	fprintf(stderr, "tokenize: ERROR: %s\n", err->msg);
	return 1;
}

/* Words of one to twelve letters from a skewed alphabet, some stops. */
static void
prose(char *s, size_t n)
{
	static const char letters[] =
	    "eeeeeeeeeeeetttttttttaaaaaaaaooooooooiiiiiiinnnnnnnsssssshhhhhh"
	    "rrrrrrddddllllcccuuummmwwffggyyppbbvk";
	uint32_t r = 1;
	size_t i = 0, len;

	while (i < n) {
		r = r * 1664525 + 1013904223;
		len = 1 + (r >> 8) % 12;
		for (; len > 0 && i < n; len--) {
			r = r * 1664525 + 1013904223;
			s[i++] = letters[(r >> 8) % (sizeof letters - 1)];
		}
		r = r * 1664525 + 1013904223;
		if (i < n && (r >> 8) % 12 == 0)
			s[i++] = (r >> 16) % 4 ? ',' : '.';
		if (i < n)
			s[i++] = (r >> 8) % 90 ? ' ' : '\n';
	}
}

/* Common Chinese characters without spaces, a stop now and then. */
static void
chinese(char *s, size_t n)
{
	uint32_t r = 1, cp;

	for (size_t i = 0; i + 3 <= n; i += 3) {
		r = r * 1664525 + 1013904223;
		cp = (r >> 8) % 15 ? 0x4E00 + (r >> 12) % 0x2000 : 0x3002;
		s[i] = (char)(0xE0 | cp >> 12);
		s[i + 1] = (char)(0x80 | (cp >> 6 & 0x3F));
		s[i + 2] = (char)(0x80 | (cp & 0x3F));
	}
}

static int
measure(struct tokenizer *t, const char *model, const char *what,
    const char *s, size_t n, struct err *err)
{
	struct tokens out = { 0 };
	double best = 1e30, ms;

	for (int i = 0; i < RUNS; i++) {
		out.n = 0;
		ms = now_ms();
		if (tokenizer_encode(t, s, n, 0, &out, err) < 0)
			return -1;
		ms = now_ms() - ms;
		if (ms < best)
			best = ms;
	}
	record(model, what, n, out.n, best);
	tokens_free(&out);
	return 0;
}

static int
measure_load(const char *model, struct err *err)
{
	struct tokenizer t;
	struct gguf g;
	double best = 1e30, ms;
	size_t n = 0;

	for (int i = 0; i < RUNS; i++) {
		ms = now_ms();
		if (gguf_open(&g, model, err) < 0)
			return -1;
		if (tokenizer_init(&t, &g, err) < 0)
			return -1;
		ms = now_ms() - ms;
		if (ms < best)
			best = ms;
		n = t.vocab.n;
		tokenizer_free(&t);
		gguf_close(&g);
	}
	record(model, "load", 0, n, best);
	return 0;
}

static int
measure_all(const char *model, char *text, struct err *err)
{
	struct tokenizer t;
	struct gguf g;
	int rc;

	if (measure_load(model, err) < 0 || gguf_open(&g, model, err) < 0)
		return -1;
	if (tokenizer_init(&t, &g, err) < 0)
		return -1;
	memset(text, 'a', MILLION);
	rc = measure(&t, model, "million equal letters", text, MILLION, err);
	memset(text, ' ', MILLION);
	if (rc == 0)
		rc = measure(&t, model, "million spaces", text, MILLION, err);
	memset(text, '<', MILLION);
	if (rc == 0)
		rc = measure(&t, model, "million <", text, MILLION, err);
	prose(text, MEGABYTE);
	if (rc == 0)
		rc = measure(&t, model, "megabyte of prose", text, MEGABYTE,
		    err);
	chinese(text, MEGABYTE - 1);
	if (rc == 0)
		rc = measure(&t, model, "megabyte of Chinese", text,
		    MEGABYTE - 1, err);
	tokenizer_free(&t);
	gguf_close(&g);
	return rc;
}

int
main(int argc, char **argv)
{
	char *text = malloc(MEGABYTE);
	struct err err = { 0 };

	if (argc < 2 || !text) {
		fputs("usage: tokenize MODEL...\n", stderr);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (measure_all(argv[i], text, &err) < 0)
			return fail(&err);
	free(text);
	return 0;
}
