#include "npycmp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is kept of each row until all are seen. */
struct row {
	uint64_t at;
	double cosine;
	double gap; /* between the two largest of b */
	int same;   /* arg-max */
};

/* Sums over elements that are not equal infinities. */
struct sums {
	double diff, aa, bb, ab;
};

/* The indices of the largest elements, largest first. */
struct top {
	uint64_t at[NPYCMP_TOP];
	double v[NPYCMP_TOP];
	int n;
};

static double
element(const struct npy *a, uint64_t i)
{
	const char *p = (const char *)a->data + i * npy_type_size(a->type);
	double f8;
	float f4;
	int64_t i8;
	int32_t i4;

	switch (a->type) {
	case NPY_F4:
		memcpy(&f4, p, sizeof f4);
		return f4;
	case NPY_F8:
		memcpy(&f8, p, sizeof f8);
		return f8;
	case NPY_I4:
		memcpy(&i4, p, sizeof i4);
		return i4;
	case NPY_I8:
		memcpy(&i8, p, sizeof i8);
		return (double)i8;
	case NPY_I1:
		return *(const int8_t *)p;
	case NPY_U1:
		return *(const uint8_t *)p;
	}
	return NAN;
}

/* 64-bit integers beyond 2^53 would compare equal when they are not. */
static int
check_exact(const struct npy *a, struct err *err)
{
	int64_t v;

	if (a->type != NPY_I8)
		return 0;
	for (uint64_t i = 0; i < a->count; i++) {
		memcpy(&v, (const char *)a->data + 8 * i, sizeof v);
		if (v > (INT64_C(1) << 53) || v < -(INT64_C(1) << 53))
			return err_set(err,
			    "element %llu: an integer beyond 2^53",
			    (unsigned long long)i);
	}
	return 0;
}

/* A NaN is worse than everything, and the first one stays. */
static int
worse(double d, double than)
{
	return !(d <= than) && !isnan(than);
}

static void
top_add(struct top *t, uint64_t i, double v)
{
	int k = t->n;

	if (k == NPYCMP_TOP && !(v > t->v[k - 1]))
		return;
	if (k < NPYCMP_TOP)
		t->n++;
	else
		k--;
	for (; k > 0 && v > t->v[k - 1]; k--) {
		t->v[k] = t->v[k - 1];
		t->at[k] = t->at[k - 1];
	}
	t->v[k] = v;
	t->at[k] = i;
}

static int
in_common(const struct top *a, const struct top *b)
{
	int n = 0;

	for (int i = 0; i < a->n; i++)
		for (int j = 0; j < b->n; j++)
			n += a->at[i] == b->at[j];
	return n;
}

static double
ratio(double diff, double norm)
{
	return diff == 0 ? 0 : sqrt(diff) / sqrt(norm);
}

/* Rows of zeros have no direction: equal ones count as parallel. */
static double
cosine(const struct sums *s)
{
	if (s->diff == 0)
		return 1;
	if (s->aa == 0 || s->bb == 0)
		return 0;
	return s->ab / (sqrt(s->aa) * sqrt(s->bb));
}

static void
add_element(struct npycmp *c, struct sums *s, uint64_t i, double x, double y)
{
	double d = x == y ? 0 : fabs(x - y);

	if (isnan(x) || isnan(y))
		c->nans++;
	if (x != y || signbit(x) != signbit(y))
		c->differing++;
	if (worse(d, c->max_abs)) {
		c->max_abs = d;
		c->worst = i;
		c->worst_a = x;
		c->worst_b = y;
	}
	if (x == y && isinf(x))
		return;
	s->diff += d * d;
	s->aa += x * x;
	s->bb += y * y;
	s->ab += x * y;
}

static void
compare_row(struct npycmp *c, struct sums *all, struct row *r,
    const struct npy *a, const struct npy *b)
{
	uint64_t first = r->at * c->width, nans = c->nans;
	struct top ta = { .n = 0 }, tb = { .n = 0 };
	struct sums s = { 0 };
	double x, y, rel;
	int common;

	for (uint64_t i = 0; i < c->width; i++) {
		x = element(a, first + i);
		y = element(b, first + i);
		add_element(c, &s, first + i, x, y);
		top_add(&ta, i, x);
		top_add(&tb, i, y);
	}
	rel = ratio(s.diff, s.bb);
	if (worse(rel, c->row_rel_l2)) {
		c->row_rel_l2 = rel;
		c->row_rel_l2_at = r->at;
	}
	r->cosine = cosine(&s);
	if (worse(-r->cosine, -c->cosine_worst)) {
		c->cosine_worst = r->cosine;
		c->cosine_at = r->at;
	}
	/* The order of a row that holds a NaN means nothing. */
	nans = c->nans - nans;
	r->same = nans == 0 && (c->width == 0 || ta.at[0] == tb.at[0]);
	r->gap = tb.n > 1 ? tb.v[0] - tb.v[1] : 0;
	common = nans ? 0 : in_common(&ta, &tb);
	c->top_same += nans == 0 && common == tb.n;
	c->top_common += common;
	all->diff += s.diff;
	all->bb += s.bb;
}

/* NaN before all numbers. */
static int
by_cosine(const void *p, const void *q)
{
	double x = ((const struct row *)p)->cosine;
	double y = ((const struct row *)q)->cosine;

	if (isnan(x) || isnan(y))
		return !!isnan(y) - !!isnan(x);
	return (x > y) - (x < y);
}

static void
finish(struct npycmp *c, struct row *r, const struct sums *all)
{
	int clear, clear_found = 0;

	c->rel_l2 = ratio(all->diff, all->bb);
	for (uint64_t i = 0; i < c->rows; i++) {
		/* a NaN makes every row clear: it must not hide anything */
		clear = c->width && !(r[i].gap <= 4 * c->max_abs);
		c->clear += (uint64_t)clear;
		c->argmax_same += (uint64_t)r[i].same;
		c->clear_same += (uint64_t)(clear && r[i].same);
		if (!r[i].same && (c->argmax_at == (uint64_t)NPYCMP_NONE ||
				      (clear && !clear_found))) {
			c->argmax_at = r[i].at;
			clear_found = clear;
		}
	}
	if (c->rows == 0)
		return;
	c->top_common /= (double)c->rows;
	qsort(r, (size_t)c->rows, sizeof *r, by_cosine);
	c->cosine_median = r[(c->rows - 1) / 2].cosine;
}

/* "(12, 272)" into text. */
static const char *
shape_text(char *text, size_t size, const struct npy *a)
{
	int n = snprintf(text, size, "(");

	for (int i = 0; i < a->n_dims; i++)
		n += snprintf(text + n, size - (size_t)n, "%s%llu",
		    i ? ", " : "", (unsigned long long)a->shape[i]);
	snprintf(text + n, size - (size_t)n, ")");
	return text;
}

static int
check_shapes(const struct npy *a, const struct npy *b, struct err *err)
{
	char x[22 * NPY_MAX_DIMS + 3], y[sizeof x];

	if (a->n_dims == b->n_dims &&
	    !memcmp(a->shape, b->shape, (size_t)a->n_dims * sizeof *a->shape))
		return 0;
	return err_set(err, "the shapes differ: %s and %s",
	    shape_text(x, sizeof x, a), shape_text(y, sizeof y, b));
}

/* The rows to compare, in order; *n of them. */
static struct row *
list_rows(
    uint64_t total, const struct ranges *rows, uint64_t *n, struct err *err)
{
	struct row *r;

	*n = rows ? rows->total : total;
	for (size_t i = 0; rows && i < rows->n; i++)
		if (rows->r[i].from >= total ||
		    rows->r[i].count > total - rows->r[i].from) {
			err_set(err, "rows %llu:%llu: the array has %llu",
			    (unsigned long long)rows->r[i].from,
			    (unsigned long long)rows->r[i].count,
			    (unsigned long long)total);
			return NULL;
		}
	r = calloc((size_t)*n + 1, sizeof *r);
	if (!r) {
		err_set(err, "out of memory");
		return NULL;
	}
	for (uint64_t i = 0; !rows && i < total; i++)
		r[i].at = i;
	for (size_t i = 0, k = 0; rows && i < rows->n; i++)
		for (uint64_t j = 0; j < rows->r[i].count; j++)
			r[k++].at = rows->r[i].from + j;
	return r;
}

int
npycmp(struct npycmp *c, const struct npy *a, const struct npy *b,
    const struct ranges *rows, struct err *err)
{
	struct sums all = { 0 };
	uint64_t total = 1;
	struct row *r;

	memset(c, 0, sizeof *c);
	if (check_shapes(a, b, err) < 0 || check_exact(a, err) < 0 ||
	    check_exact(b, err) < 0)
		return -1;
	c->width = a->n_dims ? a->shape[a->n_dims - 1] : 1;
	for (int i = 0; i + 1 < a->n_dims; i++)
		total *= a->shape[i];
	r = list_rows(total, rows, &c->rows, err);
	if (!r)
		return -1;
	c->cosine_median = c->cosine_worst = 1;
	c->argmax_at = (uint64_t)NPYCMP_NONE;
	for (uint64_t i = 0; i < c->rows; i++)
		compare_row(c, &all, &r[i], a, b);
	finish(c, r, &all);
	free(r);
	return 0;
}
