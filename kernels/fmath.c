#include "fmath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fexp.h"

static double
bits_f64(uint64_t u)
{
	double d;

	memcpy(&d, &u, sizeof d);
	return d;
}

static uint64_t
f64_bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof u);
	return u;
}

/* 2^n for n from -1022 to 1023. */
static double
pow2_f64(int n)
{
	return bits_f64((uint64_t)(n + 1023) << 52);
}

float
f32_exp(float x)
{
	return fexp(x);
}

/*
 * x = 2^k m with m in [sqrt(1/2), sqrt(2)); s = f/(2+f) with f = m - 1;
 * log m = 2s + 2s^3/3 + 2s^5/5 + ..., by Horner's rule with fmaf.
 */
float
f32_log(float x)
{
	const float hi = 0x1.62e400p-1f, lo = 0x1.7f7d1cp-20f;
	float k, f, s, z, p;
	uint32_t u, e;
	int shift = 0;

	if (x != x || x < 0)
		return (float)NAN;
	if (x == 0)
		return -(float)INFINITY;
	if (x > 0x1.fffffep+127f)
		return x;
	if (x < 0x1p-126f) {
		x *= 0x1p+24f;
		shift = 24;
	}
	u = f32_bits(x);
	/* 0x3f3504f3 is sqrt(1/2): the exponent of x / sqrt(1/2), biased */
	e = (u - 0x3f3504f3u + 0x3f800000u) >> 23;
	k = (float)((int)e - 127 - shift);
	f = bits_f32(u - ((e - 127u) << 23)) - 1.0f;
	s = f / (2.0f + f);
	z = s * s;
	p = 0x1.c71c72p-3f;              /* 2/9 */
	p = fmaf(p, z, 0x1.249250p-2f); /* 2/7 */
	p = fmaf(p, z, 0x1.99999ap-2f); /* 2/5 */
	p = fmaf(p, z, 0x1.555556p-1f); /* 2/3 */
	/* log m = f - s*(f - z*p), which loses less than 2s + s*z*p */
	p = f - s * (f - z * p);
	return fmaf(k, hi, fmaf(k, lo, p));
}

double
f64_exp(double x)
{
	/* ln 2 = hi + lo, hi with 21 trailing zero bits */
	const double hi = 0x1.62e42fee00000p-1, lo = 0x1.a39ef35793c76p-33;
	static const double inv[] = { /* 1/k! */
		1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720,
		1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
		1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
	};
	double n, r, p;
	int half;

	if (x > 709.79)
		return (double)INFINITY;
	if (x < -745.14)
		return 0;
	if (x != x)
		return x;
	/* 1.5 * 2^52 */
	n = (x * 0x1.71547652b82fep+0 + 0x1.8p+52) - 0x1.8p+52;
	r = x - n * hi;
	r = r - n * lo;
	p = inv[13];
	for (int k = 12; k >= 0; k--)
		p = p * r + inv[k];
	half = (int)n >> 1;
	return p * pow2_f64(half) * pow2_f64((int)n - half);
}

double
f64_log(double x)
{
	const double hi = 0x1.62e42fee00000p-1, lo = 0x1.a39ef35793c76p-33;
	double k, f, s, z, p;
	uint64_t u, e;
	int shift = 0;

	if (x != x || x < 0)
		return (double)NAN;
	if (x == 0)
		return -(double)INFINITY;
	if (x > 0x1.fffffffffffffp+1023)
		return x;
	if (x < 0x1p-1022) {
		x *= 0x1p+54;
		shift = 54;
	}
	u = f64_bits(x);
	/* 0x3fe6a09e667f3bcd is sqrt(1/2) */
	e = (u - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u) >> 52;
	k = (double)((int)e - 1023 - shift);
	f = bits_f64(u - ((e - 1023u) << 52)) - 1.0;
	s = f / (2.0 + f);
	z = s * s;
	p = 2.0 / 23;
	for (int n = 21; n >= 3; n -= 2)
		p = p * z + 2.0 / n;
	p = f - s * (f - z * p);
	return k * hi + (k * lo + p);
}

/*
 * x = n pi/2 + r, pi/2 in three parts of which the first two have 20 and more
 * trailing zero bits, so that n times them is exact for |n| < 2^20.
 */
static double
reduce(double x, int *quadrant)
{
	double n = (x * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
	double r = x - n * 0x1.921fb54400000p+0;

	r = r - n * 0x1.0b4611a600000p-34;
	r = r - n * 0x1.3198a2e037073p-69;
	*quadrant = (int)((long long)n & 3);
	return r;
}

/* Series to r^17 and r^18; |r| <= pi/4. */
static double
sin_series(double r)
{
	double z = r * r, p = 1.0 / 355687428096000.0;

	p = p * z - 1.0 / 1307674368000.0;
	p = p * z + 1.0 / 6227020800.0;
	p = p * z - 1.0 / 39916800.0;
	p = p * z + 1.0 / 362880.0;
	p = p * z - 1.0 / 5040.0;
	p = p * z + 1.0 / 120.0;
	p = p * z - 1.0 / 6.0;
	return r + r * (z * p);
}

static double
cos_series(double r)
{
	double z = r * r, p = -1.0 / 6402373705728000.0;

	p = p * z + 1.0 / 20922789888000.0;
	p = p * z - 1.0 / 87178291200.0;
	p = p * z + 1.0 / 479001600.0;
	p = p * z - 1.0 / 3628800.0;
	p = p * z + 1.0 / 40320.0;
	p = p * z - 1.0 / 720.0;
	p = p * z + 1.0 / 24.0;
	p = p * z - 1.0 / 2.0;
	return 1.0 + z * p;
}

double
f64_sin(double x)
{
	int q;
	double r = reduce(x, &q), v = q & 1 ? cos_series(r) : sin_series(r);

	return q & 2 ? -v : v;
}

double
f64_cos(double x)
{
	int q;
	double r = reduce(x, &q), v = q & 1 ? sin_series(r) : cos_series(r);

	return q == 1 || q == 2 ? -v : v;
}
