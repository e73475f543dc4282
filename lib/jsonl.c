#include "jsonl.h"

#include <string.h>

int
jsonl_next(struct jsonl *l, struct err *err)
{
	const char *text = l->at, *lf;

	jsonl_free(l);
	if (text == l->end)
		return 0;
	lf = memchr(text, '\n', (size_t)(l->end - text));
	l->at = lf ? lf + 1 : l->end;
	l->line++;
	if (json_parse(&l->doc, text, (size_t)((lf ? lf : l->end) - text),
	        err) == 0 &&
	    l->doc.root->type != JSON_OBJECT)
		err_set(err, "not a JSON object");
	return err->set ? err_prefix(err, "line %lu", l->line) : 1;
}

void
jsonl_free(struct jsonl *l)
{
	json_free(&l->doc);
	memset(&l->doc, 0, sizeof l->doc);
}

const struct json *
jsonl_string(const struct jsonl *l, const char *key, struct err *err)
{
	const struct json *v = json_get(l->doc.root, key);

	if (v && v->type == JSON_STRING)
		return v;
	err_set(err, v ? "line %lu: \"%s\" is not a string" :
	    "line %lu: no \"%s\"", l->line, key);
	return NULL;
}
