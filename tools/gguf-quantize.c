/*
 * gguf-quantize: a GGUF file with its matrices in smaller types, byte for byte
 * the file that llama.cpp's quantiser writes.
 */
#define PROG "gguf-quantize"
#define USAGE PROG " [options] --model PATH --type TYPE --output PATH"
#include "tool.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "gguf.h"
#include "gguf_write.h"
#include "pool.h"
#include "quantmix.h"
#include "requantize.h"
#include "sysinfo.h"

static const char *model_path, *output;
static uint64_t threads;
static int mix, again, dry_run, verbose, have_model, have_type;

static const struct opt options[] = {
	{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
	    .given = &have_model,
	    .help = "GGUF file to read, whole or the first of a split one" },
	{ "type", OPT_WORD, &mix, .arg = "TYPE", .words = quantmix_names,
	    .required = 1, .given = &have_type,
	    .help = "Q4_K_M, Q4_K_S, Q5_K_M, Q5_K_S, Q6_K, Q8_0, ..." },
	{ "output", OPT_STR, &output, .arg = "PATH",
	    .help = "GGUF file to write" },
	{ "dry-run", OPT_FLAG, &dry_run,
	    .help = "list what each tensor would become, write nothing" },
	{ "allow-requantize", OPT_FLAG, &again,
	    .help = "accept matrices that are quantised already" },
	{ "threads", OPT_UINT, &threads, .arg = "N", .min = 1,
	    .max = POOL_MAX_THREADS,
	    .help = "default the usable physical cores" },
	{ "verbose", OPT_FLAG, &verbose,
	    .help = "report each tensor's error on standard error" },
	{ 0 }
};

/* What becomes of a tensor. */
struct item {
	const struct gguf_tensor *t;
	enum ggml_type to;
};

struct plan {
	struct item *item; /* in the order of the output */
	uint64_t n, n_fallen;
	uint64_t n_elements, bytes_in, bytes_out;
};

static uint64_t
bytes_as(const struct item *i)
{
	return ggml_row_bytes(i->to, i->t->n_elements);
}

static int
by_order(const void *a, const void *b)
{
	return quantmix_order(((const struct item *)a)->t->name,
	    ((const struct item *)b)->t->name);
}

/* Can this matrix be read, and may it? */
static int
check_source(const struct gguf_tensor *t, struct err *err)
{
	switch (ggml_type_info(t->type)->use) {
	case GGML_NAME_ONLY:
		return err_set(err,
		    "unsupported GGUF tensor type: %s "
		    "(tensor %s)",
		    ggml_type_name(t->type), t->name);
	case GGML_FLOAT:
		return 0;
	default:
		return again ? 0
			     : err_set(err,
				   "tensor %s is %s already; "
				   "--allow-requantize quantises it again",
				   t->name, ggml_type_name(t->type));
	}
}

static int
make_plan(struct plan *p, const struct gguf *g, struct err *err)
{
	struct quantmix_model m = quantmix_model(g);
	int fell;

	p->n = g->n_tensors;
	p->item = calloc((size_t)p->n + 1, sizeof *p->item);
	if (!p->item)
		return err_set(err, "out of memory");
	for (uint64_t i = 0; i < p->n; i++) {
		p->item[i].t = &g->tensor[i];
		p->item[i].to = quantmix_tensor(
		    (enum quantmix)mix, &m, p->item[i].t, &fell);
		p->n_fallen += (uint64_t)fell;
		p->n_elements += p->item[i].t->n_elements;
		p->bytes_in += p->item[i].t->n_bytes;
		if (p->item[i].to != p->item[i].t->type &&
		    check_source(p->item[i].t, err) < 0)
			return -1;
		p->bytes_out += p->item[i].to == p->item[i].t->type
				    ? p->item[i].t->n_bytes
				    : bytes_as(&p->item[i]);
	}
	qsort(p->item, (size_t)p->n, sizeof *p->item, by_order);
	return 0;
}

static void
print_plan(const struct plan *p)
{
	for (uint64_t i = 0; i < p->n; i++)
		printf("%s %s %s %" PRIu64 "\n", p->item[i].t->name,
		    ggml_type_name(p->item[i].t->type),
		    ggml_type_name(p->item[i].to),
		    p->item[i].to == p->item[i].t->type
			? p->item[i].t->n_bytes
			: bytes_as(&p->item[i]));
	printf("total %" PRIu64 " bytes, %.4g bits per weight\n", p->bytes_out,
	    8 * (double)p->bytes_out / (double)p->n_elements);
}

static int
starts_with(struct gguf_str s, const char *c)
{
	size_t n = strlen(c);

	return s.n >= n && !memcmp(s.p, c, n);
}

/*
 * All metadata but what is about files and types.  The two keys at the end
 * stand where llama.cpp puts them.
 */
static void
put_metadata(struct gguf_writer *w, const struct gguf *g)
{
	for (uint64_t i = 0; i < g->n_kv; i++) {
		const struct gguf_kv *kv = &g->kv[i];

		if (starts_with(kv->key, "split.") ||
		    (gguf_str_is(kv->key, "general.alignment") &&
			g->file[0].alignment != GGUF_ALIGNMENT) ||
		    gguf_str_is(kv->key, "general.file_type") ||
		    gguf_str_is(kv->key, "general.quantization_version"))
			continue;
		gguf_put_kv(w, kv);
	}
	gguf_put_u32(w, "general.quantization_version", 2);
	gguf_put_u32(
	    w, "general.file_type", quantmix_file_type((enum quantmix)mix));
}

/* Where the data goes. */
struct target {
	struct gguf_writer w;
	struct outfile file;
};

static int
put_data(void *arg, const void *bytes, size_t n, struct err *err)
{
	struct target *to = arg;

	return gguf_write_data(&to->w, to->file.f, bytes, n, err) < 0
		   ? err_prefix(err, "%s", output)
		   : 0;
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One line that overwrites itself, on a terminal only. */
static void
show_progress(uint64_t i, uint64_t n, const char *name)
{
	char line[128];
	int len;

	if (verbose || !isatty(2))
		return;
	len = name ? snprintf(line, sizeof line,
			 "\r\033[K[%" PRIu64 "/%" PRIu64 "] %.64s", i, n, name)
		   : snprintf(line, sizeof line, "\r\033[K");
	io_write_all(2, line, (size_t)len);
}

static void
report_tensor(const struct item *i, double error)
{
	char text[256];

	snprintf(text, sizeof text, "%s: %s to %s, relative error %.3g",
	    i->t->name, ggml_type_name(i->t->type), ggml_type_name(i->to),
	    error);
	tool_say("", text);
}

static int
write_tensor(struct target *to, const struct item *i, struct requantizer *q,
    struct err *err)
{
	double error;

	if (i->to == i->t->type)
		return put_data(to, i->t->data, (size_t)i->t->n_bytes, err);
	if (requantize(q, i->t, i->to, put_data, to, &error, err) < 0)
		return ferror(to->file.f) ? -1
					  : err_prefix(err, "%s", model_path);
	if (verbose)
		report_tensor(i, error);
	return 0;
}

static int
write_tensors(struct target *to, const struct plan *p, struct requantizer *q,
    struct err *err)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < p->n; i++) {
		show_progress(i + 1, p->n, p->item[i].t->name);
		rc = write_tensor(to, &p->item[i], q, err);
	}
	show_progress(0, 0, NULL);
	return rc < 0 ? -1 : gguf_write_end(&to->w, err);
}

static int
write_file(const struct gguf *g, const struct plan *p, struct pool *pool,
    struct err *err)
{
	struct target to = { .file.f = NULL };
	struct requantizer q;

	put_metadata(&to.w, g);
	for (uint64_t i = 0; i < p->n; i++)
		gguf_add_tensor(&to.w, p->item[i].t->name, p->item[i].t->n_dims,
		    p->item[i].t->ne, p->item[i].to);
	if (requantizer_open(&q, pool, err) < 0 ||
	    io_create_large(&to.file, output, err) < 0)
		return -1;
	if (gguf_write_head(&to.w, to.file.f, err) < 0)
		return err_prefix(err, "%s", output);
	if (write_tensors(&to, p, &q, err) < 0)
		return -1;
	requantizer_close(&q);
	gguf_writer_free(&to.w);
	return io_commit(&to.file, err);
}

static void
report(const struct plan *p, double s)
{
	char text[256];

	snprintf(text, sizeof text,
	    "%" PRIu64 " tensors, %.1f MB to %.1f MB, "
	    "%.4g bits per weight, %.1f s, %.1f MB/s",
	    p->n, (double)p->bytes_in / 1e6, (double)p->bytes_out / 1e6,
	    8 * (double)p->bytes_out / (double)p->n_elements, s,
	    (double)p->bytes_in / 1e6 / s);
	tool_say("total: ", text);
}

static void
warn_fallen(const struct plan *p)
{
	char text[128];

	if (!p->n_fallen)
		return;
	snprintf(text, sizeof text,
	    "%" PRIu64 " of %" PRIu64 " tensors have "
	    "rows of no multiple of the block and got another type",
	    p->n_fallen, p->n);
	tool_warn(text);
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Write a GGUF file with its matrices in smaller types, as "
	    "llama.cpp does.");
	struct plan p = { 0 };
	struct pool *pool;
	double start = seconds();
	struct gguf g;

	tool_no_operands(rest, argc, argv);
	if (!output == !dry_run) {
		err_set(&err, dry_run ? "--output and --dry-run exclude each "
					"other"
				      : "--output is required (or --dry-run)");
		tool_usage(&err);
	}
	if (gguf_open(&g, model_path, &err) < 0)
		tool_fail(&err);
	if (make_plan(&p, &g, &err) < 0 ||
	    (!dry_run && gguf_check_data(&g, &err) < 0)) {
		err_prefix(&err, "%s", model_path);
		tool_fail(&err);
	}
	if (dry_run) {
		print_plan(&p);
	} else {
		if (gguf_check_output(&g, output, &err) < 0 ||
		    pool_open(&pool,
			(unsigned)(threads ? threads : sysinfo_cores()),
			&err) < 0 ||
		    write_file(&g, &p, pool, &err) < 0)
			tool_fail(&err);
		pool_close(pool);
		if (verbose)
			report(&p, seconds() - start);
	}
	warn_fallen(&p);
	free(p.item);
	gguf_close(&g);
	return tool_finish();
}
