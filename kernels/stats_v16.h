/*
 * stats_scalar.c, sixteen elements at a time.  Included by a file that has
 * included a wide header and defines KERNEL(name).
 */
#include <math.h>

#include "exp16.h"
#include "groups.h"
#include "philox.h"

/* Lanes from n on become x. */
INLINE v16
v16_load_or(const float *p, size_t n, float x)
{
	return n >= 16 ? v16_load(p) :
	                 v16_keep_n(v16_load_n(p, n), n, v16_all(x));
}

int
KERNEL(clean_logits)(float *y, const float *x, size_t n)
{
	const v16 inf = v16_all((float)INFINITY);
	unsigned good = 0xffff;
	v16 v;

	for (size_t i = 0; i < n; i += 16) {
		v = v16_load_or(x + i, n - i, 0);
		good &= v16_less_bits(v, inf);
		v = v16_add(v, v16_zero());
		if (n - i >= 16)
			v16_store(y + i, v);
		else
			v16_store_n(y + i, v, n - i);
	}
	return good == 0xffff;
}

size_t
KERNEL(largest)(const float *x, size_t n)
{
	const float low = -(float)INFINITY;
	unsigned less;
	v16 max = v16_all(low);

	for (size_t i = 0; i < n; i += 16)
		max = v16_max(max, v16_load_or(x + i, n - i, low));
	max = v16_all(v16_largest(max));
	for (size_t i = 0; i < n; i += 16) {
		less = v16_less_bits(v16_load_or(x + i, n - i, low), max);
		if (less != 0xffff)
			return i + (size_t)__builtin_ctz(~less);
	}
	return 0;
}

/* The two largest numbers of all lanes. */
INLINE void
two_largest(struct weights *w, v16 first, v16 second)
{
	float f[16], s[16];

	v16_store(f, first);
	v16_store(s, second);
	w->first = w->second = 0;
	for (int i = 0; i < 16; i++) {
		if (f[i] > w->first) {
			w->second = w->first > s[i] ? w->first : s[i];
			w->first = f[i];
		} else if (f[i] > w->second) {
			w->second = f[i];
		}
	}
}

void
KERNEL(weigh)(struct weights *w, float *e, const float *l, size_t n, float max,
    double temperature)
{
	v16 first = v16_zero(), second = v16_zero(), x;
	d16 sum = d16_all(0);

	for (size_t i = 0; i < n; i += 16) {
		x = v16_load_or(l + i, n - i, -(float)INFINITY);
		x = v16_sub(x, v16_all(max));
		if (temperature > 0)
			x = d16_round(
			    d16_div(d16_from(x), d16_all(temperature)));
		x = v16_exp(x);
		if (n - i >= 16)
			v16_store(e + i, x);
		else
			v16_store_n(e + i, x, n - i);
		sum = d16_add(sum, d16_from(x));
		second = v16_max(second, v16_min(first, x));
		first = v16_max(first, x);
	}
	w->sum = d16_sum(sum);
	two_largest(w, first, second);
}

/* f32_log() of fmath.c for normal positive numbers; the same bits. */
INLINE v16
v16_log(v16 x)
{
	v16 k, f, s, z, p;

	f = v16_sub(v16_split(x, &k), v16_all(1.0f));
	s = v16_div(f, v16_add(v16_all(2.0f), f));
	z = v16_mul(s, s);
	p = v16_all(0x1.c71c72p-3f);
	p = v16_fma(p, z, v16_all(0x1.249250p-2f));
	p = v16_fma(p, z, v16_all(0x1.99999ap-2f));
	p = v16_fma(p, z, v16_all(0x1.555556p-1f));
	p = v16_sub(f, v16_mul(s, v16_sub(f, v16_mul(z, p))));
	return v16_fma(k, v16_all(0x1.62e400p-1f),
	    v16_fma(k, v16_all(0x1.7f7d1cp-20f), p));
}

double
KERNEL(negentropy)(const float *e, size_t n, double sum)
{
	d16 total = d16_all(0);
	v16 p;

	for (size_t i = 0; i < n; i += 16) {
		p = v16_load_or(e + i, n - i, 0);
		p = d16_round(d16_div(d16_from(p), d16_all(sum)));
		p = v16_mul(p, v16_log(v16_add(p, v16_all(1e-10f))));
		total = d16_add(total, d16_from(p));
	}
	return d16_sum(total);
}

/* The second and the fourth words of philox4x32() for sixteen counters. */
INLINE void
philox16(w16 *second, w16 *fourth, uint32_t pair, const struct noise *z)
{
	uint32_t k0 = z->key[0], k1 = z->key[1];
	w16 a = w16_count(pair), b = w16_all(z->position);
	w16 c = w16_all(z->step), d = w16_all(z->stream), x, y;

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		w16 low_x = w16_mul(a, PHILOX_M0, &x);
		w16 low_y = w16_mul(c, PHILOX_M1, &y);

		a = w16_xor(w16_xor(y, b), w16_all(k0));
		c = w16_xor(w16_xor(x, d), w16_all(k1));
		b = low_y;
		d = low_x;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	*second = b;
	*fourth = d;
}

/* Bit i: lane i may win with the high words h of its random number. */
INLINE unsigned
may_win(v16 l, w16 h, const struct noise *z)
{
	v16 v = v16_from_half(w16_xor(h, w16_all(~0u)));
	v16 w = v16_mul(v16_sub(l, v16_all(z->max)), v16_all(z->scale));

	w = v16_mul(v16_all(z->bound), v16_exp(w));
	return ~v16_less_bits(w, v16_mul(v, v16_all(0x1p-31f)));
}

/* Ids of the bits that are set, id + 0 and up. */
INLINE size_t
put_ids(uint32_t *to, uint32_t id, unsigned bits)
{
	size_t n = 0;

	for (; bits; bits &= bits - 1)
		to[n++] = id + (uint32_t)__builtin_ctz(bits);
	return n;
}

size_t
KERNEL(contenders)(uint32_t *to, const float *l, size_t from, size_t n,
    const struct noise *z)
{
	size_t found = 0, end = from + n, rest;
	w16 even, odd;
	unsigned bits;

	for (size_t i = from; i < end; i += 32) {
		philox16(&even, &odd, (uint32_t)(i / 2), z);
		for (size_t j = i; j < i + 32 && j < end; j += 16) {
			rest = end - j < 16 ? end - j : 16;
			bits = may_win(v16_load_or(l + j, rest, 0),
			    w16_zip(even, odd, j > i), z);
			found += put_ids(to + found, (uint32_t)j,
			    bits & ((1u << rest) - 1));
		}
	}
	return found;
}
