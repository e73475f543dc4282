#include "gguf_check.h"

#include <inttypes.h>
#include <stddef.h>

#include "blocks.h"
#include "gguf_parse.h"

/* Kinds of numbers: what makes them infinite or NaN is a full exponent. */
enum kind { NOTHING, HALF, BRAIN, SINGLE, DOUBLE, E8M0, SPREAD };

/* Where the numbers of a block are. */
struct numbers {
	enum kind kind;
	int n;             /* of this kind */
	unsigned at[2];    /* byte offsets in the block */
	const char *what;
};

#define D(type) { HALF, 1, { offsetof(struct type, d) }, "scales" }
#define D_M(type, m) \
	{ HALF, 2, { offsetof(struct type, d), offsetof(struct type, m) }, \
	    "scales or offsets" }
#define HALF_AT(at) { HALF, 1, { at }, "scales" }

static const struct numbers numbers[] = {
	[GGML_F32] = { SINGLE, 1, { 0 }, "values" },
	[GGML_F16] = { HALF, 1, { 0 }, "values" },
	[GGML_BF16] = { BRAIN, 1, { 0 }, "values" },
	[GGML_F64] = { DOUBLE, 1, { 0 }, "values" },
	[GGML_Q4_0] = D(block_q4_0),
	[GGML_Q4_1] = D_M(block_q4_1, m),
	[GGML_Q5_0] = D(block_q5_0),
	[GGML_Q5_1] = D_M(block_q5_1, m),
	[GGML_Q8_0] = D(block_q8_0),
	[9] = { HALF, 2, { 0, 2 }, "scales or sums" }, /* Q8_1 */
	[GGML_Q2_K] = D_M(block_q2_k, dmin),
	[GGML_Q3_K] = D(block_q3_k),
	[GGML_Q4_K] = D_M(block_q4_k, dmin),
	[GGML_Q5_K] = D_M(block_q5_k, dmin),
	[GGML_Q6_K] = D(block_q6_k),
	[GGML_Q8_K] = { SINGLE, 1, { 0 }, "scales" },
	[16] = HALF_AT(0), /* IQ2_XXS */
	[17] = HALF_AT(0), /* IQ2_XS */
	[18] = HALF_AT(0), /* IQ3_XXS */
	[19] = HALF_AT(0), /* IQ1_S */
	[GGML_IQ4_NL] = D(block_iq4_nl),
	[21] = HALF_AT(0), /* IQ3_S */
	[22] = HALF_AT(0), /* IQ2_S */
	[GGML_IQ4_XS] = D(block_iq4_xs),
	[29] = { SPREAD, 1, { 48 }, "scales" }, /* IQ1_M */
	[34] = HALF_AT(52), /* TQ1_0 */
	[35] = HALF_AT(64), /* TQ2_0 */
	[GGML_MXFP4] = { E8M0, 1, { 0 }, "scales" },
	[41] = HALF_AT(0), /* Q1_0 */
	[42] = HALF_AT(0), /* Q2_0 */
};

static int
is_bad(enum kind kind, const uint8_t *p)
{
	switch (kind) {
	case HALF:
		return (p[1] & 0x7c) == 0x7c;
	case BRAIN:
		return (p[1] & 0x7f) == 0x7f && p[0] & 0x80;
	case SINGLE:
		return (p[3] & 0x7f) == 0x7f && p[2] & 0x80;
	case DOUBLE:
		return (p[7] & 0x7f) == 0x7f && (p[6] & 0xf0) == 0xf0;
	case E8M0:
		return p[0] == 0xff;
	case SPREAD: /* a half's top 8 bits in two nibbles */
		return (p[7] & 0x70) == 0x70 && (p[5] & 0xc0) == 0xc0;
	case NOTHING:
		break;
	}
	return 0;
}

static int
block_is_bad(const struct numbers *x, const uint8_t *block)
{
	for (int i = 0; i < x->n; i++)
		if (is_bad(x->kind, block + x->at[i]))
			return 1;
	return 0;
}

int
gguf_check_tensor(const struct gguf *g, const struct gguf_tensor *t,
    struct err *err)
{
	const struct ggml_type_info *info = ggml_type_info(t->type);
	const struct gguf_file *f = &g->file[t->shard];
	uint64_t bad = 0, first = 0, size = info->block_bytes;
	const struct numbers *x;

	if (!t->data)
		return err_set(err, "%s: tensor %s: data ends at byte %" PRIu64
		    ", beyond the file's %" PRIu64, f->path, t->name,
		    t->offset + t->n_bytes, f->size);
	if ((size_t)t->type >= sizeof numbers / sizeof *numbers)
		return 0;
	x = &numbers[t->type];
	if (x->kind == NOTHING)
		return 0;
	for (uint64_t at = 0; at < t->n_bytes; at += size)
		if (block_is_bad(x, t->data + at) && bad++ == 0)
			first = at / size;
	if (bad == 0)
		return 0;
	return err_set(err, "%s: tensor %s: %" PRIu64 " of %" PRIu64
	    " %s have %s that are not finite, the first at byte %" PRIu64,
	    f->path, t->name, bad, t->n_bytes / size,
	    info->block > 1 ? "blocks" : "elements", x->what,
	    t->offset + first * size);
}
