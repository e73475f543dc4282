#include "gguf_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shortest possible entries: what a count can at most be true of. */
enum { MIN_KV = 8 + 1 + 4 + 1, MIN_TENSOR = 8 + 4 + 4 + 8 };

static const uint64_t max_string = 1ull << 30, max_count = 1ull << 30;

/*
 * The only way to the bytes.  The first error sticks: later reads yield zero
 * and move nothing, so callers check once at the end of an entry.
 */
struct cursor {
	const uint8_t *base;
	uint64_t size, pos;
	int failed;
	struct err *err;
	char what[GGUF_MAX_NAME + 64]; /* the entry being read */
};

static void
fail(struct cursor *c, const char *fmt, ...) ERR_PRINTF(2, 3);

static void
fail(struct cursor *c, const char *fmt, ...)
{
	char detail[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	if (!c->failed)
		err_set(c->err, "%s: %s", c->what, detail);
	c->failed = 1;
}

static uint64_t
left(const struct cursor *c)
{
	return c->size - c->pos;
}

static const uint8_t *
take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->base + c->pos;

	if (c->failed)
		return NULL;
	if (n > left(c)) {
		fail(c, "the file ends inside");
		return NULL;
	}
	c->pos += n;
	return p;
}

static uint32_t
take_u32(struct cursor *c)
{
	const uint8_t *p = take(c, 4);

	return p ? gguf_le32(p) : 0;
}

static uint64_t
take_u64(struct cursor *c)
{
	const uint8_t *p = take(c, 8);

	return p ? gguf_le64(p) : 0;
}

static struct gguf_str
take_str(struct cursor *c)
{
	struct gguf_str s = { "", 0 };
	uint64_t n = take_u64(c);

	if (c->failed)
		return s;
	if (n > max_string || n > left(c)) {
		fail(c, "string of %" PRIu64 " bytes with %" PRIu64
		    " left in the file", n, left(c));
		return s;
	}
	s.p = (const char *)take(c, n);
	s.n = (size_t)n;
	return s;
}

void
gguf_name_text(char *out, const char *name, size_t n)
{
	size_t m = n < GGUF_MAX_NAME ? n : GGUF_MAX_NAME;

	for (size_t i = 0; i < m; i++)
		out[i] = (unsigned char)name[i] < ' ' || name[i] == 127 ?
		    '?' : name[i];
	strcpy(out + m, n > m ? "..." : "");
}

/* "key NAME at byte N", before the name is known "key 3 of 5 at byte N". */
static void
enter(struct cursor *c, const char *kind, uint64_t i, uint64_t n)
{
	snprintf(c->what, sizeof c->what,
	    "%s %" PRIu64 " of %" PRIu64 " at byte %" PRIu64, kind, i + 1, n,
	    c->pos);
}

static void
enter_named(struct cursor *c, const char *kind, const char *name, size_t n,
    uint64_t start)
{
	char text[GGUF_MAX_NAME + 4];

	gguf_name_text(text, name, n);
	snprintf(c->what, sizeof c->what, "%s %s at byte %" PRIu64, kind, text,
	    start);
}

/*
 * Make room for one more item.  Arrays grow with what was parsed, never with
 * what a header announces.
 */
static void *
grow(struct cursor *c, void *items, uint64_t n, uint64_t *cap, size_t size)
{
	uint64_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return items;
	p = want <= SIZE_MAX / size ? realloc(items, want * size) : NULL;
	if (!p) {
		fail(c, "out of memory");
		return items;
	}
	*cap = want;
	return p;
}

unsigned
gguf_value_size(enum gguf_value_type t)
{
	static const unsigned char size[GGUF_N_VALUE_TYPES] = {
		[GGUF_U8] = 1, [GGUF_I8] = 1, [GGUF_U16] = 2, [GGUF_I16] = 2,
		[GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
		[GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8
	};

	return size[t];
}

static enum gguf_value_type
take_type(struct cursor *c, const char *what)
{
	uint32_t t = take_u32(c);

	if (!c->failed && t >= GGUF_N_VALUE_TYPES)
		fail(c, "unknown %s type %" PRId64, what,
		    (int64_t)t - (t >> 31 ? INT64_C(1) << 32 : 0));
	return c->failed ? GGUF_U8 : (enum gguf_value_type)t;
}

static void
take_array(struct cursor *c, struct gguf_kv *kv)
{
	unsigned size;

	kv->item = take_type(c, "array element");
	kv->count = take_u64(c);
	if (c->failed)
		return;
	if (kv->item == GGUF_ARRAY) {
		fail(c, "arrays of arrays are not supported");
		return;
	}
	/* An element takes 8 bytes of a string's length at least. */
	size = kv->item == GGUF_STRING ? 8 : gguf_value_size(kv->item);
	if (kv->count > max_count || kv->count > left(c) / size) {
		fail(c, "array of %" PRIu64 " elements with %" PRIu64
		    " bytes left in the file", kv->count, left(c));
		return;
	}
	kv->data = c->base + c->pos;
	if (kv->item != GGUF_STRING)
		take(c, kv->count * size);
	else
		for (uint64_t i = 0; i < kv->count && !c->failed; i++)
			take_str(c);
}

static void
take_kv(struct cursor *c, struct gguf_kv *kv)
{
	uint64_t start = c->pos;

	memset(kv, 0, sizeof *kv);
	kv->key = take_str(c);
	if (!c->failed && kv->key.n == 0)
		fail(c, "the key is empty");
	if (c->failed)
		return;
	enter_named(c, "key", kv->key.p, kv->key.n, start);
	kv->type = take_type(c, "value");
	kv->item = kv->type;
	kv->count = 1;
	kv->data = c->base + c->pos;
	if (kv->type == GGUF_ARRAY)
		take_array(c, kv);
	else if (kv->type == GGUF_STRING)
		take_str(c);
	else
		take(c, gguf_value_size(kv->type));
}

static void
take_header(struct cursor *c, struct gguf_file *f, uint64_t *n_tensors,
    uint64_t *n_kv)
{
	const uint8_t *magic;

	strcpy(c->what, "header");
	magic = take(c, 4);
	if (magic && memcmp(magic, "GGUF", 4))
		fail(c, "not a GGUF file: the first bytes are "
		    "%02x %02x %02x %02x", magic[0], magic[1], magic[2],
		    magic[3]);
	f->version = take_u32(c);
	if (!c->failed && f->version && (f->version & 0xffff) == 0)
		fail(c, "big-endian GGUF is not supported");
	else if (!c->failed && f->version != 2 && f->version != 3)
		fail(c, "GGUF version %" PRIu32
		    " is not supported (2 and 3 are)", f->version);
	*n_tensors = take_u64(c);
	*n_kv = take_u64(c);
	if (c->failed)
		return;
	/* Signed in the file: what is negative prints so. */
	if (*n_kv > left(c) / MIN_KV)
		fail(c, "%" PRId64 " key-values announced with %" PRIu64
		    " bytes left in the file", (int64_t)*n_kv, left(c));
	else if (*n_tensors > left(c) / MIN_TENSOR)
		fail(c, "%" PRId64 " tensors announced with %" PRIu64
		    " bytes left in the file", (int64_t)*n_tensors, left(c));
}

static int
mul(uint64_t *a, uint64_t b, uint64_t max)
{
	if (b && *a > max / b)
		return -1;
	*a *= b;
	return 0;
}

static void
take_name(struct cursor *c, struct gguf_tensor *t)
{
	uint64_t start = c->pos;
	struct gguf_str name = take_str(c);

	if (c->failed)
		return;
	enter_named(c, "tensor", name.p, name.n, start);
	if (name.n >= sizeof t->name)
		fail(c, "name of %zu bytes, at most %zu are allowed", name.n,
		    sizeof t->name - 1);
	else if (memchr(name.p, '\0', name.n))
		fail(c, "the name holds a NUL byte");
	else
		memcpy(t->name, name.p, name.n);
}

static void
take_shape(struct cursor *c, struct gguf_tensor *t)
{
	uint32_t n_dims = take_u32(c);

	if (n_dims > GGUF_MAX_DIMS)
		fail(c, "%" PRIu32 " dimensions, at most %d are allowed",
		    n_dims, GGUF_MAX_DIMS);
	if (c->failed)
		return;
	t->n_dims = (int)n_dims;
	t->n_elements = 1;
	for (int i = 0; i < GGUF_MAX_DIMS; i++) {
		t->ne[i] = i < t->n_dims ? take_u64(c) : 1;
		if (c->failed)
			return;
		if (t->ne[i] == 0 || t->ne[i] > INT64_MAX)
			fail(c, "dimension %d is %" PRId64, i + 1,
			    (int64_t)t->ne[i]);
		else if (mul(&t->n_elements, t->ne[i], INT64_MAX) < 0)
			fail(c, "the number of elements overflows");
	}
}

static void
take_tensor_type(struct cursor *c, struct gguf_tensor *t)
{
	uint32_t raw = take_u32(c);
	int64_t id = (int64_t)raw - (raw >> 31 ? INT64_C(1) << 32 : 0);
	const struct ggml_type_info *info = ggml_type_info(id);

	if (c->failed)
		return;
	if (!info || info->block == 0) {
		err_set(c->err, "unsupported GGUF tensor type: %s (tensor %s)",
		    ggml_type_name(id), t->name);
		c->failed = 1;
		return;
	}
	t->type = (enum ggml_type)id;
	if (t->ne[0] % info->block) {
		fail(c, "rows of %" PRIu64 " elements are not whole %s blocks "
		    "of %" PRIu32, t->ne[0], info->name, info->block);
		return;
	}
	t->n_bytes = t->n_elements / info->block;
	if (mul(&t->n_bytes, info->block_bytes, UINT64_MAX) < 0)
		fail(c, "the number of bytes overflows");
}

/*
 * *sum: where the data of this tensor has to start, then of the next one;
 * *elements: of all tensors so far.
 */
static void
take_offset(struct cursor *c, struct gguf_tensor *t, uint64_t alignment,
    uint64_t *sum, uint64_t *elements)
{
	uint64_t pad = (alignment - t->n_bytes % alignment) % alignment;

	t->offset = take_u64(c);
	if (c->failed)
		return;
	if (t->offset != *sum)
		fail(c, "data at offset %" PRIu64 ", expected %" PRIu64,
		    t->offset, *sum);
	else if (t->n_bytes > UINT64_MAX - pad ||
	    t->n_bytes + pad > UINT64_MAX - *sum)
		fail(c, "the data of all tensors together overflows");
	else if (t->n_elements > INT64_MAX - *elements)
		fail(c, "the elements of all tensors together overflow");
	if (c->failed)
		return;
	*sum += t->n_bytes + pad;
	*elements += t->n_elements;
}

static int
take_kvs(struct cursor *c, struct gguf *g, uint64_t n)
{
	uint64_t cap = 0;

	for (uint64_t i = 0; i < n && !c->failed; i++) {
		enter(c, "key", i, n);
		g->kv = grow(c, g->kv, g->n_kv, &cap, sizeof *g->kv);
		if (!c->failed)
			take_kv(c, &g->kv[g->n_kv]);
		if (!c->failed)
			g->n_kv++;
	}
	return c->failed ? -1 : gguf_index_keys(g, c->err);
}

static int
take_tensors(struct cursor *c, struct gguf *g, uint64_t n, uint32_t alignment)
{
	uint64_t cap = 0, sum = 0;
	struct gguf_tensor *t;

	for (uint64_t i = 0; i < n && !c->failed; i++) {
		enter(c, "tensor", i, n);
		g->tensor =
		    grow(c, g->tensor, g->n_tensors, &cap, sizeof *g->tensor);
		if (c->failed)
			break;
		t = &g->tensor[g->n_tensors];
		memset(t, 0, sizeof *t);
		take_name(c, t);
		take_shape(c, t);
		take_tensor_type(c, t);
		take_offset(c, t, alignment, &sum, &g->n_elements);
		if (!c->failed)
			g->n_tensors++;
	}
	return c->failed ? -1 : 0;
}

static int
find_alignment(const struct gguf *g, uint32_t *alignment, struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, "general.alignment");

	*alignment = 32;
	if (!kv)
		return 0;
	if (kv->type != GGUF_U32)
		return err_set(err, "key general.alignment is of type %s, "
		    "expected u32", gguf_value_type_name(kv->type));
	*alignment = gguf_le32(kv->data);
	if (*alignment == 0 || *alignment & (*alignment - 1) ||
	    *alignment > GGUF_MAX_ALIGNMENT)
		return err_set(err, "key general.alignment is %" PRIu32
		    ", expected a power of two up to %d", *alignment,
		    GGUF_MAX_ALIGNMENT);
	return 0;
}

/* From offsets in the data section to offsets in the file, and pointers. */
static int
place_tensors(struct gguf *g, struct err *err)
{
	struct gguf_file *f = g->file;
	struct gguf_tensor *t;

	for (uint64_t i = 0; i < g->n_tensors; i++) {
		t = &g->tensor[i];
		if (t->offset > UINT64_MAX - f->data_start ||
		    t->n_bytes > UINT64_MAX - f->data_start - t->offset)
			return err_set(err, "tensor %s: the end of its data "
			    "overflows", t->name);
		t->offset += f->data_start;
		if (t->offset <= f->size && t->n_bytes <= f->size - t->offset)
			t->data = f->map + t->offset;
	}
	return 0;
}

int
gguf_parse(struct gguf *g, struct err *err)
{
	struct gguf_file *f = g->file;
	struct cursor c = { .base = f->map, .size = f->size, .err = err };
	uint64_t n_kv = 0, n_tensors = 0;

	take_header(&c, f, &n_tensors, &n_kv);
	if (c.failed || take_kvs(&c, g, n_kv) < 0 ||
	    find_alignment(g, &f->alignment, err) < 0 ||
	    take_tensors(&c, g, n_tensors, f->alignment) < 0)
		return -1;
	/* No overflow: a mapping's size and 64 KiB. */
	f->data_start = c.pos + f->alignment - 1;
	f->data_start -= f->data_start % f->alignment;
	return place_tensors(g, err);
}
