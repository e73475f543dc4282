/* The base modules: err, opt, io, npy, tokline, json, utf8. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "npy.h"
#include "opt.h"
#include "tap.h"
#include "tokline.h"
#include "utf8.h"

static char dir[] = "/tmp/dllm-base.XXXXXX";

static const char *
in_dir(const char *name)
{
	static char path[4][512];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof path[n], "%s/%s", dir, name);
	return path[n];
}

/* How many entries the scratch folder has. */
static int
entries(void)
{
	char cmd[256];
	int n = -1;
	FILE *f;

	snprintf(cmd, sizeof cmd, "ls -A %s | wc -l", dir);
	f = popen(cmd, "r");
	if (f) {
		if (fscanf(f, "%d", &n) != 1)
			n = -1;
		pclose(f);
	}
	return n;
}

static void
test_err(void)
{
	struct err e = { 0 };
	char line[64];
	unsigned n;

	ok(err_set(&e, "first %d", 1) == -1, "err_set returns -1");
	err_set(&e, "second");
	is(e.msg, "first 1", "the first error wins");
	err_prefix(&e, "x.gguf");
	is(e.msg, "x.gguf: first 1", "err_prefix puts the file in front");
	n = err_line(line, sizeof line, "prog", "ERROR: ", "a\nb\x1b[0mc");
	is(line, "prog: ERROR: a?b?[0mc\n", "control characters are replaced");
	ok(n == strlen(line), "err_line returns the length");
	err_line(line, sizeof line, "prog", "", "\xC2\x9B" "31m \xC3\xA9 \xC2");
	is(line, "prog: ??31m \xC3\xA9 \xC2\n", "those above U+0080 too");
	n = err_line(line, 16, "prog", "ERROR: ", "much too long for this");
	ok(n == 15 && line[14] == '\n' && !line[15],
	    "a long message is cut and still ends its line");
}

static struct {
	uint64_t n;
	double x;
	const char *s;
	int flag, word, n_given;
} v;

static int mixed = 1;
static const char *const colours[] = { "red", "green", NULL };
static const struct opt table[] = {
	{ "count", OPT_UINT, &v.n, "N", "a count", .min = 1, .max = 9,
	    .given = &v.n_given },
	{ "real", OPT_REAL, &v.x, "F", "a number", .fmin = 0, .fmax = 2 },
	{ "text", OPT_STR, &v.s, "TEXT", "a string" },
	{ "flag", OPT_FLAG, &v.flag, NULL, "a flag" },
	{ "no-flag", OPT_CLEAR, &v.flag, NULL, "not the flag" },
	{ "colour", OPT_WORD, &v.word, "C", "a word", .words = colours },
	{ 0 },
};

/* Parse up to five words; the message on an error, else "". */
static const char *
parse(const char *a, const char *b, const char *c, const char *d,
    enum opt_result want, int want_rest)
{
	static struct err e;
	char *argv[] = { (char *)"prog", (char *)a, (char *)b, (char *)c,
		(char *)d, NULL };
	int argc = 1, rest = -1;
	enum opt_result got;

	while (argv[argc])
		argc++;
	memset(&v, 0, sizeof v);
	memset(&e, 0, sizeof e);
	got = opt_parse(table, mixed, argc, argv, &rest, &e);
	ok(got == want && (want != OPT_OK || rest == want_rest),
	    "parse %s %s: result %d, rest %d", a ? a : "nothing", b ? b : "",
	    got, rest);
	return e.msg;
}

static void
test_opt(void)
{
	static const char *const names[] = { "run", "inspect", "tokenize",
		NULL };
	uint64_t n = 7;
	const char *near;

	parse("--count", "3", "--text=a=b", "--flag", OPT_OK, 5);
	ok(v.n == 3 && v.n_given && v.flag == 1, "values are stored");
	is(v.s, "a=b", "only the first '=' splits");
	parse("--flag", "--no-flag", "x", "--count=2", OPT_OK, 4);
	ok(v.flag == 0 && v.n == 2, "the last of a pair wins, behind a word");
	parse("x", "--count", "4", "--", OPT_OK, 4);
	ok(v.n == 4, "an option behind a word takes its value");
	parse("x", "--", "--count", "4", OPT_OK, 2);
	ok(v.n == 0, "nothing behind -- is an option");
	mixed = 0;
	parse("--flag", "cmd", "--count", "4", OPT_OK, 2);
	ok(v.flag == 1 && v.n == 0, "a command ends the options");
	parse("--", "cmd", "--count", "4", OPT_OK, 2);
	mixed = 1;
	parse("--count=3", "--", "--count", "4", OPT_OK, 3);
	ok(v.n == 3, "parsing stops at --");
	parse("-", NULL, NULL, NULL, OPT_OK, 1);
	parse("--nonsense", "--help", NULL, NULL, OPT_HELP, 0);
	parse("-h", NULL, NULL, NULL, OPT_HELP, 0);
	is(parse("--", "--help", NULL, NULL, OPT_OK, 2), "", "help behind --");
	parse("--version", NULL, NULL, NULL, OPT_VERSION, 0);
	is(parse("--count", NULL, NULL, NULL, OPT_ERROR, 0),
	    "--count: a value is missing", "missing value");
	is(parse("--count", "10", NULL, NULL, OPT_ERROR, 0),
	    "--count '10': not in 1..9", "above the range");
	is(parse("--count", "0", NULL, NULL, OPT_ERROR, 0),
	    "--count '0': not in 1..9", "below the range");
	is(parse("--count", "3x", NULL, NULL, OPT_ERROR, 0),
	    "--count '3x': not in 1..9", "not wholly a number");
	is(parse("--count", " 3", NULL, NULL, OPT_ERROR, 0),
	    "--count ' 3': not in 1..9", "a space before");
	is(parse("--count", "18446744073709551617", NULL, NULL, OPT_ERROR, 0),
	    "--count '18446744073709551617': not in 1..9", "overflow");
	is(parse("--real", "nan", NULL, NULL, OPT_ERROR, 0),
	    "--real 'nan': not a number", "nan");
	is(parse("--real", "1e999", NULL, NULL, OPT_ERROR, 0),
	    "--real '1e999': not a number", "infinite");
	is(parse("--real=", NULL, NULL, NULL, OPT_ERROR, 0),
	    "--real '': not a number", "empty");
	is(parse("--real=2.5", NULL, NULL, NULL, OPT_ERROR, 0),
	    "--real '2.5': not in 0..2", "real above the range");
	is(parse("--colour", "blue", NULL, NULL, OPT_ERROR, 0),
	    "--colour 'blue': not one of red, green", "unknown word");
	is(parse("--flag=1", NULL, NULL, NULL, OPT_ERROR, 0),
	    "--flag takes no value", "value for a flag");
	is(parse("--coun", "3", NULL, NULL, OPT_ERROR, 0),
	    "unknown option '--coun' (did you mean --count?)",
	    "no abbreviations");
	is(parse("-c", NULL, NULL, NULL, OPT_ERROR, 0), "unknown option '-c'",
	    "no short options");
	parse("--colour", "green", "--real=0.5", NULL, OPT_OK, 4);
	ok(v.word == 1 && v.x == 0.5, "word and real");

	ok(opt_uint("18446744073709551615", 0, UINT64_MAX, &n) == 0 &&
	        n == UINT64_MAX,
	    "opt_uint reads 2^64-1");
	ok(opt_uint("", 0, 9, &n) < 0 && opt_uint("-1", 0, 9, &n) < 0,
	    "opt_uint refuses nothing and signs");
	near = opt_closest("inpsect", names);
	is(near ? near : "", "inspect", "closest word");
	near = opt_closest("rnu", names);
	is(near ? near : "", "run", "swapped letters count once");
	ok(!opt_closest("zzz", names), "nothing near");
}

static void
test_io(void)
{
	struct outfile o;
	struct err e = { 0 };
	struct stat st;
	char *text = NULL, buf[16], name[256];
	size_t n;
	int fd;

	ok(io_create(&o, in_dir("a"), &e) == 0, "create a file");
	fputs("new", o.f);
	ok(access(in_dir("a"), F_OK) < 0, "nothing appears before commit");
	ok(io_commit(&o, &e) == 0 &&
	        io_slurp_file(in_dir("a"), &text, &n, &e) == 0 && n == 3,
	    "it appears at commit");
	free(text);
	ok(io_create_large(&o, in_dir("large"), &e) == 0, "a large file");
	for (n = 0; n < 5 << 20; n++)
		putc((int)(n * 2654435761u >> 24 & 255), o.f);
	ok(io_commit(&o, &e) == 0 &&
	        io_slurp_file(in_dir("large"), &text, &n, &e) == 0 &&
	        n == 5 << 20, "all of it appears");
	while (n > 0 && (text[n - 1] & 255) ==
	    (int)((n - 1) * 2654435761u >> 24 & 255))
		n--;
	ok(n == 0, "as it was written");
	free(text);
	ok(io_create_large(&o, in_dir("large"), &e) == 0 &&
	        fputs("lost", o.f) >= 0, "a large file again");
	io_abort(&o);
	ok(stat(in_dir("large"), &st) == 0 && st.st_size == 5 << 20,
	    "abort leaves the old one");
	unlink(in_dir("large"));
	ok(chmod(in_dir("a"), 0640) == 0 &&
	        io_create(&o, in_dir("a"), &e) == 0,
	    "create over a file");
	fputs("other", o.f);
	io_abort(&o);
	ok(io_slurp_file(in_dir("a"), &text, &n, &e) == 0 &&
	        !strcmp(text, "new"),
	    "abort leaves the old file");
	free(text);
	ok(io_create(&o, in_dir("a"), &e) == 0 && io_commit(&o, &e) == 0 &&
	        stat(in_dir("a"), &st) == 0 && (st.st_mode & 0777) == 0640,
	    "a replaced file keeps its mode");
	ok(symlink("a", in_dir("link")) == 0 &&
	        io_create(&o, in_dir("link"), &e) == 0 &&
	        fputs("through", o.f) >= 0 && io_commit(&o, &e) == 0 &&
	        lstat(in_dir("link"), &st) == 0 && S_ISLNK(st.st_mode),
	    "a symbolic link stays one");
	ok(io_create(&o, in_dir("b"), &e) == 0, "create another");
	io_discard_outputs();
	io_abort(&o);
	ok(entries() == 2, "discarded outputs leave nothing behind");
	memset(name, 'n', 255);
	name[255] = '\0';
	ok(io_create(&o, in_dir(name), &e) == 0 && io_commit(&o, &e) == 0 &&
	        unlink(in_dir(name)) == 0,
	    "a name as long as names can be");
	ok(symlink("none", in_dir("lost")) == 0 &&
	        io_create(&o, in_dir("lost"), &e) < 0 &&
	        lstat(in_dir("lost"), &st) == 0 && S_ISLNK(st.st_mode) &&
	        unlink(in_dir("lost")) == 0,
	    "a symbolic link to nothing is refused and stays");
	memset(&e, 0, sizeof e);
	ok(io_create(&o, "-", &e) < 0 && access("-", F_OK) < 0,
	    "a file named - is refused");
	memset(&e, 0, sizeof e);
	ok(io_create(&o, dir, &e) < 0, "a folder is refused");
	is(e.msg + strlen(e.msg) - 14, "Is a directory", "and named");
	memset(&e, 0, sizeof e);
	ok(io_create(&o, in_dir("no/such"), &e) < 0, "no such folder");
	memset(&e, 0, sizeof e);
	ok(io_create(&o, "/dev/full", &e) == 0 && !o.temp,
	    "a device is opened directly");
	fputs("x", o.f);
	ok(io_commit(&o, &e) < 0, "a full device fails at commit");
	is(e.msg, "cannot write '/dev/full': No space left on device",
	    "with its reason");

	fd = open(in_dir("a"), O_RDWR);
	ok(fd >= 0 && io_pwrite_all(fd, "abc", 3, 4) == 0 &&
	        io_read_all(fd, buf, sizeof buf) == 7 &&
	        !memcmp(buf + 4, "abc", 3),
	    "pwrite and read");
	io_close(&fd);
	ok(fd == -1, "io_close marks the descriptor");
}

static void
test_npy(void)
{
	static const float x[6] = { 0, 1, 2, 3, 4, 5 };
	uint64_t one[1] = { 6 }, big[2] = { 1ull << 40, 1ull << 40 };
	char head[NPY_ALIGN_SHARED + 64];
	struct npy a;
	struct err e = { 0 };
	size_t n;

	ok(npy_save_f32(in_dir("x.npy"), 2, 3, x, &e) == 0, "save");
	ok(npy_open(&a, in_dir("x.npy"), &e) == 0 && a.type == NPY_F4 &&
	        a.n_dims == 2 && a.shape[0] == 2 && a.shape[1] == 3 &&
	        a.count == 6 && !memcmp(a.data, x, sizeof x),
	    "open gives it back");
	ok((uintptr_t)a.data % NPY_ALIGN == 0, "data is aligned");
	npy_close(&a);
	n = npy_header(head, NPY_ALIGN_SHARED, NPY_I4, 1, one);
	ok(n == 4096 && head[n - 1] == '\n', "a shared header is a page");
	ok(npy_parse(&a, head, n, &e) < 0, "data that is missing");
	is(e.msg, "the .npy data is cut short", "is an error");
	memset(&e, 0, sizeof e);
	n = npy_header(head, NPY_ALIGN, NPY_F8, 2, big);
	ok(npy_parse(&a, head, n, &e) < 0, "a shape that overflows");
	is(e.msg, "the .npy shape overflows", "is an error");
	memset(&e, 0, sizeof e);
	n = npy_header(head, NPY_ALIGN, NPY_F4, 1, one);
	for (size_t cut = 0; cut < n; cut++) {
		memset(&e, 0, sizeof e);
		if (npy_parse(&a, head, cut, &e) == 0)
			break;
		if (cut == n - 1)
			ok(1, "a header cut anywhere is refused");
	}
	memcpy(strstr(head + 10, "<f4"), ">f4", 3);
	memset(&e, 0, sizeof e);
	ok(npy_parse(&a, head, sizeof head, &e) < 0, "big-endian is refused");
	n = npy_header(head, NPY_ALIGN, NPY_F4, 0, one);
	memset(&e, 0, sizeof e);
	ok(npy_parse(&a, head, n + 4, &e) == 0 && a.count == 1, "a scalar");
}

static const char *
tokens_of(const char *text, size_t n, size_t want)
{
	static struct err e;
	struct tokens t = { 0 };

	memset(&e, 0, sizeof e);
	if (tokline_parse(text, n, &t, &e) == 0 && t.n != want)
		snprintf(e.msg, sizeof e.msg, "%zu ids", t.n);
	tokens_free(&t);
	return e.msg;
}

static void
test_tokline(void)
{
	static const char good[] = "1 2 3\n\n2147483647\n";
	FILE *f = fmemopen((void *)good, strlen(good), "r");
	struct tokline r = { .f = f };
	struct tokens t = { 0 };
	struct err e = { 0 };

	ok(tokline_read(&r, &t, &e) == 1 && t.n == 3 && t.id[2] == 3, "line 1");
	ok(tokline_read(&r, &t, &e) == 1 && t.n == 0, "an empty line");
	ok(tokline_read(&r, &t, &e) == 1 && t.n == 1 && t.id[0] == INT32_MAX,
	    "the largest id");
	ok(tokline_read(&r, &t, &e) == 0, "a clean end");
	fclose(f);
	tokline_free(&r);

	f = fmemopen((void *)"1 2\n3", 5, "r");
	r = (struct tokline){ .f = f };
	tokline_read(&r, &t, &e);
	ok(tokline_read(&r, &t, &e) < 0, "no LF at the end");
	is(e.msg, "standard input ended inside a token line", "is an error");
	fclose(f);
	tokline_free(&r);

	memset(&e, 0, sizeof e);
	f = fopen("/dev/null", "r");
	r = (struct tokline){ .f = f };
	ok(tokline_read(&r, &t, &e) < 0, "no line at all");
	is(e.msg, "standard input ended before a token line", "is an error");
	fclose(f);
	tokline_free(&r);

	memset(&e, 0, sizeof e);
	f = fmemopen((void *)"1\n1 x\n", 6, "r");
	r = (struct tokline){ .f = f, .name = "F" };
	tokline_read(&r, &t, &e);
	ok(tokline_read(&r, &t, &e) < 0, "a bad line");
	is(e.msg, "F: line 2: byte 3: not a token id", "is named");
	fclose(f);
	tokline_free(&r);
	tokens_free(&t);

	is(tokens_of("0", 1, 1), "", "zero");
	is(tokens_of("01", 2, 0), "byte 1: not a token id", "leading zero");
	is(tokens_of("-1", 2, 0), "byte 1: not a token id", "a sign");
	is(tokens_of("1  2", 4, 0), "byte 3: not a token id", "two spaces");
	is(tokens_of("1 ", 2, 0), "byte 2: not a token id", "trailing space");
	is(tokens_of(" 1", 2, 0), "byte 1: not a token id", "leading space");
	is(tokens_of("1\t2", 3, 0), "byte 2: not a token id", "a tab");
	is(tokens_of("1\0002", 3, 0), "byte 2: not a token id", "a NUL");
	is(tokens_of("7 2147483648", 12, 0),
	    "byte 3: the token id is above 2147483647", "too large");
	is(tokens_of("99999999999999999999999", 23, 0),
	    "byte 1: the token id is above 2147483647", "far too large");
}

static const char *
json_error(const char *text)
{
	static struct err e;
	struct json_doc d;

	memset(&e, 0, sizeof e);
	json_parse(&d, text, strlen(text), &e);
	json_free(&d);
	return e.msg;
}

static void
test_json(void)
{
	static const char text[] =
	    " {\"a\":[1,-2.5e1,true,null],\"s\":\"\\u00e9\\ud83d\\ude00"
	    "\\ud800\\n\",\"o\":{},\"a\":\"last\"} ";
	char deep[200], *out = NULL;
	struct json_doc d;
	struct err e = { 0 };
	const struct json *j;
	size_t n;
	FILE *f;

	ok(json_parse(&d, text, strlen(text), &e) == 0, "parse");
	ok(d.root->type == JSON_OBJECT && d.root->n == 4, "an object of four");
	j = d.root->first;
	ok(j->type == JSON_ARRAY && j->n == 4 && j->first->number == 1 &&
	        j->first->next->number == -25,
	    "an array");
	is(json_get(d.root, "s")->text, "\xC3\xA9\xF0\x9F\x98\x80\xEF\xBF\xBD\n",
	    "escapes, pairs, a lone surrogate");
	is(json_get(d.root, "a")->text, "last", "the last of a key counts");
	ok(!json_get(d.root, "none"), "a key that is not there");
	json_free(&d);

	is(json_error(""), "byte 1: a JSON value expected", "nothing");
	is(json_error("{\"a\":1,}"), "byte 8: a string expected", "comma");
	is(json_error("[1 2]"), "byte 4: ',' or ']' expected", "no comma");
	is(json_error("01"), "byte 2: text behind the JSON value", "01");
	is(json_error("1."), "byte 1: not a JSON value", "1.");
	is(json_error("\"a"), "byte 2: the string does not end", "open string");
	is(json_error("\"\\"), "byte 2: the string does not end", "backslash");
	is(json_error("\"\\x\""), "byte 3: unknown escape in a string", "\\x");
	is(json_error("\"\\u12\""), "byte 6: four hexadecimal digits expected",
	    "short \\u");
	is(json_error("\"\\u004\x11\""),
	    "byte 7: four hexadecimal digits expected", "a control character");
	is(json_error("tru"), "byte 1: not a JSON value", "tru");
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	is(json_error(deep), "byte 66: nested too deep", "deep");

	f = open_memstream(&out, &n);
	json_put_string(f, "a\"\\\n\x01\xff\xC3\xA9", 8);
	fclose(f);
	is(out, "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xC3\xA9\"", "put a string");
	free(out);
}

static void
test_utf8(void)
{
	static const char *const bad[] = { "\x80", "\xC0\x80", "\xC1\xBF",
		"\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
		"\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE4\xB8",
		"\xC3(", "\xFF" };
	char buf[4];
	uint32_t cp, back;
	size_t n, wrong = 0;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		wrong += utf8_decode(bad[i], strlen(bad[i]), &cp) != 0;
	ok(wrong == 0, "ill-formed sequences are refused");
	for (cp = 0; cp <= 0x10FFFF; cp++) {
		if (cp >= 0xD800 && cp < 0xE000)
			continue;
		n = utf8_encode(cp, buf);
		wrong += utf8_decode(buf, n, &back) != n || back != cp;
		wrong += n > 1 && utf8_decode(buf, n - 1, &back) != 0;
	}
	ok(wrong == 0, "every code point comes back");
}

int
main(void)
{
	char cmd[64];

	if (!mkdtemp(dir))
		return 1;
	test_err();
	test_opt();
	test_io();
	test_npy();
	test_tokline();
	test_json();
	test_utf8();
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	ok(system(cmd) == 0, "clean up");
	return tap_end();
}
