/*
 * tok-encode: text to token lines.
 */
#define PROG "tok-encode"
#define USAGE \
	"tok-encode --model PATH [--prompt TEXT | --prompt-file FILE | " \
	"--messages FILE | --pairs FILE] [OPTION ...]"

#include "tool.h"

#include "chat.h"
#include "gguf.h"
#include "jsonl.h"
#include "tokenizer.h"

static const char *model, *prompt, *prompt_file, *messages, *pairs,
    *system_text;
static int template = CHAT_UNKNOWN, template_given;
static int chat = -1, bos = -1; /* -1: as the model asks for */
static int special, nfc, lines, null, json, verbose, model_given;

static const struct opt opts[] = {
	{ "model", OPT_STR, &model, "PATH", "GGUF file with the vocabulary",
	    .given = &model_given, .required = 1 },
	{ "prompt", OPT_STR, &prompt, "TEXT",
	    "the prompt (default: standard input)" },
	{ "prompt-file", OPT_STR, &prompt_file, "FILE",
	    "read the prompt from a file" },
	{ "messages", OPT_STR, &messages, "FILE",
	    "a conversation, JSON lines of role and content" },
	{ "pairs", OPT_STR, &pairs, "FILE",
	    "prompts and answers to score, JSON lines of both" },
	{ "system", OPT_STR, &system_text, "TEXT",
	    "a system message in front" },
	{ "template", OPT_WORD, &template, "NAME",
	    "chat template: llada or chatml (default: the model's)",
	    .words = chat_template_names, .given = &template_given },
	{ "chat", OPT_FLAG, &chat, .help = "chat prompt, base model or not" },
	{ "no-chat", OPT_CLEAR, &chat, .help = "text as it is, no template" },
	{ "bos", OPT_FLAG, &bos, .help = "begin with the BOS token" },
	{ "no-bos", OPT_CLEAR, &bos,
	    .help = "do not begin with the BOS token" },
	{ "special", OPT_FLAG, &special,
	    .help = "text of control tokens becomes these tokens" },
	{ "nfc", OPT_FLAG, &nfc,
	    .help = "Unicode text into Normalisation Form C" },
	{ "lines", OPT_FLAG, &lines, .help = "one prompt on each line" },
	{ "null", OPT_FLAG, &null, .help = "prompts end with NUL bytes" },
	{ "json", OPT_FLAG, &json,
	    .help = "JSON objects of tokens and pieces of text" },
	{ "verbose", OPT_FLAG, &verbose,
	    .help = "template and counts on standard error" },
	{ 0 }
};

/* All sequences, one after another. */
struct output {
	struct tokens ids;
	size_t *end; /* (n) where each ends in ids */
	size_t n, cap;
};

/* The options that name the input, of which one may be given. */
static const struct {
	const char *name, *const *value;
} inputs[] = { { "prompt", &prompt }, { "prompt-file", &prompt_file },
	{ "messages", &messages }, { "pairs", &pairs } };
enum { N_INPUTS = sizeof inputs / sizeof *inputs };

static int
reads_stdin(void)
{
	const char *path = messages ? messages : pairs ? pairs : prompt_file;

	return path ? !strcmp(path, "-") : !prompt;
}

static void
check_usage(void)
{
	struct err err = { 0 };

	for (int i = 0; i < N_INPUTS; i++)
		for (int j = i + 1; j < N_INPUTS; j++)
			if (*inputs[i].value && *inputs[j].value)
				err_set(&err, "--%s and --%s exclude each other",
				    inputs[i].name, inputs[j].name);
	if (lines && null)
		err_set(&err, "--lines and --null exclude each other");
	for (int i = 0; i < N_INPUTS; i++)
		if ((lines || null) && *inputs[i].value &&
		    inputs[i].value != &prompt_file)
			err_set(&err, "--%s excludes --%s",
			    lines ? "lines" : "null", inputs[i].name);
	if (chat == 0 && (template_given || system_text || messages))
		err_set(&err, "--no-chat excludes --%s", template_given ?
		    "template" : system_text ? "system" : "messages");
	if (!err.set && reads_stdin() && isatty(0))
		err_set(&err, "no prompt: give --prompt TEXT, or text on "
		    "standard input");
	if (err.set)
		tool_usage(&err);
}

/* Is "base" a word of this text? */
static int
says_base(struct gguf_str s)
{
	static const char word[] = "base";
	size_t k;

	for (size_t i = 0; i + 4 <= s.n; i++) {
		for (k = 0; k < 4 && (s.p[i + k] | 0x20) == word[k]; k++)
			;
		if (k == 4 && (i == 0 || (s.p[i - 1] | 0x20) < 'a' ||
		    (s.p[i - 1] | 0x20) > 'z') && (i + 4 == s.n ||
		    (s.p[i + 4] | 0x20) < 'a' || (s.p[i + 4] | 0x20) > 'z'))
			return 1;
	}
	return 0;
}

static int
is_base(const struct gguf *g, struct err *err)
{
	struct gguf_str name = { "", 0 }, finetune = { "", 0 };

	if (gguf_get_str(g, "general.name", &name, err) < 0 ||
	    gguf_get_str(g, "general.finetune", &finetune, err) < 0)
		return -1;
	return says_base(name) || says_base(finetune);
}

/* Sets template: CHAT_UNKNOWN means that text is encoded as it is. */
static int
choose_template(const struct gguf *g, struct err *err)
{
	int must = chat > 0 || system_text || messages, base, found;
	enum chat_template it;
	struct gguf_str source;

	if (chat == 0 || template_given)
		return 0;
	base = is_base(g, err);
	found = gguf_get_str(g, "tokenizer.chat_template", &source, err);
	if (base < 0 || found < 0)
		return -1;
	if (!must && (base || !found))
		return 0;
	if (chat_find(g, &it, err) < 0)
		return err_prefix(err, "%s", model);
	template = it;
	return 0;
}

static int
choose_bos(const struct gguf *g, const struct tokenizer *t, struct err *err)
{
	if (bos < 0)
		bos = template != CHAT_UNKNOWN ? chat_has_bos(template) :
		    vocab_wants_bos(&t->vocab, g, err);
	if (bos < 0)
		return -1;
	if (bos && t->vocab.special.bos < 0)
		return err_set(err, "%s: the vocabulary has no BOS token "
		    "(give --no-bos)", model);
	return 0;
}

/* A conversation in front of which the system message of --system stands. */
static int
encode_messages(struct tokenizer *t, const struct chat_message *m, size_t n,
    struct tokens *out, struct err *err)
{
	struct chat_message *all;
	int rc;

	if (!system_text)
		return chat_encode(t, template, m, n, special, out, err);
	all = malloc((n + 1) * sizeof *all);
	if (!all)
		return err_set(err, "out of memory");
	all[0] = (struct chat_message){ "system", system_text,
		strlen(system_text) };
	memcpy(all + 1, m, n * sizeof *all);
	rc = chat_encode(t, template, all, n + 1, special, out, err);
	free(all);
	return rc;
}

/* What was appended to the ids is a sequence. */
static int
end_sequence(struct output *o, struct err *err)
{
	size_t *p;

	if (o->n == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 64;
		p = realloc(o->end, o->cap * sizeof *p);
		if (!p)
			return err_set(err, "out of memory");
		o->end = p;
	}
	o->end[o->n++] = o->ids.n;
	return 0;
}

/* Append one sequence: a conversation or, for m NULL, text. */
static int
encode(struct output *o, struct tokenizer *t, const struct chat_message *m,
    size_t n, const char *text, size_t len, struct err *err)
{
	struct chat_message user = { "user", text, len };
	int rc;

	if (bos && tokens_push(&o->ids, t->vocab.special.bos, err) < 0)
		return -1;
	if (template == CHAT_UNKNOWN)
		rc = tokenizer_encode(t, text, len, special, &o->ids, err);
	else if (m)
		rc = encode_messages(t, m, n, &o->ids, err);
	else
		rc = encode_messages(t, &user, 1, &o->ids, err);
	if (rc < 0)
		return err_prefix(err, "%s", model);
	return end_sequence(o, err);
}

/* An answer: its text and, in a chat, the token that ends the turn. */
static int
encode_answer(struct output *o, struct tokenizer *t, const char *text,
    size_t len, struct err *err)
{
	int32_t end = -1;

	if (tokenizer_encode(t, text, len, special, &o->ids, err) < 0 ||
	    (template != CHAT_UNKNOWN && (end = chat_end(t, template, err)) < 0))
		return err_prefix(err, "%s", model);
	if (end >= 0 && tokens_push(&o->ids, end, err) < 0)
		return -1;
	return end_sequence(o, err);
}

/* The next line's prompt and answer; 1, 0 at the end. */
static int
next_pair(struct jsonl *in, const struct json **ask,
    const struct json **answer, struct err *err)
{
	int got = jsonl_next(in, err);

	if (got > 0 && (!(*ask = jsonl_string(in, "prompt", err)) ||
	    !(*answer = jsonl_string(in, "answer", err))))
		got = -1;
	if (got == 0 && in->line == 0)
		got = err_set(err, "no pairs");
	return got < 0 ? err_prefix(err, "%s", strcmp(pairs, "-") ? pairs :
		"standard input") : got;
}

/* Two sequences for each line: the prompt and the answer. */
static int
encode_pairs(struct output *o, struct tokenizer *t, struct err *err)
{
	const struct json *ask = NULL, *answer = NULL;
	struct jsonl in = { 0 };
	char *text;
	size_t n;
	int got;

	if (io_slurp_file(pairs, &text, &n, err) < 0)
		return -1;
	in.at = text;
	in.end = text + n;
	while ((got = next_pair(&in, &ask, &answer, err)) > 0)
		if (encode(o, t, NULL, 0, ask->text, ask->text_len, err) < 0 ||
		    encode_answer(o, t, answer->text, answer->text_len, err) <
		    0)
			break;
	jsonl_free(&in);
	free(text);
	return got == 0 ? 0 : -1;
}

static int
encode_conversation(struct output *o, struct tokenizer *t, struct err *err)
{
	struct chat_messages c = { 0 };
	char *text;
	size_t n;
	int rc;

	if (io_slurp_file(messages, &text, &n, err) < 0)
		return -1;
	rc = chat_messages_parse(&c, text, n, err);
	if (rc == 0 && c.n == 0)
		rc = err_set(err, "no messages");
	else if (rc == 0 && system_text && !strcmp(c.m[0].role, "system"))
		rc = err_set(err, "line 1: a system message, and --system is "
		    "given too");
	if (rc < 0)
		err_prefix(err, "%s", strcmp(messages, "-") ? messages :
			"standard input");
	else
		rc = encode(o, t, c.m, c.n, NULL, 0, err);
	chat_messages_free(&c);
	free(text);
	return rc;
}

/* Each part of the text that ends with the separator, or with the text. */
static int
encode_parts(struct output *o, struct tokenizer *t, const char *text, size_t n,
    char separator, struct err *err)
{
	const char *end = text + n, *stop;

	while (text < end) {
		stop = memchr(text, separator, (size_t)(end - text));
		if (!stop)
			stop = end;
		if (encode(o, t, NULL, 0, text, (size_t)(stop - text), err) < 0)
			return -1;
		text = stop < end ? stop + 1 : end;
	}
	return 0;
}

static int
encode_text(struct output *o, struct tokenizer *t, struct err *err)
{
	char *text;
	size_t n;
	int rc;

	if (prompt)
		return encode(o, t, NULL, 0, prompt, strlen(prompt), err);
	if (io_slurp_file(prompt_file ? prompt_file : "-", &text, &n, err) < 0)
		return -1;
	if (lines || null)
		rc = encode_parts(o, t, text, n, lines ? '\n' : '\0', err);
	else if (n == 0 && reads_stdin())
		/* what should have written a prompt has failed */
		rc = err_set(err, "standard input is empty: no prompt");
	else
		rc = encode(o, t, NULL, 0, text, n, err);
	free(text);
	return rc;
}

static int
write_json(const struct vocab *v, const int32_t *id, size_t n, struct err *err)
{
	char *piece = malloc(VOCAB_MAX_TEXT);

	if (!piece)
		return err_set(err, "out of memory");
	fputs("{\"tokens\":", stdout);
	json_put_ids(stdout, id, n);
	fputs(",\"pieces\":[", stdout);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", stdout);
		json_put_string(stdout, piece,
		    vocab_piece(v, id[i], 1, piece));
	}
	fputs("]}\n", stdout);
	free(piece);
	return 0;
}

static int
write_all(const struct output *o, const struct vocab *v, struct err *err)
{
	size_t from = 0, n;
	int rc = 0;

	for (size_t i = 0; i < o->n && rc == 0; i++, from += n) {
		n = o->end[i] - from;
		if (json)
			rc = write_json(v, o->ids.id + from, n, err);
		else
			rc = tokline_write(stdout, o->ids.id + from, n, err);
		if (verbose)
			fprintf(stderr, "prompt tokens: %zu\n", n);
	}
	return rc;
}

int
main(int argc, char **argv)
{
	struct output o = { 0 };
	struct tokenizer t;
	struct gguf g;
	struct err err = { 0 };

	tool_no_operands(tool_start(opts, argc, argv,
	    "Encode text as token lines, a chat prompt where the model is made "
	    "for it."), argc, argv);
	check_usage();
	if (gguf_open(&g, model, &err) < 0 ||
	    tokenizer_init(&t, &g, &err) < 0 ||
	    choose_template(&g, &err) < 0 || choose_bos(&g, &t, &err) < 0)
		tool_fail(&err);
	t.nfc = nfc;
	if (verbose)
		fprintf(stderr, "template: %s\n", template == CHAT_UNKNOWN ?
		    "none" : chat_template_names[template]);
	if ((messages ? encode_conversation(&o, &t, &err) :
	    pairs ? encode_pairs(&o, &t, &err) :
	    encode_text(&o, &t, &err)) < 0 ||
	    write_all(&o, &t.vocab, &err) < 0)
		tool_fail(&err);
	tokens_free(&o.ids);
	free(o.end);
	tokenizer_free(&t);
	gguf_close(&g);
	return tool_finish();
}
