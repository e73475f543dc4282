/*
 * fexp() of fexp.h for sixteen floats, the same steps and the same bits.  A
 * piece of the sources that define INLINE and the v16 functions before it.
 */
#include <math.h>

INLINE v16
v16_exp(v16 x)
{
	const v16 magic = v16_all(12582912.0f);
	v16 n, r, p;

	n = v16_sub(
	    v16_add(v16_mul(x, v16_all(0x1.715476p+0f)), magic), magic);
	r = v16_fma(n, v16_all(-0x1.62e400p-1f), x);
	r = v16_fma(n, v16_all(-0x1.7f7d1cp-20f), r);
	p = v16_all(0x1.a01a02p-13f);
	p = v16_fma(p, r, v16_all(0x1.6c16c2p-10f));
	p = v16_fma(p, r, v16_all(0x1.111112p-7f));
	p = v16_fma(p, r, v16_all(0x1.555556p-5f));
	p = v16_fma(p, r, v16_all(0x1.555556p-3f));
	p = v16_fma(p, r, v16_all(0.5f));
	p = v16_fma(p, r, v16_all(1.0f));
	p = v16_fma(p, r, v16_all(1.0f));
	p = v16_scale(p, n);
	p = v16_if_less(v16_all(88.73f), x, v16_all((float)INFINITY), p);
	p = v16_if_less(x, v16_all(-103.98f), v16_zero(), p);
	return v16_if_nan(x, x, p);
}
