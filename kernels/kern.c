#include "kern.h"

#include <string.h>

#include "scalar.h"
#ifdef HAVE_KERN_AVX2
#define KERN_AVX2
#include "scalar.h"
#undef KERN_AVX2
#endif

#define SCALAR_TABLE(suffix) \
	{ \
		.name = #suffix, .lanes = 1, \
		.pack_quant = pack_quant_##suffix, \
		.pack_float = pack_float_##suffix, .expand = expand_##suffix, \
		.matmul_quant = matmul_quant_##suffix, \
		.matmul_float = matmul_float_##suffix, \
		.rmsnorm = rmsnorm_##suffix, .add = add_##suffix, \
		.rope = rope_##suffix, .pack_keys = pack_keys_##suffix, \
		.attention = attention_##suffix, \
		.silu_mul = silu_mul_##suffix, \
		.all_finite = all_finite_##suffix \
	}

static const struct kern scalar = SCALAR_TABLE(scalar);
#ifdef HAVE_KERN_AVX2
static const struct kern avx2 = SCALAR_TABLE(avx2);
#endif

/* From the plainest to the one that is best where it runs. */
static const struct group {
	unsigned flag; /* what the CPU must have; 0: nothing */
	const struct kern *kern; /* NULL: not in this build */
} groups[] = {
	{ 0, &scalar },
#ifdef HAVE_KERN_AVX2
	{ CPU_AVX2, &avx2 },
#else
	{ CPU_AVX2, NULL },
#endif
	{ CPU_AVXVNNI, NULL },
	{ CPU_AVX512VNNI, NULL },
	{ CPU_NEON, NULL },
};

enum { N_GROUPS = sizeof groups / sizeof *groups };

const char *const kern_names[] = { "scalar", "avx2", "avxvnni", "avx512vnni",
	"neon", NULL };

static int
lacks(const struct group *g, unsigned flags)
{
	return g->flag && !(flags & g->flag);
}

enum kern_result
kern_select(const struct kern **k, const char *name, unsigned flags,
    struct err *err)
{
	int i = N_GROUPS - 1;

	if (!name) {
		while (!groups[i].kern || lacks(&groups[i], flags))
			i--;
		*k = groups[i].kern;
		return KERN_OK;
	}
	while (i >= 0 && strcmp(name, kern_names[i]))
		i--;
	if (i < 0) {
		err_set(err,
		    "'%s': not one of scalar, avx2, avxvnni, avx512vnni, neon",
		    name);
		return KERN_UNKNOWN;
	}
	if (!groups[i].kern || lacks(&groups[i], flags)) {
		err_set(err, groups[i].kern ? "'%s': this CPU lacks it" :
		                              "'%s': not in this build", name);
		return KERN_MISSING;
	}
	*k = groups[i].kern;
	return KERN_OK;
}

size_t
kern_panels(size_t n_tok, unsigned lanes)
{
	return (n_tok + lanes - 1) / lanes * lanes;
}
