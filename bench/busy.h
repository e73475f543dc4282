/*
 * How busy the machine is.
 */
#ifndef BUSY_H
#define BUSY_H

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/* CPU seconds that all CPUs have spent so far on anything; 0 if unknown. */
static inline double
busy_seconds(void)
{
	unsigned long long user, nice, sys, idle, wait, irq, soft, steal;
	FILE *f = fopen("/proc/stat", "r");
	int got = 0;

	if (f) {
		got = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
		    &user, &nice, &sys, &idle, &wait, &irq, &soft, &steal);
		fclose(f);
	}
	if (got != 8)
		return 0;
	return (double)(user + nice + sys + irq + soft + steal) /
	    (double)sysconf(_SC_CLK_TCK);
}

/* CPUs busy over half a second. */
static inline double
busy_now(void)
{
	struct timespec half = { .tv_nsec = 500000000 };
	double start = now_ms(), busy = busy_seconds();

	nanosleep(&half, NULL);
	return (busy_seconds() - busy) / (now_ms() - start) * 1e3;
}

#endif
