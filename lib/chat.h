/*
 * Chat prompts.  The template in a file is a program; it is recognised by
 * substrings and never run.  What it would write is written here, with the
 * template's own tokens as single ids and each message encoded as text, so
 * that a message cannot forge a turn.
 */
#ifndef CHAT_H
#define CHAT_H

#include <stddef.h>

#include "err.h"
#include "gguf.h"
#include "json.h"
#include "tokenizer.h"
#include "tokline.h"

enum chat_template { CHAT_UNKNOWN = -1, CHAT_LLADA, CHAT_CHATML };

/* NULL-terminated, in the order of the enum: "llada", "chatml". */
extern const char *const chat_template_names[];

/* Which one is it? */
enum chat_template chat_recognise(struct gguf_str source);

/* The template of a file; none, or one that is not recognised, is an error. */
int chat_find(const struct gguf *g, enum chat_template *tmpl, struct err *err);

/* Does this template begin with the BOS token? */
int chat_has_bos(enum chat_template tmpl);

struct chat_message {
	const char *role; /* "system", "user" or "assistant" */
	const char *text;
	size_t n; /* bytes of text */
};

/*
 * Append the conversation and the header of the answer.
 *
 * llada: text is trimmed of white space at both ends; chatml: text as it is,
 * and unless the first message is a system message the default one,
 * "You are a helpful assistant.", stands first.  special: control tokens are
 * recognised in the messages too.  Fails if a token of the template is not a
 * control token of the vocabulary.
 */
int chat_encode(struct tokenizer *t, enum chat_template tmpl,
    const struct chat_message *m, size_t n, int special, struct tokens *out,
    struct err *err);

/*
 * Append what stands between an answer, which ends with the token of
 * chat_end, and the next one: the user's turn, the header of the answer.
 */
int chat_next(struct tokenizer *t, enum chat_template tmpl, const char *text,
    size_t n, int special, struct tokens *out, struct err *err);

/* The token that ends a turn, or -1 with err set. */
int32_t chat_end(struct tokenizer *t, enum chat_template tmpl,
    struct err *err);

/* A conversation read from JSON lines; zero before use. */
struct chat_messages {
	struct chat_message *m;
	size_t n, cap;
	struct json_doc *doc; /* (cap) what the messages point into */
};

/*
 * Append the messages in text: one object with the strings role and content
 * on each line, other members are ignored.  Errors name the line.
 */
int chat_messages_parse(struct chat_messages *c, const char *text, size_t n,
    struct err *err);
void chat_messages_free(struct chat_messages *c);

#endif
