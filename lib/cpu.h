/*
 * What the processor and the operating system allow, as the groups of kern.h.
 */
#ifndef CPU_H
#define CPU_H

/*
 * CPU_AVX2 and so on.  A group is reported only if all its instructions are
 * there and the system saves the registers they use; the groups are no ladder.
 */
unsigned cpu_flags(void);

#endif
