#include "philox.h"

#include "tap.h"

/* Known answers of the Random123 distribution, philox4x32 with 10 rounds. */
static const struct {
	uint32_t counter[4], key[2], out[4];
} known[] = {
	{ { 0, 0, 0, 0 }, { 0, 0 },
	    { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
	{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
	    { 0xffffffff, 0xffffffff },
	    { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
	{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
	    { 0xa4093822, 0x299f31d0 },
	    { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static double
unit(uint32_t low, uint32_t high)
{
	uint64_t x = ((uint64_t)high << 32) + low;

	return ((double)(x / 4096) + 0.5) / 4503599627370496.0;
}

/* seed, stream, step, position and token land where dllm-numbers(7) says. */
static void
mapping(void)
{
	const uint64_t seed = 0x0123456789abcdef;
	uint32_t key[2] = { 0x89abcdef, 0x01234567 }, w[4];
	uint32_t counter[4] = { 500, 77, 9, 3 };

	philox4x32(w, counter, key);
	ok(random_draw(seed, STREAM_ALG_TEMP, 9, 77, 1000) == unit(w[0], w[1]),
	    "an even token takes words 0 and 1");
	ok(random_draw(seed, STREAM_ALG_TEMP, 9, 77, 1001) == unit(w[2], w[3]),
	    "an odd token takes words 2 and 3");
	ok(random_draw(seed, STREAM_TOKEN, 9, 77, 1000) != unit(w[0], w[1]),
	    "another stream, another number");
}

static void
range(void)
{
	double sum = 0, sum2 = 0, u;
	int bad = 0, n = 20000;

	for (int i = 0; i < n; i++) {
		u = random_draw(42, STREAM_TOKEN, 3, (uint64_t)i % 100,
		    (uint32_t)i / 100);
		bad += !(u > 0 && u < 1);
		sum += u;
		sum2 += u * u;
	}
	ok(!bad, "draws lie inside (0, 1)");
	ok(sum / n > 0.49 && sum / n < 0.51, "their mean is near 1/2");
	ok(sum2 / n > 0.323 && sum2 / n < 0.343, "their square's near 1/3");
	ok(unit(0, 0) > 0 && unit(0xffffffff, 0xffffffff) < 1,
	    "the extremes are inside too");
}

int
main(void)
{
	uint32_t out[4];

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		philox4x32(out, known[i].counter, known[i].key);
		ok(!memcmp(out, known[i].out, sizeof out), "known answer %zu",
		    i);
	}
	mapping();
	range();
	return tap_end();
}
