/*
 * Decisions on recorded logits against reference samplers, quotas against
 * their published tables, and the rules of choice.  Run from the top of the
 * tree.
 */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "generate.h"
#include "io.h"
#include "json.h"
#include "npy.h"
#include "philox.h"
#include "tap.h"
#include "tokline.h"

#define DIR "tests/golden/sampler"

static struct err err;
static const struct kern *kern;

static double
number(const struct json *o, const char *key, double otherwise)
{
	const struct json *v = json_get(o, key);

	return v && v->type == JSON_NUMBER ? v->number : otherwise;
}

static int
true_at(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);

	return v && v->type == JSON_TRUE;
}

static void
set_algorithm(struct sampler *s, const struct json *c)
{
	const struct json *alg = json_get(c, "alg");

	s->stats.algorithm = ALG_LLADA;
	for (int i = 0; alg && algorithm_names[i]; i++)
		if (!strcmp(alg->text, algorithm_names[i]))
			s->stats.algorithm = (enum algorithm)i;
	s->stats.top_p = number(c, "top_p", 1);
	s->stats.top_k = (uint64_t)number(c, "top_k", 0);
	s->eps = number(c, "eps", 1e-3);
}

/* The sampler that a case describes. */
static void
set_case(struct sampler *s, const struct json *c)
{
	memset(s, 0, sizeof *s);
	set_algorithm(s, c);
	s->mask = (int32_t)number(c, "mask", 0);
	if (!true_at(c, "allow_mask"))
		s->stats.ban[s->stats.n_ban++] = s->mask;
	if (true_at(c, "confidence_eos_eot_inf")) {
		s->stats.demote[s->stats.n_demote++] =
		    (int32_t)number(c, "eos", 0);
		s->stats.demote[s->stats.n_demote++] =
		    (int32_t)number(c, "eot", 0);
	}
	s->prompt_masks = MASKS_REFERENCE;
	s->prompt = json_get(c, "prompt")->n;
	s->length = s->prompt + (uint64_t)number(c, "gen_length", 0);
	s->steps = (uint64_t)number(c, "steps", 0);
	s->block = (uint64_t)number(c, "block_length",
	    (double)(s->length - s->prompt));
}

static int
load_step(struct logits *l, struct npy *a, const char *name, const char *kind,
    uint64_t step, uint64_t rows, uint64_t vocab)
{
	char path[256];

	snprintf(path, sizeof path, DIR "/%s/%s-%03d.npy", name, kind,
	    (int)step);
	if (npy_open(a, path, &err) < 0)
		return -1;
	if (a->type != NPY_F4 || a->n_dims != 2 || a->shape[0] != rows ||
	    a->shape[1] != vocab)
		return err_set(&err, "%s: shape", path);
	l->data = a->data;
	l->vocab = (size_t)vocab;
	l->by_position = 1;
	l->first = 0;
	return 0;
}

static int
make_step(const struct sampler *s, struct step *t, const char *name,
    uint64_t number_, const int32_t *canvas, float cfg, uint64_t vocab)
{
	struct logits c, u;
	struct npy a = { 0 }, b = { 0 };
	struct reducer r = { .scratch.kern = kern };
	int rc = 0;

	if (sampler_begin(s, t, canvas, number_, &err) < 0)
		return -1;
	if (!t->wanted)
		return 0;
	if (load_step(&c, &a, name, "step", number_, s->length, vocab) < 0 ||
	    (cfg > 0 &&
	        load_step(&u, &b, name, "uncond", number_, s->length, vocab) <
	            0) ||
	    step_reduce(s, t, &c, cfg > 0 ? &u : NULL, cfg, &r, &err) < 0)
		rc = -1;
	sampler_select(s, t);
	reducer_free(&r);
	npy_close(&a);
	npy_close(&b);
	return rc;
}

/* The commitments of step t against the next lines of transfer.tsv. */
static int
same_transfers(FILE *tsv, const struct step *t)
{
	unsigned long long step;
	int pos, id;
	double conf;

	for (size_t i = 0; i < t->n_chosen; i++) {
		if (fscanf(tsv, "%llu %d %d %lf", &step, &pos, &id, &conf) !=
		    4)
			return 0;
		if (step == t->number && pos == t->chosen[i].pos &&
		    id == t->chosen[i].id &&
		    fabs(conf - (double)t->chosen[i].confidence) <= 1e-5)
			continue;
		printf("# step %llu: want %d=%d %.9g, got %d=%d %.9g\n", step,
		    pos, id, conf, t->chosen[i].pos, t->chosen[i].id,
		    (double)t->chosen[i].confidence);
		return 0;
	}
	return 1;
}

static FILE *
open_in(const char *name, const char *file)
{
	char path[256];

	snprintf(path, sizeof path, DIR "/%s/%s", name, file);
	return fopen(path, "r");
}

/* Every step: transfers, and the canvas after it. */
static int
replay(const struct sampler *s, const char *name, const struct json *c)
{
	struct tokline in = { .f = open_in(name, "canvas.txt") };
	FILE *tsv = open_in(name, "transfer.tsv");
	struct tokens canvas = { 0 }, want = { 0 };
	struct step t = { 0 };
	char rest[64];
	int good = in.f && tsv && fgets(rest, sizeof rest, tsv) &&
	    tokline_read(&in, &canvas, &err) == 1 && canvas.n == s->length;
	float cfg = (float)number(c, "cfg_scale", 0);
	uint64_t vocab = (uint64_t)number(c, "vocab", 0);

	for (uint64_t i = 0; good && i < s->steps; i++) {
		good = make_step(s, &t, name, i, canvas.id, cfg, vocab) == 0 &&
		    same_transfers(tsv, &t);
		sampler_update(&t, canvas.id);
		good = good && tokline_read(&in, &want, &err) == 1 &&
		    want.n == canvas.n &&
		    !memcmp(want.id, canvas.id, want.n * sizeof *want.id);
	}
	good = good && fscanf(tsv, "%60s", rest) == EOF &&
	    tokline_read(&in, &want, &err) == 0;
	if (err.set)
		printf("# %s\n", err.msg);
	step_free(&t);
	tokens_free(&canvas);
	tokens_free(&want);
	tokline_free(&in);
	if (in.f)
		fclose(in.f);
	if (tsv)
		fclose(tsv);
	return good;
}

static void
golden(const char *name)
{
	struct json_doc doc;
	struct sampler s;
	char path[256], *text;
	size_t n;

	memset(&err, 0, sizeof err);
	snprintf(path, sizeof path, DIR "/%s/case.json", name);
	if (io_slurp_file(path, &text, &n, &err) < 0 ||
	    json_parse(&doc, text, n, &err) < 0) {
		ok(0, "%s: %s", name, err.msg);
		return;
	}
	set_case(&s, doc.root);
	ok(replay(&s, name, doc.root), "decisions of %s", name);
	json_free(&doc);
	free(text);
}

/* The quotas of a run over all its masks, as "v x n, v x n ...". */
static void
quotas(const struct sampler *s, uint64_t masks, const char *want)
{
	char got[512] = "";
	uint64_t left = masks, q, last = UINT64_MAX, times = 0;
	size_t n = 0;
	struct place at;

	for (uint64_t i = 0; i <= s->steps; i++) {
		q = UINT64_MAX;
		if (i < s->steps) {
			at = sampler_place(s, i);
			q = sampler_quota(s, &at, left);
			left -= q;
		}
		if (q != last && times && n < sizeof got - 32)
			n += (size_t)sprintf(got + n, "%s%llux%llu",
			    n ? " " : "", (unsigned long long)last,
			    (unsigned long long)times);
		times = q == last ? times + 1 : 1;
		last = q;
	}
	is(got, want, want);
}

static void
dream_quotas(uint64_t masks, uint64_t steps, const char *want)
{
	struct sampler s = { .stats = { .algorithm = ALG_ENTROPY },
		.eps = 1e-3, .length = masks, .steps = steps,
		.block = masks };

	quotas(&s, masks, want);
}

static void
quota_tables(void)
{
	struct sampler s = { .length = 32, .steps = 10, .block = 32 };

	quotas(&s, 32, "4x2 3x8");
	s.prompt_masks = MASKS_REFERENCE;
	quotas(&s, 32, "4x2 3x8");
	s.steps = 40;
	quotas(&s, 32, "1x32 0x8");
	s.prompt_masks = MASKS_FILL;
	quotas(&s, 32, "1x32 0x8");
	s.steps = 1;
	quotas(&s, 32, "32x1");

	dream_quotas(32, 32, "0x1 1x30 2x1");
	dream_quotas(64, 64, "0x1 1x62 2x1");
	dream_quotas(128, 128, "0x1 1x126 2x1");
	dream_quotas(256, 256, "0x1 1x254 2x1");
	dream_quotas(512, 512, "0x1 1x510 2x1");
	dream_quotas(768, 768, "0x1 1x766 2x1");
	dream_quotas(128, 512, "0x385 1x126 2x1");
	dream_quotas(256, 128, "1x1 2x126 3x1");
	dream_quotas(128, 64, "1x1 2x62 3x1");
	dream_quotas(256, 64, "3x1 4x62 5x1");
	dream_quotas(512, 256, "1x1 2x254 3x1");
	dream_quotas(64, 16, "3x1 4x14 5x1");
	dream_quotas(100, 30, "3x21 4x8 5x1");
}

/* Masks in the prompt: filled by default, stolen from as the reference does. */
static void
prompt_masks(void)
{
	struct sampler s = { .prompt = 3, .length = 11, .steps = 4,
		.block = 8 };
	struct place at = sampler_place(&s, 0);

	ok(at.lo == 3 && at.hi == 11, "a block lies behind the prompt");
	ok(sampler_quota(&s, &at, 11) == 3, "three more masks are counted");
	s.prompt_masks = MASKS_REFERENCE;
	ok(sampler_quota(&s, &at, 11) == 2, "or not");
	ok(sampler_quota(&s, &at, 1) == 1, "never more than there are");
}

static void
places(void)
{
	struct sampler s = { .prompt = 5, .length = 5 + 33, .block = 16 };
	struct place a;
	uint64_t bad = 0, sum, last;

	for (s.steps = 3; s.steps < 80; s.steps++) {
		sum = 0;
		last = UINT64_MAX;
		for (uint64_t i = 0; i < s.steps; i++) {
			a = sampler_place(&s, i);
			if (a.block != last) {
				bad += a.block != last + 1 || a.step != 0;
				bad += a.lo != 5 + 16 * a.block;
				sum += a.steps;
				last = a.block;
				bad += a.steps !=
				    s.steps * (a.hi - 5) / 33 -
				        s.steps * (a.lo - 5) / 33;
			}
			bad += a.step >= a.steps;
		}
		bad += sum != s.steps || last != 2 || a.hi != 38;
	}
	ok(!bad, "33 tokens in blocks of 16: steps are shared out by length");
	ok(sampler_blocks(16, 33) == 3 && sampler_blocks(16, 32) == 2,
	    "the last block may be shorter");
	ok(sampler_default_block(32, 128, 128) == 32 &&
	        sampler_default_block(32, 128, 2) == 64 &&
	        sampler_default_block(32, 128, 3) == 43 &&
	        sampler_default_block(32, 20, 20) == 20 &&
	        sampler_default_block(0, 20, 20) == 20,
	    "a default block grows until there are steps enough");
}

static uint64_t
masks_before(const struct sampler *s, const int32_t *canvas, uint64_t to)
{
	uint64_t m = 0;

	for (uint64_t i = 0; i < to; i++)
		m += canvas[i] == s->mask;
	return m;
}

/*
 * Walk through a canvas, committing what every step's quota says: does
 * sampler_next pass over idle steps only, over all but a few of them?
 */
static int
walks(const struct sampler *s, int32_t *canvas, uint64_t most)
{
	uint64_t seen = 0, next, m, quota;
	struct place at;

	for (uint64_t i = 0; i < s->steps; i++) {
		next = sampler_next(s, canvas, i);
		if (next < i || next > s->steps)
			return 0;
		if (s->steps > 10000)
			i = next;
		if (i == s->steps)
			break;
		at = sampler_place(s, i);
		m = masks_before(s, canvas, at.hi);
		quota = sampler_quota(s, &at, m);
		if (i < next && quota)
			return 0;
		seen += i == next;
		for (uint64_t p = 0; quota && p < at.hi; p++)
			if (canvas[p] == s->mask) {
				canvas[p] = 0;
				quota--;
			}
	}
	return seen <= most;
}

static void
idle_steps(void)
{
	static const uint64_t steps[] = { 5, 40, 41, 1000, 9999, 1000000,
		2147483647 };
	static const double eps[] = { 0, 1e-3, 0.5, 1 };
	static const enum algorithm algorithm[] = { ALG_LLADA,
		ALG_MASKGIT_PLUS };
	struct sampler s = { .length = 45, .prompt = 5, .mask = 9 };
	int32_t canvas[45];
	int good = 1;

	for (int i = 0; i < 7 * 4 * 2 * 2 * 3; i++) {
		s.steps = steps[i % 7];
		s.eps = eps[i / 7 % 4];
		s.stats.algorithm = algorithm[i / 28 % 2];
		s.prompt_masks = i / 56 % 2 ? MASKS_REFERENCE : MASKS_FILL;
		s.block = (uint64_t)(i / 112) * 20;
		for (int p = 0; p < 45; p++)
			canvas[p] = p > 2 ? 9 : 0;
		good &= walks(&s, canvas, 300);
	}
	ok(good, "idle steps are passed over, and no other");
	s.stats.algorithm = ALG_ORIGIN;
	canvas[44] = 9;
	ok(sampler_next(&s, canvas, 7) == 7, "origin draws at every step");
	canvas[44] = 0;
	ok(sampler_next(&s, canvas, 7) == s.steps, "if there is a mask");
}

static void
ranking(void)
{
	struct candidate c[] = {
		{ .pos = 4, .score = 0.5 },
		{ .pos = 2, .score = 0.5 },
		{ .pos = 9, .score = 0.9, .demoted = 1 },
		{ .pos = 3, .score = -0.0 },
		{ .pos = 1, .score = 0.0 },
		{ .pos = 8, .score = 0.7 },
	};
	static const int want[] = { 8, 2, 4, 1, 3, 9 };
	int good = 1;

	ok(sampler_rank(c, 6, 4) == 4 && sampler_rank(c, 6, 9) == 6,
	    "a quota takes no more than there is");
	for (int i = 0; i < 6; i++)
		good &= c[i].pos == want[i];
	ok(good, "confidence, then position; the demoted last");
}

/* A step whose every row says token 1 with confidence falling by position. */
static void
fill_rows(struct step *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->row[i].pos = t->undecided[i];
		t->row[i].id = 1;
		t->row[i].p = 0.9f - 0.05f * (float)i;
		t->row[i].negent = t->row[i].p - 1;
	}
}

static void
random_choices(void)
{
	struct sampler s = { .remasking = REMASK_RANDOM, .length = 8,
		.steps = 4, .block = 8, .mask = 9 };
	int32_t canvas[8] = { 9, 9, 9, 9, 9, 9, 9, 9 };
	struct step t = { 0 };
	int count[8] = { 0 }, good = 1;

	for (uint64_t seed = 0; seed < 2000; seed++) {
		s.stats.seed = seed;
		sampler_begin(&s, &t, canvas, 0, &err);
		fill_rows(&t);
		sampler_select(&s, &t);
		for (size_t i = 0; i < t.n_chosen; i++)
			count[t.chosen[i].pos]++;
	}
	for (int i = 0; i < 8; i++)
		good &= count[i] > 420 && count[i] < 580;
	ok(good, "random remasking prefers no position");
	ok(t.candidate[3].confidence ==
	        (float)random_draw(1999, STREAM_REMASK, 0, 3, 0),
	    "its confidence is the draw of stream 1");
	step_free(&t);
}

static void
origin_choices(void)
{
	struct sampler s = { .stats = { .algorithm = ALG_ORIGIN, .seed = 3 },
		.eps = 1e-3, .length = 200, .steps = 10, .block = 200,
		.mask = 9 };
	int32_t canvas[200];
	struct step t = { 0 };
	int good = 1, in;
	size_t n = 0;

	for (int i = 0; i < 200; i++)
		canvas[i] = 9;
	sampler_begin(&s, &t, canvas, 4, &err);
	fill_rows(&t);
	sampler_select(&s, &t);
	for (int i = 0; i < 200; i++) {
		in = n < t.n_chosen && t.chosen[n].pos == i;
		n += (size_t)in;
		/* t = 0.6004 and 0.5005 */
		good &= in == (random_draw(3, STREAM_ORIGIN, 4, (uint64_t)i,
		                   0) < 1 - 0.5005 / 0.6004);
	}
	ok(good && n > 20 && n < 50,
	    "origin commits where its draw is below the share (%zu of 200)",
	    n);
	sampler_begin(&s, &t, canvas, 9, &err);
	ok(t.quota == 200, "and all at the last step");
	step_free(&t);
}

static void
alg_temp(void)
{
	struct sampler s = { .stats = { .algorithm = ALG_ENTROPY },
		.alg_temp = 0.4, .eps = 1e-3, .length = 4, .steps = 4,
		.block = 4, .mask = 9 };
	int32_t canvas[4] = { 9, 9, 9, 9 };
	struct step t = { 0 };
	double w[4], total = 0, chi = 0, want;
	int count[4] = { 0 }, n = 8000;

	for (int i = 0; i < n; i++) {
		s.stats.seed = (uint64_t)i;
		sampler_begin(&s, &t, canvas, 2, &err);
		t.quota = 1;
		t.wanted = 1;
		fill_rows(&t);
		sampler_select(&s, &t);
		count[t.chosen[0].pos]++;
	}
	for (int i = 0; i < 4; i++)
		total += w[i] = exp((double)t.row[i].negent / 0.4);
	for (int i = 0; i < 4; i++) {
		want = n * w[i] / total;
		chi += (count[i] - want) * (count[i] - want) / want;
	}
	ok(chi < 16.3, "alg_temp draws from soft-max(confidence/alg_temp) "
	               "(%.1f)", chi);
	step_free(&t);
}

static void
ends(void)
{
	struct sampler s = { .prompt = 2, .length = 6, .mask = 9,
		.eos = { 7, 8 }, .n_eos = 2, .early_stop = 1, .block = 4 };
	int32_t a[] = { 7, 1, 1, 8, 9, 9 }, b[] = { 7, 1, 9, 8, 9, 9 };
	int32_t c[] = { 7, 8, 1, 1, 1, 1 };

	ok(sampler_done(&s, a) && sampler_end(&s, a) == 3,
	    "an end token without a mask before it ends the answer");
	ok(!sampler_done(&s, b), "with a mask before it not yet");
	ok(!sampler_done(&s, c) && sampler_end(&s, c) == 6,
	    "end tokens of the prompt end nothing");
	s.early_stop = 0;
	ok(!sampler_done(&s, a), "without early stop nothing does");
}

static void
guidance(void)
{
	float c[] = { 1, 0.1f }, u[] = { 0.5f, 0.3f }, out[2];

	sampler_guide(out, c, u, 2, 1.5f);
	ok(out[0] == 1.75f && out[1] == 0.3f + 2.5f * (0.1f - 0.3f),
	    "guidance is u + (w + 1)(c - u)");
}

int
main(void)
{
	static const char *const names[] = { "llada-blocks",
		"llada-blocks-uneven", "llada-cfg", "llada-eos-confidence",
		"llada-mask-token-wins", "llada-masks-in-prompt",
		"llada-more-steps-than-masks", "llada-one-per-step",
		"llada-uneven-quota", "dream-entropy",
		"dream-entropy-more-steps", "dream-entropy-top-p",
		"dream-margin", "dream-maskgit", "dream-maskgit-few-steps",
		"dream-maskgit-top-k", "dream-masks-in-prompt" };

	kern_select(&kern, NULL, cpu_flags(), &err);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		golden(names[i]);
	quota_tables();
	prompt_masks();
	places();
	idle_steps();
	ranking();
	random_choices();
	origin_choices();
	alg_temp();
	ends();
	guidance();
	return tap_end();
}
