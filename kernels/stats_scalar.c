/*
 * What is done to a row of logits: the passes that statistics are made of.
 */
#include "scalar.h"

#include <math.h>

#include "fexp.h"
#include "fmath.h"
#include "philox.h"
#include "sum16.h"

int
clean_logits_scalar(float *y, const float *x, size_t n)
{
	int good = 1;

	for (size_t i = 0; i < n; i++) {
		good &= x[i] < (float)INFINITY;
		y[i] = x[i] + 0.0f;
	}
	return good;
}

size_t
largest_scalar(const float *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	return best;
}

void
weigh_scalar(struct weights *w, float *e, const float *l, size_t n, float max,
    double temperature)
{
	double s[KERN_SUMS] = { 0 };
	float first = 0, second = 0, d;

	for (size_t i = 0; i < n; i++) {
		d = l[i] - max;
		if (temperature > 0)
			d = (float)((double)d / temperature);
		e[i] = fexp(d);
		s[i % KERN_SUMS] += (double)e[i];
		if (e[i] > first) {
			second = first;
			first = e[i];
		} else if (e[i] > second) {
			second = e[i];
		}
	}
	w->sum = sum16_f64(s);
	w->first = first;
	w->second = second;
}

double
negentropy_scalar(const float *e, size_t n, double sum)
{
	double s[KERN_SUMS] = { 0 };
	float p;

	for (size_t i = 0; i < n; i++) {
		p = (float)((double)e[i] / sum);
		s[i % KERN_SUMS] += (double)(p * f32_log(p + 1e-10f));
	}
	return sum16_f64(s);
}

size_t
contenders_scalar(uint32_t *to, const float *l, size_t from, size_t n,
    const struct noise *z)
{
	uint32_t w[4], counter[4] = { 0, z->position, z->step, z->stream };
	size_t found = 0;
	float w_i, v;

	for (size_t i = from; i < from + n; i++) {
		if (i % 2 == 0) {
			counter[0] = (uint32_t)(i / 2);
			philox4x32(w, counter, z->key);
		}
		v = (float)(~w[i % 2 * 2 + 1] >> 1) * 0x1p-31f;
		w_i = z->bound * fexp((l[i] - z->max) * z->scale);
		if (!(w_i < v))
			to[found++] = (uint32_t)i;
	}
	return found;
}
