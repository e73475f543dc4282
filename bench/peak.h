/*
 * The arithmetic peak of this CPU: loops in registers over independent
 * accumulators.  Inline assembly, so that no compiler flag is needed and the
 * compiler cannot change what is measured.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "kern.h"

/* Of the calling thread: what others do on the machine does not count. */
static inline double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double
wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)

#define PEAK_CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
    "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define PEAK_12(I) I(0) I(1) I(2) I(3) I(4) I(5) I(6) I(7) I(8) I(9) I(10) I(11)

/* A function that does n rounds of 12 times an instruction or sequence. */
#define PEAK_LOOP(name, I) \
	static void name(long n) \
	{ \
		__asm__ volatile("vzeroall\n" ::: PEAK_CLOBBERS); \
		for (long i = 0; i < n; i++) \
			__asm__ volatile(PEAK_12(I)::: PEAK_CLOBBERS); \
		__asm__ volatile("vzeroupper\n" ::: PEAK_CLOBBERS); \
	}

#define PEAK_DP_ZMM(k) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #k "\n"
#define PEAK_DP_EVEX(k) "%{evex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" #k "\n"
#define PEAK_DP_VEX(k) "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" #k "\n"
#define PEAK_MADD(k) \
	"vpmaddubsw %%ymm14, %%ymm15, %%ymm12\n" \
	"vpmaddwd %%ymm13, %%ymm12, %%ymm12\n" \
	"vpaddd %%ymm12, %%ymm" #k ", %%ymm" #k "\n"
#define PEAK_FMA_ZMM(k) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #k "\n"
#define PEAK_FMA_YMM(k) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #k "\n"
#define PEAK_BF16(k) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" #k "\n"

PEAK_LOOP(peak_dp_zmm, PEAK_DP_ZMM)
PEAK_LOOP(peak_dp_evex, PEAK_DP_EVEX)
PEAK_LOOP(peak_dp_vex, PEAK_DP_VEX)
PEAK_LOOP(peak_madd, PEAK_MADD)
PEAK_LOOP(peak_fma_zmm, PEAK_FMA_ZMM)
PEAK_LOOP(peak_fma_ymm, PEAK_FMA_YMM)
PEAK_LOOP(peak_bf16, PEAK_BF16)

enum { CPU_AVX512BF16 = 1 << 16 };

static const struct peak_kind {
	const char *name, *what, *group;
	unsigned flag;
	void (*loop)(long n);
	double ops; /* of one instruction or sequence; a multiply-add is 2 */
} peak_kinds[] = {
	{ "int8 avx512vnni", "vpdpbusd zmm", "avx512vnni", CPU_AVX512VNNI,
	    peak_dp_zmm, 128 },
	{ "int8 avx512vnni 256", "vpdpbusd ymm (EVEX)", "evexvnni",
	    CPU_AVX512VNNI, peak_dp_evex, 64 },
	{ "int8 avxvnni", "vpdpbusd ymm (VEX)", "avxvnni", CPU_AVXVNNI,
	    peak_dp_vex, 64 },
	{ "int8 avx2", "vpmaddubsw vpmaddwd vpaddd ymm", "avx2", CPU_AVX2,
	    peak_madd, 64 },
	{ "bf16 avx512bf16", "vdpbf16ps zmm", "", CPU_AVX512BF16, peak_bf16,
	    64 },
	{ "f32 avx512", "vfmadd231ps zmm", "avx512vnni", CPU_AVX512VNNI,
	    peak_fma_zmm, 32 },
	{ "f32 avx2", "vfmadd231ps ymm", "avx2", CPU_AVX2, peak_fma_ymm, 16 },
};

#else

static const struct peak_kind {
	const char *name, *what, *group;
	unsigned flag;
	void (*loop)(long n);
	double ops;
} peak_kinds[] = { { "", "", "", 0, NULL, 0 } };

#endif

enum { N_PEAK_KINDS = sizeof peak_kinds / sizeof *peak_kinds };

/* GOP/s of the calling thread, over about `seconds`. */
static inline double
peak_rate(const struct peak_kind *k, double seconds)
{
	long n = 20000;
	double t = 0;

	for (double start; k->loop;) {
		start = cpu_seconds();
		k->loop(n);
		t = cpu_seconds() - start;
		if (t > seconds / 2)
			break;
		n = t > seconds / 100 ? (long)((double)n * seconds / t) + 1 :
		                        4 * n;
	}
	return t > 0 ? 12.0 * k->ops * (double)n / t * 1e-9 : 0;
}

/*
 * The int8 or f32 peak of a kernel group, or NULL.  Groups that are their own
 * in int8 alone multiply floats as avx2 does.
 */
static inline const struct peak_kind *
peak_of(const char *group, const char *prefix)
{
	if (!strcmp(prefix, "f32") &&
	    (!strcmp(group, "avxvnni") || !strcmp(group, "evexvnni")))
		group = "avx2";
	for (int i = 0; i < N_PEAK_KINDS; i++)
		if (!strcmp(peak_kinds[i].group, group) &&
		    !strncmp(peak_kinds[i].name, prefix, strlen(prefix)))
			return &peak_kinds[i];
	return NULL;
}

#endif
