/* stats_row against a plain double-precision version of the same rules. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "philox.h"
#include "tap.h"

enum { MAX = 300 };

static struct stats_scratch scratch; /* of the group under test */
static struct err err;

/* A row of normal logits, scaled. */
static void
fill(float *l, size_t n, uint64_t seed, double scale)
{
	double u[2];

	for (size_t i = 0; i < n; i++) {
		random_pair(u, seed, STREAM_REMASK, 0, 0, (uint32_t)i);
		l[i] = (float)(scale * sqrt(-2 * log(u[0])) *
		    cos(6.283185307179586 * u[1]));
	}
}

static const float *sorting;

static int
by_logit(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (sorting[x] != sorting[y])
		return sorting[x] > sorting[y] ? -1 : 1;
	return x < y ? -1 : 1;
}

static int
listed(const int32_t *list, int n, int id)
{
	for (int i = 0; i < n; i++)
		if (list[i] == id)
			return 1;
	return 0;
}

struct plain {
	double prob[MAX]; /* over kept ids, demoted ones gone */
	int kept[MAX];
	int id;
	double p, margin, negent;
};

static double
weight(const float *l, int id, const struct stats_params *p, double max)
{
	double T = p->algorithm != ALG_LLADA && p->temperature > 0 ?
	    p->temperature : 1;

	return exp((l[id] - max) / T);
}

static void
keep(struct plain *r, const float *l, int n, const struct stats_params *p)
{
	int order[MAX], m = 0;
	double total = 0, sum = 0;

	for (int i = 0; i < n; i++) {
		r->kept[i] = 0;
		if (!listed(p->ban, p->n_ban, i) && l[i] > -INFINITY)
			order[m++] = i;
	}
	sorting = l;
	qsort(order, (size_t)m, sizeof *order, by_logit);
	r->id = order[0];
	for (int i = 0; i < m; i++)
		total += weight(l, order[i], p, l[order[0]]);
	for (int i = 0; i < m; i++) {
		if (p->algorithm != ALG_LLADA && i > 0) {
			if (p->top_p < 1 && sum / total > p->top_p)
				break;
			if (p->top_k && (uint64_t)i >= p->top_k &&
			    l[order[i]] < l[order[p->top_k - 1]])
				break;
		}
		r->kept[order[i]] = 1;
		sum += weight(l, order[i], p, l[order[0]]);
	}
}

static void
choose(struct plain *r, const float *l, int n, const struct stats_params *p,
    int pos)
{
	double best = -INFINITY, g, s;

	if (p->temperature == 0 || p->greedy)
		return;
	for (int i = 0; i < n; i++) {
		if (!r->kept[i])
			continue;
		g = -log(-log(random_draw(p->seed, STREAM_TOKEN, p->step,
		    (uint64_t)pos, (uint32_t)i)));
		s = (double)l[i] / p->temperature + g;
		if (p->algorithm == ALG_LLADA)
			s = (double)l[i] + p->temperature * g;
		if (s > best) {
			best = s;
			r->id = i;
		}
	}
}

static void
reduce(struct plain *r, const float *l, int n, const struct stats_params *p,
    int pos)
{
	double total = 0, first = 0, second = 0;

	keep(r, l, n, p);
	choose(r, l, n, p, pos);
	r->negent = 0;
	for (int i = 0; i < n; i++) {
		r->prob[i] = 0;
		if (r->kept[i] && !listed(p->demote, p->n_demote, i))
			r->prob[i] = weight(l, i, p, 0);
		total += r->prob[i];
	}
	for (int i = 0; i < n && total > 0; i++) {
		r->prob[i] /= total;
		if (r->prob[i] > first) {
			second = first;
			first = r->prob[i];
		} else if (r->prob[i] > second) {
			second = r->prob[i];
		}
		if (p->algorithm == ALG_ENTROPY)
			r->negent += r->prob[i] * log(r->prob[i] + 1e-10);
	}
	r->p = r->prob[r->id];
	r->margin = first - second;
}

static int
near(double a, double b)
{
	return fabs(a - b) <= 1e-5;
}

static int
agree(const float *l, int n, const struct stats_params *p, int pos)
{
	struct stats_row got;
	static struct plain want;

	if (stats_row(&got, l, (size_t)n, pos, p, &scratch, &err) < 0) {
		printf("# %s\n", err.msg);
		return 0;
	}
	reduce(&want, l, n, p, pos);
	if (got.id == want.id && got.pos == pos && got.logit == l[got.id] &&
	    near(got.p, want.p) && near(got.margin, want.margin) &&
	    near(got.negent, want.negent))
		return 1;
	printf("# id %d %d p %g %g margin %g %g negent %g %g\n", got.id,
	    want.id, got.p, want.p, got.margin, want.margin, got.negent,
	    want.negent);
	return 0;
}

/* Every algorithm, with and without noise, truncation, bans, demotion. */
static void
random_rows(void)
{
	static const double T[] = { 0, 0.2, 1, 3 };
	static const double top_p[] = { 1, 0.9, 0.3 };
	static const uint64_t top_k[] = { 0, 5, 1 };
	struct stats_params p;
	float l[MAX];
	int bad, n;

	for (int a = 0; a < N_ALGORITHMS; a++) {
		bad = 0;
		for (int c = 0; c < 4 * 3 * 3 * 4; c++) {
			memset(&p, 0, sizeof p);
			p.algorithm = (enum algorithm)a;
			p.temperature = T[c % 4];
			p.top_p = top_p[c / 4 % 3];
			p.top_k = top_k[c / 12 % 3];
			p.greedy = c / 36 == 1;
			p.seed = 1000 + (uint64_t)c;
			p.step = (uint64_t)c / 7;
			n = 1 + c * 37 % (MAX - 1);
			fill(l, (size_t)n, (uint64_t)c, 3);
			if (c % 5 == 0) /* equal logits */
				for (int i = 0; i < n; i++)
					l[i] = roundf(l[i]);
			if (c % 3 == 1 && n > 20) {
				p.n_ban = 2;
				p.ban[0] = 3;
				p.ban[1] = n - 1;
			}
			if (c % 2 == 1 && n > 20) {
				p.n_demote = 2;
				p.demote[0] = 7;
				p.demote[1] = 11;
				l[7] += 6;
			}
			bad += !agree(l, n, &p, c);
		}
		ok(!bad, "%s: equal to a plain version", algorithm_names[a]);
	}
}

static struct stats_row
row_of(const float *l, size_t n, const struct stats_params *p)
{
	struct stats_row r;

	if (stats_row(&r, l, n, 4, p, &scratch, &err) < 0)
		printf("# %s\n", err.msg);
	return r;
}

static void
exact_values(void)
{
	struct stats_params p = { .algorithm = ALG_LLADA, .top_p = 1 };
	float even[] = { 1, 1, 1, 1 }, zero[] = { -0.0f, 0.0f, -1 };
	float peak[] = { 0, 200, 1 };
	float far[] = { 5, -INFINITY, 300 };
	struct stats_row r = row_of(even, 4, &p);

	ok(r.id == 0 && r.p == 0.25f && r.margin == 0,
	    "equal logits: the lowest id, p = 1/4, no margin");
	r = row_of(zero, 3, &p);
	ok(r.id == 0, "-0 equals 0");
	r = row_of(peak, 3, &p);
	ok(r.id == 1 && r.p == 1 && r.margin == 1, "certain is exactly 1");
	p.algorithm = ALG_ENTROPY;
	p.top_p = 0.9;
	p.temperature = 0.2;
	r = row_of(peak, 3, &p);
	ok(r.negent == 0 && !signbit(r.negent), "one survivor: entropy 0");
	r = row_of(even, 4, &p);
	ok(r.p == 0.25f, "top-p 0.9 of four equal ids keeps all four");
	p.top_p = 0.5;
	r = row_of(even, 4, &p);
	ok(r.id <= 2 && r.p == (float)(1.0 / 3),
	    "top-p 0.5 keeps the one that crosses it: three");
	p.top_p = 1;
	p.top_k = 2;
	r = row_of(even, 4, &p);
	ok(r.p == 0.25f, "all that equal the k-th are kept");
	p.top_k = 0;
	p.temperature = 0;
	p.algorithm = ALG_LLADA;
	p.n_demote = 1;
	p.demote[0] = 2;
	r = row_of(far, 3, &p);
	ok(r.id == 2 && r.p == 0,
	    "a demoted candidate is chosen, with confidence 0");
	p.n_ban = 1;
	p.ban[0] = 2;
	r = row_of(far, 3, &p);
	ok(r.id == 0 && r.p == 1, "a banned token is not");
}

static void
fails_with(const float *l, size_t n, const char *want)
{
	struct stats_params p = { .algorithm = ALG_LLADA, .top_p = 1 };
	struct stats_row r;

	memset(&err, 0, sizeof err);
	if (ok(stats_row(&r, l, n, 9, &p, &scratch, &err) < 0, "refused"))
		is(err.msg, want, want);
	memset(&err, 0, sizeof err);
}

static void
bad_rows(void)
{
	float nan[] = { 1, 2, NAN }, inf[] = { 1, INFINITY };
	float none[] = { -INFINITY, -INFINITY };

	fails_with(nan, 3, "position 9: the logit of token 2 is NaN");
	fails_with(inf, 2, "position 9: the logit of token 1 is infinite");
	fails_with(none, 2, "position 9: no token is possible");
}

/*
 * 20000 draws against the soft-max, over 9 ids of which two are cut off.  The
 * statistic is fixed by the seed; 27.9 is the 0.1 % point of 9 degrees.
 */
static void
draws_follow_softmax(enum algorithm a, double T, double top_p)
{
	struct stats_params p = { .algorithm = a, .top_p = top_p,
		.temperature = T, .seed = 7 };
	float l[10] = { 0.3f, 1, -1, 2, 0.5f, -3, 1.5f, 0, 0.7f, -0.5f };
	int count[10] = { 0 }, n = 20000;
	double chi = 0, want, total = 0, w[10];
	static struct plain r;

	for (int i = 0; i < n; i++) {
		p.step = (uint64_t)i / 100;
		struct stats_row s;

		stats_row(&s, l, 10, i % 100, &p, &scratch, &err);
		count[s.id]++;
	}
	keep(&r, l, 10, &p);
	for (int i = 0; i < 10; i++) {
		w[i] = r.kept[i] ? exp(l[i] / T) : 0;
		total += w[i];
	}
	for (int i = 0; i < 10; i++) {
		want = n * w[i] / total;
		if (want == 0)
			chi += count[i] ? 1000 : 0;
		else
			chi += (count[i] - want) * (count[i] - want) / want;
	}
	ok(chi < 27.9, "%s at T %g, top-p %g: draws follow the soft-max (%.1f)",
	    algorithm_names[a], T, top_p, chi);
}

/* A draw that leaves most ids out early, against all scores. */
static void
long_draws(void)
{
	struct stats_params p = { .algorithm = ALG_LLADA, .top_p = 1 };
	static const double T[] = { 0.01, 0.7, 5, 1e31 };
	enum { N = 5000 };
	static float l[N];
	int bad = 0;

	for (int c = 0; c < 40; c++) {
		double best = -INFINITY, s;
		int id = 0;

		p.temperature = T[c % 4];
		p.step = (uint64_t)c;
		p.algorithm = c & 4 ? ALG_ORIGIN : ALG_LLADA;
		fill(l, N, (uint64_t)c, c & 8 ? 100 : 2);
		for (int i = 0; i < N; i++) {
			s = (double)l[i] / p.temperature -
			    log(-log(random_draw(p.seed, STREAM_TOKEN, p.step,
			        4, (uint32_t)i)));
			if (s > best) {
				best = s;
				id = i;
			}
		}
		bad += row_of(l, N, &p).id != id;
	}
	ok(!bad, "the winner of 5000 ids is found");
}

/* Top-p keeps nearly all of a row. */
static void
flat_rows(void)
{
	struct stats_params p = { .algorithm = ALG_ENTROPY, .top_p = 0.95,
		.temperature = 1 };
	static float l[1000];
	struct stats_row r;

	fill(l, 1000, 1, 1e-7);
	r = row_of(l, 1000, &p);
	ok(fabs((double)r.p - 1 / 950.0) < 5e-7, "950 of 1000 are kept");
	p.top_p = 1 - 1e-16;
	r = row_of(l, 1000, &p);
	ok(fabs((double)r.p - 1 / 1000.0) < 1e-6, "all but nothing: all");
}

static void
test_group(const char *name)
{
	if (kern_select(&scratch.kern, name, cpu_flags(), &err) != KERN_OK) {
		skip(name, err.msg);
		memset(&err, 0, sizeof err);
		return;
	}
	printf("# %s\n", name);
	random_rows();
	exact_values();
	bad_rows();
	long_draws();
	flat_rows();
}

/* 64 bits of the decisions over many rows, equal for all groups. */
static uint64_t
digest(void)
{
	struct stats_params p = { .top_p = 1, .top_k = 0 };
	static float l[3001];
	uint64_t h = 0;
	struct stats_row r;

	for (unsigned c = 0; c < 200; c++) {
		unsigned char b[sizeof r];

		p.algorithm = (enum algorithm)(c % N_ALGORITHMS);
		p.temperature = c % 3 * 0.4;
		p.top_p = c & 1 ? 1 : 0.9;
		p.top_k = c & 8 ? 40 : 0;
		p.step = c;
		fill(l, 3001 - c % 17, c, 3);
		r = row_of(l, 3001 - c % 17, &p);
		memcpy(b, &r, sizeof b);
		for (size_t i = 0; i < sizeof b; i++)
			h = (h ^ b[i]) * 0x100000001b3u;
	}
	return h;
}

static void
equal_bits(void)
{
	uint64_t want = 0, got;

	for (int i = 0; kern_names[i]; i++) {
		if (kern_select(&scratch.kern, kern_names[i], cpu_flags(),
		        &err) != KERN_OK)
			continue;
		got = digest();
		want = want ? want : got;
		ok(got == want, "%s: the bits of the scalar group",
		    kern_names[i]);
	}
	memset(&err, 0, sizeof err);
}

int
main(void)
{
	equal_bits();
	for (int i = 0; kern_names[i]; i++)
		test_group(kern_names[i]);
	kern_select(&scratch.kern, NULL, cpu_flags(), &err);
	draws_follow_softmax(ALG_LLADA, 1, 1);
	draws_follow_softmax(ALG_LLADA, 0.5, 1);
	draws_follow_softmax(ALG_ENTROPY, 0.7, 1);
	draws_follow_softmax(ALG_MASKGIT_PLUS, 1, 0.8);
	stats_scratch_free(&scratch);
	return tap_end();
}
