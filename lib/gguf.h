/*
 * GGUF files, versions 2 and 3, mapped read-only.
 *
 * A file is hostile until checked: every byte is read through one
 * bounds-checked cursor, every product is checked, every array's type and
 * length is known before it is indexed.  After gguf_open succeeded every
 * string, array and tensor described here lies inside the mapping, except that
 * tensor data may end beyond it (gguf_check_data says so): headers without
 * data can be listed.
 *
 * Format: the GGUF specification of ggml (docs/gguf.md); limits after
 * llama.cpp, stricter where its checks have holes.
 */
#ifndef GGUF_H
#define GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "ggml_type.h"

enum gguf_value_type {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_STRING,
	GGUF_ARRAY,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_N_VALUE_TYPES
};

/* Bytes in the mapping, not NUL-terminated, any content. */
struct gguf_str {
	const char *p;
	size_t n;
};

struct gguf_kv {
	struct gguf_str key;
	enum gguf_value_type type;
	enum gguf_value_type item; /* type of the elements of an array */
	uint64_t count;            /* elements of an array, else 1 */
	const uint8_t *data;       /* first element, unaligned */
};

enum { GGUF_MAX_DIMS = 4, GGUF_MAX_NAME = 64, GGUF_MAX_ALIGNMENT = 65536 };

struct gguf_tensor {
	char name[GGUF_MAX_NAME]; /* NUL-terminated */
	int n_dims;
	uint64_t ne[GGUF_MAX_DIMS]; /* ne[0] contiguous; all at least 1 */
	enum ggml_type type;
	uint64_t n_elements; /* product of ne, below 2^63 */
	uint64_t n_bytes;
	uint64_t offset;     /* from the start of its file */
	int shard;           /* index of the file it lies in */
	const uint8_t *data; /* unaligned; NULL if not wholly inside the file */
};

/* One mapped file of a model. */
struct gguf_file {
	char *path;
	const uint8_t *map;
	uint64_t size;
	uint32_t version;
	uint32_t alignment;
	uint64_t data_start; /* offset of the data section */
};

struct gguf {
	struct gguf_file *file; /* shards in order; [0] holds the metadata */
	int n_files;
	struct gguf_kv *kv; /* of file[0], in file order */
	uint64_t n_kv;
	struct gguf_tensor *tensor; /* of all shards, in file order */
	uint64_t n_tensors;
	uint64_t n_elements; /* of all tensors, below 2^63 */
	const struct gguf_kv **by_key; /* sorted by key */
	const struct gguf_tensor **by_name; /* sorted by name */
};

/*
 * Open PATH; of a split model (PREFIX-00001-of-000NN.gguf) open all shards as
 * one.  Errors begin with the path and name key, tensor or byte.
 */
int gguf_open(struct gguf *g, const char *path, struct err *err);
void gguf_close(struct gguf *g);

/* -1 unless all tensor data lies inside its file. */
int gguf_check_data(const struct gguf *g, struct err *err);

/* -1 if the file at `path` is one of the model's: writing it would lose it. */
int gguf_check_output(const struct gguf *g, const char *path,
    struct err *err);

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(
    const struct gguf *g, const char *name);

/* Name of a value type: "u8", "string", ... */
const char *gguf_value_type_name(enum gguf_value_type t);

/*
 * Typed access.  1: found and converted; 0: no such key (*v is left alone);
 * -1: there, but of another type or out of range, err names the key.
 * Integers of any width are accepted when the value is in [min, max].
 */
int gguf_get_uint(const struct gguf *g, const char *key, uint64_t min,
    uint64_t max, uint64_t *v, struct err *err);
int gguf_get_f32(const struct gguf *g, const char *key, float *v,
    struct err *err);
int gguf_get_bool(const struct gguf *g, const char *key, int *v,
    struct err *err);
int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v,
    struct err *err);

/*
 * An array whose elements have exactly this type.  1 and *kv, 0 or -1 as
 * above.
 */
int gguf_get_array(const struct gguf *g, const char *key,
    enum gguf_value_type item, const struct gguf_kv **kv, struct err *err);

/* What general.file_type says, "Q4_K_M", or NULL. */
const char *gguf_quantization(const struct gguf *g);

/* Does s equal the C string c? */
int gguf_str_is(struct gguf_str s, const char *c);

/*
 * Walk an array of strings: start with *p = kv->data and call kv->count times.
 */
struct gguf_str gguf_next_str(const uint8_t **p);

/* Element i of an array of u8 to i64 or bool, as a signed integer. */
int64_t gguf_array_int(const struct gguf_kv *kv, uint64_t i);

/* Element i of an array (or the value itself, i = 0) of a numeric type. */
double gguf_number(const struct gguf_kv *kv, uint64_t i);

#endif
