#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_parse.h"

static int
compare_str(struct gguf_str a, struct gguf_str b)
{
	int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

static int
compare_keys(const void *a, const void *b)
{
	const struct gguf_kv *x = *(const struct gguf_kv *const *)a;
	const struct gguf_kv *y = *(const struct gguf_kv *const *)b;
	int d = compare_str(x->key, y->key);

	return d ? d : (x > y) - (x < y);
}

static int
compare_names(const void *a, const void *b)
{
	const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
	const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;
	int d = strcmp(x->name, y->name);

	return d ? d : (x > y) - (x < y);
}

/*
 * Sorted pointers rather than a hash table: no set of names, however chosen,
 * makes this slow.
 */
int
gguf_index_keys(struct gguf *g, struct err *err)
{
	char text[GGUF_MAX_NAME + 4];

	g->by_key = malloc((g->n_kv + 1) * sizeof *g->by_key);
	if (!g->by_key)
		return err_set(err, "out of memory");
	for (uint64_t i = 0; i < g->n_kv; i++)
		g->by_key[i] = &g->kv[i];
	qsort(g->by_key, g->n_kv, sizeof *g->by_key, compare_keys);
	for (uint64_t i = 1; i < g->n_kv; i++)
		if (!compare_str(g->by_key[i - 1]->key, g->by_key[i]->key)) {
			gguf_name_text(text, g->by_key[i]->key.p,
			    g->by_key[i]->key.n);
			return err_set(err, "duplicate key: %s", text);
		}
	return 0;
}

int
gguf_index_tensors(struct gguf *g, struct err *err)
{
	g->by_name = malloc((g->n_tensors + 1) * sizeof *g->by_name);
	if (!g->by_name)
		return err_set(err, "out of memory");
	for (uint64_t i = 0; i < g->n_tensors; i++)
		g->by_name[i] = &g->tensor[i];
	qsort(g->by_name, g->n_tensors, sizeof *g->by_name, compare_names);
	for (uint64_t i = 1; i < g->n_tensors; i++)
		if (!strcmp(g->by_name[i - 1]->name, g->by_name[i]->name))
			return err_set(err, "duplicate tensor: %s",
			    g->by_name[i]->name);
	return 0;
}

const struct gguf_kv *
gguf_find(const struct gguf *g, const char *key)
{
	struct gguf_str want = { key, strlen(key) };
	uint64_t lo = 0, hi = g->n_kv, mid;
	int d;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		d = compare_str(want, g->by_key[mid]->key);
		if (d == 0)
			return g->by_key[mid];
		if (d > 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct gguf_tensor *
gguf_find_tensor(const struct gguf *g, const char *name)
{
	uint64_t lo = 0, hi = g->n_tensors, mid;
	int d;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		d = strcmp(name, g->by_name[mid]->name);
		if (d == 0)
			return g->by_name[mid];
		if (d > 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const char *
gguf_value_type_name(enum gguf_value_type t)
{
	static const char *const name[GGUF_N_VALUE_TYPES] = { "u8", "i8", "u16",
		"i16", "u32", "i32", "f32", "bool", "string", "array", "u64",
		"i64", "f64" };

	return name[t];
}

/* Value i and whether it is negative, of an integer type. */
static uint64_t
integer(const struct gguf_kv *kv, uint64_t i, int *negative)
{
	unsigned size = gguf_value_size(kv->item);
	const uint8_t *p = kv->data + i * size;
	uint64_t v = 0;

	for (unsigned b = 0; b < size; b++)
		v |= (uint64_t)p[b] << 8 * b;
	*negative = 0;
	if (kv->item == GGUF_I8 || kv->item == GGUF_I16 ||
	    kv->item == GGUF_I32 || kv->item == GGUF_I64) {
		*negative = v >> (8 * size - 1) & 1;
		if (*negative && size < 8)
			v |= UINT64_MAX << 8 * size;
	}
	return v;
}

static int
is_integer(enum gguf_value_type t)
{
	return t != GGUF_F32 && t != GGUF_F64 && t != GGUF_BOOL &&
	    t != GGUF_STRING && t != GGUF_ARRAY;
}

static int
wrong_type(const struct gguf *g, const struct gguf_kv *kv, const char *key,
    const char *want, struct err *err)
{
	int array = kv->type == GGUF_ARRAY;

	return err_set(err, "%s: key %s is of type %s%s, expected %s",
	    g->file[0].path, key, array ? "array of " : "",
	    gguf_value_type_name(array ? kv->item : kv->type), want);
}

int
gguf_get_uint(const struct gguf *g, const char *key, uint64_t min, uint64_t max,
    uint64_t *v, struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	char text[32];
	uint64_t x;
	int negative;

	if (!kv)
		return 0;
	if (!is_integer(kv->type))
		return wrong_type(g, kv, key, "an integer", err);
	x = integer(kv, 0, &negative);
	if (negative || x < min || x > max) {
		snprintf(text, sizeof text, negative ? "%" PRId64 : "%" PRIu64,
		    x);
		return err_set(err, "%s: key %s is %s, expected %" PRIu64
		    " to %" PRIu64, g->file[0].path, key, text, min, max);
	}
	*v = x;
	return 1;
}

int
gguf_get_f32(const struct gguf *g, const char *key, float *v, struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	if (!kv)
		return 0;
	if (kv->type != GGUF_F32 && kv->type != GGUF_F64)
		return wrong_type(g, kv, key, "f32", err);
	*v = (float)gguf_number(kv, 0);
	return 1;
}

int
gguf_get_bool(const struct gguf *g, const char *key, int *v, struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	if (!kv)
		return 0;
	if (kv->type != GGUF_BOOL)
		return wrong_type(g, kv, key, "bool", err);
	*v = *kv->data != 0;
	return 1;
}

int
gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v,
    struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	const uint8_t *p;

	if (!kv)
		return 0;
	if (kv->type != GGUF_STRING)
		return wrong_type(g, kv, key, "string", err);
	p = kv->data;
	*v = gguf_next_str(&p);
	return 1;
}

int
gguf_get_array(const struct gguf *g, const char *key, enum gguf_value_type item,
    const struct gguf_kv **kv, struct err *err)
{
	const struct gguf_kv *found = gguf_find(g, key);
	char want[32];

	if (!found)
		return 0;
	if (found->type != GGUF_ARRAY || found->item != item) {
		snprintf(want, sizeof want, "array of %s",
		    gguf_value_type_name(item));
		return wrong_type(g, found, key, want, err);
	}
	*kv = found;
	return 1;
}

int
gguf_str_is(struct gguf_str s, const char *c)
{
	return s.n == strlen(c) && !memcmp(s.p, c, s.n);
}

struct gguf_str
gguf_next_str(const uint8_t **p)
{
	struct gguf_str s;

	s.n = (size_t)gguf_le64(*p);
	s.p = (const char *)*p + 8;
	*p += 8 + s.n;
	return s;
}

int64_t
gguf_array_int(const struct gguf_kv *kv, uint64_t i)
{
	int negative;

	return (int64_t)integer(kv, i, &negative);
}

double
gguf_number(const struct gguf_kv *kv, uint64_t i)
{
	uint64_t v;
	uint32_t w;
	double d;
	float f;
	int negative;

	if (kv->item == GGUF_F32) {
		w = gguf_le32(kv->data + i * 4);
		memcpy(&f, &w, sizeof f);
		return f;
	}
	v = integer(kv, i, &negative);
	if (kv->item == GGUF_F64) {
		memcpy(&d, &v, sizeof d);
		return d;
	}
	return negative ? (double)(int64_t)v : (double)v;
}

const char *
gguf_quantization(const struct gguf *g)
{
	static const char *const names[] = {
		[0] = "F32", [1] = "F16", [2] = "Q4_0", [3] = "Q4_1",
		[7] = "Q8_0", [8] = "Q5_0", [9] = "Q5_1", [10] = "Q2_K",
		[11] = "Q3_K_S", [12] = "Q3_K_M", [13] = "Q3_K_L",
		[14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S",
		[17] = "Q5_K_M", [18] = "Q6_K", [19] = "IQ2_XXS",
		[20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
		[23] = "IQ3_XXS", [24] = "IQ1_S", [25] = "IQ4_NL",
		[26] = "IQ3_S", [27] = "IQ3_M", [28] = "IQ2_S",
		[29] = "IQ2_M", [30] = "IQ4_XS", [31] = "IQ1_M",
		[32] = "BF16", [36] = "TQ1_0", [37] = "TQ2_0",
		[38] = "MXFP4_MOE", [39] = "NVFP4", [40] = "Q1_0",
		[41] = "Q2_0"
	};
	struct err err = { 0 };
	uint64_t v;

	/* 1024 marks a guess. */
	if (gguf_get_uint(g, "general.file_type", 0, 2047, &v, &err) <= 0)
		return NULL;
	v &= 1023;
	return v < sizeof names / sizeof *names ? names[v] : NULL;
}
