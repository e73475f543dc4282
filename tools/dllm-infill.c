/*
 * dllm-infill: text with holes to text without.  The holes become masks, and
 * the command behind "--", dllm-sample, fills them.
 */
#define PROG "dllm-infill"
#define TOOL_MIXED 0
#define USAGE "dllm-infill --model PATH [options] -- COMMAND [ARG...]"

#include "tool.h"

#include "chat.h"
#include "child.h"
#include "filter.h"
#include "gguf.h"
#include "json.h"
#include "tokenizer.h"

enum { MAX_HOLE = 1 << 20 };

static const char *model, *text, *text_file, *prefix, *suffix, *prompt;
static uint64_t hole;
static int model_given, hole_given, fill_only, special, nfc, bos = -1;

static const struct opt options[] = {
	{ "model", OPT_STR, &model, "PATH", "GGUF file with the vocabulary",
	    .given = &model_given, .required = 1 },
	{ "text", OPT_STR, &text, "TEXT",
	    "text with holes, [MASK] or [MASK:N] (default: standard input)" },
	{ "text-file", OPT_STR, &text_file, "FILE",
	    "read the text from a file" },
	{ "prefix", OPT_STR, &prefix, "FILE",
	    "one hole instead: what stands before it" },
	{ "suffix", OPT_STR, &suffix, "FILE", "what stands behind it" },
	{ "hole", OPT_UINT, &hole, "N", "tokens between prefix and suffix",
	    .min = 1, .max = MAX_HOLE, .given = &hole_given },
	{ "prompt", OPT_STR, &prompt, "TEXT",
	    "the text is the answer to this, in a chat" },
	{ "bos", OPT_FLAG, &bos, .help = "begin with the BOS token" },
	{ "no-bos", OPT_CLEAR, &bos, .help = "do not begin with the BOS token" },
	{ "special", OPT_FLAG, &special,
	    .help = "text of control tokens becomes these tokens" },
	{ "nfc", OPT_FLAG, &nfc,
	    .help = "Unicode text into Normalisation Form C" },
	{ "fill-only", OPT_FLAG, &fill_only,
	    .help = "print one JSON string a hole, not the whole text" },
	{ 0 }
};

/* Text with the hole behind it; the last one has none. */
struct part {
	const char *text;
	size_t n;
	size_t hole; /* tokens, 0: none */
	size_t at;   /* position of the hole */
};

static struct {
	struct part *part;
	size_t n, cap;
	char *file[2]; /* what the parts lie in, unless in an argument */
	struct gguf gguf;
	struct tokenizer tokenizer;
	struct child child;
	struct tokens ids, filled;
} the;

static void
check_usage(int rest, int argc)
{
	if (text && text_file)
		tool_misuse("--text and --text-file exclude each other");
	if ((text || text_file) && (prefix || suffix))
		tool_misuse("--prefix and --suffix exclude --text and --text-file");
	if ((prefix || suffix) && !hole_given)
		tool_misuse("--prefix and --suffix need --hole");
	if (hole_given && !prefix && !suffix)
		tool_misuse("--hole needs --prefix or --suffix");
	if (rest == argc)
		tool_misuse("the command to run is missing (-- dllm-sample "
		      "--max-tokens 0 -- dllm-forward --serve --model PATH)");
	if (!text && !prefix && !suffix &&
	    (!text_file || !strcmp(text_file, "-")) && isatty(0))
		tool_misuse("no text: give --text TEXT, or text on standard input");
}

static int
add_part(const char *s, size_t n, size_t tokens, struct err *err)
{
	struct part *p;

	if (the.n == the.cap) {
		the.cap = the.cap ? 2 * the.cap : 16;
		p = realloc(the.part, the.cap * sizeof *p);
		if (!p)
			return err_set(err, "out of memory");
		the.part = p;
	}
	the.part[the.n++] = (struct part){ s, n, tokens, 0 };
	return 0;
}

/*
 * Does a hole begin here?  Its length in bytes, or 0; *tokens is 0 where the
 * number in it is none.
 */
static size_t
hole_at(const char *s, const char *end, size_t *tokens)
{
	static const char open[] = "[MASK";
	const char *p = s + sizeof open - 1;
	size_t n = 0, digits = 0;

	if (end - s < (long)sizeof open || memcmp(s, open, sizeof open - 1))
		return 0;
	*tokens = 1;
	if (*p == ']')
		return sizeof open;
	if (*p++ != ':')
		return 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++, digits++)
		n = n > MAX_HOLE ? n : 10 * n + (size_t)(*p - '0');
	*tokens = p < end && *p == ']' && digits && n <= MAX_HOLE ? n : 0;
	return (size_t)(p - s) + 1;
}

/* Cut text at its holes. */
static int
cut(const char *s, size_t n, struct err *err)
{
	const char *end = s + n, *from = s;
	size_t tokens, len;

	while (s < end) {
		len = hole_at(s, end, &tokens);
		if (!len) {
			s++;
			continue;
		}
		if (!tokens)
			return err_set(err, "hole %zu: not [MASK] or [MASK:N], "
			    "N from 1 to %d", the.n + 1, (int)MAX_HOLE);
		if (add_part(from, (size_t)(s - from), tokens, err) < 0)
			return -1;
		s = from = s + len;
	}
	if (the.n == 0)
		return err_set(err, "the text has no [MASK]");
	return add_part(from, (size_t)(end - from), 0, err);
}

static int
read_parts(struct err *err)
{
	size_t n = 0, m = 0;

	if (text)
		return cut(text, strlen(text), err);
	if (!prefix && !suffix) {
		if (io_slurp_file(text_file ? text_file : "-", &the.file[0], &n,
		        err) < 0)
			return -1;
		return cut(the.file[0], n, err);
	}
	if ((prefix && io_slurp_file(prefix, &the.file[0], &n, err) < 0) ||
	    (suffix && io_slurp_file(suffix, &the.file[1], &m, err) < 0) ||
	    add_part(prefix ? the.file[0] : "", n, (size_t)hole, err) < 0)
		return -1;
	return add_part(suffix ? the.file[1] : "", m, 0, err);
}

/* What stands before the text; *end is the token behind it, or -1. */
static int
encode_context(int32_t *end, struct err *err)
{
	const struct special_tokens *sp = &the.tokenizer.vocab.special;
	struct chat_message ask = { "user", prompt, 0 };
	enum chat_template tmpl = CHAT_UNKNOWN;

	*end = -1;
	if (prompt && (chat_find(&the.gguf, &tmpl, err) < 0 ||
	    (*end = chat_end(&the.tokenizer, tmpl, err)) < 0))
		return -1;
	if (bos < 0)
		bos = prompt ? chat_has_bos(tmpl) :
		    vocab_wants_bos(&the.tokenizer.vocab, &the.gguf, err);
	if (bos < 0)
		return -1;
	if (bos && sp->bos < 0)
		return err_set(err, "the vocabulary has no BOS token (give "
		    "--no-bos)");
	if (bos && tokens_push(&the.ids, sp->bos, err) < 0)
		return -1;
	if (!prompt)
		return 0;
	ask.n = strlen(prompt);
	return chat_encode(&the.tokenizer, tmpl, &ask, 1, special, &the.ids,
	    err);
}

/* All ids, each piece of text encoded by itself, masks in the holes. */
static int
encode(struct err *err)
{
	const struct special_tokens *sp = &the.tokenizer.vocab.special;
	int32_t end;

	the.tokenizer.nfc = nfc;
	if (sp->mask < 0)
		return err_set(err, "the vocabulary has no mask token");
	if (encode_context(&end, err) < 0)
		return -1;
	for (size_t i = 0; i < the.n; i++) {
		struct part *p = &the.part[i];

		if (tokenizer_encode(&the.tokenizer, p->text, p->n, special,
		        &the.ids, err) < 0)
			return -1;
		p->at = the.ids.n;
		for (size_t k = 0; k < p->hole; k++)
			if (tokens_push(&the.ids, sp->mask, err) < 0)
				return -1;
	}
	return end < 0 ? 0 : tokens_push(&the.ids, end, err);
}

__attribute__((noreturn)) static void
fail_child(struct err *err)
{
	tool_say("ERROR: ", err->msg);
	_exit(filter_status(&the.child));
}

static void
fill(char **command)
{
	struct err err = { 0 };

	child_ignore_sigpipe();
	if (child_start(&the.child, command, -1, NULL, &err) < 0)
		tool_fail(&err);
	if (filter_ask(&the.child, the.ids.id, the.ids.n, &the.filled, &err) <
	    0)
		fail_child(&err);
	if (the.filled.n != the.ids.n) {
		err_set(&err, "%s answered with %zu ids, not %zu (has it "
		    "--max-tokens 0?)", command[0], the.filled.n, the.ids.n);
		tool_fail(&err);
	}
	if (child_end(&the.child, &err) < 0)
		fail_child(&err);
}

static void
print_hole(const struct part *p)
{
	const struct vocab *v = &the.tokenizer.vocab;
	const int32_t *id = the.filled.id + p->at;
	struct err err = { 0 };
	char *s = NULL;
	size_t n;
	FILE *f = stdout;

	if (fill_only)
		f = open_memstream(&s, &n);
	if (!f || vocab_write(v, id, p->hole, f) < 0 ||
	    (fill_only && fclose(f) != 0)) {
		err_sys(&err, "cannot write text");
		tool_fail(&err);
	}
	if (!fill_only)
		return;
	json_put_string(stdout, s, n);
	putchar('\n');
	free(s);
}

static void
print(void)
{
	for (size_t i = 0; i < the.n; i++) {
		if (!fill_only && the.part[i].n)
			fwrite(the.part[i].text, 1, the.part[i].n, stdout);
		if (the.part[i].hole)
			print_hole(&the.part[i]);
	}
	if (text && !fill_only)
		putchar('\n');
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Fill the holes of a text: [MASK] is one token, [MASK:12] twelve.");

	check_usage(rest, argc);
	if (read_parts(&err) < 0)
		tool_fail(&err);
	if (gguf_open(&the.gguf, model, &err) < 0)
		tool_fail(&err);
	if (tokenizer_init(&the.tokenizer, &the.gguf, &err) < 0 ||
	    encode(&err) < 0) {
		err_prefix(&err, "%s", model);
		tool_fail(&err);
	}
	fill(argv + rest);
	signal(SIGPIPE, SIG_DFL);
	print();
	tokenizer_free(&the.tokenizer);
	gguf_close(&the.gguf);
	tokens_free(&the.ids);
	tokens_free(&the.filled);
	free(the.part);
	free(the.file[0]);
	free(the.file[1]);
	return tool_finish();
}
