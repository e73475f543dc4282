#include "cpu.h"

#include "kern.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdint.h>

/* The registers whose state the system saves, XCR0. */
static uint64_t
saved_state(void)
{
	uint32_t lo, hi;

	__asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

static int
all_set(uint64_t word, uint64_t bits)
{
	return (word & bits) == bits;
}

unsigned
cpu_flags(void)
{
	/* leaf 1 ecx: fma 12, osxsave 27, avx 28, f16c 29 */
	const unsigned leaf1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
	/* leaf 7 ebx: avx512 f 16, dq 17, bw 30, vl 31 */
	const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
	unsigned a, b, c, d, flags = 0, a1 = 0, b1, c1, d1;
	uint64_t state;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !all_set(c, leaf1))
		return 0;
	state = saved_state();
	/* xmm and ymm; leaf 7 ebx: avx2 5 */
	if (!all_set(state, 0x6) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
	    !(b & 1u << 5))
		return 0;
	flags |= CPU_AVX2;
	/* leaf 7.1 eax: avx-vnni 4 */
	if (a >= 1 && __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) &&
	    (a1 & 1u << 4))
		flags |= CPU_AVXVNNI;
	/* opmask and both halves of zmm; leaf 7 ecx: avx512-vnni 11 */
	if (all_set(state, 0xe6) && all_set(b, avx512) && (c & 1u << 11))
		flags |= CPU_AVX512VNNI;
	return flags;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

unsigned
cpu_flags(void)
{
	/* AT_HWCAP: asimddp 20; AT_HWCAP2: i8mm 13 */
	return CPU_NEON | /* part of the base architecture */
	    (getauxval(AT_HWCAP) & 1ul << 20 ? CPU_DOTPROD : 0) |
	    (getauxval(AT_HWCAP2) & 1ul << 13 ? CPU_I8MM : 0);
}

#elif defined(__aarch64__)

unsigned
cpu_flags(void)
{
	return CPU_NEON;
}

#else

unsigned
cpu_flags(void)
{
	return 0;
}

#endif
