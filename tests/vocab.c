/* Vocabularies made by hand: what loads, what is refused, what text becomes. */
#include <stdlib.h>
#include <unistd.h>

#include "chat.h"
#include "gguf_write.h"
#include "tap.h"
#include "tokenizer.h"

static char path[] = "/tmp/dllm-vocab.XXXXXX";

struct token {
	const char *text;
	int type;
};

/* 0 to 7: letters; then what BPE can make of them and special ones. */
static const struct token base[] = { { "a", 1 }, { "b", 1 }, { "c", 1 },
	{ "d", 1 }, { "e", 1 }, { "\xc4\xa0", 1 }, { "\xc4\x8a", 1 },
	{ "1", 1 }, { "ab", 1 }, { "abc", 3 }, { "cd", 1 }, { "dede", 1 },
	{ "<u>", 4 }, { "<u><u>", 4 }, { "ab<u>c", 4 }, { "<e>", 3 },
	{ "<0x41>", 6 }, { "<0xZZ>", 6 }, { "[P]", 5 }, { "u", 0 },
	{ "x y", 1 }, { "", 1 } };
enum { N_BASE = sizeof base / sizeof *base };

static const char *const merges[] = { "a b", "ab c", "d e", "de de", "c d",
	"a b", "no-space" };

struct options {
	const char *model, *pre;
	int no_types, no_merges;
	int type_of_0; /* instead of 1 */
	uint32_t vocab_size, eos, mask;
	const struct token *more;
	int n_more;
	size_t long_text; /* bytes of one more token */
};

static void
put_tokens(struct gguf_writer *w, const struct options *o)
{
	uint64_t n = N_BASE + (uint64_t)o->n_more + (o->long_text > 0);
	char *text = malloc(o->long_text + 1);

	memset(text, 'x', o->long_text + 1);
	gguf_put_array(w, "tokenizer.ggml.tokens", GGUF_STRING, n);
	for (int i = 0; i < N_BASE; i++)
		gguf_item_str(w, base[i].text, strlen(base[i].text));
	for (int i = 0; i < o->n_more; i++)
		gguf_item_str(w, o->more[i].text, strlen(o->more[i].text));
	if (o->long_text)
		gguf_item_str(w, text, o->long_text);
	free(text);
	if (o->no_types)
		return;
	gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, n);
	for (int i = 0; i < N_BASE; i++)
		gguf_item_i32(w, i == 0 && o->type_of_0 ? o->type_of_0 :
			base[i].type);
	for (int i = 0; i < o->n_more; i++)
		gguf_item_i32(w, o->more[i].type);
	if (o->long_text)
		gguf_item_i32(w, 1);
}

/* Write the file and open it. */
static int
make(struct gguf *g, const struct options *o, struct err *err)
{
	struct gguf_writer w = { 0 };
	FILE *f = fopen(path, "w");
	int n = sizeof merges / sizeof *merges, rc;

	gguf_put_str(&w, "general.architecture", "llada");
	gguf_put_str(&w, "tokenizer.ggml.model", o->model ? o->model : "gpt2");
	if (!o->pre || *o->pre)
		gguf_put_str(&w, "tokenizer.ggml.pre",
		    o->pre ? o->pre : "qwen2");
	put_tokens(&w, o);
	if (!o->no_merges) {
		gguf_put_array(&w, "tokenizer.ggml.merges", GGUF_STRING,
		    (uint64_t)n);
		for (int i = 0; i < n; i++)
			gguf_item_str(&w, merges[i], strlen(merges[i]));
	}
	if (o->vocab_size)
		gguf_put_u32(&w, "llada.vocab_size", o->vocab_size);
	if (o->eos)
		gguf_put_u32(&w, "tokenizer.ggml.eos_token_id", o->eos);
	if (o->mask)
		gguf_put_u32(&w, "tokenizer.ggml.mask_token_id", o->mask);
	rc = gguf_write_head(&w, f, err);
	gguf_writer_free(&w);
	fclose(f);
	return rc < 0 ? -1 : gguf_open(g, path, err);
}

/* Loading must fail with this message behind the path. */
static void
refused(const struct options *o, const char *want)
{
	struct tokenizer t;
	struct err err = { 0 };
	struct gguf g;
	char full[512];

	snprintf(full, sizeof full, "%s: %s", path, want);
	if (make(&g, o, &err) == 0) {
		if (tokenizer_init(&t, &g, &err) == 0)
			tokenizer_free(&t);
		gguf_close(&g);
	}
	is(err.msg, full, want);
}

/* Encoding gives these ids, or this error. */
static void
gives(struct tokenizer *t, const char *text, int special, const char *want)
{
	struct tokens out = { 0 };
	struct err err = { 0 };
	char got[256] = "";
	size_t n = 0;

	tokenizer_encode(t, text, strlen(text), special, &out, &err);
	for (size_t i = 0; i < out.n && n < sizeof got - 12; i++)
		n += (size_t)snprintf(got + n, sizeof got - n, "%s%d",
		    i ? " " : "", out.id[i]);
	is(err.set ? err.msg : got, want, text);
	tokens_free(&out);
}

static void
piece(const struct vocab *v, int32_t id, int special, const char *want)
{
	char out[64];
	size_t n = vocab_piece(v, id, special, out);

	ok(n <= vocab_piece_max(v, id) && n == strlen(want) &&
	    !memcmp(out, want, n), "token %d decodes to '%s'", id, want);
}

static void
test_encode(void)
{
	struct options o = { .eos = 15 };
	struct tokenizer t;
	struct err err = { 0 };
	struct gguf g;

	if (!ok(make(&g, &o, &err) == 0 && tokenizer_init(&t, &g, &err) == 0,
	    "loads: %s", err.msg))
		return;
	gives(&t, "ab", 0, "8");
	gives(&t, "abab", 0, "8 8");
	gives(&t, "abcd", 0, "0 1 2 3"); /* abc is a control token */
	gives(&t, "abcd", 1, "9 3");
	gives(&t, "e abc", 0, "4 5 0 1 2");
	gives(&t, "e abc", 1, "4 5 9");
	gives(&t, "dede", 0, "11");
	gives(&t, "de", 0, "3 4"); /* joined, but no token: bytes */
	gives(&t, "cde", 0, "2 3 4"); /* d e comes before c d */
	gives(&t, "cd", 0, "10");
	gives(&t, "<u><u><u>", 0, "13 12"); /* longest first */
	gives(&t, "ab<u>c", 0, "14");
	gives(&t, "ab<u>cd<u>", 0, "14 3 12");
	gives(&t, "ab<u><u>c", 0, "8 13 2");
	gives(&t, "a<e>b", 1, "0 15 1");
	gives(&t, "a<e>b", 0,
	    "the vocabulary has no token for the byte 0x3c");
	gives(&t, "11", 0, "7 7");
	gives(&t, "", 1, "");
	gives(&t, "\xff", 0, "the vocabulary has no token for the byte 0xef");
	piece(&t.vocab, 5, 0, " ");
	piece(&t.vocab, 9, 0, "");
	piece(&t.vocab, 9, 1, "abc");
	piece(&t.vocab, 12, 0, "<u>");
	piece(&t.vocab, 16, 0, "A");
	piece(&t.vocab, 17, 0, "");
	piece(&t.vocab, 18, 1, "");
	piece(&t.vocab, 19, 1, "");
	piece(&t.vocab, 20, 0, "x y"); /* a space is no byte's character */
	piece(&t.vocab, 21, 1, "");
	piece(&t.vocab, N_BASE, 1, "");
	tokenizer_free(&t);
	gguf_close(&g);
}

/* llama-bpe: whole words that are tokens, numbers of three. */
static void
test_llama_bpe(void)
{
	static const struct token more[] = { { "bcd", 1 }, { "111", 1 },
		{ "de", 3 } };
	struct options o = { .pre = "llama-bpe", .more = more, .n_more = 3 };
	struct tokenizer t;
	struct err err = { 0 };
	struct gguf g;

	if (!ok(make(&g, &o, &err) == 0 && tokenizer_init(&t, &g, &err) == 0,
	    "llama-bpe loads: %s", err.msg))
		return;
	gives(&t, "bcd", 0, "22");
	gives(&t, "bcda", 0, "1 10 0");
	gives(&t, "1111", 0, "23 7");
	gives(&t, "de", 0, "3 4"); /* text is never a control token */
	tokenizer_free(&t);
	gguf_close(&g);
}

static void
test_rows(void)
{
	static const struct token more[] = { { "<|im_end|>", 3 },
		{ "</s>", 1 }, { "<|eot_id|>", 3 }, { "<|mask|>", 3 } };
	struct options o = { .vocab_size = 40, .eos = 24, .more = more,
		.n_more = 4, .no_types = 0 };
	struct vocab v;
	struct err err = { 0 };
	struct gguf g;

	if (!ok(make(&g, &o, &err) == 0 && vocab_load(&v, &g, &err) == 0,
	    "more rows than tokens: %s", err.msg))
		return;
	ok(v.n == 26 && v.n_rows == 40, "26 tokens, 40 rows");
	piece(&v, 39, 1, "");
	ok(v.special.n_eos == 2 && v.special.eos[0] == 24 &&
	    v.special.eos[1] == 22, "the key's end token first, then by text");
	ok(special_is_eos(&v.special, 22) && !special_is_eos(&v.special, 23),
	    "an ordinary token is no end token");
	ok(v.special.mask == 25 && v.special.bos == -1, "mask by its text");
	vocab_free(&v);
	gguf_close(&g);
	o.mask = 3;
	o.no_types = 1;
	o.vocab_size = 5;
	if (!ok(make(&g, &o, &err) == 0 && vocab_load(&v, &g, &err) == 0,
	    "without types: %s", err.msg))
		return;
	ok(v.special.mask == 3, "the key's mask");
	ok(v.n_rows == 26 && v.type[9] == TOKEN_NORMAL, "all are normal");
	vocab_free(&v);
	gguf_close(&g);
}

static void
test_refused(void)
{
	static const struct token twice[] = { { "ab", 1 } };

	refused(&(struct options){ .model = "llama" },
	    "unsupported tokenizer: llama (supported: gpt2)");
	refused(&(struct options){ .pre = "gpt-4o" },
	    "unsupported pre-tokenizer: gpt-4o (supported: bailingmoe, "
	    "bailingmoe2, llada-moe, qwen2, llama-bpe)");
	refused(&(struct options){ .pre = "" },
	    "required metadata key missing: tokenizer.ggml.pre");
	refused(&(struct options){ .no_merges = 1 },
	    "required metadata key missing: tokenizer.ggml.merges");
	refused(&(struct options){ .type_of_0 = 7 },
	    "key tokenizer.ggml.token_type gives token 0 the unknown type 7");
	refused(&(struct options){ .type_of_0 = -1 },
	    "key tokenizer.ggml.token_type gives token 0 the unknown type -1");
	refused(&(struct options){ .more = twice, .n_more = 1 },
	    "tokens 8 and 22 have the same text");
	refused(&(struct options){ .eos = N_BASE },
	    "key tokenizer.ggml.eos_token_id is 22, expected 0 to 21");
	refused(&(struct options){ .mask = UINT32_MAX },
	    "key tokenizer.ggml.mask_token_id is 4294967295, expected 0 to 21");
	refused(&(struct options){ .long_text = VOCAB_MAX_TEXT + 1 },
	    "the text of token 22 has 65537 bytes, at most 65536 are allowed");
}

/* A template whose own tokens text could write is refused. */
static void
test_forgeable(void)
{
	static const struct token more[] = { { "<|start_header_id|>", 3 },
		{ "<|end_header_id|>", 3 }, { "<|eot_id|>", 4 } };
	struct options o = { .more = more, .n_more = 3 };
	struct chat_message m = { "a", "b", 1 };
	struct tokens out = { 0 };
	struct tokenizer t;
	struct err err = { 0 };
	struct gguf g;

	if (!ok(make(&g, &o, &err) == 0 && tokenizer_init(&t, &g, &err) == 0,
	    "loads: %s", err.msg))
		return;
	ok(tokenizer_control(&t, "<|start_header_id|>") == 22 &&
	    tokenizer_control(&t, "<|eot_id|>") == -1, "control tokens");
	chat_encode(&t, CHAT_LLADA, &m, 1, 0, &out, &err);
	is(err.msg, "template llada: the vocabulary has no control token "
	    "<|eot_id|>", "a user-defined end of turn is refused");
	tokens_free(&out);
	tokenizer_free(&t);
	gguf_close(&g);
}

int
main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 99;
	close(fd);
	test_encode();
	test_llama_bpe();
	test_rows();
	test_refused();
	test_forgeable();
	unlink(path);
	return tap_end();
}
