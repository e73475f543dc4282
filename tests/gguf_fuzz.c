/*
 * usage: gguf_fuzz [MUTATIONS [SEED]]
 *
 * Damages the golden GGUF files at random and does with each what gguf-inspect
 * does: open, list, check, decode.  Whatever is in a file must end in success
 * or a message; a sanitizer sees the rest.  Bytes lie in a buffer of the exact
 * size.  The same arguments do the same.
 */
#include <dirent.h>
#include <stdlib.h>

#include "expand.h"
#include "fuzz.h"
#include "gguf_check.h"
#include "gguf_list.h"
#include "gguf_parse.h"
#include "io.h"
#include "tap.h"

#define GOLDEN "tests/golden/gguf/"

enum { MAX_FILES = 256 };

static struct {
	char *bytes;
	size_t n;
} corpus[MAX_FILES];
static size_t n_corpus;

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In an order that does not depend on the directory's. */
static void
load_corpus(void)
{
	DIR *dir = opendir(GOLDEN);
	char *names[MAX_FILES], path[512];
	struct dirent *e;
	struct err err = { 0 };
	size_t n = 0;

	while (dir && n < MAX_FILES && (e = readdir(dir)))
		if (strstr(e->d_name, ".gguf"))
			names[n++] = strdup(e->d_name);
	if (dir)
		closedir(dir);
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof path, GOLDEN "%s", names[i]);
		free(names[i]);
		if (io_slurp_file(path, &corpus[n_corpus].bytes,
		    &corpus[n_corpus].n, &err) < 0)
			continue;
		if (corpus[n_corpus].n > 32)
			n_corpus++;
		else
			free(corpus[n_corpus].bytes);
	}
}

/* Values that have broken parsers. */
static uint64_t
nasty(void)
{
	static const uint64_t v[] = { 0, 1, 4, 9, 12, 13, 31, 32, 48, 64, 255,
		1024, 65535, 65536, 1u << 30, INT32_MAX, 1u << 31, UINT32_MAX,
		1ull << 32, 1ull << 61, 1ull << 62, INT64_MAX, 1ull << 63,
		UINT64_MAX - 31, UINT64_MAX };

	return v[draw(sizeof v / sizeof *v)];
}

static void
mutate(uint8_t *p, size_t n)
{
	uint64_t v;
	size_t at, m;

	switch (draw(4)) {
	case 0: /* one bit */
		p[draw(n)] ^= (uint8_t)(1 << draw(8));
		break;
	case 1: /* one byte */
		p[draw(n)] = (uint8_t)draw(256);
		break;
	case 2: /* a number of 4 or 8 bytes */
		m = draw(2) ? 8 : 4;
		at = draw(n - m);
		v = nasty();
		for (size_t i = 0; i < m; i++)
			p[at + i] = (uint8_t)(v >> 8 * i);
		break;
	default: /* a piece from elsewhere */
		m = 1 + draw(n / 4);
		memmove(p + draw(n - m), p + draw(n - m), m);
	}
}

static void
use(const struct gguf *g, FILE *null)
{
	static float out[4096];
	struct err err;
	const struct gguf_tensor *t;
	uint64_t n;

	gguf_list_text(null, g, 0);
	gguf_list_text(null, g, 1);
	gguf_list_json(null, g);
	for (uint64_t i = 0; i < g->n_kv; i++)
		gguf_value_raw(null, &g->kv[i]);
	for (uint64_t i = 0; i < g->n_tensors; i++) {
		t = &g->tensor[i];
		err = (struct err){ 0 };
		gguf_check_tensor(g, t, &err);
		n = ggml_type_info(t->type)->block;
		n = t->n_elements / n * n;
		if (t->data && ggml_type_info(t->type)->use != GGML_NAME_ONLY &&
		    n <= sizeof out / sizeof *out)
			decode_row(t->type, t->data, n, out);
	}
}

/* One damaged file; returns whether it was accepted, -1 for no message. */
static int
one(FILE *null)
{
	size_t i = draw(n_corpus), n = corpus[i].n;
	struct err err = { 0 };
	struct gguf g = { 0 };
	uint8_t *bytes;
	int rc;

	if (draw(4) == 0)
		n = 24 + draw(n - 24);
	bytes = malloc(n);
	memcpy(bytes, corpus[i].bytes, n);
	for (uint64_t m = draw(4); n > 24 && m < 4; m++)
		mutate(bytes, n);
	g.file = calloc(1, sizeof *g.file);
	g.file->path = strdup("memory");
	g.n_files = 1;
	g.file->map = bytes;
	g.file->size = n;
	rc = gguf_parse(&g, &err) == 0 && gguf_index_tensors(&g, &err) == 0;
	if (rc)
		use(&g, null);
	else if (!*err.msg)
		rc = -1;
	g.file->map = NULL;
	gguf_close(&g);
	free(bytes);
	return rc;
}

int
main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	unsigned long accepted = 0, silent = 0;
	FILE *null = fopen("/dev/null", "w");
	int rc;

	if (argc > 2)
		fuzz_state = strtoul(argv[2], NULL, 10) | 1;
	load_corpus();
	ok(n_corpus > 100 && null, "%zu files to damage", n_corpus);
	for (unsigned long i = 0; i < n && n_corpus && null; i++) {
		rc = one(null);
		accepted += rc > 0;
		silent += rc < 0;
	}
	ok(!silent, "every refusal has a message");
	/* Both must happen, or the mutations are no test. */
	ok(accepted > n / 20 && accepted < n - n / 20,
	    "%lu of %lu damaged files can still be read", accepted, n);
	for (size_t i = 0; i < n_corpus; i++)
		free(corpus[i].bytes);
	if (null)
		fclose(null);
	return tap_end();
}
