#include "npy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mapped.h"

static const struct {
	const char *descr;
	size_t size;
} types[] = {
	[NPY_F4] = { "<f4", 4 }, [NPY_F8] = { "<f8", 8 },
	[NPY_I1] = { "|i1", 1 }, [NPY_U1] = { "|u1", 1 },
	[NPY_I4] = { "<i4", 4 }, [NPY_I8] = { "<i8", 8 },
};

static const char magic[8] = { '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0 };

size_t
npy_type_size(enum npy_type type)
{
	return types[type].size;
}

size_t
npy_header(char *buf, size_t align, enum npy_type type, int n_dims,
    const uint64_t *shape)
{
	char *p = buf + 10, *end = buf + NPY_ALIGN_SHARED;
	size_t total;

	memcpy(buf, magic, sizeof magic);
	p += snprintf(p, (size_t)(end - p),
	    "{'descr': '%s', 'fortran_order': False, 'shape': (",
	    types[type].descr);
	for (int i = 0; i < n_dims; i++)
		p += snprintf(p, (size_t)(end - p), "%s%llu%s", i ? " " : "",
		    (unsigned long long)shape[i],
		    i + 1 < n_dims || n_dims == 1 ? "," : "");
	p += snprintf(p, (size_t)(end - p), "), }");
	total = (size_t)(p - buf) + 1;
	total = (total + align - 1) / align * align;
	memset(p, ' ', (size_t)(buf + total - p));
	buf[total - 1] = '\n';
	buf[8] = (char)((total - 10) & 0xff);
	buf[9] = (char)((total - 10) >> 8);
	return total;
}

/* A cursor over the header's text. */
struct text {
	const char *p, *end;
};

static void
skip_spaces(struct text *t)
{
	while (t->p < t->end && *t->p == ' ')
		t->p++;
}

/* Skip spaces; if the literal comes next, consume it. */
static int
take(struct text *t, const char *literal)
{
	size_t n = strlen(literal);

	skip_spaces(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, literal, n))
		return 0;
	t->p += n;
	return 1;
}

static int
take_number(struct text *t, uint64_t *v)
{
	skip_spaces(t);
	if (t->p == t->end || *t->p < '0' || *t->p > '9')
		return 0;
	for (*v = 0; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++) {
		if (*v > (UINT64_MAX - 9) / 10)
			return 0;
		*v = *v * 10 + (uint64_t)(*t->p - '0');
	}
	return 1;
}

static int
take_type(struct npy *a, struct text *t)
{
	char quoted[8];

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		snprintf(quoted, sizeof quoted, "'%s'", types[i].descr);
		if (take(t, quoted)) {
			a->type = (enum npy_type)i;
			return 1;
		}
	}
	return 0;
}

static int
take_shape(struct npy *a, struct text *t)
{
	uint64_t n;

	if (!take(t, "("))
		return 0;
	a->n_dims = 0;
	while (take_number(t, &n)) {
		if (a->n_dims == NPY_MAX_DIMS)
			return 0;
		a->shape[a->n_dims++] = n;
		if (!take(t, ","))
			break;
	}
	return take(t, ")");
}

/* The dictionary, its three keys in any order. */
static int
take_header(struct npy *a, struct text *t)
{
	int descr = 0, order = 0, shape = 0;

	if (!take(t, "{"))
		return 0;
	while (!take(t, "}")) {
		if (take(t, "'descr':"))
			descr = take_type(a, t);
		else if (take(t, "'fortran_order':"))
			order = take(t, "False");
		else if (take(t, "'shape':"))
			shape = take_shape(a, t);
		else
			return 0;
		if (!take(t, ",")) {
			if (!take(t, "}"))
				return 0;
			break;
		}
	}
	return descr && order && shape;
}

int
npy_parse(struct npy *a, const void *bytes, size_t n, struct err *err)
{
	const unsigned char *b = bytes;
	struct text t;
	size_t start;

	if (n < 10 || memcmp(b, magic, 6))
		return err_set(err, "not a .npy file");
	if (b[6] != 1 || b[7] != 0)
		return err_set(
		    err, ".npy version %d.%d is not supported", b[6], b[7]);
	start = 10 + (size_t)b[8] + 256 * (size_t)b[9];
	if (start > n)
		return err_set(err, "the .npy header is cut short");
	t.p = (const char *)b + 10;
	t.end = (const char *)b + start;
	if (!take_header(a, &t))
		return err_set(err, "the .npy header is not understood "
		                    "(little-endian, C order expected)");
	a->count = 1;
	for (int i = 0; i < a->n_dims; i++) {
		if (a->shape[i] && a->count > SIZE_MAX / 8 / a->shape[i])
			return err_set(err, "the .npy shape overflows");
		a->count *= a->shape[i];
	}
	if (a->count * npy_type_size(a->type) > n - start)
		return err_set(err, "the .npy data is cut short");
	a->data = b + start;
	return 0;
}

int
npy_open(struct npy *a, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	memset(a, 0, sizeof *a);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return err_set(err, "%s: not a .npy file", path);
	}
	a->map_size = (size_t)st.st_size;
	a->map = mapped_open(fd, a->map_size, PROT_READ, path);
	close(fd);
	if (!a->map)
		return err_sys(err, "cannot map '%s'", path);
	if (npy_parse(a, a->map, a->map_size, err) < 0) {
		npy_close(a);
		return err_prefix(err, "%s", path);
	}
	return 0;
}

void
npy_close(struct npy *a)
{
	mapped_close(a->map, a->map_size);
	memset(a, 0, sizeof *a);
}

int
npy_write(FILE *f, enum npy_type type, int n_dims, const uint64_t *shape,
    const void *data)
{
	char head[NPY_ALIGN_SHARED];
	size_t n = npy_header(head, NPY_ALIGN, type, n_dims, shape);
	size_t count = 1;

	for (int i = 0; i < n_dims; i++)
		count *= (size_t)shape[i];
	if (fwrite(head, 1, n, f) != n)
		return -1;
	return fwrite(data, npy_type_size(type), count, f) == count ? 0 : -1;
}

int
npy_save_f32(const char *path, uint64_t rows, uint64_t cols, const float *data,
    struct err *err)
{
	uint64_t shape[2] = { rows, cols };
	struct outfile o;

	if (io_create(&o, path, err) < 0)
		return -1;
	if (npy_write(o.f, NPY_F4, 2, shape, data) < 0) {
		err_sys(err, "cannot write '%s'", path);
		io_abort(&o);
		return -1;
	}
	return io_commit(&o, err);
}
