/*
 * The vectors of matmul_neon.h as four tokens of one row.
 */
enum { UNIT_ROWS = 1, UNIT_TOKENS = 4 };

INLINE float32x4_t
row_vec(const float *p, size_t stride)
{
	(void)stride;
	return vld1q_dup_f32(p);
}

INLINE float32x4_t
token_vec(const float *p)
{
	return vld1q_f32(p);
}

INLINE void
by_token(float32x4_t v[4], const float *acc, size_t stride)
{
	for (size_t i = 0; i < 4; i++)
		v[i] = vld1q_f32(acc + i * stride);
	v4_turn(v);
}
