/* Comparing arrays: every figure on arrays small enough to work out by hand. */
#include <math.h>

#include "npycmp.h"
#include "tap.h"

enum { MAX = 64 };

static struct npy
array(enum npy_type type, uint64_t rows, uint64_t cols, const void *data)
{
	struct npy a = { .type = type,
		.n_dims = 2,
		.shape = { rows, cols },
		.count = rows * cols,
		.data = data };

	return a;
}

static struct npycmp
compare(uint64_t rows, uint64_t cols, const float *x, const float *y)
{
	struct npy a = array(NPY_F4, rows, cols, x);
	struct npy b = array(NPY_F4, rows, cols, y);
	struct err err = { 0 };
	struct npycmp c;

	ok(npycmp(&c, &a, &b, NULL, &err) == 0, "arrays can be compared");
	return c;
}

static int
near(double got, double want)
{
	return fabs(got - want) <= 1e-12;
}

static void
test_equal(void)
{
	static const float x[] = { 1, 2, 3, 4, 5, 6 };
	struct npycmp c = compare(2, 3, x, x);

	ok(c.rows == 2 && c.width == 3 && !c.differing && !c.nans,
	    "equal arrays: counts");
	ok(c.max_abs == 0 && c.rel_l2 == 0 && c.row_rel_l2 == 0 &&
		c.cosine_median == 1 && c.cosine_worst == 1,
	    "equal arrays: distances");
	ok(c.argmax_same == 2 && c.clear == 2 && c.clear_same == 2 &&
		c.argmax_at == (uint64_t)NPYCMP_NONE && c.top_same == 2 &&
		c.top_common == 3,
	    "equal arrays: ranks");
}

static void
test_figures(void)
{
	/* rows: parallel, orthogonal, at an angle of 45 degrees */
	static const float x[] = { 2, 4, 0, 3, 1, 1 };
	static const float y[] = { 1, 2, 4, 0, 0, 1 };
	struct npycmp c = compare(3, 2, x, y);

	ok(c.differing == 5, "5 of 6 elements differ");
	ok(c.max_abs == 4 && c.worst == 2 && c.worst_a == 0 && c.worst_b == 4,
	    "worst element and its values");
	ok(near(c.rel_l2, sqrt(1 + 4 + 16 + 9 + 1) / sqrt(1 + 4 + 16 + 1)),
	    "relative L2");
	ok(near(c.row_rel_l2, 5.0 / 4) && c.row_rel_l2_at == 1,
	    "relative L2 of the worst row");
	ok(c.cosine_worst == 0 && c.cosine_at == 1, "worst cosine");
	ok(near(c.cosine_median, sqrt(0.5)), "median cosine");
	ok(c.argmax_same == 1 && c.argmax_at == 1 && c.clear == 0,
	    "arg-max differs in rows that are not clear");
}

static void
test_clear(void)
{
	/* largest difference 1: rows with a gap above 4 are clear */
	static const float x[] = { 9, 5, 9, 4, 2, 3 };
	static const float y[] = { 9, 5, 9, 4, 3, 2 };
	static const float z[] = { 0, 6, 5, 0, 0, 5 };
	static const float w[] = { 6, 0, 5, 0, 5, 0 };
	struct npycmp c = compare(3, 2, x, y);

	ok(c.clear == 1 && c.clear_same == 1 && c.argmax_same == 2 &&
		c.argmax_at == 2,
	    "only a gap above 4 * max-abs is clear");
	c = compare(3, 2, z, w);
	ok(c.clear == 0 && c.argmax_at == 0, "first row that differs");
}

static void
test_ranks(void)
{
	static const float x[] = { 3, 3, 1, 0, 0, 0, 7 };
	static const float y[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct npycmp c = compare(1, 7, x, y);

	ok(c.argmax_same == 1, "the same arg-max");
	ok(c.top_same == 0 && c.top_common == 3,
	    "top five of ties: the first ones count");
	c = compare(1, 2, (const float[]){ 1, 1 }, (const float[]){ 0, 1 });
	ok(c.argmax_same == 0, "of equal elements the first is the arg-max");
}

static void
test_not_finite(void)
{
	static const float x[] = { 1, 2, 3, 4 };
	static const float n[] = { 1, 2, NAN, 4 };
	static const float i[] = { 1, INFINITY, -INFINITY, 5 };
	static const float j[] = { 1, INFINITY, -INFINITY, 4 };
	struct npycmp c = compare(2, 2, n, x);

	ok(c.nans == 1 && c.differing == 1, "a NaN is counted");
	ok(isnan(c.max_abs) && c.worst == 2, "a NaN is the worst element");
	ok(isnan(c.rel_l2) && isnan(c.row_rel_l2) && c.row_rel_l2_at == 1,
	    "relative L2 with a NaN");
	ok(isnan(c.cosine_worst) && c.cosine_at == 1 && isnan(c.cosine_median),
	    "cosine with a NaN");
	ok(c.argmax_same == 1 && c.clear == 2 && c.clear_same == 1 &&
		c.argmax_at == 1,
	    "a row with a NaN has no arg-max");
	c = compare(2, 2, n, n);
	ok(c.differing == 1 && isnan(c.max_abs), "NaN differs from itself");
	c = compare(2, 2, i, j);
	ok(c.differing == 1 && c.max_abs == 1 && near(c.row_rel_l2, 0.25),
	    "equal infinities stay out of norms");
	c = compare(2, 2, i, x);
	ok(isinf(c.max_abs) && !(c.rel_l2 <= 1e30),
	    "an infinity on one side is beyond every tolerance");
	c = compare(
	    1, 2, (const float[]){ 0.0f, 1 }, (const float[]){ -0.0f, 1 });
	ok(c.differing == 1 && c.max_abs == 0, "zeros of two signs differ");
}

static void
test_shapes(void)
{
	static const float x[MAX];
	struct npy a = array(NPY_F4, 2, 3, x), b = array(NPY_F4, 3, 2, x);
	struct err err = { 0 };
	struct npycmp c;

	ok(npycmp(&c, &a, &b, NULL, &err) < 0, "shapes that differ");
	is(err.msg, "the shapes differ: (2, 3) and (3, 2)", "and the message");
	a.n_dims = b.n_dims = 0;
	a.count = b.count = 1;
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && c.rows == 1 && c.width == 1,
	    "a scalar is one row of one");
	a = b = array(NPY_F4, 0, 5, x);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && c.rows == 0 && !c.differing &&
		c.rel_l2 == 0,
	    "no rows");
	a = b = array(NPY_F4, 5, 0, x);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && c.clear == 0 &&
		c.argmax_same == 5 && c.cosine_worst == 1,
	    "rows of nothing");
	a = b = array(NPY_F4, 2, 6, x);
	a.n_dims = b.n_dims = 3;
	a.shape[1] = b.shape[1] = 2;
	a.shape[2] = b.shape[2] = 3;
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && c.rows == 4 && c.width == 3,
	    "three dimensions: rows along the last");
}

static void
test_rows(void)
{
	static const float x[] = { 1, 2, 3, 4 }, y[] = { 0, 2, 9, 4 };
	struct npy a = array(NPY_F4, 4, 1, x), b = array(NPY_F4, 4, 1, y);
	struct ranges rows = { 0 };
	struct err err = { 0 };
	struct npycmp c;

	ok(ranges_parse(&rows, "1:2,3", 5, 1, &err) == 0 &&
		npycmp(&c, &a, &b, &rows, &err) == 0 && c.rows == 3 &&
		c.differing == 1 && c.worst == 2 && c.max_abs == 6,
	    "some rows, counted in the whole array");
	ranges_free(&rows);
	ok(ranges_parse(&rows, "3:2", 3, 1, &err) == 0 &&
		npycmp(&c, &a, &b, &rows, &err) < 0,
	    "a row too far");
	is(err.msg, "rows 3:2: the array has 4", "and the message");
	ranges_free(&rows);
}

static void
test_types(void)
{
	static const int32_t i4[] = { 1, -2 };
	static const double f8[] = { 1, -2 };
	static const int8_t i1[] = { 1, -2 };
	static const uint8_t u1[] = { 1, 254 };
	int64_t i8[] = { 1, -2 };
	struct npy a = array(NPY_I4, 1, 2, i4), b;
	struct err err = { 0 };
	struct npycmp c;

	b = array(NPY_F8, 1, 2, f8);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && !c.differing, "i4 and f8");
	b = array(NPY_I1, 1, 2, i1);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && !c.differing, "i4 and i1");
	b = array(NPY_U1, 1, 2, u1);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && c.max_abs == 256,
	    "i4 and u1");
	b = array(NPY_I8, 1, 2, i8);
	ok(npycmp(&c, &a, &b, NULL, &err) == 0 && !c.differing, "i4 and i8");
	i8[1] = (INT64_C(1) << 53) + 1;
	ok(npycmp(&c, &a, &b, NULL, &err) < 0, "an integer that no double is");
	is(err.msg, "element 1: an integer beyond 2^53", "and the message");
}

int
main(void)
{
	test_equal();
	test_figures();
	test_clear();
	test_ranks();
	test_not_finite();
	test_shapes();
	test_rows();
	test_types();
	return tap_end();
}
