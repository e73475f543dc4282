/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * A draw is a pure function of seed, stream, step, position and token: there
 * is no state, so skipping rows, batching and threads change no number.
 */
#ifndef PHILOX_H
#define PHILOX_H

#include <stdint.h>

/* Multipliers of a round, what a round adds to the key, how many there are. */
#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u /* golden ratio */
#define PHILOX_W1 0xBB67AE85u /* sqrt(3) - 1 */
enum { PHILOX_ROUNDS = 10 };

enum random_stream {
	STREAM_TOKEN,    /* Gumbel noise, one draw per token id */
	STREAM_REMASK,   /* random remasking, one per position */
	STREAM_ORIGIN,   /* Dream's origin: is this position committed? */
	STREAM_ALG_TEMP, /* Dream's alg_temp, one per position */
	STREAM_SCORE_COUNT, /* dllm-score: how many tokens a batch masks */
	STREAM_SCORE_PLACE  /* dllm-score: which, one per position */
};

/* Ten rounds: out = philox(counter, key). */
void philox4x32(uint32_t out[4], const uint32_t counter[4],
    const uint32_t key[2]);

/*
 * The draws of tokens 2*pair and 2*pair + 1, uniform in the open interval
 * (0, 1): ((x >> 12) + 0.5) * 2^-52 of 64-bit words x.
 */
void random_pair(double u[2], uint64_t seed, enum random_stream stream,
    uint64_t step, uint64_t position, uint32_t pair);

/* The draw of one token; draws that belong to no token use token 0. */
double random_draw(uint64_t seed, enum random_stream stream, uint64_t step,
    uint64_t position, uint32_t token);

#endif
