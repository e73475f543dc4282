/* What gguf_write writes, gguf reads: every kind of value, types, padding. */
#include <stdlib.h>
#include <unistd.h>

#include "gguf_write.h"
#include "tap.h"

static void
put_all(struct gguf_writer *w)
{
	static const uint64_t vec[1] = { 5 }, mat[2] = { 32, 3 };

	gguf_put_str(w, "s", "text");
	gguf_put_u32(w, "u", 4000000000u);
	gguf_put_f32(w, "f", 0.25f);
	gguf_put_bool(w, "b", 1);
	gguf_put_array(w, "as", GGUF_STRING, 2);
	gguf_item_str(w, "one", 3);
	gguf_item_str(w, "", 0);
	gguf_put_array(w, "ai", GGUF_I32, 2);
	gguf_item_i32(w, -7);
	gguf_item_i32(w, 7);
	gguf_add_tensor(w, "vec", 1, vec, GGML_F32);
	gguf_add_tensor(w, "mat", 2, mat, GGML_Q8_0);
}

static int
write_file(struct gguf_writer *w, const char *path, struct err *err)
{
	static const float vec[5] = { 1, 2, 3, 4, 5 };
	unsigned char mat[3 * 34];
	FILE *f = fopen(path, "wb");
	int rc;

	for (size_t i = 0; i < sizeof mat; i++)
		mat[i] = (unsigned char)i;
	rc = gguf_write_head(w, f, err);
	if (rc == 0)
		rc = gguf_write_data(w, f, vec, 8, err);
	if (rc == 0)
		rc = gguf_write_data(w, f, vec + 2, 12, err);
	if (rc == 0)
		rc = gguf_write_data(w, f, mat, sizeof mat, err);
	if (rc == 0)
		rc = gguf_write_end(w, err);
	return fclose(f) == 0 ? rc : -1;
}

static void
check(const struct gguf *g, const char *what)
{
	const struct gguf_tensor *vec = gguf_find_tensor(g, "vec");
	const struct gguf_tensor *mat = gguf_find_tensor(g, "mat");
	const struct gguf_kv *kv;
	struct gguf_str s = { "", 0 };
	struct err err = { 0 };
	uint64_t u = 0;
	float f = 0, third;
	int b = 0;

	ok(g->n_kv == 6 && g->n_tensors == 2, "%s: counts", what);
	gguf_get_str(g, "s", &s, &err);
	gguf_get_uint(g, "u", 0, UINT32_MAX, &u, &err);
	gguf_get_f32(g, "f", &f, &err);
	gguf_get_bool(g, "b", &b, &err);
	ok(gguf_str_is(s, "text") && u == 4000000000u && f == 0.25f && b == 1,
	    "%s: scalars", what);
	ok(gguf_get_array(g, "as", GGUF_STRING, &kv, &err) == 1 &&
	        kv->count == 2,
	    "%s: an array of strings", what);
	ok(gguf_get_array(g, "ai", GGUF_I32, &kv, &err) == 1 &&
	        gguf_array_int(kv, 0) == -7 && gguf_array_int(kv, 1) == 7,
	    "%s: an array of numbers", what);
	ok(vec && vec->data && vec->ne[0] == 5 && vec->n_bytes == 20,
	    "%s: a vector", what);
	memcpy(&third, vec->data + 8, 4);
	ok(third == 3, "%s: its data", what);
	ok(mat && mat->data && mat->type == GGML_Q8_0 && mat->ne[1] == 3 &&
	        mat->data[0] == 0 && mat->data[101] == 101,
	    "%s: a matrix behind padding", what);
}

int
main(void)
{
	char path[] = "/tmp/dllm-gguf-write.XXXXXX";
	struct gguf_writer w = { 0 }, copy = { 0 };
	struct gguf g, again;
	struct err err = { 0 };
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	put_all(&w);
	ok(write_file(&w, path, &err) == 0, "write");
	ok(gguf_write_data(&w, stdout, "x", 1, &err) < 0,
	    "more data than announced is refused");
	gguf_writer_free(&w);
	memset(&err, 0, sizeof err);
	if (!ok(gguf_open(&g, path, &err) == 0, "open")) {
		printf("# %s\n", err.msg);
		return tap_end();
	}
	ok(gguf_check_data(&g, &err) == 0, "all data is there");
	check(&g, "written");
	for (uint64_t i = 0; i < g.n_kv; i++)
		gguf_put_kv(&copy, &g.kv[i]);
	for (uint64_t i = 0; i < g.n_tensors; i++)
		gguf_add_tensor(&copy, g.tensor[i].name, g.tensor[i].n_dims,
		    g.tensor[i].ne, g.tensor[i].type);
	unlink(path);
	ok(gguf_write_end(&copy, &err) < 0, "missing data is noticed");
	is(err.msg, "the data of 2 tensors is missing", "and counted");
	memset(&err, 0, sizeof err);
	ok(write_file(&copy, path, &err) == 0 &&
	        gguf_open(&again, path, &err) == 0,
	    "write a copy");
	check(&again, "copied");
	gguf_close(&g);
	gguf_close(&again);
	gguf_writer_free(&copy);
	unlink(path);
	return tap_end();
}
