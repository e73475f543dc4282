/*
 * How far two arrays of the same shape are apart.
 *
 * An array is taken as rows along its last axis.  Everything is computed in
 * double.  A NaN on either side is a difference that no tolerance allows;
 * infinities of the same sign are equal and take no part in norms and cosines.
 */
#ifndef NPYCMP_H
#define NPYCMP_H

#include <stdint.h>

#include "err.h"
#include "npy.h"
#include "proto.h"

enum { NPYCMP_TOP = 5 };

/* Rows and elements are counted from 0 in the whole array. */
struct npycmp {
	uint64_t rows, width;  /* compared */
	uint64_t differing;    /* elements whose value or sign differs */
	uint64_t nans;         /* elements that are NaN in either */

	double max_abs;        /* largest absolute difference */
	uint64_t worst;        /* its element (the first NaN where there is) */
	double worst_a, worst_b;

	double rel_l2;         /* |a - b| / |b|; 0 where a equals b */
	double row_rel_l2;     /* of the worst row */
	uint64_t row_rel_l2_at;

	double cosine_median;  /* over the rows; the lower of two middle ones */
	double cosine_worst;
	uint64_t cosine_at;

	/*
	 * The largest element of a row is at the same index (of equal ones the
	 * first counts).  Clear rows are those where it must be: the two
	 * largest of b differ by more than four times max_abs.
	 */
	uint64_t argmax_same, clear, clear_same;
	uint64_t argmax_at;    /* first clear row that differs, else first row
	                          that differs, else NPYCMP_NONE */
	uint64_t top_same;     /* rows whose five largest are the same set */
	double top_common;     /* of those five, how many on average */
};

enum { NPYCMP_NONE = -1 }; /* argmax_at where all rows agree */

/*
 * Compare a with the reference b, only the given rows unless rows is NULL.
 * Any two types may meet.  -1 if the shapes differ, a row does not exist, an
 * integer is no exact double, or memory is short.
 */
int npycmp(struct npycmp *c, const struct npy *a, const struct npy *b,
    const struct ranges *rows, struct err *err);

#endif
