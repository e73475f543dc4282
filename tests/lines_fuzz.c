/*
 * usage: lines_fuzz [MUTATIONS [SEED]]
 *
 * Damages lines of every kind that the tools read (requests, greetings,
 * replies, rows of statistics, token lines, JSON, .npy headers) at random and
 * parses them.  Whatever is in a line must end in success or a message, and
 * what was understood must survive being written and read again; a sanitizer
 * sees the rest.  Bytes lie in a buffer of the exact size.  The same arguments
 * do the same.
 */
#include <stdlib.h>

#include "chat.h"
#include "fuzz.h"
#include "json.h"
#include "npy.h"
#include "proto.h"
#include "tap.h"
#include "tokline.h"

/* What a parsed thing is when written: text (owned), or NULL. */
static char *
written(void (*put)(FILE *f, const void *thing), const void *thing)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	put(f, thing);
	fclose(f);
	if (n > 0)
		text[n - 1] = '\0'; /* the LF */
	return text;
}

/* Parses, writes, parses and writes again: 1 accepted, 0 refused, -1 wrong. */
typedef int parse_fn(const char *s, size_t n, struct err *err);

static int
same_twice(char *first, char *second)
{
	int rc = first && second && !strcmp(first, second) ? 1 : -1;

	free(first);
	free(second);
	return rc;
}

static void
put_request(FILE *f, const void *q)
{
	struct err err = { 0 };

	request_write(f, q, &err);
}

static int
parse_request(const char *s, size_t n, struct err *err)
{
	struct request a = { 0 }, b = { 0 };
	char *first, *second = NULL;
	int rc = 0;

	if (request_parse(&a, s, n, err) == 0) {
		first = written(put_request, &a);
		if (first && request_parse(&b, first, strlen(first), err) == 0)
			second = written(put_request, &b);
		rc = same_twice(first, second);
	}
	request_free(&a);
	request_free(&b);
	return rc;
}

static void
put_greeting(FILE *f, const void *g)
{
	struct err err = { 0 };

	greeting_write(f, g, &err);
}

static int
parse_greeting(const char *s, size_t n, struct err *err)
{
	struct greeting a, b;
	char *first, *second = NULL;

	if (greeting_parse(&a, s, n, err) < 0)
		return 0;
	first = written(put_greeting, &a);
	if (first && greeting_parse(&b, first, strlen(first), err) == 0)
		second = written(put_greeting, &b);
	return same_twice(first, second);
}

static void
put_row(FILE *f, const void *r)
{
	stats_row_write(f, r);
}

static int
parse_row(const char *s, size_t n, struct err *err)
{
	struct stats_row a, b;
	char *first, *second = NULL;

	if (stats_row_parse(&a, s, n, err) < 0)
		return 0;
	first = written(put_row, &a);
	if (first && stats_row_parse(&b, first, strlen(first), err) == 0)
		second = written(put_row, &b);
	return same_twice(first, second);
}

static int
parse_reply(const char *s, size_t n, struct err *err)
{
	struct reply r;

	return reply_parse(&r, s, n, err) == 0;
}

static void
put_tokens(FILE *f, const void *t)
{
	const struct tokens *tokens = t;
	struct err err = { 0 };

	tokline_write(f, tokens->id, tokens->n, &err);
}

/* Token lines are canonical: what is written is what was read. */
static int
parse_tokens(const char *s, size_t n, struct err *err)
{
	struct tokens t = { 0 };
	char *text;
	int rc = 0;

	if (tokline_parse(s, n, &t, err) == 0) {
		text = written(put_tokens, &t);
		rc = text && strlen(text) == n && !memcmp(text, s, n) ? 1 : -1;
		free(text);
	}
	tokens_free(&t);
	return rc;
}

static int
parse_json(const char *s, size_t n, struct err *err)
{
	struct json_doc d;
	int rc = json_parse(&d, s, n, err) == 0;

	if (rc && json_get(d.root, "role"))
		rc = json_get(d.root, "none") ? -1 : 1;
	json_free(&d);
	return rc;
}

static int
parse_messages(const char *s, size_t n, struct err *err)
{
	struct chat_messages c = { 0 };
	int rc = chat_messages_parse(&c, s, n, err) == 0;

	chat_messages_free(&c);
	return rc;
}

static int
parse_npy(const char *s, size_t n, struct err *err)
{
	struct npy a;
	const unsigned char *p;
	unsigned sum = 0;

	if (npy_parse(&a, s, n, err) < 0)
		return 0;
	p = a.data;
	for (size_t i = 0; i < a.count * npy_type_size(a.type); i++)
		sum += p[i];
	return sum < UINT32_MAX ? 1 : -1;
}

/* An array of 2 x 3, made by main. */
static char npy[128 + 24];

static const struct {
	const char *name;
	parse_fn *parse;
	const char *line;
	size_t n; /* 0: a string */
} lines[] = {
	{ "request", parse_request,
	    "forward 17 rows=0:3,7:1,9:2 want=stats algorithm=entropy greedy=1 "
	    "seed=18446744073709551615 step=3 temperature=0.2 top-p=0.95 "
	    "top-k=50 ban=1,22,333 demote=4,5 : 5 0 2147483646 12 9",
	    0 },
	{ "greeting", parse_greeting,
	    "dllm-forward 1 arch=llada vocab=126464 mask=126336 eos=126081,"
	    "126348 ctx=4096 device=cpu kernel=avx2 threads=8 first=1 "
	    "want=logits,stats quant=Q4_K_M model=a%20b%25c.gguf",
	    0 },
	{ "row", parse_row,
	    "row 12 id=837 logit=0x1.b57b08p+2 p=0x1.0c5bf2p-3 "
	    "margin=0x1.2801ep-7 negent=-0x1.8p+1",
	    0 },
	{ "ok", parse_reply, "ok 7 rows=32 bytes=16190464 ms=12.500", 0 },
	{ "error", parse_reply, "error 7 rows must ascend: '3:1'", 0 },
	{ "tokens", parse_tokens, "0 7 1023 2147483647 10 126336 5 44 3 2", 0 },
	{ "json", parse_json,
	    "{\"role\":\"user\",\"n\":[1,-2.5e3,true,false,null,{}],"
	    "\"s\":\"a\\u00e9\\ud83d\\ude00\\n\\\"\"}",
	    0 },
	{ "messages", parse_messages,
	    "{\"role\":\"system\",\"content\":\"be brief\"}\n"
	    "{\"role\":\"user\",\"content\":\"h\\u0069\"}\n",
	    0 },
	{ "npy", parse_npy, npy, sizeof npy },
};

enum { N_LINES = sizeof lines / sizeof *lines };

/* Letters that mean something somewhere. */
static char
nasty(void)
{
	static const char v[] = " =,:%+-.0123456789eEpPxXnaif\"\\{}[]()'u\n\t\x7f\xff";

	return v[draw(sizeof v)]; /* its NUL too */
}

static void
mutate(char *p, size_t n)
{
	size_t m;

	switch (draw(4)) {
	case 0: /* one bit */
		p[draw(n)] ^= (char)(1 << draw(8));
		break;
	case 1: /* one byte */
		p[draw(n)] = nasty();
		break;
	case 2: /* a run of one digit */
		m = 1 + draw(n < 24 ? n : 24);
		memset(p + draw(n - m + 1), (int)('0' + draw(10)), m);
		break;
	default: /* a piece from elsewhere */
		m = 1 + draw(n / 4 + 1);
		memmove(p + draw(n - m + 1), p + draw(n - m + 1), m);
	}
}

/* 1 accepted, 0 refused with a message, -1 wrong. */
static int
one(size_t kind, int damage)
{
	size_t n = lines[kind].n ? lines[kind].n : strlen(lines[kind].line);
	struct err err = { 0 };
	char *bytes;
	int rc;

	if (damage && draw(4) == 0)
		n = draw(n + 1);
	bytes = malloc(n + !n);
	memcpy(bytes, lines[kind].line, n);
	for (uint64_t m = damage ? draw(4) : 4; n > 0 && m < 4; m++)
		mutate(bytes, n);
	rc = lines[kind].parse(bytes, n, &err);
	if (rc < 0)
		printf("# %s: %.*s\n# %s\n", lines[kind].name, (int)n, bytes,
		    err.msg);
	if (rc == 0 && !*err.msg)
		rc = -1;
	free(bytes);
	return rc;
}

int
main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	uint64_t seed = argc > 2 ? strtoul(argv[2], NULL, 10) | 1 : fuzz_state;
	unsigned long accepted, wrong;
	char header[NPY_ALIGN_SHARED];
	size_t size = npy_header(header, NPY_ALIGN, NPY_F4, 2,
	    (const uint64_t[]){ 2, 3 });
	int rc;

	ok(size == sizeof npy - 24, "the size of a header");
	memcpy(npy, header, sizeof npy - 24);
	for (size_t k = 0; k < N_LINES; k++) {
		fuzz_state = seed;
		accepted = wrong = 0;
		ok(one(k, 0) == 1, "%s: the undamaged line", lines[k].name);
		for (unsigned long i = 0; i < n; i++) {
			rc = one(k, 1);
			accepted += rc > 0;
			wrong += rc < 0;
		}
		ok(!wrong, "%s: damaged ones", lines[k].name);
		/* Both must happen, or the mutations are no test. */
		ok(accepted > n / 200 && accepted < n - n / 200,
		    "%s: %lu of %lu can still be read", lines[k].name,
		    accepted, n);
	}
	return tap_end();
}
