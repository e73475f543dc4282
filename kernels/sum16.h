/*
 * The end of every reduction along a row: element i went into s[i % 16], in
 * ascending order; the 16 sums are added as a tree.
 */
#ifndef SUM16_H
#define SUM16_H

static inline float
sum16(float s[16])
{
	for (int half = 8; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			s[i] += s[i + half];
	return s[0];
}

static inline double
sum16_f64(double s[16])
{
	for (int half = 8; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			s[i] += s[i + half];
	return s[0];
}

#endif
