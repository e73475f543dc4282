/*
 * What the *_scalar.c files define.  They are compiled twice: as they stand,
 * and once more for CPUs with AVX2 and FMA, where fmaf is one instruction and
 * the compiler may use wider registers.  The bits are the same.  Included once
 * for each build, hence without a guard.
 */
#include "kern.h"

#undef KERN
#ifdef KERN_AVX2
#define KERN(name) name##_avx2
#else
#define KERN(name) name##_scalar
#endif

size_t KERN(pack_quant)(struct xquant *, size_t, size_t, const float *, size_t);
size_t KERN(pack_float)(struct xfloat *, size_t, size_t, const float *, size_t);
void KERN(expand)(struct wtile *, enum ggml_type, const uint8_t *, size_t,
    size_t, size_t);
void KERN(matmul_quant)(float *, size_t, const struct wtile *,
    const struct xquant *, size_t, size_t);
void KERN(matmul_float)(float *, size_t, const float *, size_t,
    const struct xfloat *, size_t, size_t);
int KERN(rmsnorm)(float *, const float *, const float *, size_t, float);
void KERN(add)(float *, const float *, size_t);
void KERN(rope)(float *, size_t, size_t, const float *, const float *, int);
void KERN(pack_keys)(float *, size_t, size_t, const float *, size_t, size_t);
void KERN(attention)(float *, size_t, const float *const *, size_t,
    const float *, const float *, size_t, size_t, size_t, float, float *);
void KERN(silu_mul)(float *, const float *, const float *, size_t);
int KERN(all_finite)(const float *, size_t);
