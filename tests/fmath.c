/*
 * The transcendental functions: exact points, accuracy against libm in long
 * double over the whole range, and fixed bits, which every build must give.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "fmath.h"
#include "tap.h"

static uint64_t state = 1;

static double
uniform(double lo, double hi)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return lo + (hi - lo) * ((double)(state >> 11) * 0x1p-53);
}

/* Error in units of the last place of a float (double) near want. */
static long double
ulps_f32(float got, long double want)
{
	float near = (float)fabsl(want);
	float ulp = near < 0x1p-126f ? 0x1p-149f :
	                               nextafterf(near, INFINITY) - near;

	return fabsl((long double)got - want) / (long double)ulp;
}

static long double
ulps_f64(double got, long double want)
{
	double near = (double)fabsl(want);
	double ulp = near < 0x1p-1022 ? 0x1p-1074 :
	                                nextafter(near, INFINITY) - near;

	return fabsl((long double)got - want) / (long double)ulp;
}

static void
test_exp(void)
{
	long double worst = 0, worst64 = 0, e;

	for (int i = 0; i < 200000; i++) {
		float x = (float)uniform(-103.9, 88.72);
		double d = uniform(-745, 709.7);

		e = ulps_f32(f32_exp(x), expl((long double)x));
		worst = e > worst ? e : worst;
		e = ulps_f64(f64_exp(d), expl((long double)d));
		worst64 = e > worst64 ? e : worst64;
	}
	ok(worst <= 1, "f32_exp is within 1 ulp (%.3Lf)", worst);
	ok(worst64 <= 2, "f64_exp is within 2 ulp (%.3Lf)", worst64);
	ok(f32_exp(0) == 1 && f32_exp(-0.0f) == 1 && f64_exp(0) == 1,
	    "exp(0) is 1");
	ok(f32_exp(-INFINITY) == 0 && f64_exp(-INFINITY) == 0,
	    "exp(-inf) is 0");
	ok(f32_exp(-104) == 0 && f32_exp(-3e38f) == 0 && f64_exp(-746) == 0,
	    "exp far below is 0");
	ok(isinf(f32_exp(89)) && isinf(f32_exp(INFINITY)) &&
	        isinf(f64_exp(710)), "exp far above is infinite");
	ok(isnan(f32_exp(NAN)) && isnan(f64_exp(NAN)), "exp(NaN) is NaN");
	ok(f32_exp(-103) > 0 && f32_exp(-103) < FLT_MIN,
	    "exp reaches subnormal numbers");
}

static void
test_log(void)
{
	long double worst = 0, worst64 = 0, e;

	for (int i = 0; i < 200000; i++) {
		float x = (float)exp2(uniform(-149, 127.9));
		double d = exp2(uniform(-1074, 1023.9));

		if (i & 1) { /* near 1, where a sum of two terms cancels */
			x = (float)uniform(0.5, 2);
			d = uniform(0.5, 2);
		}
		e = ulps_f32(f32_log(x), logl((long double)x));
		worst = e > worst ? e : worst;
		e = ulps_f64(f64_log(d), logl((long double)d));
		worst64 = e > worst64 ? e : worst64;
	}
	ok(worst <= 2, "f32_log is within 2 ulp (%.3Lf)", worst);
	ok(worst64 <= 2, "f64_log is within 2 ulp (%.3Lf)", worst64);
	ok(f32_log(1) == 0 && f64_log(1) == 0, "log(1) is 0");
	ok(f32_log(0) == -INFINITY && f64_log(0) == -INFINITY,
	    "log(0) is -inf");
	ok(f32_log(INFINITY) == INFINITY && f64_log(INFINITY) == INFINITY,
	    "log(inf) is inf");
	ok(isnan(f32_log(-1)) && isnan(f64_log(-1)) && isnan(f32_log(NAN)) &&
	        isnan(f64_log(NAN)), "log of what has none is NaN");
}

static void
test_angles(void)
{
	long double worst = 0, e;

	for (int i = 0; i < 200000; i++) {
		double x = uniform(-0x1p+20, 0x1p+20);

		if (i & 1)
			x = uniform(-10, 10);
		e = fabsl((long double)f64_sin(x) - sinl((long double)x));
		worst = e > worst ? e : worst;
		e = fabsl((long double)f64_cos(x) - cosl((long double)x));
		worst = e > worst ? e : worst;
	}
	ok(worst <= 1e-15L, "f64_sin and f64_cos are within 1e-15 (%.2Le)",
	    worst);
	ok(f64_sin(0) == 0 && f64_cos(0) == 1, "sin(0) is 0, cos(0) is 1");
}

/*
 * One hash over the bits of many results: a compiler or machine that computes
 * in another way shows.
 */
static void
test_bits(void)
{
	uint64_t hash = 1469598103934665603u;

	state = 7;
	for (int i = 0; i < 20000; i++) {
		float f[2] = { f32_exp((float)uniform(-104, 89)),
			f32_log((float)uniform(0, 100)) };
		double d[4] = { f64_exp(uniform(-746, 710)),
			f64_log(uniform(0, 100)), f64_sin(uniform(-1e6, 1e6)),
			f64_cos(uniform(-1e6, 1e6)) };
		unsigned char bytes[sizeof f + sizeof d];

		memcpy(bytes, f, sizeof f);
		memcpy(bytes + sizeof f, d, sizeof d);
		for (size_t k = 0; k < sizeof bytes; k++)
			hash = (hash ^ bytes[k]) * 1099511628211u;
	}
	if (!ok(hash == 0x2944bb2f4023ae61u, "results have their fixed bits"))
		printf("# hash 0x%016llx\n", (unsigned long long)hash);
}

int
main(void)
{
	test_exp();
	test_log();
	test_angles();
	test_bits();
	return tap_end();
}
