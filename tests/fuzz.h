/* Reproducible chance for tests that damage their input. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>

static uint64_t fuzz_state = 88172645463325252u; /* not 0 */

/* xorshift64: a number below a limit. */
static inline uint64_t
draw(uint64_t below)
{
	fuzz_state ^= fuzz_state << 13;
	fuzz_state ^= fuzz_state >> 7;
	fuzz_state ^= fuzz_state << 17;
	return fuzz_state % below;
}

#endif
