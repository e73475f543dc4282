#include "kern.h"

#include <string.h>

#include "expand.h"
#include "scalar.h"
#include "groups.h"

/* Functions that pack, that know the layout of tiles, and that do the rest. */
#define TABLE(name_, lanes_, pack, tiles, product, floats) \
	{ \
		.name = name_, .lanes = lanes_, \
		.pack_quant = pack_quant_##pack, \
		.pack_float = pack_float_##floats, .expand = expand_##tiles, \
		.decode = decode_##tiles, \
		.matmul_quant = matmul_quant_##product, \
		.matmul_float = matmul_float_##floats, \
		.rmsnorm = rmsnorm_##floats, .add = add_##floats, \
		.rope = rope_##floats, .pack_keys = pack_keys_##floats, \
		.attention = attention_##floats, \
		.silu_mul = silu_mul_##floats, \
		.all_finite = all_finite_##floats, \
		.clean_logits = clean_logits_##floats, \
		.largest = largest_##floats, .weigh = weigh_##floats, \
		.negentropy = negentropy_##floats, \
		.contenders = contenders_##floats \
	}

#define decode_scalar decode_row

static const struct kern scalar =
    TABLE("scalar", 1, scalar, scalar, scalar, scalar);

#ifdef KERN_X86
static const struct kern avx2 = TABLE("avx2", 16, avx2, avx2, avx2, avx2);
static const struct kern avxvnni =
    TABLE("avxvnni", 16, avx2, avxvnni, avxvnni, avx2);
static const struct kern evexvnni =
    TABLE("evexvnni", 16, avx2, avxvnni, evexvnni, avx2);
static const struct kern avx512vnni = TABLE("avx512vnni", 16, avx512vnni,
    avx512vnni, avx512vnni, avx512vnni);
#define X86(table) &(table)
#else
#define X86(table) NULL
#endif

#ifdef KERN_ARM
#define decode_i8mm decode_neon

static const struct kern neon = TABLE("neon", 16, neon, neon, neon, neon);
static const struct kern dotprod =
    TABLE("dotprod", 16, neon, neon, dotprod, neon);
static const struct kern i8mm = TABLE("i8mm", 16, i8mm, i8mm, i8mm, neon);
#define ARM(table) &(table)
#else
#define ARM(table) NULL
#endif

/* From the plainest to the one that is best where it runs. */
static const struct group {
	unsigned flag; /* what the CPU must have; 0: nothing */
	const struct kern *kern; /* NULL: not in this build */
} groups[] = {
	{ 0, &scalar },
	{ CPU_AVX2, X86(avx2) },
	{ CPU_AVXVNNI, X86(avxvnni) },
	{ CPU_AVX512VNNI, X86(avx512vnni) },
	{ CPU_NEON, ARM(neon) },
	{ CPU_DOTPROD, ARM(dotprod) },
	{ CPU_I8MM, ARM(i8mm) },
};

enum { N_GROUPS = sizeof groups / sizeof *groups };

const char *const kern_names[] = { "scalar", "avx2", "avxvnni", "avx512vnni",
	"neon", "dotprod", "i8mm", NULL };

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
		    "'%s': not one of scalar, avx2, avxvnni, avx512vnni, neon, "
		    "dotprod, i8mm", name);
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

const struct kern *
kern_evex(unsigned flags)
{
#ifdef KERN_X86
	if ((flags & CPU_AVX2) && (flags & CPU_AVX512VNNI))
		return &evexvnni;
#endif
	(void)flags;
	return NULL;
}

size_t
kern_panels(size_t n_tok, unsigned lanes)
{
	return (n_tok + lanes - 1) / lanes * lanes;
}

/* The next array of n elements of 4 bytes. */
static void *
take(char **p, size_t n)
{
	void *at = *p;

	*p += (n * 4 + 63) / 64 * 64;
	return at;
}

/*
 * Of 2 n_in bytes per token half are quants, half scales and sums; one panel
 * more for groups that spread a last panel's scales.
 */
size_t
xquant_bytes(size_t n_in, size_t n_tok)
{
	return (kern_panels(n_tok, 16) + 16) * n_in * 2;
}

void
xquant_place(struct xquant *x, void *memory, size_t n_in, size_t n_tok)
{
	size_t n = (kern_panels(n_tok, 16) + 16) * n_in;
	char *p = memory;

	x->n_in = n_in;
	x->n_tok = n_tok;
	x->q = take(&p, n / 4);
	x->dx = take(&p, n / 32);
	x->mdx = take(&p, n / 32);
	x->sx = take(&p, n / 32);
	x->sum = take(&p, n / 32);
	x->sx16 = take(&p, n / 16);
	x->sum16 = take(&p, n / 16);
}

/*
 * Scales and mins of groups of 16.  Rows of whole chunks of 256, which a group
 * may lay out one after the other.
 */
static size_t
tile_elements(size_t n_rows, size_t n_in)
{
	return kern_panels(n_rows, 8) * kern_panels(n_in, 256);
}

size_t
wtile_bytes(size_t n_rows, size_t n_in)
{
	size_t n = tile_elements(n_rows, n_in);

	return n + 2 * (n / 16 * 4);
}

void
wtile_place(struct wtile *w, void *memory, size_t n_rows, size_t n_in)
{
	size_t n = tile_elements(n_rows, n_in);
	char *p = memory;

	w->q = take(&p, n / 4);
	w->w = take(&p, n / 16);
	w->m = take(&p, n / 16);
}
