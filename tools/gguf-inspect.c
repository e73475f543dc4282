/*
 * gguf-inspect: what a GGUF file holds.
 */
#define PROG "gguf-inspect"
#define USAGE PROG " [--json | --full] [--get KEY | --check | " \
    "--tensor NAME --output PATH] FILE"
#include "tool.h"

#include "expand.h"
#include "gguf.h"
#include "gguf_check.h"
#include "gguf_list.h"
#include "npy.h"

static const char *model, *get, *tensor, *output;
static int json, full, check;

static const struct opt options[] = {
	{ .name = "model", .type = OPT_STR, .to = &model, .arg = "PATH",
	  .help = "the file, instead of the operand" },
	{ .name = "full", .type = OPT_FLAG, .to = &full,
	  .help = "show long arrays and strings whole" },
	{ .name = "json", .type = OPT_FLAG, .to = &json,
	  .help = "print one JSON object, everything in full" },
	{ .name = "get", .type = OPT_STR, .to = &get, .arg = "KEY",
	  .help = "print the value of one metadata key" },
	{ .name = "tensor", .type = OPT_STR, .to = &tensor, .arg = "NAME",
	  .help = "decode a tensor to float32 (with --output)" },
	{ .name = "output", .type = OPT_STR, .to = &output, .arg = "PATH",
	  .help = "where --tensor writes a .npy file; -: standard output" },
	{ .name = "check", .type = OPT_FLAG, .to = &check,
	  .help = "read all data, report what is missing or not finite" },
	{ 0 }
};

static const char *
find_operand(int rest, int argc, char **argv)
{
	const char *path = model;

	if (rest < argc && model)
		tool_misuse("--model and FILE exclude each other");
	if (rest < argc)
		path = argv[rest++];
	tool_no_operands(rest, argc, argv);
	if (!path)
		tool_misuse("no file is given");
	return path;
}

static void
check_options(void)
{
	if ((get != NULL) + check + (tensor != NULL) > 1)
		tool_misuse("--get, --check and --tensor exclude each other");
	if (!tensor != !output)
		tool_misuse("--tensor and --output belong together");
	if (json && (check || tensor))
		tool_misuse("--json goes with the listing and --get only");
	if (full && (json || get || check || tensor))
		tool_misuse("--full goes with the listing only");
	if (output && !strcmp(output, "-") && isatty(1))
		tool_misuse("standard output is a terminal; --output - writes "
		    "binary data");
}

static int
print_value(const struct gguf *g, const char *path, struct err *err)
{
	const struct gguf_kv *kv = gguf_find(g, get);

	if (!kv)
		return err_set(err, "%s: no such metadata key: %s", path, get);
	if (json) {
		gguf_value_json(stdout, kv);
		putchar('\n');
	} else {
		gguf_value_raw(stdout, kv);
	}
	return 0;
}

/* One message per tensor that has something wrong. */
static int
check_all(const struct gguf *g)
{
	struct err err;
	int rc = 0;

	for (uint64_t i = 0; i < g->n_tensors; i++) {
		memset(&err, 0, sizeof err);
		if (gguf_check_tensor(g, &g->tensor[i], &err) < 0) {
			tool_say("ERROR: ", err.msg);
			rc = -1;
		}
	}
	return rc;
}

/* Rows are whole blocks, so a tensor is one run of blocks. */
static void
write_decoded(FILE *f, const struct gguf_tensor *t)
{
	static float chunk[8192]; /* a multiple of every block */
	uint64_t shape[GGUF_MAX_DIMS], n;
	char header[NPY_ALIGN_SHARED];
	const uint8_t *p = t->data;

	for (int i = 0; i < t->n_dims; i++)
		shape[i] = t->ne[t->n_dims - 1 - i];
	n = npy_header(header, NPY_ALIGN, NPY_F4, t->n_dims, shape);
	fwrite(header, 1, n, f);
	for (uint64_t i = 0; i < t->n_elements && !ferror(f); i += n) {
		n = t->n_elements - i;
		if (n > sizeof chunk / sizeof *chunk)
			n = sizeof chunk / sizeof *chunk;
		decode_row(t->type, p, n, chunk);
		fwrite(chunk, sizeof *chunk, n, f);
		p += ggml_row_bytes(t->type, n);
	}
}

static int
extract(const struct gguf *g, const char *path, struct err *err)
{
	const struct gguf_tensor *t = gguf_find_tensor(g, tensor);
	struct outfile out;

	if (!t)
		return err_set(err, "%s: no such tensor: %s", path, tensor);
	if (ggml_type_info(t->type)->use == GGML_NAME_ONLY)
		return err_set(err,
		    "%s: unsupported GGUF tensor type: %s (tensor %s)", path,
		    ggml_type_name(t->type), t->name);
	if (!t->data)
		return gguf_check_tensor(g, t, err);
	if (!strcmp(output, "-")) {
		write_decoded(stdout, t);
		return 0;
	}
	if (gguf_check_output(g, output, err) < 0 ||
	    io_create(&out, output, err) < 0)
		return -1;
	write_decoded(out.f, t);
	return io_commit(&out, err);
}

static void
list(const struct gguf *g)
{
	struct err warning = { 0 };

	if (gguf_check_data(g, &warning) < 0)
		tool_warn(warning.msg);
	if (json)
		gguf_list_json(stdout, g);
	else
		gguf_list_text(stdout, g, full);
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	struct gguf g;
	const char *path;
	int rc = 0;

	path = find_operand(tool_start(options, argc, argv,
	    "Prints what a GGUF file holds, one fact per line: architecture, "
	    "sizes, types,\nmetadata, tensors.  Of a split model name the "
	    "first file."), argc, argv);
	check_options();
	if (gguf_open(&g, path, &err) < 0)
		tool_fail(&err);
	if (get)
		rc = print_value(&g, path, &err);
	else if (tensor)
		rc = extract(&g, path, &err);
	else if (check)
		rc = check_all(&g);
	else
		list(&g);
	gguf_close(&g);
	if (err.set)
		tool_fail(&err);
	return rc < 0 ? 1 : tool_finish();
}
