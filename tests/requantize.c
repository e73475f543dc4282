/* Tensors into other types: pieces, threads, and values that do not fit. */
#include <math.h>
#include <stdlib.h>

#include "quantize.h"
#include "requantize.h"
#include "tap.h"

enum { N = 3 * 256 * 16384 / 2 + 512 }; /* two batches, the last one uneven */

static float *x;
static unsigned char *want, *got;
static size_t n_got;
static int sink_full;

static int
collect(void *arg, const void *bytes, size_t n, struct err *err)
{
	const int *full = arg;

	if (*full)
		return err_set(err, "no more");
	memcpy(got + n_got, bytes, n);
	n_got += n;
	return 0;
}

static int
run(unsigned threads, enum ggml_type to, size_t n, double *error,
    struct err *err)
{
	struct gguf_tensor t = { .name = "t",
		.type = GGML_F32,
		.n_dims = 1,
		.ne = { n },
		.n_elements = n,
		.data = (const uint8_t *)x };
	struct requantizer q;
	struct pool *pool;
	int rc;

	memset(err, 0, sizeof *err);
	n_got = 0;
	if (pool_open(&pool, threads, err) < 0 ||
	    requantizer_open(&q, pool, err) < 0) {
		printf("Bail out! %s\n", err->msg);
		exit(1);
	}
	rc = requantize(&q, &t, to, collect, &sink_full, error, err);
	requantizer_close(&q);
	pool_close(pool);
	return rc;
}

static void
test_bytes(void)
{
	static const enum ggml_type types[] = { GGML_F16, GGML_BF16, GGML_Q8_0,
		GGML_Q4_0, GGML_Q5_1 };
	struct err err;
	double error, first;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t bytes = (size_t)ggml_row_bytes(types[i], N);

		quantize_row(types[i], x, N, want);
		ok(run(1, types[i], N, &first, &err) == 0 && n_got == bytes &&
			!memcmp(got, want, bytes),
		    "%s: the encoder's bytes", ggml_type_name(types[i]));
		ok(run(3, types[i], N, &error, &err) == 0 && n_got == bytes &&
			!memcmp(got, want, bytes) && error == first,
		    "%s: three threads, the same bytes and error",
		    ggml_type_name(types[i]));
	}
	ok(run(1, GGML_F32, N, &error, &err) == 0 && error == 0,
	    "nothing changes, no error");
}

static void
test_error(void)
{
	struct err err;
	double error;

	/* 1 + 2^-11 lies between two neighbours in F16: 2^-11 is lost */
	for (int i = 0; i < 64; i++)
		x[i] = 1 + 0x1p-11f;
	ok(run(1, GGML_F16, 64, &error, &err) == 0 &&
		fabs(error - 0x1p-11 / (1 + 0x1p-11)) < 1e-12,
	    "relative error");
	memset(x, 0, 64 * sizeof *x);
	ok(run(1, GGML_Q8_0, 64, &error, &err) == 0 && error == 0,
	    "zeros have none");
}

static void
fails_at(enum ggml_type to, size_t at, float v, const char *message)
{
	float old = x[at];
	struct err err;
	double error;

	x[at] = v;
	ok(run(2, to, N, &error, &err) < 0, "%g is refused", (double)v);
	is(err.msg, message, "and the message");
	x[at] = old;
}

int
main(void)
{
	uint32_t s = 1;
	struct err err;
	double error;

	x = malloc(N * sizeof *x);
	want = malloc(N * sizeof *x);
	got = malloc(N * sizeof *x);
	for (size_t i = 0; i < N; i++) {
		s = s * 1664525 + 1013904223;
		x[i] = (float)((int32_t)s >> 8) * 0x1p-23f;
	}
	test_bytes();
	fails_at(GGML_Q8_0, 5, NAN, "tensor t: element 5 is not finite");
	fails_at(GGML_Q4_0, N - 1, -INFINITY,
	    "tensor t: element 6291967 is not finite");
	fails_at(GGML_F16, 4200000, 65536,
	    "tensor t: element 4200000 is too large for F16");
	fails_at(GGML_Q8_0, 64, 1e8f,
	    "tensor t: element 64 is too large for "
	    "Q8_0");
	fails_at(GGML_Q5_1, 64, -1e8f,
	    "tensor t: element 64 is too large for "
	    "Q5_1");
	test_error();
	sink_full = 1;
	ok(run(2, GGML_Q8_0, N, &error, &err) < 0, "a sink that fails");
	is(err.msg, "no more", "and its message");
	free(x);
	free(want);
	free(got);
	return tap_end();
}
