/*
 * The GGUF reader on bytes in memory: typed access, every truncation of every
 * good file, many names, JSON that parses, and what --check looks at.  Buffers
 * have the exact size, so that a sanitizer sees a read behind the end.
 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

#include "gguf_check.h"
#include "gguf_list.h"
#include "gguf_parse.h"
#include "gguf_write.h"
#include "io.h"
#include "json.h"
#include "tap.h"

#define GOLDEN "tests/golden/gguf/"

/* Parse bytes as a file; the caller keeps them until mem_close. */
static int
mem_open(struct gguf *g, const void *bytes, size_t n, struct err *err)
{
	memset(g, 0, sizeof *g);
	g->file = calloc(1, sizeof *g->file);
	g->file->path = strdup("memory");
	g->n_files = 1;
	g->file->map = bytes;
	g->file->size = n;
	return gguf_parse(g, err) < 0 ? -1 : gguf_index_tensors(g, err);
}

static void
mem_close(struct gguf *g)
{
	g->file->map = NULL; /* not to be unmapped */
	gguf_close(g);
}

static void
test_scalars(const struct gguf *g)
{
	struct err err = { 0 };
	struct gguf_str s;
	uint64_t u = 77;
	float f;
	int b;

	ok(gguf_get_uint(g, "t.u8", 0, 255, &u, &err) == 1 && u == 255, "u8");
	ok(gguf_get_uint(g, "t.u16", 0, 65535, &u, &err) == 1 && u == 65535,
	    "u16");
	ok(gguf_get_uint(g, "t.u32", 0, UINT32_MAX, &u, &err) == 1 &&
	    u == UINT32_MAX, "u32");
	ok(gguf_get_uint(g, "t.u64", 0, UINT64_MAX, &u, &err) == 1 &&
	    u == UINT64_MAX, "u64");
	ok(gguf_get_f32(g, "t.f32", &f, &err) == 1 && f == 1.5f, "f32");
	ok(gguf_get_f32(g, "t.f64", &f, &err) == 1 && f == -2.5f, "f64");
	ok(gguf_get_bool(g, "t.bool", &b, &err) == 1 && b == 1, "bool");
	ok(gguf_get_str(g, "t.str", &s, &err) == 1 &&
	    gguf_str_is(s, "h\xc3\xa9 \xe4\xb8\xad"), "string");
	ok(gguf_get_str(g, "e.str", &s, &err) == 1 && s.n == 0, "empty string");
	u = 77;
	ok(gguf_get_uint(g, "t.u", 0, 9, &u, &err) == 0 && u == 77,
	    "a missing key leaves the value alone");
	ok(!err.set, "without an error");
}

static void
test_refusals(const struct gguf *g)
{
	const struct gguf_kv *kv;
	struct gguf_str s;
	struct err err = { 0 };
	uint64_t u;
	float f;
	int b;

	ok(gguf_get_uint(g, "t.u8", 1, 254, &u, &err) == -1, "out of range");
	is(err.msg, GOLDEN "ok-all-types.gguf: key t.u8 is 255, expected 1 to "
	    "254", "says so");
	err = (struct err){ 0 };
	ok(gguf_get_uint(g, "t.i64", 0, UINT64_MAX, &u, &err) == -1,
	    "negative");
	is(err.msg, GOLDEN "ok-all-types.gguf: key t.i64 is "
	    "-9223372036854775808, expected 0 to 18446744073709551615",
	    "says so");
	err = (struct err){ 0 };
	ok(gguf_get_uint(g, "t.f32", 0, 9, &u, &err) == -1, "not an integer");
	is(err.msg, GOLDEN "ok-all-types.gguf: key t.f32 is of type f32, "
	    "expected an integer", "says so");
	err = (struct err){ 0 };
	ok(gguf_get_array(g, "a.u8", GGUF_STRING, &kv, &err) == -1,
	    "array of another type");
	is(err.msg, GOLDEN "ok-all-types.gguf: key a.u8 is of type array of "
	    "u8, expected array of string", "says so");
	err = (struct err){ 0 };
	ok(gguf_get_array(g, "t.str", GGUF_STRING, &kv, &err) == -1 &&
	    gguf_get_f32(g, "t.u8", &f, &err) == -1 &&
	    gguf_get_bool(g, "t.u8", &b, &err) == -1 &&
	    gguf_get_str(g, "a.str", &s, &err) == -1, "other types");
}

static void
test_arrays(const struct gguf *g)
{
	const struct gguf_kv *kv = NULL;
	struct err err = { 0 };
	struct gguf_str s;
	const uint8_t *p;

	ok(gguf_get_array(g, "a.str", GGUF_STRING, &kv, &err) == 1 &&
	    kv->count == 2, "array of strings");
	p = kv->data;
	s = gguf_next_str(&p);
	ok(gguf_str_is(s, "x"), "first string");
	s = gguf_next_str(&p);
	ok(gguf_str_is(s, ""), "second string");
	ok(gguf_get_array(g, "a.u64", GGUF_U64, &kv, &err) == 1 &&
	    gguf_array_int(kv, 0) == 7 && gguf_number(kv, 0) == 7, "u64 array");
	ok(gguf_get_array(g, "a.f32", GGUF_F32, &kv, &err) == 1 &&
	    gguf_number(kv, 0) == 1 && isnan(gguf_number(kv, 1)), "f32 array");
	kv = gguf_find(g, "t.i8");
	ok(kv && gguf_array_int(kv, 0) == -1 && gguf_number(kv, 0) == -1,
	    "sign of i8");
	kv = gguf_find(g, "t.i64");
	ok(kv && gguf_number(kv, 0) == -0x1p63, "sign of i64");
	kv = gguf_find(g, "t.u64");
	ok(kv && gguf_number(kv, 0) == 0x1p64, "no sign of u64");
}

static void
test_access(void)
{
	struct err err = { 0 };
	struct gguf g;

	if (!ok(gguf_open(&g, GOLDEN "ok-all-types.gguf", &err) == 0,
	    "open a file with every type"))
		return;
	test_scalars(&g);
	test_refusals(&g);
	test_arrays(&g);
	gguf_close(&g);
}

/* List as JSON and parse that. */
static int
json_is_valid(const struct gguf *g, struct err *err)
{
	struct json_doc doc;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int rc;

	gguf_list_json(f, g);
	fclose(f);
	rc = json_parse(&doc, text, n, err);
	json_free(&doc);
	free(text);
	return rc;
}

/* Where the header ends, before the padding. */
static size_t
header_end(const struct gguf *g)
{
	const struct gguf_kv *kv;
	const uint8_t *p = g->file->map + 24;
	size_t tensors = 0;

	if (g->n_kv > 0) {
		kv = &g->kv[g->n_kv - 1];
		p = kv->data;
		for (uint64_t i = 0; i < kv->count; i++)
			if (kv->item == GGUF_STRING)
				gguf_next_str(&p);
			else
				p += gguf_value_size(kv->item);
	}
	for (uint64_t i = 0; i < g->n_tensors; i++)
		tensors += 8 + strlen(g->tensor[i].name) + 4 +
		    8 * (size_t)g->tensor[i].n_dims + 4 + 8;
	return (size_t)(p - g->file->map) + tensors;
}

/*
 * Every shorter version of a good file fails where the header is cut, with a
 * message, and is accepted where only padding or data is.
 */
static void
test_cuts(const char *name, const char *bytes, size_t n)
{
	struct err err = { 0 };
	struct gguf g;
	size_t end, first = n;
	int bad = 0;
	char *cut;

	if (mem_open(&g, bytes, n, &err) < 0) {
		mem_close(&g);
		return;
	}
	ok(json_is_valid(&g, &err) == 0, "%s: JSON parses %s", name, err.msg);
	end = header_end(&g);
	mem_close(&g);
	for (size_t i = 1; i < n; i++) {
		cut = malloc(i);
		memcpy(cut, bytes, i);
		err = (struct err){ 0 };
		if (mem_open(&g, cut, i, &err) == 0)
			first = i < first ? i : first;
		else
			bad += !*err.msg || first < n;
		mem_close(&g);
		free(cut);
	}
	ok(!bad && first == end, "%s: cut at every byte: accepted from %zu on, "
	    "where the header ends", name, first);
}

static void
test_files(void)
{
	DIR *dir = opendir(GOLDEN);
	struct dirent *e;
	struct err err = { 0 };
	char path[512], *bytes;
	size_t n;
	int files = 0;

	while (dir && (e = readdir(dir))) {
		if (!strstr(e->d_name, ".gguf"))
			continue;
		snprintf(path, sizeof path, GOLDEN "%s", e->d_name);
		if (io_slurp_file(path, &bytes, &n, &err) < 0)
			continue;
		files++;
		test_cuts(e->d_name, bytes, n);
		free(bytes);
	}
	if (dir)
		closedir(dir);
	ok(files > 100, "%d golden files", files);
}

/* Keys and tensors enough that anything quadratic would be noticed. */
static void
test_many(int n)
{
	static const uint64_t ne[1] = { 1 };
	struct gguf_writer w = { 0 };
	struct err err = { 0 };
	struct gguf g;
	char *text = NULL, name[64];
	size_t size = 0;
	uint64_t v;
	FILE *f = open_memstream(&text, &size);
	int bad = 0;

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "a.long.common.prefix.of.%d", i);
		gguf_put_u32(&w, name, (uint32_t)i);
		gguf_add_tensor(&w, name, 1, ne, GGML_F32);
	}
	gguf_write_head(&w, f, &err);
	fclose(f);
	gguf_writer_free(&w);
	ok(mem_open(&g, text, size, &err) == 0, "%d keys and tensors", n);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "a.long.common.prefix.of.%d", i);
		bad += gguf_get_uint(&g, name, (uint64_t)i, (uint64_t)i, &v,
		    &err) != 1;
		bad += gguf_find_tensor(&g, name) != &g.tensor[i];
	}
	ok(!bad, "each one is found");
	ok(!gguf_find(&g, "a.long") && !gguf_find_tensor(&g, "b"),
	    "and nothing else");
	mem_close(&g);
	free(text);
}

/* Shortest header that holds one tensor of this name. */
static void
test_nul_in_name(void)
{
	static const uint8_t bytes[96] = { 'G', 'G', 'U', 'F', 3, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 'b' };
	struct err err = { 0 };
	struct gguf g;

	ok(mem_open(&g, bytes, sizeof bytes, &err) < 0, "NUL in a name");
	is(err.msg, "tensor a?b at byte 24: the name holds a NUL byte",
	    "says so");
	mem_close(&g);
}

/* Bytes at `at` of block 2 of three make the check fail; zeros do not. */
static void
check_type(int type, size_t at, const char *bad, size_t n, const char *want)
{
	const struct ggml_type_info *info = ggml_type_info(type);
	uint8_t data[3 * 300] = { 0 };
	struct gguf_file file = { .path = (char *)"f", .size = 5000 };
	struct gguf g = { .file = &file, .n_files = 1 };
	struct gguf_tensor t = { .name = "t", .type = (enum ggml_type)type,
		.n_bytes = 3 * info->block_bytes, .offset = 1000,
		.data = data };
	struct err err = { 0 };
	char msg[256];

	ok(gguf_check_tensor(&g, &t, &err) == 0, "%s: zeros are sound",
	    info->name);
	memcpy(data + info->block_bytes + at, bad, n);
	if (!want) {
		ok(gguf_check_tensor(&g, &t, &err) == 0,
		    "%s: large but finite", info->name);
		return;
	}
	ok(gguf_check_tensor(&g, &t, &err) < 0, "%s: a planted fault",
	    info->name);
	snprintf(msg, sizeof msg, "f: tensor t: 1 of 3 %s that are not finite, "
	    "the first at byte %u", want, 1000 + info->block_bytes);
	is(err.msg, msg, "says where");
}

static void
test_check(void)
{
	static const char inf[] = "\0\x7c", nan[] = "\1\xfc";
	static const char values[] = "elements have values";
	static const char scales[] = "blocks have scales";
	static const char both[] = "blocks have scales or offsets";
	/* type, where its halves are */
	static const struct {
		int type;
		size_t at[2];
	} halves[] = { { GGML_Q4_0, { 0, 0 } }, { GGML_Q4_1, { 0, 2 } },
		{ GGML_Q5_0, { 0, 0 } }, { GGML_Q5_1, { 0, 2 } },
		{ GGML_Q8_0, { 0, 0 } }, { GGML_Q2_K, { 80, 82 } },
		{ GGML_Q3_K, { 108, 108 } }, { GGML_Q4_K, { 0, 2 } },
		{ GGML_Q5_K, { 0, 2 } }, { GGML_Q6_K, { 208, 208 } },
		{ GGML_IQ4_NL, { 0, 0 } }, { GGML_IQ4_XS, { 0, 0 } } };

	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		const char *want = halves[i].at[1] % 4 == 2 ? both : scales;

		check_type(halves[i].type, halves[i].at[0], inf, 2, want);
		check_type(halves[i].type, halves[i].at[1], nan, 2, want);
		check_type(halves[i].type, halves[i].at[1], "\xff\x7b", 2,
		    NULL);
	}
	check_type(GGML_F16, 0, inf, 2, values);
	check_type(GGML_F16, 0, "\xff\xfb", 2, NULL);
	check_type(GGML_BF16, 0, "\x80\x7f", 2, values);
	check_type(GGML_BF16, 0, "\x7f\xff", 2, NULL);
	check_type(GGML_F32, 0, "\0\0\x80\xff", 4, values);
	check_type(GGML_F32, 0, "\xff\xff\x7f\xff", 4, NULL);
	check_type(GGML_F64, 0, "\0\0\0\0\0\0\xf0\x7f", 8, values);
	check_type(GGML_F64, 0, "\0\0\0\0\0\0\xe0\x7f", 8, NULL);
	check_type(GGML_Q8_K, 0, "\0\0\xc0\x7f", 4, scales);
	check_type(GGML_MXFP4, 0, "\xff", 1, scales);
	check_type(GGML_MXFP4, 0, "\xfe", 1, NULL);
	check_type(16, 0, inf, 2, scales);
	check_type(29, 48, "\0\0\0\0\0\xc0\0\x70", 8, scales);
	check_type(29, 48, "\xff\xff\xff\xff\xff\xbf\xff\xff", 8, NULL);
	check_type(35, 64, inf, 2, scales);
}

int
main(void)
{
	test_access();
	test_files();
	test_many(100000);
	test_nul_in_name();
	test_check();
	return tap_end();
}
