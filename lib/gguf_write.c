#include "gguf_write.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 3 };

static uint64_t
pad(uint64_t n)
{
	return (n + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

/* Append n bytes to a growing buffer. */
static void
append(struct gguf_writer *w, char **buf, size_t *len, size_t *cap,
    const void *bytes, size_t n)
{
	size_t want = *cap ? *cap : 4096;
	char *p;

	while (want - *len < n)
		want *= 2;
	if (want != *cap) {
		p = w->failed ? NULL : realloc(*buf, want);
		if (!p) {
			w->failed = 1;
			return;
		}
		*buf = p;
		*cap = want;
	}
	memcpy(*buf + *len, bytes, n);
	*len += n;
}

static void
kv_bytes(struct gguf_writer *w, const void *bytes, size_t n)
{
	append(w, &w->kv, &w->kv_n, &w->kv_cap, bytes, n);
}

static void
kv_int(struct gguf_writer *w, uint64_t v, size_t bytes)
{
	unsigned char le[8];

	for (size_t i = 0; i < bytes; i++)
		le[i] = (unsigned char)(v >> 8 * i);
	kv_bytes(w, le, bytes);
}

static void
info_int(struct gguf_writer *w, uint64_t v, size_t bytes)
{
	unsigned char le[8];

	for (size_t i = 0; i < bytes; i++)
		le[i] = (unsigned char)(v >> 8 * i);
	append(w, &w->info, &w->info_n, &w->info_cap, le, bytes);
}

static void
kv_key(struct gguf_writer *w, const char *key, enum gguf_value_type type)
{
	gguf_item_str(w, key, strlen(key));
	kv_int(w, type, 4);
	w->n_kv++;
}

void
gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
	kv_key(w, key, GGUF_U32);
	kv_int(w, v, 4);
}

void
gguf_put_f32(struct gguf_writer *w, const char *key, float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof u);
	kv_key(w, key, GGUF_F32);
	kv_int(w, u, 4);
}

void
gguf_put_bool(struct gguf_writer *w, const char *key, int v)
{
	kv_key(w, key, GGUF_BOOL);
	kv_int(w, v != 0, 1);
}

void
gguf_put_str(struct gguf_writer *w, const char *key, const char *s)
{
	kv_key(w, key, GGUF_STRING);
	gguf_item_str(w, s, strlen(s));
}

/* Bytes of one value of a type of fixed size; 0 for strings. */
static size_t
value_size(enum gguf_value_type type)
{
	switch (type) {
	case GGUF_U8:
	case GGUF_I8:
	case GGUF_BOOL:
		return 1;
	case GGUF_U16:
	case GGUF_I16:
		return 2;
	case GGUF_U32:
	case GGUF_I32:
	case GGUF_F32:
		return 4;
	case GGUF_U64:
	case GGUF_I64:
	case GGUF_F64:
		return 8;
	default:
		return 0;
	}
}

void
gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv)
{
	enum gguf_value_type item = kv->type;
	const uint8_t *p = kv->data;
	struct gguf_str s;

	gguf_item_str(w, kv->key.p, kv->key.n);
	kv_int(w, kv->type, 4);
	w->n_kv++;
	if (kv->type == GGUF_ARRAY) {
		item = kv->item;
		kv_int(w, item, 4);
		kv_int(w, kv->count, 8);
	}
	if (item != GGUF_STRING) {
		kv_bytes(w, p, (size_t)kv->count * value_size(item));
		return;
	}
	for (uint64_t i = 0; i < kv->count; i++) {
		s = gguf_next_str(&p);
		gguf_item_str(w, s.p, s.n);
	}
}

void
gguf_put_array(struct gguf_writer *w, const char *key,
    enum gguf_value_type item, uint64_t n)
{
	kv_key(w, key, GGUF_ARRAY);
	kv_int(w, item, 4);
	kv_int(w, n, 8);
}

void
gguf_item_str(struct gguf_writer *w, const char *s, size_t n)
{
	kv_int(w, n, 8);
	kv_bytes(w, s, n);
}

void
gguf_item_i32(struct gguf_writer *w, int32_t v)
{
	kv_int(w, (uint32_t)v, 4);
}

void
gguf_add_tensor(struct gguf_writer *w, const char *name, int n_dims,
    const uint64_t *ne, enum ggml_type type)
{
	size_t n = strlen(name), cap;
	uint64_t bytes = ggml_row_bytes(type, n_dims > 0 ? ne[0] : 1);
	uint64_t *p;

	for (int i = 1; i < n_dims; i++)
		bytes *= ne[i];
	info_int(w, n, 8);
	append(w, &w->info, &w->info_n, &w->info_cap, name, n);
	info_int(w, (uint64_t)n_dims, 4);
	for (int i = 0; i < n_dims; i++)
		info_int(w, ne[i], 8);
	info_int(w, type, 4);
	info_int(w, w->end, 8);
	w->end += pad(bytes);
	if (w->n_tensors == w->sizes_cap) {
		cap = w->sizes_cap ? 2 * w->sizes_cap : 64;
		p = w->failed ? NULL : realloc(w->sizes, cap * sizeof *p);
		if (!p) {
			w->failed = 1;
			return;
		}
		w->sizes = p;
		w->sizes_cap = cap;
	}
	w->sizes[w->n_tensors++] = bytes;
}

static int
put(FILE *f, const void *bytes, size_t n, struct err *err)
{
	if (n && fwrite(bytes, 1, n, f) != n)
		return err_sys(err, "cannot write the file");
	return 0;
}

/* Zero bytes up to the alignment. */
static int
put_padding(FILE *f, uint64_t at, struct err *err)
{
	static const char zeros[GGUF_ALIGNMENT];

	return put(f, zeros, (size_t)(pad(at) - at), err);
}

int
gguf_write_head(struct gguf_writer *w, FILE *f, struct err *err)
{
	struct gguf_writer head = { 0 };
	int rc;

	if (!w->failed) {
		kv_bytes(&head, "GGUF", 4);
		kv_int(&head, VERSION, 4);
		kv_int(&head, w->n_tensors, 8);
		kv_int(&head, w->n_kv, 8);
	}
	if (w->failed || head.failed) {
		free(head.kv);
		return err_set(err, "out of memory");
	}
	rc = put(f, head.kv, head.kv_n, err);
	if (rc == 0)
		rc = put(f, w->kv, w->kv_n, err);
	if (rc == 0)
		rc = put(f, w->info, w->info_n, err);
	if (rc == 0)
		rc = put_padding(f, head.kv_n + w->kv_n + w->info_n, err);
	free(head.kv);
	return rc;
}

int
gguf_write_data(struct gguf_writer *w, FILE *f, const void *bytes, size_t n,
    struct err *err)
{
	if (w->current == w->n_tensors ||
	    n > w->sizes[w->current] - w->written)
		return err_set(err, "more data than announced");
	if (put(f, bytes, n, err) < 0)
		return -1;
	w->written += n;
	if (w->written < w->sizes[w->current])
		return 0;
	if (put_padding(f, w->written, err) < 0)
		return -1;
	w->current++;
	w->written = 0;
	return 0;
}

int
gguf_write_end(struct gguf_writer *w, struct err *err)
{
	if (w->current < w->n_tensors)
		return err_set(err, "the data of %llu tensors is missing",
		    (unsigned long long)(w->n_tensors - w->current));
	return 0;
}

void
gguf_writer_free(struct gguf_writer *w)
{
	free(w->kv);
	free(w->info);
	free(w->sizes);
	memset(w, 0, sizeof *w);
}
