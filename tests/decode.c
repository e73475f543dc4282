/*
 * Encoders and decoders of every block type against SHA-256 sums of what ggml
 * encodes from one fixed row and decodes from that, and its first blocks.
 */
#include <math.h>
#include <stdlib.h>

#include "expand.h"
#include "half.h"
#include "quantize.h"
#include "sha256.h"
#include "tap.h"

enum { N = 1024 };

static const struct {
	enum ggml_type type;
	size_t bytes;
	const char *q, *dq; /* encoded bytes; decoded f32, NULL: not recorded */
} golden[] = {
	{ GGML_F16, 2048,
	    "b71a2e7dc3fbe414dd24e1492c86882cac691e9c38468496c85e7e501e71aac7",
	    NULL },
	{ GGML_Q4_0, 576,
	    "8a069fc9bf719f8b1525fbcd2f5dde41cd8321619f744b608d02626a2eda7ca1",
	    "f9e3c512967c167cc9dbb9eacd2fb2ce2120aca3f8e003eaad998f943bd22e79" },
	{ GGML_Q4_1, 640,
	    "24b3790cfa6cb2ac20076fa1bedb779603727a010059aeade4296225751fcb36",
	    "cc716a070b30664a100fdd32558d549cefdf388ef69b153391caabaf6890d5cd" },
	{ GGML_Q5_0, 704,
	    "336eb1ff90d140338e998da81cf9f85fc7a4b66fc31b311af93d02e207d410cf",
	    "199a6b6b029f13a106680e646794539a1e032e1468676ff38c2e09d801b333f9" },
	{ GGML_Q5_1, 768,
	    "29c42f0f74bb41170ae068420ecb19340c5a2b058f2303ba6c30fb3161ca4912",
	    "906aa7f05423f36aeb972a7975f91b165883d8aaad1da9a1ee8f17a205b3a0aa" },
	{ GGML_Q8_0, 1088,
	    "32d2ea7012d09f0175394eceefc28b9281bebb6cee427c8b996a942dcc625477",
	    "c56623b5a562c2c52a9a1466ebcdbd277e4d1baf4ceee43a0ee81f8afec29842" },
	{ GGML_Q2_K, 336,
	    "2e84719c1be829841416e6141cebc283aa360df0e7e1180ce7ead727075c4152",
	    "0520f68c62ebd9e819da558518beb34c8d86855b4c35faf05f39e729a1bc4522" },
	{ GGML_Q3_K, 440,
	    "699c7ec209925db96ba3673e683e0ff180d65581a32374071b9d8419326a04c6",
	    "fc5d3c0158972ad2643ba4eb78ac62877fea09e62e7c15d6b1ef86ea9e730c74" },
	{ GGML_Q4_K, 576,
	    "60cb2ae7d0a2f6afed28c5d0f653d128b141298456ae8a9f2e5ae6760d446482",
	    "a98a48528880f341eeeb65e38004dc72926078bf50d495a3ee6183d584d1e114" },
	{ GGML_Q5_K, 704,
	    "03e6d62df9af738eaa2e4474182e86046e96e3bc801ff3637a760740af922ad8",
	    "df638822d898ccb7fa86df963bae1d9751da1ba3ba893173d2923a543afcc0b0" },
	{ GGML_Q6_K, 840,
	    "1cd80d31c156d52352947ca3e4b08ef9076f1c806257abc1abbfe87771cbe24f",
	    "8832994c1bd2a052daff45e5e8d71e2570f0bc767c1e7327e5173bd54c2b316b" },
	{ GGML_Q8_K, 1168,
	    "6899c8986073ada74a22a6c1b3ab2cb0cae833161e0979863cd2f53c71fefdaf",
	    "3526a470a749281cf458ede27922cfd3e3cce41e86b296c7dc655d291313754f" },
	{ GGML_IQ4_NL, 576,
	    "c05cf9157ec1bb823da475301d64a5abc3b1c6a3a24b8352059d7017acd501ee",
	    "d840db8821e0a871f950e28621f12617e679d6705e46aa4ecb592287057ac4d8" },
	{ GGML_IQ4_XS, 544,
	    "5a2bb10c96fc64fc12b90ee053124da38894e1a377b7b77877257cd179b278d0",
	    "54f74da73ebb0802baad5d4fb4a5ec899b05ba32e38769d6ea2976d0eca4d406" },
	{ GGML_BF16, 2048,
	    "f75e162c2275a1af92bb86c951994749f2bf17d4ce10a6cca3cdcd838c181fbc",
	    NULL },
	{ GGML_MXFP4, 544,
	    "9e318890f70fa2e2628affd6e24d2c97b648d48dbaef1b1311068d13ceb2b800",
	    "dcfac5518a194633ec9988ed1fcbb426286e311e3ab9c4425ed40dd3ce902684" },
};

static const struct {
	enum ggml_type type;
	const char *hex;
} first[] = {
	{ GGML_Q8_0,
	    "cc1f82810b236c9aff0d194a87407a9034f6f23cf43b4116f600e4f617d3ca2e"
	    "e7bf" },
	{ GGML_Q4_K,
	    "4a18bc23fc0ff24dbf4ff04d720e9f11704088fa0ec14848e98ca0ab9f21ebb7"
	    "779b679b8c997758769779a564ba96443ac4b45d1d31e055cebb08c2d58e2df4"
	    "6a5997abc83b963a6a4378b8c3586bb35d30aa0814f34ffb196595053323de33"
	    "42779775a9a252579657755566b46782c475ca9ab1a9ee70c305ac1dc5288582"
	    "a4588899a556568a74678a7895856866" },
	{ GGML_Q6_K,
	    "f04043899b560083f63331b07ff4ad5d7723e634611695b08de57586daaa3cef"
	    "fe62257e71f2d3845e131b2aa85aacf1632f5cc01aed64d69383fe7428c0ae6a"
	    "c5651109856a00ae1673814158aa6228302a1e9ccd52712966eb1c2dd6b44b71"
	    "641c659107e7d0ea6607c3318e7a315e209586b80ccfa7b637d889f411a211c2"
	    "24d4da7e330cc656fefb28cbdbb03edd8ad05a0414c16ace8af655133b90823f"
	    "e4a3d991f29ec47cf1268a02e212acb230d65a052be8e042ba924551666dd6a8"
	    "7dbe20f264c81bef8432211080bf20f3e40b" },
};

/* A congruential generator in [-1, 1), scaled by 1, 1/2, 1/4, 1/8 in turn. */
static void
make_input(float *x)
{
	uint32_t s = 12345;
	char hex[65];

	for (int i = 0; i < N; i++) {
		s = s * 1664525u + 1013904223u;
		x[i] = ((float)(s >> 8) - 8388608.0f) / 8388608.0f;
		x[i] = ldexpf(x[i], -(i >> 4 & 3));
	}
	sha256_hex(x, N * sizeof *x, hex);
	is(hex, "aeef9cf92a6cb0cf22d32dfb395ce5a55bd2e48a232cf832254f9f0ffd22288a",
	    "the input row");
}

static void
test_golden(const float *x)
{
	static uint8_t q[N * 4 + 1];
	static float dq[N];
	char name[64], hex[65];
	size_t bytes;

	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		enum ggml_type t = golden[i].type;

		bytes = ggml_row_bytes(t, N);
		ok(bytes == golden[i].bytes, "%s: %zu bytes", ggml_type_name(t),
		    bytes);
		/* Odd addresses: rows of a file are not aligned. */
		quantize_row(t, x, N, q + 1);
		sha256_hex(q + 1, bytes, hex);
		snprintf(name, sizeof name, "%s: encoded", ggml_type_name(t));
		is(hex, golden[i].q, name);
		if (!golden[i].dq)
			continue;
		decode_row(t, q + 1, N, dq);
		sha256_hex(dq, sizeof dq, hex);
		snprintf(name, sizeof name, "%s: decoded", ggml_type_name(t));
		is(hex, golden[i].dq, name);
	}
}

static void
test_first_blocks(const float *x)
{
	uint8_t q[256];
	char hex[513], name[64];
	const struct ggml_type_info *t;

	for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
		t = ggml_type_info(first[i].type);
		quantize_row(first[i].type, x, t->block, q);
		for (uint32_t j = 0; j < t->block_bytes; j++)
			snprintf(hex + 2 * j, 3, "%02x", q[j]);
		snprintf(name, sizeof name, "%s: first block", t->name);
		is(hex, first[i].hex, name);
	}
}

/* What expand_row says must give what decode_row says. */
static void
test_expand(const float *x)
{
	static uint8_t src[N * 4];
	static int8_t q[N];
	static float w[N / 16], m[N / 16], dst[N];
	unsigned group;
	int same;
	float v;

	for (int id = 0; id < 43; id++) {
		const struct ggml_type_info *t = ggml_type_info(id);

		if (!t || t->use != GGML_QUANT)
			continue;
		quantize_row(t->id, x, N, src);
		group = expand_group(t->id);
		expand_row(t->id, src, N, q, w,
		    expand_has_mins(t->id) ? m : NULL);
		decode_row(t->id, src, N, dst);
		same = 1;
		for (unsigned i = 0; i < N; i++) {
			v = w[i / group] * (float)q[i];
			if (expand_has_mins(t->id))
				v += m[i / group];
			same &= !memcmp(&v, &dst[i], sizeof v);
		}
		ok(same, "%s: expanded equals decoded", t->name);
	}
}

static void
test_zeros(void)
{
	static const float zero[256];
	uint8_t q[1024];
	float dst[256];
	int bad;

	for (int id = 0; id < 43; id++) {
		const struct ggml_type_info *t = ggml_type_info(id);

		if (!t || !quantize_can(t->id))
			continue;
		memset(q, 0xaa, sizeof q);
		quantize_row(t->id, zero, 256, q);
		decode_row(t->id, q, 256, dst);
		bad = 0;
		for (int i = 0; i < 256; i++)
			bad += dst[i] != 0;
		ok(!bad, "%s: zeros stay zeros", t->name);
	}
}

/* Far below what a binary16 scale can hold: nothing may blow up. */
static void
test_tiny(void)
{
	float x[256], dst[256];
	uint8_t q[1024];
	int bad;

	for (int i = 0; i < 256; i++)
		x[i] = (i % 3 ? -1e-40f : 2e-40f) * (float)(i % 7);
	for (int id = 0; id < 43; id++) {
		const struct ggml_type_info *t = ggml_type_info(id);

		if (!t || !quantize_can(t->id))
			continue;
		quantize_row(t->id, x, 256, q);
		decode_row(t->id, q, 256, dst);
		bad = 0;
		for (int i = 0; i < 256; i++)
			bad += !(fabsf(dst[i]) < 1e-35f);
		ok(!bad, "%s: subnormal input", t->name);
	}
}

static int
same_float(float a, float b)
{
	return !memcmp(&a, &b, sizeof a);
}

/* Every half: to float by the definition, and back. */
static void
test_half(void)
{
	int bad = 0, back = 0;

	for (unsigned h = 0; h < 0x10000; h++) {
		int e = h >> 10 & 31, m = h & 1023;
		float want = e == 31 ? (m ? NAN : INFINITY) :
		    e ? ldexpf((float)(1024 + m), e - 25) :
		    ldexpf((float)m, -24);
		float got = f16_to_f32((uint16_t)h);

		want = h & 0x8000 ? -want : want;
		bad += isnan(want) ? !isnan(got) : !same_float(got, want);
		back += isnan(want) ? !isnan(f16_to_f32(f32_to_f16(got))) :
		    f32_to_f16(got) != h;
	}
	ok(!bad, "binary16 to float, every value");
	ok(!back, "and back");
	ok(f32_to_f16(1 + 0x1p-11f) == 0x3c00 &&
	    f32_to_f16(1 + 0x3p-11f) == 0x3c02 &&
	    f32_to_f16(0x1p-25f) == 0 && f32_to_f16(0x1.8p-24f) == 2 &&
	    f32_to_f16(0x1p-26f * 3) == 1, "ties go to even");
	ok(f32_to_f16(65519.99f) == 0x7bff && f32_to_f16(65520) == 0x7c00 &&
	    f32_to_f16(-1e30f) == 0xfc00, "overflow");
	ok(f32_to_bf16(1 + 0x1p-8f) == 0x3f80 &&
	    f32_to_bf16(1 + 0x3p-8f) == 0x3f82, "bfloat16: ties go to even");
}

static void
test_scalars(void)
{
	static const uint8_t f64[16] = { 0, 0, 0, 0, 0, 0, 0xf8, 0xbf, 1, 0, 0,
		0, 0, 0, 0xf0, 0x3f };
	static const uint8_t bf16[2] = { 0x20, 0xc1 };
	static const uint8_t f32[8] = { 0, 0, 0x20, 0xc1, 1, 0, 0, 0 };
	float v[2];

	decode_row(GGML_F64, f64, 2, v);
	ok(same_float(v[0], -1.5f) && same_float(v[1], 1), "F64 is rounded");
	decode_row(GGML_BF16, bf16, 1, v);
	ok(same_float(v[0], -10), "BF16");
	decode_row(GGML_F32, f32, 2, v);
	ok(same_float(v[0], -10) && same_float(v[1], 0x1p-149f), "F32");
}

/* Both subnormal scales of MXFP4, and blocks built by hand. */
static void
test_by_hand(void)
{
	uint8_t b[17] = { 0, 0xf7, 0x81 };
	float v[32];

	decode_row(GGML_MXFP4, b, 32, v);
	ok(same_float(v[0], 12 * 0x1p-128f) && same_float(v[1], 0x1p-128f) &&
	    same_float(v[16], -12 * 0x1p-128f) && v[17] == 0 && v[2] == 0,
	    "MXFP4: exponent byte 0");
	b[0] = 1;
	decode_row(GGML_MXFP4, b, 32, v);
	ok(same_float(v[0], 12 * 0x1p-127f), "MXFP4: exponent byte 1");
	b[0] = 128;
	decode_row(GGML_MXFP4, b, 32, v);
	ok(same_float(v[0], 12), "MXFP4: exponent byte 128");
	ok(same_float(v[17], -0.0f) && same_float(v[2], 0),
	    "MXFP4: code 8 is -0, code 0 is 0");
	memset(b, 0, sizeof b);
	decode_row(GGML_Q8_0, "\0\x3c\x80\x7f..............................", 32,
	    v);
	ok(same_float(v[0], -128) && same_float(v[1], 127), "Q8_0: extremes");
}

static void
test_types(void)
{
	static const struct {
		int64_t id;
		const char *name;
	} t[] = {
		{ 0, "F32" },
		{ 12, "Q4_K" },
		{ 16, "IQ2_XXS" },
		{ 4, "Q4_2 (removed from ggml)" },
		{ 31, "Q4_0_4_4 (removed from ggml)" },
		{ 36, "IQ4_NL_4_4 (removed from ggml) or I2_S (of "
		      "ik_llama.cpp)" },
		{ 42, "Q2_0" },
		{ 43, "type 43" },
		{ 137, "IQ2_K (of ik_llama.cpp)" },
		{ 399, "Q8_K_R8 (of ik_llama.cpp)" },
		{ -1, "type -1" },
		{ INT64_MAX, "type 9223372036854775807" },
	};
	int bad = 0;

	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		is(ggml_type_name(t[i].id), t[i].name, t[i].name);
	/* Found by bisection: every id must be where it is looked for. */
	for (int id = 0; id < 43; id++)
		bad += !ggml_type_info(id) || ggml_type_info(id)->id != id;
	ok(!bad, "every id below 43 is known");
}

int
main(void)
{
	static float x[N];

	make_input(x);
	test_golden(x);
	test_first_blocks(x);
	test_expand(x);
	test_zeros();
	test_tiny();
	test_half();
	test_scalars();
	test_by_hand();
	test_types();
	return tap_end();
}
