/*
 * What this process may use of the machine.
 */
#ifndef SYSINFO_H
#define SYSINFO_H

#include <stdint.h>

/*
 * Physical cores: CPUs of the affinity mask, threads of one core counted once,
 * no more than the control group's CPU quota (rounded down).  At least 1.
 */
unsigned sysinfo_cores(void);

/*
 * Bytes that can be used without swapping: MemAvailable or, if smaller, a
 * control group's limit less its usage without page cache.  UINT64_MAX if the
 * system does not say.
 */
uint64_t sysinfo_memory(void);

/*
 * The parts that read files, with the folder that stands for "/" in tests.
 * quota: CPUs of the control group, UINT64_MAX without a limit.
 */
uint64_t sysinfo_memory_at(const char *root);
uint64_t sysinfo_quota_at(const char *root);

/* Distinct cores among the n CPU numbers given. */
unsigned sysinfo_cores_at(const char *root, const unsigned *cpu, unsigned n);

#endif
