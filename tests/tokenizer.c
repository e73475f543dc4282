/*
 * The tokeniser against golden cases (ids printed by llama.cpp or following
 * from the rules), and properties on random text.
 */
#include <stdlib.h>
#include <unistd.h>

#include "chat.h"
#include "gguf.h"
#include "io.h"
#include "json.h"
#include "tap.h"
#include "tokenizer.h"
#include "unicode.h"
#include "utf8.h"

static const char golden[] = "tests/golden/tokenizer";
static char dir[] = "/tmp/dllm-tokenizer.XXXXXX";

static const struct {
	const char *name, *file; /* ending in .gguf: in the golden folder */
} vocabs[] = {
	{ "pocket-llada", "lib/models/pocket-llada-q4_k_m.gguf" },
	{ "pocket-dream", "vocab-pocket-dream" },
	{ "tiny-llada", "vocab-tiny-llada" },
	{ "vocab-mixed", "vocab-mixed" },
	{ "vocab-gpt2-bailingmoe", "vocab-gpt2-bailingmoe" },
	{ "vocab-gpt2-qwen2", "vocab-gpt2-qwen2" },
	{ "vocab-gpt2-llama-bpe", "vocab-gpt2-llama-bpe" },
	{ "vocab-qwen2", "vocab-qwen2" },
};
enum { N_VOCABS = sizeof vocabs / sizeof *vocabs };

static struct gguf file[N_VOCABS];
static struct tokenizer tok[N_VOCABS];

/* Open vocabulary i, unpacking it first where it is packed. */
static int
open_vocab(int i, struct err *err)
{
	const char *name = vocabs[i].file;
	char path[256], cmd[600];

	snprintf(path, sizeof path, "%s", name);
	if (!strstr(name, ".gguf")) {
		snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
		snprintf(cmd, sizeof cmd, "gzip -dc %s/%s.gguf.gz >%s", golden,
		    name, path);
		if (system(cmd) != 0)
			return err_set(err, "cannot unpack %s", name);
	}
	if (gguf_open(&file[i], path, err) < 0)
		return -1;
	return tokenizer_init(&tok[i], &file[i], err);
}

static int
vocab_index(const struct json *v)
{
	for (int i = 0; v && i < N_VOCABS; i++)
		if (!strcmp(v->text, vocabs[i].name))
			return i;
	return -1;
}

static size_t
unhex(const struct json *v, char *out)
{
	unsigned byte;
	size_t n = 0;

	for (; n < v->text_len / 2; n++) {
		sscanf(v->text + 2 * n, "%2x", &byte);
		out[n] = (char)byte;
	}
	return n;
}

static int
is_true(const struct json *object, const char *key)
{
	return json_get(object, key)->type == JSON_TRUE;
}

static void
ids_of(const struct json *array, struct tokens *t, struct err *err)
{
	t->n = 0;
	for (const struct json *m = array->first; m; m = m->next)
		tokens_push(t, (int32_t)m->number, err);
}

static int
same_ids(const struct tokens *a, const struct tokens *b)
{
	return a->n == b->n &&
	    (a->n == 0 || !memcmp(a->id, b->id, a->n * sizeof *a->id));
}

/* id_runs: pairs of id and count. */
static void
runs_of(const struct json *array, struct tokens *t, struct err *err)
{
	t->n = 0;
	for (const struct json *m = array->first; m; m = m->next)
		for (int i = 0; i < m->first->next->number; i++)
			tokens_push(t, (int32_t)m->first->number, err);
}

static int
check_text(const struct json *c, struct tokens *got, struct tokens *want,
    struct err *err)
{
	struct tokenizer *t = &tok[vocab_index(json_get(c, "vocab"))];
	const struct json *hex = json_get(c, "text_hex");
	size_t n, repeat = 1;
	char *text;

	if (hex) {
		text = malloc(hex->text_len + 1);
		n = unhex(hex, text);
		ids_of(json_get(c, "ids"), want, err);
	} else {
		repeat = (size_t)json_get(c, "repeat")->number;
		text = malloc(repeat);
		unhex(json_get(c, "byte_hex"), text);
		memset(text, *text, repeat);
		n = repeat;
		runs_of(json_get(c, "id_runs"), want, err);
	}
	got->n = 0;
	if (is_true(c, "add_bos"))
		tokens_push(got, t->vocab.special.bos, err);
	tokenizer_encode(t, text, n, is_true(c, "parse_special"), got, err);
	free(text);
	return !err->set && same_ids(got, want) &&
	    !strcmp(json_get(c, "pre")->text, t->bpe.pre->name);
}

static int
check_decode(const struct json *c, struct tokens *got, struct tokens *want,
    struct err *err)
{
	const struct vocab *v = &tok[vocab_index(json_get(c, "vocab"))].vocab;
	const struct json *hex = json_get(c, "bytes_hex");
	char bytes[4096], out[4096];
	size_t n = unhex(hex, bytes), n_out = 0;

	(void)got;
	ids_of(json_get(c, "ids"), want, err);
	for (size_t i = 0; i < want->n; i++)
		if (n_out + vocab_piece_max(v, want->id[i]) <= sizeof out)
			n_out += vocab_piece(v, want->id[i],
			    is_true(c, "special"), out + n_out);
	return !err->set && n == n_out && !memcmp(bytes, out, n);
}

static int
check_chat(const struct json *c, struct tokens *got, struct tokens *want,
    struct err *err)
{
	struct tokenizer *t = &tok[vocab_index(json_get(c, "vocab"))];
	int tmpl = strcmp(json_get(c, "template")->text, "llada") ?
	    CHAT_CHATML : CHAT_LLADA;
	struct chat_message m[16];
	struct gguf_str source;
	size_t n = 0;

	ids_of(json_get(c, "ids"), want, err);
	for (const struct json *j = json_get(c, "messages")->first;
	    j && n < 16; j = j->next, n++) {
		m[n].role = json_get(j, "role")->text;
		m[n].text = json_get(j, "content")->text;
		m[n].n = json_get(j, "content")->text_len;
	}
	got->n = 0;
	if (chat_has_bos(tmpl))
		tokens_push(got, t->vocab.special.bos, err);
	chat_encode(t, tmpl, m, n, 0, got, err);
	if (!same_ids(got, want))
		return 0;
	/* the template in the file is recognised as this one */
	return gguf_get_str(&file[t - tok], "tokenizer.chat_template", &source,
	    err) == 1 && (int)chat_recognise(source) == tmpl;
}

static void
report(const struct tokens *got, const struct err *err)
{
	printf("# got:");
	for (size_t i = 0; i < got->n && i < 60; i++)
		printf(" %d", got->id[i]);
	printf("\n# %s\n", err->set ? err->msg : "no error");
}

/* Every line of a file; one check per vocabulary. */
static void
run_cases(const char *name, int (*check)(const struct json *, struct tokens *,
    struct tokens *, struct err *))
{
	int passed[N_VOCABS] = { 0 }, failed[N_VOCABS] = { 0 }, i;
	struct tokens got = { 0 }, want = { 0 };
	struct err err = { 0 };
	struct json_doc doc;
	size_t cap = 0, len;
	char path[256], *line = NULL;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", golden, name);
	f = fopen(path, "r");
	if (!ok(f != NULL, "%s is there", path))
		return;
	for (int n = 1; io_line(f, &line, &cap, &len) == 1; n++) {
		memset(&err, 0, sizeof err);
		json_parse(&doc, line, len, &err);
		i = vocab_index(json_get(doc.root, "vocab"));
		if (i < 0) {
			ok(0, "%s:%d: unknown vocabulary", name, n);
		} else if (check(doc.root, &got, &want, &err)) {
			passed[i]++;
		} else {
			failed[i]++;
			printf("# %s:%d: %.300s\n", name, n, line);
			report(&got, &err);
		}
		json_free(&doc);
	}
	fclose(f);
	for (i = 0; i < N_VOCABS; i++)
		if (passed[i] + failed[i])
			ok(failed[i] == 0, "%s: %s: %d cases", name,
			    vocabs[i].name, passed[i] + failed[i]);
	free(line);
	tokens_free(&got);
	tokens_free(&want);
}

static uint64_t seed = 20240611;

static unsigned
rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* What splitters disagree about, in UTF-8. */
static const char *const alphabet[] = { "'s", "'S", "'ll", "'Ll", "'re", "'VE",
	"'d", "'T", "'", "\u2019s", "\u02BCs", "a", "Z", "\u00e9", "\u00df",
	"\u00f1", "\u0130", "\u017f", "\u212a", "\u0131", "\u4e2d", "\u6587",
	"\u0434", "\u0416", "\u01c5", "\u02b0", "\u1fb3", "1", "23", "\u00b2",
	"\u00bd", "\u2167", "\u0663", "\u0966", " ", "  ", "   ", "\n", "\r",
	"\r\n", "\t", "\x0b", "\x0c", "\xc2\x85", "\u00a0", "\u2003", "\u2028",
	"\u3000", "\u200b", "\ufeff", "_", "-", "--", ".", "!", "?", "/", "$",
	"+", "=", "^", "~", "|", "`", "<", ">", "{", "}", "(", ")", "\"",
	"\u0301", "\u0300", "\u093e", "\u20e3", "\U0001F600",
	"\U0001F468\u200D\U0001F469", "\U0001F1E9\U0001F1EA", "\x01", "\x7f",
	"\ue000", "\U0010FFFD", "\ufffd", "\U000E0FFF", "<|endoftext|>",
	"<|im_end|>", "<|eot_id|>", "word", "hello" };

static size_t
random_text(char *s)
{
	size_t n = 0, len;

	for (unsigned k = 1 + rnd(14); k > 0; k--) {
		const char *piece =
		    alphabet[rnd(sizeof alphabet / sizeof *alphabet)];

		len = strlen(piece);
		memcpy(s + n, piece, len);
		n += len;
	}
	return n;
}

static size_t
decode(const struct vocab *v, const struct tokens *t, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += vocab_piece(v, t->id[i], 1, out + n);
	return n;
}

static int
has_control(const struct vocab *v, const struct tokens *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (v->type[t->id[i]] == TOKEN_CONTROL)
			return 1;
	return 0;
}

static void
test_round_trip(int i)
{
	struct tokens t = { 0 };
	struct err err = { 0 };
	char text[1024], back[4096];
	int bad = 0, forged = 0, special;
	size_t n;

	for (int k = 0; k < 1500; k++) {
		special = (int)rnd(2);
		n = random_text(text);
		t.n = 0;
		tokenizer_encode(&tok[i], text, n, special, &t, &err);
		if (decode(&tok[i].vocab, &t, back) != n ||
		    memcmp(text, back, n))
			bad++;
		if (!special && has_control(&tok[i].vocab, &t))
			forged++;
	}
	ok(!err.set && bad == 0, "%s: text comes back (%d of 1500 differ)",
	    vocabs[i].name, bad);
	ok(forged == 0, "%s: text alone gives no control token",
	    vocabs[i].name);
	tokens_free(&t);
}

/* Random bytes come back too, each bad one as U+FFFD. */
static void
test_bad_bytes(int i)
{
	struct tokens t = { 0 };
	struct err err = { 0 };
	char text[64], want[256], back[1024];
	size_t n, len, n_want;
	uint32_t cp;
	int bad = 0;

	for (int k = 0; k < 3000; k++) {
		n = rnd(sizeof text);
		n_want = 0;
		for (size_t j = 0; j < n; j++)
			text[j] = (char)(rnd(3) ? 0x80 + rnd(128) : rnd(128));
		for (size_t j = 0; j < n; j += len) {
			len = utf8_decode(text + j, n - j, &cp);
			n_want += utf8_encode(len ? cp : UTF8_REPLACEMENT,
			    want + n_want);
			len += len == 0;
		}
		t.n = 0;
		tokenizer_encode(&tok[i], text, n, (int)rnd(2), &t, &err);
		if (decode(&tok[i].vocab, &t, back) != n_want ||
		    memcmp(want, back, n_want))
			bad++;
	}
	ok(!err.set && bad == 0, "%s: bad bytes become U+FFFD (%d differ)",
	    vocabs[i].name, bad);
	tokens_free(&t);
}

static void
test_special(void)
{
	/* by vocabulary: bos, mask, end tokens */
	static const struct {
		int32_t bos, mask, eos[3];
		int n_eos;
	} want[N_VOCABS] = {
		{ 1016, 1020, { 1017, 1023 }, 2 },
		{ 1019, 1020, { 1016, 1018 }, 2 },
		{ 257, 259, { 258 }, 1 },
		{ 259, -1, { 268 }, 1 },
		{ 50256, -1, { 50256 }, 1 },
		{ 50256, -1, { 50256 }, 1 },
		{ 50256, -1, { 50256 }, 1 },
		{ 151665, 151666, { 151643, 151645 }, 2 },
	};

	for (int i = 0; i < N_VOCABS; i++) {
		const struct special_tokens *s = &tok[i].vocab.special;

		ok(s->bos == want[i].bos && s->mask == want[i].mask &&
		    s->n_eos == want[i].n_eos && !memcmp(s->eos, want[i].eos,
		    sizeof *s->eos * (size_t)s->n_eos),
		    "%s: bos %d, mask %d, %d end tokens, first %d",
		    vocabs[i].name, s->bos, s->mask, s->n_eos, s->eos[0]);
	}
}

static void
test_bytes(void)
{
	int back = 0, distinct = 0;
	char seen[512] = { 0 };

	for (int b = 0; b < 256; b++) {
		uint32_t cp = vocab_byte_to_char((uint8_t)b);

		back += vocab_char_to_byte(cp) == b;
		distinct += cp < 512 && !seen[cp];
		seen[cp & 511] = 1;
	}
	ok(back == 256 && distinct == 256, "bytes and characters map 1:1");
	ok(vocab_byte_to_char(' ') == 0x120 &&
	    vocab_byte_to_char('\n') == 0x10A &&
	    vocab_byte_to_char(0xAD) == 0x143, "space, newline, soft hyphen");
	ok(vocab_char_to_byte(' ') < 0 && vocab_char_to_byte(0xAD) < 0 &&
	    vocab_char_to_byte(0x144) < 0, "other characters are no bytes");
}

static void
test_unicode(void)
{
	static const uint32_t space[] = { 9, 10, 11, 12, 13, 0x20, 0x85, 0xA0,
		0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
		0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F,
		0x3000 };
	size_t k = 0, n_space = sizeof space / sizeof *space, n;
	const char *s = " \xe3\x80\x80\n a \xc2\x85 b\xc2\xa0\t";
	int good = 1;

	for (uint32_t cp = 0; cp <= 0x10FFFF; cp++)
		if (unicode_class(cp) == UNICODE_SPACE)
			good &= k < n_space && space[k++] == cp;
	ok(good && k == n_space, "white space is exactly these characters");
	ok(unicode_class(0x4E2D) == UNICODE_LETTER &&
	    unicode_class(0x9FFF) == UNICODE_LETTER &&
	    unicode_class(0xAC00) == UNICODE_LETTER &&
	    unicode_class(0x2B0) == UNICODE_LETTER, "letters");
	ok(unicode_class(0xB2) == UNICODE_NUMBER &&
	    unicode_class(0x2167) == UNICODE_NUMBER &&
	    unicode_class(0x663) == UNICODE_NUMBER, "numbers");
	ok(unicode_class(0x301) == UNICODE_OTHER &&
	    unicode_class(0x200B) == UNICODE_OTHER &&
	    unicode_class(0xFEFF) == UNICODE_OTHER &&
	    unicode_class(0x1C) == UNICODE_OTHER &&
	    unicode_class(0x10FFFF) == UNICODE_OTHER, "others");
	n = strlen(s);
	unicode_trim(&s, &n);
	ok(n == 6 && !memcmp(s, "a \xc2\x85 b", n), "trimmed");
	s = " \n\t";
	n = 3;
	unicode_trim(&s, &n);
	ok(n == 0, "trimmed to nothing");
	s = "\x80 \xa0";
	n = 3;
	unicode_trim(&s, &n);
	ok(n == 3, "bad bytes stay");
}

/* The committed tables are what the script makes of Unicode's file. */
static void
test_tables(void)
{
	const char *name = "lib/unicode_data.h is up to date";
	const char *data = "/usr/share/unicode/UnicodeData.txt";
	char cmd[512];

	if (access(data, R_OK) < 0) {
		skip(name, "no UnicodeData.txt here");
		return;
	}
	if (system("grep -q 'Version 15\\.0\\.0' "
	    "/usr/share/unicode/ReadMe.txt") != 0) {
		skip(name, "UnicodeData.txt is not of version 15.0.0");
		return;
	}
	snprintf(cmd, sizeof cmd,
	    "lib/unicode-gen %s | cmp - lib/unicode_data.h", data);
	ok(system(cmd) == 0, "%s", name);
}

static void
test_templates(void)
{
	static const struct {
		const char *source;
		enum chat_template want;
	} t[] = {
		{ "", CHAT_UNKNOWN },
		{ "{{ messages }}", CHAT_UNKNOWN },
		{ "<|start_header_id|>", CHAT_UNKNOWN },
		{ "x<|start_header_id|>y<|end_header_id|>z", CHAT_LLADA },
		{ "<|im_start|>", CHAT_CHATML },
		{ "<|im_start|", CHAT_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		ok(chat_recognise((struct gguf_str){ t[i].source,
		    strlen(t[i].source) }) == t[i].want, "template '%s'",
		    t[i].source);
}

int
main(void)
{
	struct err err = { 0 };

	if (!mkdtemp(dir))
		return 99;
	for (int i = 0; i < N_VOCABS; i++)
		if (!ok(open_vocab(i, &err) == 0, "%s loads", vocabs[i].name)) {
			printf("# %s\n", err.msg);
			return tap_end();
		}
	run_cases("cases.jsonl", check_text);
	run_cases("long.jsonl", check_text);
	run_cases("decode.jsonl", check_decode);
	run_cases("chat.jsonl", check_chat);
	for (int i = 0; i < N_VOCABS; i++)
		if (strcmp(vocabs[i].name, "tiny-llada")) {
			test_round_trip(i);
			test_bad_bytes(i);
		}
	test_special();
	test_bytes();
	test_unicode();
	test_tables();
	test_templates();
	for (int i = 0; i < N_VOCABS; i++) {
		tokenizer_free(&tok[i]);
		gguf_close(&file[i]);
	}
	if (chdir(dir) == 0 && system("rm -f *.gguf") == 0 && chdir("/") == 0)
		rmdir(dir);
	return tap_end();
}
