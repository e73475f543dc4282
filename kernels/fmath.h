/*
 * The transcendental functions that may influence a result.  No function of
 * libm but fmaf, sqrt and rounding does: these are polynomials of basic
 * operations, so that every CPU and GPU gives the same bits.  The steps stand
 * in dllm-numbers(7) and are the specification.
 *
 * exp(0) = 1, exp(-inf) = 0, log(1) = 0 exactly; NaN in, NaN out.
 */
#ifndef FMATH_H
#define FMATH_H

/* Within 1 ulp of e^x; 0 below -103.98, inf above 88.73; subnormals exact. */
float f32_exp(float x);

/* Within 2 ulp of the natural logarithm; x > 0, subnormals included;
 * log(0) = -inf, of a negative number NaN. */
float f32_log(float x);

/* Within 2 ulp in double precision; no fused operations. */
double f64_exp(double x);
double f64_log(double x);

/* |x| up to 2^20; within 1e-15 absolute. */
double f64_sin(double x);
double f64_cos(double x);

#endif
