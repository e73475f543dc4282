#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf_parse.h"
#include "mapped.h"

/* "-00001-of-00002.gguf" */
enum { SPLIT_SUFFIX = 20 };

static int
map_fd(struct gguf_file *f, int fd, const char *path, struct err *err)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, "cannot read '%s': is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(
		    err, "cannot read '%s': not a regular file", path);
	if (st.st_size == 0)
		return err_set(err, "%s: the file is empty", path);
	if ((uintmax_t)st.st_size > SIZE_MAX / 2)
		return err_set(err, "cannot map '%s': too large", path);
	map = mapped_open(fd, (size_t)st.st_size, PROT_READ, path);
	if (!map)
		return err_sys(err, "cannot map '%s'", path);
	f->map = map;
	f->size = (uint64_t)st.st_size;
	return 0;
}

/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
static int
map_file(struct gguf_file *f, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	rc = map_fd(f, fd, path, err);
	close(fd);
	return rc;
}

/* One file as a whole model: everything but split keys is done. */
static int
open_one(struct gguf *g, const char *path, struct err *err)
{
	memset(g, 0, sizeof *g);
	g->file = calloc(1, sizeof *g->file);
	if (g->file)
		g->file->path = strdup(path);
	if (!g->file || !g->file->path) {
		gguf_close(g);
		return err_set(err, "%s: out of memory", path);
	}
	g->n_files = 1;
	if (map_file(g->file, path, err) < 0) {
		gguf_close(g);
		return -1;
	}
	if (gguf_parse(g, err) < 0 || gguf_index_tensors(g, err) < 0) {
		gguf_close(g);
		return err_prefix(err, "%s", path);
	}
	return 0;
}

void
gguf_close(struct gguf *g)
{
	for (int i = 0; i < g->n_files; i++) {
		mapped_close((void *)g->file[i].map, (size_t)g->file[i].size);
		free(g->file[i].path);
	}
	free(g->file);
	free(g->kv);
	free(g->tensor);
	free(g->by_key);
	free(g->by_name);
	memset(g, 0, sizeof *g);
}

/* Add a shard's file and tensors to g; empties it. */
static int
append(struct gguf *g, struct gguf *part, struct err *err)
{
	uint64_t n = g->n_tensors + part->n_tensors;
	struct gguf_file *file;
	struct gguf_tensor *tensor;

	if (part->n_elements > INT64_MAX - g->n_elements)
		return err_set(err, "%s: the elements of all tensors together "
		    "overflow", part->file->path);
	file = realloc(g->file, ((size_t)g->n_files + 1) * sizeof *file);
	if (!file)
		return err_set(err, "%s: out of memory", part->file->path);
	g->file = file;
	tensor = realloc(g->tensor, (n + 1) * sizeof *tensor);
	if (!tensor)
		return err_set(err, "%s: out of memory", part->file->path);
	g->tensor = tensor;
	for (uint64_t i = 0; i < part->n_tensors; i++) {
		g->tensor[g->n_tensors] = part->tensor[i];
		g->tensor[g->n_tensors++].shard = g->n_files;
	}
	g->n_elements += part->n_elements;
	g->file[g->n_files++] = *part->file;
	part->n_files = 0;
	return 0;
}

static int
required(int found, const char *path, const char *key, struct err *err)
{
	if (found)
		return found;
	return err_set(err, "%s: required metadata key missing: %s", path, key);
}

static int
add_shard(struct gguf *g, const char *path, uint64_t i, struct err *err)
{
	static const char key[] = "split.no";
	struct gguf part;
	uint64_t no = 0;
	int rc = -1;

	if (open_one(&part, path, err) < 0)
		return -1;
	if (required(gguf_get_uint(&part, key, 0, 65535, &no, err), path, key,
	    err) < 0)
		;
	else if (no != i)
		err_set(err, "%s: key split.no is %" PRIu64 ", expected %"
		    PRIu64, path, no, i);
	else
		rc = append(g, &part, err);
	gguf_close(&part);
	return rc;
}

/*
 * Tensor pointers move when shards are added, so the names are sorted anew;
 * that finds a name in two shards as well.
 */
static int
reindex(struct gguf *g, struct err *err)
{
	free(g->by_name);
	g->by_name = NULL;
	if (gguf_index_tensors(g, err) < 0)
		return err_prefix(err, "%s", g->file->path);
	return 0;
}

static int
check_total(const struct gguf *g, struct err *err)
{
	static const char key[] = "split.tensors.count";
	const char *path = g->file->path;
	uint64_t total = 0;

	if (required(gguf_get_uint(g, key, 0, INT32_MAX, &total, err), path,
	    key, err) < 0)
		return -1;
	if (total != g->n_tensors)
		return err_set(err, "%s: key split.tensors.count is %" PRIu64
		    ", but the files hold %" PRIu64 " tensors", path, total,
		    g->n_tensors);
	return 0;
}

static int
add_shards(struct gguf *g, uint64_t count, struct err *err)
{
	char *path = strdup(g->file->path), suffix[SPLIT_SUFFIX + 1], *end;
	size_t n = strlen(g->file->path);
	int rc = 0;

	if (!path)
		return err_set(err, "%s: out of memory", g->file->path);
	end = path + (n < SPLIT_SUFFIX ? n : n - SPLIT_SUFFIX);
	snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf",
	    (unsigned)count % 100000);
	if (strcmp(end, suffix))
		rc = err_set(err, "%s: first of %" PRIu64 " files of a split "
		    "model, but the name does not end in %s", path, count,
		    suffix);
	for (uint64_t i = 1; i < count && rc == 0; i++) {
		snprintf(end, SPLIT_SUFFIX + 1, "-%05u-of-%05u.gguf",
		    (unsigned)(i + 1) % 100000, (unsigned)count % 100000);
		rc = add_shard(g, path, i, err);
	}
	free(path);
	return rc < 0 || check_total(g, err) < 0 ? -1 : reindex(g, err);
}

static int
open_split(struct gguf *g, struct err *err)
{
	uint64_t count = 1, no = 0;

	if (gguf_get_uint(g, "split.no", 0, 65535, &no, err) < 0 ||
	    gguf_get_uint(g, "split.count", 0, 65535, &count, err) < 0)
		return -1;
	if (no != 0)
		return err_set(err, "%s: key split.no is %" PRIu64 ": not the "
		    "first file of a split model; open that one",
		    g->file->path, no);
	return count > 1 ? add_shards(g, count, err) : 0;
}

int
gguf_open(struct gguf *g, const char *path, struct err *err)
{
	if (open_one(g, path, err) < 0)
		return -1;
	if (open_split(g, err) < 0) {
		gguf_close(g);
		return -1;
	}
	return 0;
}

int
gguf_check_data(const struct gguf *g, struct err *err)
{
	const struct gguf_tensor *t;
	const struct gguf_file *f;

	for (uint64_t i = 0; i < g->n_tensors; i++) {
		t = &g->tensor[i];
		f = &g->file[t->shard];
		if (!t->data)
			return err_set(err, "%s: the file is incomplete: data "
			    "of tensor %s ends at byte %" PRIu64 " of %" PRIu64,
			    f->path, t->name, t->offset + t->n_bytes, f->size);
	}
	return 0;
}

int
gguf_check_output(const struct gguf *g, const char *path, struct err *err)
{
	struct stat in, out;

	if (stat(path, &out) < 0)
		return 0;
	for (int i = 0; i < g->n_files; i++)
		if (stat(g->file[i].path, &in) == 0 &&
		    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return err_set(
			    err, "%s: the output is the input", path);
	return 0;
}
