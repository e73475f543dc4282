/*
 * Writing GGUF version 3: metadata and tensor list are gathered in memory,
 * tensor data is streamed behind them in the order of the list.
 *
 *   gguf_writer w = { 0 };  gguf_put_*()...  gguf_add_tensor()...
 *   gguf_write_head(&w, f)  then for each tensor gguf_write_data()
 *   gguf_write_end()        gguf_writer_free()
 */
#ifndef GGUF_WRITE_H
#define GGUF_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "gguf.h"

enum { GGUF_ALIGNMENT = 32 };

/* Zero before use.  A failed allocation is reported by gguf_write_head. */
struct gguf_writer {
	char *kv, *info;          /* encoded key-values and tensor infos */
	size_t kv_n, kv_cap, info_n, info_cap;
	uint64_t n_kv, n_tensors;
	uint64_t end;      /* of the data announced so far, padded */
	uint64_t *sizes;   /* bytes of each tensor */
	size_t sizes_cap;
	uint64_t current;  /* tensor whose data comes next */
	uint64_t written;  /* bytes of it */
	int failed;        /* out of memory */
};

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_put_f32(struct gguf_writer *w, const char *key, float v);
void gguf_put_bool(struct gguf_writer *w, const char *key, int v);
void gguf_put_str(struct gguf_writer *w, const char *key, const char *s);

/* Copy a key-value as it stands in another file. */
void gguf_put_kv(struct gguf_writer *w, const struct gguf_kv *kv);

/* An array of n elements; each follows by one gguf_item_* call. */
void gguf_put_array(struct gguf_writer *w, const char *key,
    enum gguf_value_type item, uint64_t n);
void gguf_item_str(struct gguf_writer *w, const char *s, size_t n);
void gguf_item_i32(struct gguf_writer *w, int32_t v);

/* Announce the next tensor; ne[0] is a multiple of the type's block. */
void gguf_add_tensor(struct gguf_writer *w, const char *name, int n_dims,
    const uint64_t *ne, enum ggml_type type);

/* Header, metadata, tensor list, padding.  0 or -1. */
int gguf_write_head(struct gguf_writer *w, FILE *f, struct err *err);

/* The next n bytes of the current tensor; padding follows its last byte. */
int gguf_write_data(struct gguf_writer *w, FILE *f, const void *bytes,
    size_t n, struct err *err);

/* -1 if the data of some tensor is missing. */
int gguf_write_end(struct gguf_writer *w, struct err *err);
void gguf_writer_free(struct gguf_writer *w);

#endif
