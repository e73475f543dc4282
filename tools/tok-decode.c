/*
 * tok-decode: token lines to text, printed as the ids arrive.
 */
#define PROG "tok-decode"
#define USAGE "tok-decode --model PATH [OPTION ...]"

#include "tool.h"

#include <poll.h>

#include "gguf.h"
#include "json.h"
#include "tokline.h"
#include "vocab.h"

static const char *model;
static int model_given, stop, special, lines, null, json;

static const struct opt opts[] = {
	{ "model", OPT_STR, &model, "PATH", "GGUF file with the vocabulary",
	    .given = &model_given, .required = 1 },
	{ "stop", OPT_FLAG, &stop,
	    .help = "end each line before its first end token" },
	{ "special", OPT_FLAG, &special, .help = "print control tokens too" },
	{ "lines", OPT_FLAG, &lines,
	    .help = "end each text with LF, LF and backslash escaped" },
	{ "null", OPT_FLAG, &null, .help = "end each text with a NUL byte" },
	{ "json", OPT_FLAG, &json,
	    .help = "JSON objects of text and tokens" },
	{ 0 }
};

struct bytes {
	char *p;
	size_t n, cap;
};

/* The line being read, and what has become of it. */
struct decoder {
	struct vocab vocab;
	struct bytes in;
	size_t start;      /* of the line, in `in` */
	size_t parsed;     /* bytes of the line that are decoded */
	struct bytes out;  /* text not yet written */
	struct tokens ids; /* just parsed */
	int ended;         /* --stop has met an end token */
	unsigned long line;
};

static int
reserve(struct bytes *b, size_t n, struct err *err)
{
	size_t cap = b->cap ? b->cap : 4096;
	char *p;

	while (cap - b->n < n)
		cap *= 2;
	if (cap == b->cap)
		return 0;
	p = realloc(b->p, cap);
	if (!p)
		return err_set(err, "out of memory");
	b->p = p;
	b->cap = cap;
	return 0;
}

static int
at_line(const struct decoder *d, struct err *err)
{
	return err_prefix(err, "standard input: line %lu", d->line);
}

/* Text behind what is there, escaped for --lines. */
static void
put_escaped(struct bytes *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (lines && (s[i] == '\n' || s[i] == '\\'))
			out->p[out->n++] = '\\';
		out->p[out->n++] = lines && s[i] == '\n' ? 'n' : s[i];
	}
}

static int
decode_id(struct decoder *d, int32_t id, struct err *err)
{
	size_t max = vocab_piece_max(&d->vocab, id), n;

	if ((uint32_t)id >= d->vocab.n_rows)
		return err_set(err, "token id %d is not in the vocabulary "
		    "(0 to %u)", id, d->vocab.n_rows - 1);
	if (stop && special_is_eos(&d->vocab.special, id))
		d->ended = 1;
	if (d->ended || (id == d->vocab.special.mask && !special))
		return 0;
	/* escaped in place: first the piece, behind twice its room */
	if (reserve(&d->out, 3 * max, err) < 0)
		return -1;
	n = vocab_piece(&d->vocab, id, special, d->out.p + d->out.n + 2 * max);
	put_escaped(&d->out, d->out.p + d->out.n + 2 * max, n);
	return 0;
}

static int
decode_ids(struct decoder *d, struct err *err)
{
	for (size_t i = 0; i < d->ids.n; i++)
		if (decode_id(d, d->ids.id[i], err) < 0)
			return -1;
	return 0;
}

/*
 * The ids in bytes parsed to n of the line.  A message counts bytes from the
 * start of the line, so for that all of it is read again.
 */
static int
decode_upto(struct decoder *d, size_t n, struct err *err)
{
	const char *line = d->in.p + d->start;
	struct err part = { 0 };

	if ((d->parsed > 0 && d->parsed == n) || tokline_parse(line +
	    d->parsed, n - d->parsed, &d->ids, &part) < 0) {
		if (tokline_parse(line, n, &d->ids, err) == 0)
			err_set(err, "%s", part.msg);
		return -1;
	}
	return decode_ids(d, err);
}

static int
write_out(struct decoder *d, struct err *err)
{
	if (d->out.n)
		fwrite(d->out.p, 1, d->out.n, stdout);
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_sys(err, "cannot write standard output");
	d->out.n = 0;
	return 0;
}

/* No more input for now: show what is known of the line so far. */
static int
decode_partly(struct decoder *d, struct err *err)
{
	size_t n = d->in.n - d->start;

	if (json)
		return 0;
	while (n > d->parsed && d->in.p[d->start + n - 1] != ' ')
		n--;
	if (n > d->parsed + 1) {
		if (decode_upto(d, n - 1, err) < 0) {
			d->line++;
			return at_line(d, err);
		}
		d->parsed = n;
	}
	return d->out.n ? write_out(d, err) : 0;
}

static void
put_text(const struct decoder *d)
{
	fputs("{\"text\":", stdout);
	json_put_string(stdout, d->out.p, d->out.n);
}

/* An object with tokens, as dllm-sample --json writes: text goes in front. */
static int
json_object(struct decoder *d, size_t n, struct err *err)
{
	const char *line = d->in.p + d->start;
	const struct json *tokens, *t;
	struct json_doc doc;
	int rc = json_parse(&doc, line, n, err);

	tokens = rc == 0 ? json_get(doc.root, "tokens") : NULL;
	if (rc == 0 && (!tokens || tokens->type != JSON_ARRAY))
		rc = err_set(err, "the object has no array \"tokens\"");
	else if (rc == 0 && json_get(doc.root, "text"))
		rc = err_set(err, "the object has a \"text\" already");
	for (t = rc == 0 ? tokens->first : NULL; t && rc == 0; t = t->next) {
		if (t->type != JSON_NUMBER || t->number < 0 ||
		    t->number > INT32_MAX || t->number != (int32_t)t->number)
			rc = err_set(err, "\"tokens\" holds what is no token "
			    "id");
		else
			rc = decode_id(d, (int32_t)t->number, err);
	}
	json_free(&doc);
	if (rc < 0)
		return -1;
	put_text(d);
	putchar(',');
	fwrite(line + 1, 1, n - 1, stdout);
	putchar('\n');
	return 0;
}

static int
json_line(struct decoder *d, size_t n, struct err *err)
{
	if (n > 0 && d->in.p[d->start] == '{')
		return json_object(d, n, err);
	if (decode_upto(d, n, err) < 0)
		return -1;
	put_text(d);
	fputs(",\"tokens\":", stdout);
	json_put_ids(stdout, d->ids.id, d->ids.n);
	fputs("}\n", stdout);
	return 0;
}

/* The line's n bytes are there, its LF behind them. */
static int
finish_line(struct decoder *d, size_t n, struct err *err)
{
	int rc;

	d->line++;
	rc = json ? json_line(d, n, err) : decode_upto(d, n, err);
	if (rc < 0)
		return at_line(d, err);
	if (json)
		d->out.n = 0; /* it is in the object */
	else if (lines || null) {
		if (reserve(&d->out, 1, err) < 0)
			return -1;
		d->out.p[d->out.n++] = lines ? '\n' : '\0';
	}
	d->parsed = 0;
	d->ended = 0;
	return write_out(d, err);
}

/* All lines that are complete; an LF is looked for from `from` on. */
static int
finish_lines(struct decoder *d, size_t from, struct err *err)
{
	char *lf;

	while ((lf = memchr(d->in.p + from, '\n', d->in.n - from))) {
		from = (size_t)(lf - d->in.p) + 1;
		if (finish_line(d, from - 1 - d->start, err) < 0)
			return -1;
		d->start = from;
	}
	d->in.n -= d->start;
	memmove(d->in.p, d->in.p + d->start, d->in.n);
	d->start = 0;
	return 0;
}

static int
would_block(void)
{
	struct pollfd p = { 0, POLLIN, 0 };

	return poll(&p, 1, 0) == 0;
}

static int
run(struct decoder *d, struct err *err)
{
	size_t from;
	ssize_t r;

	for (;;) {
		if (d->in.n > 0 && would_block() && decode_partly(d, err) < 0)
			return -1;
		if (d->in.n >= IO_MAX_LINE) {
			errno = EMSGSIZE;
			return err_sys(err, "cannot read standard input");
		}
		if (reserve(&d->in, 65536, err) < 0)
			return -1;
		r = read(0, d->in.p + d->in.n, 65536);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(err, "cannot read standard input");
		if (r == 0)
			break;
		from = d->in.n;
		d->in.n += (size_t)r;
		if (finish_lines(d, from, err) < 0)
			return -1;
	}
	if (d->in.n > 0)
		return err_set(err, "standard input ended inside a token line");
	if (d->line == 0)
		return err_set(err, "standard input ended before a token line");
	return 0;
}

static void
check_usage(void)
{
	struct err err = { 0 };

	if (lines + null + json > 1) {
		err_set(&err, "--%s and --%s exclude each other",
		    lines ? "lines" : "null", json ? "json" : "null");
		tool_usage(&err);
	}
}

int
main(int argc, char **argv)
{
	struct decoder d = { 0 };
	struct gguf g;
	struct err err = { 0 };

	tool_no_operands(tool_start(opts, argc, argv,
	    "Decode token lines from standard input: the bytes of the tokens "
	    "and nothing else."), argc, argv);
	check_usage();
	if (gguf_open(&g, model, &err) < 0 ||
	    vocab_load(&d.vocab, &g, &err) < 0 || run(&d, &err) < 0)
		tool_fail(&err);
	free(d.in.p);
	free(d.out.p);
	tokens_free(&d.ids);
	vocab_free(&d.vocab);
	gguf_close(&g);
	return tool_finish();
}
