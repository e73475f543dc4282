/*
 * rows_scalar.c, sixteen elements at a time.  Included by a file that has
 * included a v16 header and defines KERNEL(name).
 */
#include <math.h>

#include "exp16.h"
#include "groups.h"

int
KERNEL(rmsnorm)(float *y, const float *x, const float *w, size_t n, float eps)
{
	v16 s = v16_zero(), v;
	float mean, inv;
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		v = v16_load(x + i);
		s = v16_add(s, v16_mul(v, v));
	}
	v = v16_load_n(x + i, n - i);
	s = v16_add(s, v16_mul(v, v));
	mean = v16_sum(s) / (float)n;
	inv = 1.0f / sqrtf(mean + eps);
	for (i = 0; i + 16 <= n; i += 16)
		v16_store(y + i, v16_mul(v16_mul(v16_load(x + i), v16_all(inv)),
		                     v16_load(w + i)));
	v = v16_mul(v16_load_n(x + i, n - i), v16_all(inv));
	v16_store_n(y + i, v16_mul(v, v16_load_n(w + i, n - i)), n - i);
	return mean <= 0x1.fffffep+127f ? 0 : -1;
}

void
KERNEL(add)(float *y, const float *x, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(y + i, v16_add(v16_load(x + i), v16_load(y + i)));
	for (; i < n; i++)
		y[i] = x[i] + y[i];
}

/* Pairs half a head apart. */
static void
rope_far(float *x, size_t half, const float *cosine, const float *sine)
{
	size_t i = 0;

	for (; i + 16 <= half; i += 16) {
		v16 a = v16_load(x + i), b = v16_load(x + half + i);
		v16 c = v16_load(cosine + i), s = v16_load(sine + i);

		v16_store(x + i, v16_sub(v16_mul(a, c), v16_mul(b, s)));
		v16_store(x + half + i, v16_add(v16_mul(a, s), v16_mul(b, c)));
	}
	for (; i < half; i++) {
		float a = x[i], b = x[half + i];

		x[i] = a * cosine[i] - b * sine[i];
		x[half + i] = a * sine[i] + b * cosine[i];
	}
}

/* Pairs of neighbours. */
static void
rope_near(float *x, size_t half, const float *cosine, const float *sine)
{
	size_t i = 0;

	for (; i + 8 <= half; i += 8) {
		v16 v = v16_load(x + 2 * i);
		v16 c = v16_load_twice(cosine + i);
		v16 s = v16_negate_even(v16_load_twice(sine + i));

		v16_store(x + 2 * i,
		    v16_add(v16_mul(v, c), v16_mul(v16_swap(v), s)));
	}
	for (; i < half; i++) {
		float a = x[2 * i], b = x[2 * i + 1];

		x[2 * i] = a * cosine[i] - b * sine[i];
		x[2 * i + 1] = a * sine[i] + b * cosine[i];
	}
}

void
KERNEL(rope)(float *x, size_t n_heads, size_t head_dim, const float *cosine,
    const float *sine, int neox)
{
	for (size_t h = 0; h < n_heads; h++, x += head_dim)
		(neox ? rope_far : rope_near)(x, head_dim / 2, cosine, sine);
}

INLINE v16
silu_mul16(v16 g, v16 u)
{
	v16 e = v16_exp(v16_negate(g));

	return v16_mul(v16_div(g, v16_add(v16_all(1.0f), e)), u);
}

void
KERNEL(silu_mul)(float *y, const float *g, const float *u, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(
		    y + i, silu_mul16(v16_load(g + i), v16_load(u + i)));
	v16_store_n(y + i,
	    silu_mul16(v16_load_n(g + i, n - i), v16_load_n(u + i, n - i)),
	    n - i);
}

int
KERNEL(all_finite)(const float *x, size_t n)
{
	size_t i = 0;
	int good = 1;

	for (; i + 16 <= n; i += 16)
		good &= v16_all_finite(v16_load(x + i));
	return good & v16_all_finite(v16_load_n(x + i, n - i));
}

/*
 * n rows of `width` elements, `stride` apart, into panels of 16 rows: to[(P *
 * width + k) * 16 + row].
 */
static void
pack_rows(float *to, const float *x, size_t stride, size_t n, size_t width)
{
	for (size_t t = 0; t < n; t += 16, to += width * 16)
		for (size_t k = 0; k < width; k += 16) {
			size_t some = width - k < 16 ? width - k : 16;
			v16 r[16];

			for (size_t l = 0; l < 16; l++)
				r[l] = t + l >= n ? v16_zero() :
				    some == 16 ?
				    v16_load(x + (t + l) * stride + k) :
				    v16_load_n(x + (t + l) * stride + k, some);
			v16_turn(r);
			for (size_t i = 0; i < some; i++)
				v16_store(to + (k + i) * 16, r[i]);
		}
}

size_t
KERNEL(pack_float)(struct xfloat *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	for (size_t t = 0; t < n; t++)
		if (!KERNEL(all_finite)(x + t * stride, to->n_in))
			return t;
	pack_rows(to->x + t0 * to->n_in, x, stride, n, to->n_in);
	return n;
}

void
KERNEL(pack_keys)(float *kt, size_t t0, size_t n, const float *k,
    size_t stride, size_t head_dim)
{
	pack_rows(kt + t0 * head_dim, k, stride, n, head_dim);
}
