#include "chat.h"

#include <stdlib.h>
#include <string.h>

#include "unicode.h"

const char *const chat_template_names[] = { "llada", "chatml", NULL };

/*
 * A turn is: open, role, close, gap and text, end, after_end.  The gap is
 * encoded together with the text, as one piece of the rendered conversation
 * between two special tokens is; where there is no close, so is the role.
 */
struct form {
	int bos, trim;
	const char *open, *close, *gap, *end, *after_end;
	const char *system; /* default system message */
};

static const struct form forms[] = {
	[CHAT_LLADA] = { 1, 1, "<|start_header_id|>", "<|end_header_id|>",
	    "\n\n", "<|eot_id|>", "", NULL },
	[CHAT_CHATML] = { 0, 0, "<|im_start|>", NULL, "\n", "<|im_end|>", "\n",
	    "You are a helpful assistant." },
};

static int
contains(struct gguf_str s, const char *what)
{
	size_t n = strlen(what);

	for (size_t i = 0; i + n <= s.n; i++)
		if (!memcmp(s.p + i, what, n))
			return 1;
	return 0;
}

enum chat_template
chat_recognise(struct gguf_str source)
{
	if (contains(source, "<|im_start|>"))
		return CHAT_CHATML;
	if (contains(source, "<|start_header_id|>") &&
	    contains(source, "<|end_header_id|>"))
		return CHAT_LLADA;
	return CHAT_UNKNOWN;
}

int
chat_find(const struct gguf *g, enum chat_template *tmpl, struct err *err)
{
	struct gguf_str source;
	int found = gguf_get_str(g, "tokenizer.chat_template", &source, err);

	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, "no chat template (give --template llada "
		    "or --template chatml)");
	*tmpl = chat_recognise(source);
	if (*tmpl == CHAT_UNKNOWN)
		return err_set(err, "chat template not recognised (give "
		    "--template llada, --template chatml or --no-chat)");
	return 0;
}

int
chat_has_bos(enum chat_template tmpl)
{
	return forms[tmpl].bos;
}

struct renderer {
	struct tokenizer *t;
	const struct form *form;
	enum chat_template tmpl;
	struct tokens *out;
	struct err *err;
};

static int32_t
control(struct tokenizer *t, enum chat_template tmpl, const char *text,
    struct err *err)
{
	int32_t id = tokenizer_control(t, text);

	if (id < 0)
		err_set(err,
		    "template %s: the vocabulary has no control token %s",
		    chat_template_names[tmpl], text);
	return id;
}

static int
put_control(struct renderer *r, const char *text)
{
	int32_t id = control(r->t, r->tmpl, text, r->err);

	return id < 0 ? -1 : tokens_push(r->out, id, r->err);
}

static int
put_text(struct renderer *r, const char *s, size_t n, int special)
{
	return tokenizer_encode(r->t, s, n, special, r->out, r->err);
}

/* head, gap and text as one piece. */
static int
put_body(struct renderer *r, const char *head, const char *text, size_t n,
    int special)
{
	size_t n_head = strlen(head), n_gap = strlen(r->form->gap);
	char *s = malloc(n_head + n_gap + n + 1);
	int rc;

	if (!s)
		return err_set(r->err, "out of memory");
	memcpy(s, head, n_head);
	memcpy(s + n_head, r->form->gap, n_gap);
	if (n)
		memcpy(s + n_head + n_gap, text, n);
	rc = put_text(r, s, n_head + n_gap + n, special);
	free(s);
	return rc;
}

static int
put_turn(struct renderer *r, const char *role, const char *text, size_t n,
    int special)
{
	const struct form *f = r->form;

	if (put_control(r, f->open) < 0)
		return -1;
	if (!f->close)
		return put_body(r, role, text, n, special);
	if (put_text(r, role, strlen(role), 0) < 0 ||
	    put_control(r, f->close) < 0)
		return -1;
	return put_body(r, "", text, n, special);
}

static int
put_message(struct renderer *r, const char *role, const char *text, size_t n,
    int special)
{
	const struct form *f = r->form;

	if (f->trim)
		unicode_trim(&text, &n);
	if (put_turn(r, role, text, n, special) < 0 ||
	    put_control(r, f->end) < 0)
		return -1;
	return put_text(r, f->after_end, strlen(f->after_end), 0);
}

int
chat_encode(struct tokenizer *t, enum chat_template tmpl,
    const struct chat_message *m, size_t n, int special, struct tokens *out,
    struct err *err)
{
	const struct form *f = &forms[tmpl];
	struct renderer r = { t, f, tmpl, out, err };

	if (f->system && (n == 0 || strcmp(m[0].role, "system")) &&
	    put_message(&r, "system", f->system, strlen(f->system), 0) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (put_message(&r, m[i].role, m[i].text, m[i].n, special) < 0)
			return -1;
	return put_turn(&r, "assistant", "", 0, 0);
}

int
chat_next(struct tokenizer *t, enum chat_template tmpl, const char *text,
    size_t n, int special, struct tokens *out, struct err *err)
{
	const struct form *f = &forms[tmpl];
	struct renderer r = { t, f, tmpl, out, err };

	if (put_text(&r, f->after_end, strlen(f->after_end), 0) < 0 ||
	    put_message(&r, "user", text, n, special) < 0)
		return -1;
	return put_turn(&r, "assistant", "", 0, 0);
}

int32_t
chat_end(struct tokenizer *t, enum chat_template tmpl, struct err *err)
{
	return control(t, tmpl, forms[tmpl].end, err);
}

static const struct json *
string_member(const struct json *object, const char *key, struct err *err)
{
	const struct json *v = json_get(object, key);

	if (!v)
		err_set(err, "the message has no \"%s\"", key);
	else if (v->type != JSON_STRING)
		err_set(err, "\"%s\" is not a string", key);
	else
		return v;
	return NULL;
}

static int
parse_message(struct chat_message *m, struct json_doc *doc, const char *line,
    size_t n, struct err *err)
{
	static const char *const roles[] = { "system", "user", "assistant" };
	const struct json *role, *content;

	if (json_parse(doc, line, n, err) < 0)
		return -1;
	if (doc->root->type != JSON_OBJECT)
		return err_set(err, "not a JSON object");
	role = string_member(doc->root, "role", err);
	content = role ? string_member(doc->root, "content", err) : NULL;
	if (!content)
		return -1;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (role->text_len == strlen(roles[i]) &&
		    !memcmp(role->text, roles[i], role->text_len)) {
			m->role = roles[i];
			m->text = content->text;
			m->n = content->text_len;
			return 0;
		}
	return err_set(err, "unknown role '%s' (system, user, assistant)",
	    role->text);
}

static int
grow(struct chat_messages *c, struct err *err)
{
	size_t cap = c->cap ? 2 * c->cap : 16;
	struct chat_message *m = realloc(c->m, cap * sizeof *m);
	struct json_doc *doc;

	if (!m)
		return err_set(err, "out of memory");
	c->m = m;
	doc = realloc(c->doc, cap * sizeof *doc);
	if (!doc)
		return err_set(err, "out of memory");
	c->doc = doc;
	c->cap = cap;
	return 0;
}

int
chat_messages_parse(struct chat_messages *c, const char *text, size_t n,
    struct err *err)
{
	const char *end = text + n, *lf;
	unsigned long line = 1;
	int rc;

	for (; text < end; text = lf < end ? lf + 1 : end, line++) {
		lf = memchr(text, '\n', (size_t)(end - text));
		if (!lf)
			lf = end;
		if (c->n == c->cap && grow(c, err) < 0)
			return -1;
		rc = parse_message(&c->m[c->n], &c->doc[c->n], text,
		    (size_t)(lf - text), err);
		c->n++; /* the document is there in both cases */
		if (rc < 0)
			return err_prefix(err, "line %lu", line);
	}
	return 0;
}

void
chat_messages_free(struct chat_messages *c)
{
	for (size_t i = 0; i < c->n; i++)
		json_free(&c->doc[i]);
	free(c->m);
	free(c->doc);
	memset(c, 0, sizeof *c);
}
