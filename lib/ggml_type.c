#include "ggml_type.h"

#include <inttypes.h>
#include <stdio.h>

#include "blocks.h"

#define SCALAR(id, name, bytes, use) { id, name, 1, bytes, use }
#define BLOCK(id, name, n, s, use) { id, name, n, sizeof(struct s), use }
#define NAMED(id, name, n, bytes) { id, name, n, bytes, GGML_NAME_ONLY }
#define REMOVED(id, name) NAMED(id, name " (removed from ggml)", 0, 0)
#define IK(id, name) NAMED(id, name " (of ik_llama.cpp)", 0, 0)

/* Ascending ids. */
static const struct ggml_type_info types[] = {
	SCALAR(GGML_F32, "F32", 4, GGML_FLOAT),
	SCALAR(GGML_F16, "F16", 2, GGML_FLOAT),
	BLOCK(GGML_Q4_0, "Q4_0", 32, block_q4_0, GGML_QUANT),
	BLOCK(GGML_Q4_1, "Q4_1", 32, block_q4_1, GGML_QUANT),
	REMOVED(4, "Q4_2"),
	REMOVED(5, "Q4_3"),
	BLOCK(GGML_Q5_0, "Q5_0", 32, block_q5_0, GGML_QUANT),
	BLOCK(GGML_Q5_1, "Q5_1", 32, block_q5_1, GGML_QUANT),
	BLOCK(GGML_Q8_0, "Q8_0", 32, block_q8_0, GGML_QUANT),
	NAMED(9, "Q8_1", 32, 36),
	BLOCK(GGML_Q2_K, "Q2_K", 256, block_q2_k, GGML_QUANT),
	BLOCK(GGML_Q3_K, "Q3_K", 256, block_q3_k, GGML_QUANT),
	BLOCK(GGML_Q4_K, "Q4_K", 256, block_q4_k, GGML_QUANT),
	BLOCK(GGML_Q5_K, "Q5_K", 256, block_q5_k, GGML_QUANT),
	BLOCK(GGML_Q6_K, "Q6_K", 256, block_q6_k, GGML_QUANT),
	BLOCK(GGML_Q8_K, "Q8_K", 256, block_q8_k, GGML_DECODE_ONLY),
	NAMED(16, "IQ2_XXS", 256, 66),
	NAMED(17, "IQ2_XS", 256, 74),
	NAMED(18, "IQ3_XXS", 256, 98),
	NAMED(19, "IQ1_S", 256, 50),
	BLOCK(GGML_IQ4_NL, "IQ4_NL", 32, block_iq4_nl, GGML_QUANT),
	NAMED(21, "IQ3_S", 256, 110),
	NAMED(22, "IQ2_S", 256, 82),
	BLOCK(GGML_IQ4_XS, "IQ4_XS", 256, block_iq4_xs, GGML_QUANT),
	SCALAR(24, "I8", 1, GGML_NAME_ONLY),
	SCALAR(25, "I16", 2, GGML_NAME_ONLY),
	SCALAR(26, "I32", 4, GGML_NAME_ONLY),
	SCALAR(27, "I64", 8, GGML_NAME_ONLY),
	SCALAR(GGML_F64, "F64", 8, GGML_DECODE_ONLY),
	NAMED(29, "IQ1_M", 256, 56),
	SCALAR(GGML_BF16, "BF16", 2, GGML_FLOAT),
	REMOVED(31, "Q4_0_4_4"),
	REMOVED(32, "Q4_0_4_8"),
	REMOVED(33, "Q4_0_8_8"),
	NAMED(34, "TQ1_0", 256, 54),
	NAMED(35, "TQ2_0", 256, 66),
	NAMED(36, "IQ4_NL_4_4 (removed from ggml) or I2_S (of ik_llama.cpp)",
	    0, 0),
	REMOVED(37, "IQ4_NL_4_8"),
	REMOVED(38, "IQ4_NL_8_8"),
	BLOCK(GGML_MXFP4, "MXFP4", 32, block_mxfp4, GGML_QUANT),
	NAMED(40, "NVFP4", 64, 36),
	NAMED(41, "Q1_0", 128, 18),
	NAMED(42, "Q2_0", 64, 18),
	IK(97, "Q8_0_X4"),
	IK(98, "Q8_1_X4"),
	IK(99, "Q8_2_X4"),
	IK(133, "Q6_0"),
	IK(134, "IQ1_BN"),
	IK(135, "IQ2_BN"),
	IK(136, "Q8_K64"),
	IK(137, "IQ2_K"),
	IK(138, "IQ3_K"),
	IK(139, "IQ4_K"),
	IK(140, "IQ5_K"),
	IK(141, "IQ6_K"),
	IK(144, "IQ4_KS"),
	IK(145, "IQ2_KS"),
	IK(146, "IQ4_KSS"),
	IK(147, "Q8_K16"),
	IK(148, "Q8_K32"),
	IK(149, "Q8_KR8"),
	IK(150, "Q8_K128"),
	IK(151, "Q8_KV"),
	IK(152, "IQ5_KS"),
	IK(153, "IQ2_KT"),
	IK(154, "IQ3_KT"),
	IK(155, "IQ4_KT"),
	IK(156, "IQ3_KS"),
	IK(157, "IQ2_KL"),
	IK(158, "IQ1_KT"),
	IK(202, "Q4_0_R8"),
	IK(206, "Q5_0_R4"),
	IK(208, "Q8_0_R8"),
	IK(210, "Q2_K_R4"),
	IK(211, "Q3_K_R4"),
	IK(212, "Q4_K_R4"),
	IK(213, "Q5_K_R4"),
	IK(214, "Q6_K_R4"),
	IK(216, "IQ2_XXS_R4"),
	IK(217, "IQ2_XS_R4"),
	IK(218, "IQ3_XXS_R4"),
	IK(219, "IQ1_S_R4"),
	IK(220, "IQ4_NL_R4"),
	IK(221, "IQ3_S_R4"),
	IK(222, "IQ2_S_R4"),
	IK(223, "IQ4_XS_R8"),
	IK(229, "IQ1_M_R4"),
	IK(230, "BF16_R16"),
	IK(233, "Q6_0_R4"),
	IK(335, "IQ2_BN_R4"),
	IK(337, "IQ2_K_R4"),
	IK(338, "IQ3_K_R4"),
	IK(339, "IQ4_K_R4"),
	IK(340, "IQ5_K_R4"),
	IK(344, "IQ4_KS_R4"),
	IK(352, "IQ5_KS_R4"),
	IK(353, "MXFP4_R8"),
	IK(397, "Q8_K_R16"),
	IK(398, "Q8_KV_R8"),
	IK(399, "Q8_K_R8"),
};

const struct ggml_type_info *
ggml_type_info(int64_t id)
{
	size_t lo = 0, hi = sizeof types / sizeof *types, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (types[mid].id == id)
			return &types[mid];
		if (types[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const char *
ggml_type_name(int64_t id)
{
	static _Thread_local char unknown[32];
	const struct ggml_type_info *t = ggml_type_info(id);

	if (t)
		return t->name;
	snprintf(unknown, sizeof unknown, "type %" PRId64, id);
	return unknown;
}

uint64_t
ggml_row_bytes(enum ggml_type type, uint64_t n)
{
	const struct ggml_type_info *t = ggml_type_info(type);

	return n / t->block * t->block_bytes;
}
