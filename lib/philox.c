#include "philox.h"

void
philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
	uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	uint64_t x, y;

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		x = (uint64_t)PHILOX_M0 * a;
		y = (uint64_t)PHILOX_M1 * c;
		a = (uint32_t)(y >> 32) ^ b ^ k0;
		b = (uint32_t)y;
		c = (uint32_t)(x >> 32) ^ d ^ k1;
		d = (uint32_t)x;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
}

static double
unit(uint32_t low, uint32_t high)
{
	uint64_t x = (uint64_t)high << 32 | low;

	return ((double)(x >> 12) + 0.5) * 0x1p-52;
}

void
random_pair(double u[2], uint64_t seed, enum random_stream stream,
    uint64_t step, uint64_t position, uint32_t pair)
{
	uint32_t counter[4] = { pair, (uint32_t)position, (uint32_t)step,
		(uint32_t)stream };
	uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	uint32_t w[4];

	philox4x32(w, counter, key);
	u[0] = unit(w[0], w[1]);
	u[1] = unit(w[2], w[3]);
}

double
random_draw(uint64_t seed, enum random_stream stream, uint64_t step,
    uint64_t position, uint32_t token)
{
	double u[2];

	random_pair(u, seed, stream, step, position, token >> 1);
	return u[token & 1];
}
