/*
 * The lines of the forward protocol, for both of its sides.
 * See dllm-forward-protocol(5).
 */
#ifndef PROTO_H
#define PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "stats.h"
#include "tokline.h"

enum { PROTO_VERSION = 1, PROTO_MAX_EOS = 16, PROTO_TEXT = 256,
	PROTO_ERROR = 1024 };

/* The first line a forward process prints: it is ready. */
struct greeting {
	char arch[PROTO_TEXT];   /* arch=      model family */
	char model[PROTO_TEXT];  /* model=     file name, percent-encoded there */
	char quant[PROTO_TEXT];  /* quant=     "Q4_K_M", for people */
	char device[PROTO_TEXT]; /* device=    "cpu" */
	char kernel[PROTO_TEXT]; /* kernel=    instruction set in use */
	uint64_t vocab;          /* vocab=     rows of the head */
	int32_t mask;            /* mask=      the mask token */
	int32_t eos[PROTO_MAX_EOS]; /* eos=    end tokens, end-of-text first */
	int n_eos;
	uint64_t ctx;     /* ctx=      longest request */
	uint64_t threads; /* threads= */
	int first;        /* first=    lowest position it can predict, 0 or 1 */
	int stats;        /* want=logits,stats is offered */
};

/* Write the line (with LF) and flush. */
int greeting_write(FILE *f, const struct greeting *g, struct err *err);

/*
 * Parse a line without its LF.  Unknown keys are ignored; vocab, mask and a
 * version of 1 are required; ids are checked against vocab.
 */
int greeting_parse(struct greeting *g, const char *line, size_t n,
    struct err *err);

/* Rows wanted: positions, in ascending disjoint ranges. */
struct range {
	uint64_t from, count;
};
struct ranges {
	struct range *r;
	size_t n, cap;
	uint64_t total; /* rows in all */
};
void ranges_free(struct ranges *r);

/* Add a position (above all before it), extending the last range. */
int ranges_add(struct ranges *r, uint64_t pos, struct err *err);

/* Parse FROM:COUNT[,FROM:COUNT...]; also FROM alone where short_ok. */
int ranges_parse(struct ranges *r, const char *text, size_t n, int short_ok,
    struct err *err);
void ranges_write(FILE *f, const struct ranges *r);

enum want { WANT_LOGITS, WANT_STATS };

struct request {
	uint64_t seq;
	enum want want;
	struct ranges rows;
	struct stats_params stats; /* with WANT_STATS */
	struct tokens ids;
};

int request_write(FILE *f, const struct request *q, struct err *err);

/*
 * Parse a line without its LF into q, reusing its memory.  Checks the form
 * only (unknown keys are refused); on -1 q->seq is set if it could be read,
 * else 0.
 */
int request_parse(struct request *q, const char *line, size_t n,
    struct err *err);
void request_free(struct request *q);

/* What comes back for a request. */
struct reply {
	int ok;
	uint64_t seq;
	uint64_t rows;
	uint64_t bytes;         /* of the whole .npy; 0 with WANT_STATS */
	double ms;              /* time the request took there */
	char text[PROTO_ERROR]; /* of an error, cut to fit */
};

/* "ok SEQ rows=N bytes=B ms=T" (bytes left out if 0), "error SEQ TEXT". */
void reply_ok_write(FILE *f, uint64_t seq, uint64_t rows, uint64_t bytes,
    double ms);
void reply_error_write(FILE *f, uint64_t seq, const char *text);

/*
 * Parse a line without its LF.  Unknown keys are ignored; rows is required of
 * an ok.  -1 if it is no reply.
 */
int reply_parse(struct reply *r, const char *line, size_t n,
    struct err *err);

/* "row POS id=I logit=X p=X margin=X negent=X", numbers as %a. */
void stats_row_write(FILE *f, const struct stats_row *r);

/* All five keys are required, finite in f32; p and margin lie in [0, 1]. */
int stats_row_parse(struct stats_row *r, const char *line, size_t n,
    struct err *err);

#endif
