/*
 * dllm-chat: a conversation, a turn a line.  The conversation is kept as token
 * ids, and the command behind "--", dllm-sample, answers it.
 */
#define PROG "dllm-chat"
#define TOOL_MIXED 0
#define USAGE "dllm-chat --model PATH [options] -- COMMAND [ARG...]"

#include "tool.h"

#include "chat.h"
#include "child.h"
#include "filter.h"
#include "gguf.h"
#include "tokenizer.h"

static const char *model, *system_text;
static int template = CHAT_UNKNOWN, template_given, model_given, special, nfc;

static const struct opt options[] = {
	{ "model", OPT_STR, &model, "PATH", "GGUF file with the vocabulary",
	    .given = &model_given, .required = 1 },
	{ "system", OPT_STR, &system_text, "TEXT",
	    "a system message in front" },
	{ "template", OPT_WORD, &template, "NAME",
	    "chat template: llada or chatml (default: the model's)",
	    .words = chat_template_names, .given = &template_given },
	{ "special", OPT_FLAG, &special,
	    .help = "text of control tokens becomes these tokens" },
	{ "nfc", OPT_FLAG, &nfc,
	    .help = "Unicode text into Normalisation Form C" },
	{ 0 }
};

static struct {
	struct gguf gguf;
	struct tokenizer tokenizer;
	struct child child;
	int running; /* is there a child? */
	char **command;
	int32_t end; /* the token that ends a turn */
	struct tokens history; /* all turns that were answered */
	struct tokens ask, answer;
	int terminal; /* does a person type? */
} the;

static int
open_model(struct err *err)
{
	enum chat_template it;

	if (gguf_open(&the.gguf, model, err) < 0)
		return -1;
	if (tokenizer_init(&the.tokenizer, &the.gguf, err) < 0)
		return err_prefix(err, "%s", model);
	the.tokenizer.nfc = nfc;
	if (!template_given) {
		if (chat_find(&the.gguf, &it, err) < 0)
			return err_prefix(err, "%s", model);
		template = it;
	}
	the.end = chat_end(&the.tokenizer, template, err);
	if (the.end < 0)
		return err_prefix(err, "%s", model);
	if (chat_has_bos(template) && the.tokenizer.vocab.special.bos < 0)
		return err_set(err, "%s: the vocabulary has no BOS token",
		    model);
	return 0;
}

/* The conversation's first turn, with all that stands before it. */
static int
first_turn(const char *text, size_t n, struct err *err)
{
	struct chat_message m[2] = { { "system", system_text, 0 },
		{ "user", text, n } };
	int from = !system_text;

	if (system_text)
		m[0].n = strlen(system_text);
	if (chat_has_bos(template) &&
	    tokens_push(&the.ask, the.tokenizer.vocab.special.bos, err) < 0)
		return -1;
	return chat_encode(&the.tokenizer, template, m + from,
	    (size_t)(2 - from), special, &the.ask, err);
}

/* ask = history and this turn */
static int
add_turn(const char *text, size_t n, struct err *err)
{
	the.ask.n = 0;
	if (the.history.n == 0)
		return first_turn(text, n, err);
	if (tokens_append(&the.ask, the.history.id, the.history.n, err) < 0)
		return -1;
	return chat_next(&the.tokenizer, template, text, n, special, &the.ask,
	    err);
}

/*
 * What was asked and the answer become history, ids as they are: but tokens
 * that end the text go, and the turn's end is put where the answer was cut
 * before it.
 */
static int
keep_turn(struct err *err)
{
	const struct special_tokens *sp = &the.tokenizer.vocab.special;
	struct tokens *h = &the.history;
	int32_t id;

	h->n = 0;
	if (tokens_append(h, the.ask.id, the.ask.n, err) < 0)
		return -1;
	for (size_t i = 0; i < the.answer.n; i++) {
		id = the.answer.id[i];
		if ((sp->n_eos == 0 || id != sp->eos[0] || id == the.end) &&
		    tokens_push(h, id, err) < 0)
			return -1;
	}
	return h->id[h->n - 1] == the.end ? 0 : tokens_push(h, the.end, err);
}

static int
ask(struct err *err)
{
	if (!the.running) {
		if (child_start(&the.child, the.command, -1, NULL, err) < 0)
			return -1;
		the.running = 1;
	}
	return filter_ask(&the.child, the.ask.id, the.ask.n, &the.answer, err);
}

static void
flush(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		tool_write_failed("standard output");
}

/* A person can go on after a turn that failed, without it. */
static void
turn_failed(struct err *err)
{
	tool_say("ERROR: ", err->msg);
	if (!the.terminal)
		_exit(the.running ? filter_status(&the.child) : 1);
	if (the.running)
		child_drop(&the.child);
	the.running = 0;
}

static void
turn(const char *text, size_t n)
{
	struct err err = { 0 };

	if (add_turn(text, n, &err) < 0 || ask(&err) < 0) {
		turn_failed(&err);
		return;
	}
	if (keep_turn(&err) < 0)
		tool_fail(&err);
	if (vocab_write(&the.tokenizer.vocab, the.answer.id, the.answer.n,
	        stdout) == 0)
		putchar('\n');
	flush();
}

/* Turns until the end of input or /quit. */
static void
converse(void)
{
	char *line = NULL;
	size_t cap = 0, n;
	struct err err = { 0 };
	int got;

	if (the.terminal)
		fputs("/reset forgets the conversation, /quit ends it\n",
		    stderr);
	for (;;) {
		if (the.terminal)
			fputs("> ", stderr);
		got = io_line(stdin, &line, &cap, &n);
		if (got < 0) {
			err_sys(&err, "cannot read standard input");
			tool_fail(&err);
		}
		if (got == 0 || !strcmp(line, "/quit"))
			break;
		if (!strcmp(line, "/reset"))
			the.history.n = 0;
		else if (n > 0)
			turn(line, n);
		if (got == 2)
			break;
	}
	if (the.terminal && got == 0)
		fputc('\n', stderr);
	free(line);
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Talk with a model: each line of standard input is a turn, the "
	    "answer follows.\n/reset forgets the conversation, /quit ends.");

	if (rest == argc) {
		err_set(&err, "the command to run is missing (-- dllm-sample "
		              "-- dllm-forward --serve --model PATH)");
		tool_usage(&err);
	}
	if (open_model(&err) < 0)
		tool_fail(&err);
	the.command = argv + rest;
	the.terminal = isatty(0);
	child_ignore_sigpipe();
	converse();
	if (the.running && child_end(&the.child, &err) < 0) {
		tool_say("ERROR: ", err.msg);
		_exit(filter_status(&the.child));
	}
	signal(SIGPIPE, SIG_DFL);
	tokenizer_free(&the.tokenizer);
	gguf_close(&the.gguf);
	tokens_free(&the.history);
	tokens_free(&the.ask);
	tokens_free(&the.answer);
	return tool_finish();
}
