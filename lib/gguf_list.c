#include "gguf_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "utf8.h"

/* Shortened: at most so many elements of an array, bytes of a string. */
enum { SHORT_ARRAY = 8, SHORT_STRING = 72 };

static void
put_escape(FILE *f, uint32_t cp)
{
	static const char letters[] = "abtnvfr"; /* from 7 */

	if (cp >= 7 && cp <= 13)
		fprintf(f, "\\%c", letters[cp - 7]);
	else if (cp < 0x80)
		fprintf(f, "\\x%02" PRIx32, cp);
	else
		fprintf(f, "\\u%04" PRIx32, cp);
}

/* Printable text; also escapes the byte `end` of the surrounding syntax. */
static void
put_text(FILE *f, const char *s, size_t n, char end)
{
	uint32_t cp;
	size_t len;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_decode(s + i, n - i, &cp);
		if (len == 0) {
			fprintf(f, "\\x%02x", (unsigned char)s[i]);
			len = 1;
		} else if (cp == '\\' || (cp == '"' && end == '"')) {
			fprintf(f, "\\%c", (int)cp);
		} else if (cp < ' ' || (cp >= 0x7f && cp < 0xa0) ||
		    cp == (unsigned char)end) {
			put_escape(f, cp);
		} else {
			fwrite(s + i, 1, len, f);
		}
	}
}

/* A name before a colon: no spaces inside. */
static void
put_name(FILE *f, struct gguf_str s)
{
	put_text(f, s.p, s.n, ' ');
}

static void
put_quoted(FILE *f, struct gguf_str s, int full)
{
	size_t n = s.n;

	if (!full && n > SHORT_STRING)
		/* not inside a character */
		for (n = SHORT_STRING; n > SHORT_STRING - 4 &&
		    ((unsigned char)s.p[n] & 0xc0) == 0x80;)
			n--;
	putc('"', f);
	put_text(f, s.p, n, '"');
	fputs(n < s.n ? "\"..." : "\"", f);
}

/* Few digits (six at least), that read back as the same number. */
static void
put_real(FILE *f, const struct gguf_kv *kv, uint64_t i)
{
	double v = gguf_number(kv, i), back;
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		back = kv->item == GGUF_F32 ? strtof(text, NULL) :
		    strtod(text, NULL);
		if (!(back < v) && !(back > v))
			break;
	}
	fputs(isnan(v) ? "nan" : text, f);
}

/* Element i of anything but strings. */
static void
put_number(FILE *f, const struct gguf_kv *kv, uint64_t i)
{
	if (kv->item == GGUF_BOOL)
		fputs(kv->data[i] ? "true" : "false", f);
	else if (kv->item == GGUF_F32 || kv->item == GGUF_F64)
		put_real(f, kv, i);
	else if (kv->item == GGUF_U64)
		fprintf(f, "%" PRIu64, (uint64_t)gguf_array_int(kv, i));
	else
		fprintf(f, "%" PRId64, gguf_array_int(kv, i));
}

static void
put_values(FILE *f, const struct gguf_kv *kv, int full)
{
	uint64_t n = full || kv->count <= SHORT_ARRAY ? kv->count : SHORT_ARRAY;
	const uint8_t *p = kv->data;

	for (uint64_t i = 0; i < n; i++) {
		fputs(i ? ", " : "", f);
		if (kv->item == GGUF_STRING)
			put_quoted(f, gguf_next_str(&p), full);
		else
			put_number(f, kv, i);
	}
	fputs(n < kv->count ? ", ..." : "", f);
}

static void
put_key(FILE *f, const struct gguf_kv *kv, int full)
{
	fputs("key ", f);
	put_name(f, kv->key);
	fprintf(f, ": %s", gguf_value_type_name(kv->item));
	if (kv->type == GGUF_ARRAY)
		fprintf(f, "[%" PRIu64 "] [", kv->count);
	else
		putc(' ', f);
	put_values(f, kv, full);
	fputs(kv->type == GGUF_ARRAY ? "]\n" : "\n", f);
}

static struct gguf_str
c_str(const char *s)
{
	return (struct gguf_str){ s, strlen(s) };
}

static void
put_shape(FILE *f, const struct gguf_tensor *t)
{
	putc('[', f);
	for (int i = 0; i < t->n_dims; i++)
		fprintf(f, "%s%" PRIu64, i ? ", " : "", t->ne[i]);
	putc(']', f);
}

static void
put_tensor(FILE *f, const struct gguf *g, const struct gguf_tensor *t)
{
	fputs("tensor ", f);
	put_name(f, c_str(t->name));
	fprintf(f, ": %s ", ggml_type_name(t->type));
	put_shape(f, t);
	fprintf(f, " offset %" PRIu64 " bytes %" PRIu64, t->offset, t->n_bytes);
	if (g->n_files > 1)
		fprintf(f, " file %d", t->shard + 1);
	putc('\n', f);
}

/* All tensors of one type. */
struct sum {
	uint64_t tensors, elements, bytes;
};

static struct sum
sum_type(const struct gguf *g, int type)
{
	struct sum s = { 0, 0, 0 };

	for (uint64_t i = 0; i < g->n_tensors; i++)
		if (type < 0 || (int)g->tensor[i].type == type) {
			s.tensors++;
			s.elements += g->tensor[i].n_elements;
			s.bytes += g->tensor[i].n_bytes;
		}
	return s;
}

static double
bits_per_weight(struct sum s)
{
	return s.elements ? 8 * (double)s.bytes / (double)s.elements : 0;
}

static int
architecture(const struct gguf *g, struct gguf_str *s)
{
	struct err err = { 0 };

	return gguf_get_str(g, "general.architecture", s, &err) > 0;
}

/* Highest id that a parsed tensor can have, and one. */
enum { N_TYPES = 43 };

static void
put_summary(FILE *f, const struct gguf *g)
{
	struct sum all = sum_type(g, -1), s;
	struct gguf_str arch = c_str("none");
	const char *quant = gguf_quantization(g);

	architecture(g, &arch);
	fputs("architecture: ", f);
	put_text(f, arch.p, arch.n, 0);
	fprintf(f, "\nquantization: %s\n", quant ? quant : "unknown");
	fprintf(f, "tensors: %" PRIu64 "\n", all.tensors);
	fprintf(f, "parameters: %" PRIu64 "\n", all.elements);
	fprintf(f, "tensor bytes: %" PRIu64 "\n", all.bytes);
	fprintf(f, "bits per weight: %.4f\n", bits_per_weight(all));
	for (int id = 0; id < N_TYPES; id++) {
		s = sum_type(g, id);
		if (s.tensors)
			fprintf(f, "type %s: tensors %" PRIu64 " parameters %"
			    PRIu64 " bytes %" PRIu64 "\n", ggml_type_name(id),
			    s.tensors, s.elements, s.bytes);
	}
}

void
gguf_list_text(FILE *f, const struct gguf *g, int full)
{
	const struct gguf_file *file;

	for (int i = 0; i < g->n_files; i++) {
		file = &g->file[i];
		fputs("file: ", f);
		put_text(f, file->path, strlen(file->path), 0);
		fprintf(f, "\nversion: %" PRIu32 "\n", file->version);
		fprintf(f, "bytes: %" PRIu64 "\n", file->size);
		fprintf(f, "alignment: %" PRIu32 "\n", file->alignment);
	}
	put_summary(f, g);
	for (uint64_t i = 0; i < g->n_kv; i++)
		put_key(f, g->by_key[i], full);
	for (uint64_t i = 0; i < g->n_tensors; i++)
		put_tensor(f, g, g->by_name[i]);
}

void
gguf_value_raw(FILE *f, const struct gguf_kv *kv)
{
	const uint8_t *p = kv->data;
	struct gguf_str s;

	for (uint64_t i = 0; i < kv->count; i++) {
		if (kv->item == GGUF_STRING) {
			s = gguf_next_str(&p);
			fwrite(s.p, 1, s.n, f);
		} else {
			put_number(f, kv, i);
		}
		putc('\n', f);
	}
}

static int
is_finite(const struct gguf_kv *kv, uint64_t i)
{
	return (kv->item != GGUF_F32 && kv->item != GGUF_F64) ||
	    isfinite(gguf_number(kv, i));
}

void
gguf_value_json(FILE *f, const struct gguf_kv *kv)
{
	const uint8_t *p = kv->data;
	const char *quote;
	struct gguf_str s;

	fputs(kv->type == GGUF_ARRAY ? "[" : "", f);
	for (uint64_t i = 0; i < kv->count; i++) {
		fputs(i ? "," : "", f);
		if (kv->item == GGUF_STRING) {
			s = gguf_next_str(&p);
			json_put_string(f, s.p, s.n);
			continue;
		}
		quote = is_finite(kv, i) ? "" : "\"";
		fputs(quote, f);
		put_number(f, kv, i);
		fputs(quote, f);
	}
	fputs(kv->type == GGUF_ARRAY ? "]" : "", f);
}

static void
json_name(FILE *f, const char *before, struct gguf_str s, const char *after)
{
	fputs(before, f);
	json_put_string(f, s.p, s.n);
	fputs(after, f);
}

static void
json_files(FILE *f, const struct gguf *g)
{
	const struct gguf_file *file;

	fputs("\"files\":[", f);
	for (int i = 0; i < g->n_files; i++) {
		file = &g->file[i];
		json_name(f, i ? ",\n{\"path\":" : "\n{\"path\":",
		    c_str(file->path), "");
		fprintf(f, ",\"version\":%" PRIu32 ",\"bytes\":%" PRIu64
		    ",\"alignment\":%" PRIu32 "}", file->version, file->size,
		    file->alignment);
	}
	fputs("],\n", f);
}

static void
json_summary(FILE *f, const struct gguf *g)
{
	struct sum all = sum_type(g, -1), s;
	const char *quant = gguf_quantization(g), *comma = "";
	struct gguf_str arch;

	if (architecture(g, &arch))
		json_name(f, "\"architecture\":", arch, ",\n");
	else
		fputs("\"architecture\":null,\n", f);
	if (quant)
		json_name(f, "\"quantization\":", c_str(quant), ",\n");
	else
		fputs("\"quantization\":null,\n", f);
	fprintf(f, "\"parameters\":%" PRIu64 ",\n\"tensor_bytes\":%" PRIu64
	    ",\n\"bits_per_weight\":%.4f,\n\"types\":{", all.elements,
	    all.bytes, bits_per_weight(all));
	for (int id = 0; id < N_TYPES; id++) {
		s = sum_type(g, id);
		if (!s.tensors)
			continue;
		fprintf(f, "%s\n\"%s\":{\"tensors\":%" PRIu64
		    ",\"parameters\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", comma,
		    ggml_type_name(id), s.tensors, s.elements, s.bytes);
		comma = ",";
	}
	fputs("},\n", f);
}

void
gguf_list_json(FILE *f, const struct gguf *g)
{
	const struct gguf_tensor *t;

	fputs("{", f);
	json_files(f, g);
	json_summary(f, g);
	fputs("\"metadata\":{", f);
	for (uint64_t i = 0; i < g->n_kv; i++) {
		json_name(f, i ? ",\n" : "\n", g->by_key[i]->key, ":");
		gguf_value_json(f, g->by_key[i]);
	}
	fputs("},\n\"tensors\":[", f);
	for (uint64_t i = 0; i < g->n_tensors; i++) {
		t = g->by_name[i];
		json_name(f, i ? ",\n{\"name\":" : "\n{\"name\":",
		    c_str(t->name), "");
		fprintf(f, ",\"type\":\"%s\",\"shape\":",
		    ggml_type_name(t->type));
		put_shape(f, t);
		fprintf(f, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
		    ",\"file\":%d}", t->offset, t->n_bytes, t->shard);
	}
	fputs("]}\n", f);
}
