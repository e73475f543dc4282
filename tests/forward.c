/*
 * The forward pass against logits and stages of other software, and against
 * itself: threads, kernels, subsets of rows and the order of requests change no
 * bit.  Runs from the top of the source tree.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"
#include "forward.h"
#include "io.h"
#include "json.h"
#include "npy.h"
#include "sha256.h"
#include "tap.h"

#define GOLDEN "tests/golden/logits/"

static char dir[] = "/tmp/dllm-forward-test.XXXXXX";
static struct pool *pools[3];
static const unsigned n_threads[3] = { 1, 2, 7 };
static struct json_doc metrics;

/* A model under test with a forward pass over it. */
struct subject {
	struct model m;
	struct forward *f;
};

static void
die(const struct err *err)
{
	printf("Bail out! %s\n", err->msg);
	exit(1);
}

static void
open_subject(struct subject *s, const char *path, const char *kern,
    struct pool *pool, int float_activations)
{
	struct forward_options o = { .pool = pool, .max_length = 512,
		.float_activations = float_activations };
	struct err err = { 0 };

	if (model_open(&s->m, path, &err) < 0 ||
	    kern_select(&o.kern, kern, cpu_flags(), &err) != KERN_OK ||
	    forward_open(&s->f, &s->m, &o, &err) < 0)
		die(&err);
}

static void
close_subject(struct subject *s)
{
	forward_close(s->f);
	model_close(&s->m);
}

/* Where a golden model lies; some are made first, in dir. */
static const char *
model_path(const char *name)
{
	static char path[256];
	const char *in = "lib/models";

	if (strstr(name, "f32") || !strcmp(name, "pocket-dream-q8_0"))
		in = dir;
	else if (!strncmp(name, "tiny", 4))
		in = "tests/golden/models";
	snprintf(path, sizeof path, "%s/%s%s.gguf", in, name,
	    strstr(name, "-f16") ? "-00001-of-00002" : "");
	return path;
}

static int32_t ids[64];
static size_t n_ids;

static const struct json *
model_metrics(const char *name)
{
	const struct json *m = json_get(metrics.root, name);
	const struct json *v = m ? json_get(m, "ids") : NULL;

	n_ids = 0;
	for (v = v ? v->first : NULL; v; v = v->next)
		ids[n_ids++] = (int32_t)v->number;
	return m;
}

/* All stages of a run, one at a time, for comparing. */
struct stages {
	const char *name;
	int count, bad;
	double worst; /* relative L2 over all stages */
	float *logits; /* (n, n_vocab), kept */
	float *v0;     /* stage 00.v, kept */
};

static double
relative_l2(const float *got, const float *want, size_t n)
{
	double d = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		double e = (double)got[i] - (double)want[i];

		d += e * e;
		s += (double)want[i] * (double)want[i];
	}
	return sqrt(d / s);
}

static int
on_stage(void *arg, int layer, const char *stage, const float *data, size_t n,
    size_t width, struct err *err)
{
	struct stages *s = arg;
	char path[256], number[16] = "";
	struct npy want;
	double d;

	if (!strcmp(stage, "logits")) {
		s->logits = malloc(n * width * sizeof *data);
		memcpy(s->logits, data, n * width * sizeof *data);
	}
	if (layer == 0 && !strcmp(stage, "v")) {
		s->v0 = malloc(n * width * sizeof *data);
		memcpy(s->v0, data, n * width * sizeof *data);
	}
	s->count++;
	if (!s->name)
		return 0;
	if (layer >= 0)
		snprintf(number, sizeof number, "%02d.", layer);
	snprintf(path, sizeof path, GOLDEN "%s/stages/%s%s.npy", s->name,
	    number, stage);
	if (npy_open(&want, path, err) < 0)
		return -1;
	if (want.count != n * width)
		return err_set(err, "%s: another shape", path);
	d = relative_l2(data, want.data, n * width);
	if (!(d <= 1e-5)) {
		printf("# %s: %g\n", path, d);
		s->bad++;
	}
	if (d > s->worst)
		s->worst = d;
	npy_close(&want);
	return 0;
}

static void
run_stages(struct subject *s, struct stages *st)
{
	struct err err = { 0 };

	if (forward_stages(s->f, ids, n_ids, on_stage, st, &err) < 0)
		die(&err);
}

static void
free_stages(struct stages *st)
{
	free(st->logits);
	free(st->v0);
}

static void
test_stages(const char *name, int float_activations)
{
	struct stages st = { .name = name };
	struct subject s;

	model_metrics(name);
	open_subject(&s, model_path(name), NULL, pools[1], float_activations);
	run_stages(&s, &st);
	ok(st.count == 25 && st.bad == 0,
	    "%s: all %d stages within 1e-5 of float64 (worst %.1e)", name,
	    st.count, st.worst);
	free_stages(&st);
	close_subject(&s);
}

/* Arg-max of both, and how clear the second is. */
static int
same_choice(const float *got, const float *want, size_t n, double near)
{
	size_t g = 0, w = 0;
	double second = -INFINITY;

	for (size_t i = 1; i < n; i++) {
		g = got[i] > got[g] ? i : g;
		w = want[i] > want[w] ? i : w;
	}
	for (size_t i = 0; i < n; i++)
		if (i != w && (double)want[i] > second)
			second = (double)want[i];
	return g == w || !((double)want[w] - second > near);
}

/* Logits of all positions, as the head's rows are (malloc). */
static float *
raw_logits(const char *name, int float_activations, size_t *n_vocab)
{
	struct stages st = { 0 };
	struct subject s;

	open_subject(&s, model_path(name), NULL, pools[1], float_activations);
	run_stages(&s, &st);
	*n_vocab = s.m.n_vocab;
	free(st.v0);
	close_subject(&s);
	return st.logits;
}

/* The rows of a list, one behind the other (malloc), and their number. */
static float *
pick(const struct json *rows, const float *logits, size_t v, size_t *n)
{
	float *got = malloc((rows->n + 1) * v * sizeof *got);

	*n = 0;
	for (const struct json *r = rows->first; r; r = r->next)
		memcpy(got + (*n)++ * v, logits + (size_t)r->number * v,
		    v * sizeof *got);
	return got;
}

/* Relative L2; checks the choice in each row that is not a near tie. */
static double
compare(const char *name, const float *got, const float *want, size_t rows,
    size_t v)
{
	double most = 0;
	size_t same = 0;

	for (size_t k = 0; k < rows * v; k++)
		most = fmax(most, fabs((double)got[k] - (double)want[k]));
	for (size_t k = 0; k < rows; k++)
		same += (size_t)same_choice(
		    got + k * v, want + k * v, v, 4 * most);
	ok(rows > 0 && same == rows,
	    "%s: same choice on %zu rows but for near ties", name, rows);
	return relative_l2(got, want, rows * v);
}

/* Against the saved rows of a forward pass in float64. */
static void
test_exact(const char *name)
{
	const struct json *m = model_metrics(name);
	const struct json *rows = m ? json_get(m, "saved_rows") : NULL;
	float *logits, *got;
	struct npy want;
	struct err err = { 0 };
	char path[256];
	size_t v, n;
	double d;

	if (rows && rows->type == JSON_OBJECT)
		rows = json_get(rows, "float64");
	snprintf(path, sizeof path, GOLDEN "%s/logits-float64.npy", name);
	if (!rows || npy_open(&want, path, &err) < 0)
		die(&err);
	logits = raw_logits(name, 1, &v);
	got = pick(rows, logits, v, &n);
	if (!ok(n * v == want.count, "%s: %zu rows are saved", name, n))
		exit(1);
	d = compare(name, got, want.data, n, v);
	ok(d <= 1e-5, "%s: float activations within 1e-5 of float64 (%.1e)",
	    name, d);
	free(got);
	free(logits);
	npy_close(&want);
}

/*
 * What int8 activations cost, as a multiple of llama.cpp's error.  Its figure
 * is over more rows than were saved; float activations, shown to be exact,
 * stand for float64 on them.
 *
 * The limit is 1.3; 1.4 for pocket-dream-q8_0, whose ratio is 1.36.  Both sides
 * round every activation to 8 bits there, so the ratio is chance: noise of 1e-7
 * before each rounding spreads it from 0.86 to 1.37 (mean 1.14, deviation 0.12,
 * 24 runs in float64), llama.cpp's own rounding from 0.87 to 1.32.
 */
static double
int8_ratio(const char *name)
{
	const struct json *m = model_metrics(name), *v = NULL;
	size_t width, n;
	float *exact = raw_logits(name, 1, &width);
	float *int8 = raw_logits(name, 0, &width);
	float *a = pick(json_get(m, "rows"), exact, width, &n);
	float *b = pick(json_get(m, "rows"), int8, width, &n);
	double d = compare(name, b, a, n, width);
	double most = strcmp(name, "pocket-dream-q8_0") ? 1.3 : 1.4;

	if (json_get(m, "llamacpp_vs_float64"))
		v = json_get(json_get(m, "llamacpp_vs_float64"), "rel_l2");
	ok(v && d <= most * v->number, "%s: int8 activations differ by %.2e, "
	    "at most %.1f times %.2e", name, d, most, v ? v->number : 0);
	free(a);
	free(b);
	free(exact);
	free(int8);
	return v ? d / v->number : INFINITY;
}

static void
test_accuracy(void)
{
	static const char *const quantised[] = { "tiny-llada-q4km",
		"tiny-dream-q4km", "pocket-llada-q8_0", "pocket-llada-q4_k_m",
		"pocket-dream-q8_0", "pocket-dream-q4_k_m" };
	enum { N = sizeof quantised / sizeof *quantised };
	double product = 1, mean;

	test_exact("tiny-llada-f32");
	test_exact("tiny-dream-f32");
	test_exact("pocket-llada-f16");
	test_exact("pocket-dream-f16");
	for (int i = 0; i < N; i++) {
		test_exact(quantised[i]);
		product *= int8_ratio(quantised[i]);
	}
	mean = pow(product, 1.0 / N);
	ok(mean <= 0.85, "geometric mean of these ratios %.2f, at most 0.85",
	    mean);
}

static void
test_bits(const char *name)
{
	static const int32_t line[] = { 1016, 1021, 85, 7, 300, 999, 12, 12,
		640, 1020, 1020, 1020, 1020, 511, 3, 77, 78 };
	struct stages st = { 0 };
	struct err err = { 0 };
	struct subject s;
	struct npy want;
	char path[256];

	snprintf(path, sizeof path, "tests/golden/bits/%s-00.v.npy", name);
	if (npy_open(&want, path, &err) < 0)
		die(&err);
	n_ids = sizeof line / sizeof *line;
	memcpy(ids, line, sizeof line);
	for (int i = 0; kern_names[i]; i++) {
		const struct kern *k;
		struct err no = { 0 };

		if (kern_select(&k, kern_names[i], cpu_flags(), &no) != KERN_OK)
			continue;
		open_subject(&s, model_path(name), kern_names[i], pools[1], 0);
		run_stages(&s, &st);
		ok(want.count == n_ids * 256 &&
		    !memcmp(want.data, st.v0, want.count * sizeof(float)),
		    "%s: stage 00.v has the specified bits (%s)", name,
		    kern_names[i]);
		free_stages(&st);
		close_subject(&s);
	}
	npy_close(&want);
}

/* Logits of every row that can be predicted. */
static float *
all_logits(struct subject *s, const int32_t *id, size_t n)
{
	struct err err = { 0 };
	size_t rows, step = FORWARD_ROWS, v = s->m.n_vocab;
	float *out;

	if (forward_hidden(s->f, id, n, NULL, &err) < 0)
		die(&err);
	rows = forward_rows(s->f);
	out = malloc(rows * v * sizeof *out);
	for (size_t i = 0; i < rows; i += step)
		if (forward_head(s->f, i, rows - i < step ? rows - i : step,
		        out + i * v, &err) < 0)
			die(&err);
	return out;
}

/* A sequence longer than one chunk of rows. */
static void
make_ids(const struct model *m, int32_t *id, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		id[i] = (int32_t)((seed >> 8) % m->n_vocab);
	}
}

static void
test_same_bits(const char *name, int float_activations)
{
	int32_t id[150];
	struct subject a, b;
	float *want, *got;
	size_t n = sizeof id / sizeof *id, bytes;

	open_subject(&a, model_path(name), "scalar", pools[0],
	    float_activations);
	make_ids(&a.m, id, n, 7);
	want = all_logits(&a, id, n);
	bytes = forward_rows(a.f) * a.m.n_vocab * sizeof(float);
	for (int t = 0; t < 3; t++)
		for (int i = 0; kern_names[i]; i++) {
			const struct kern *k;
			struct err no = { 0 };

			if (kern_select(&k, kern_names[i], cpu_flags(), &no) !=
			    KERN_OK)
				continue;
			open_subject(&b, model_path(name), kern_names[i],
			    pools[t], float_activations);
			got = all_logits(&b, id, n);
			ok(!memcmp(want, got, bytes),
			    "%s%s: same bits, %s, %u threads", name,
			    float_activations ? " (f32)" : "", kern_names[i],
			    n_threads[t]);
			free(got);
			close_subject(&b);
		}
	free(want);
	close_subject(&a);
}

/* Some rows alone are the rows of the whole. */
static void
test_subsets(const char *name)
{
	static const char *const lists[] = { "1:1", "149:1", "5:3,9:1,100:50",
		"2:1,4:1,6:1,8:1", "1:149", "17:16,33:31" };
	struct err err = { 0 };
	struct ranges r = { 0 };
	struct subject s;
	int32_t id[150];
	size_t n = 150, v, row;
	float *want, *got;
	int good;

	open_subject(&s, model_path(name), NULL, pools[1], 0);
	make_ids(&s.m, id, n, 8);
	want = all_logits(&s, id, n);
	v = s.m.n_vocab;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		if (ranges_parse(&r, lists[i], strlen(lists[i]), 0, &err) < 0 ||
		    forward_hidden(s.f, id, n, &r, &err) < 0)
			die(&err);
		row = forward_rows(s.f);
		got = malloc(row * v * sizeof *got);
		good = row == r.total;
		for (size_t j = 0; j < row; j += FORWARD_ROWS)
			if (forward_head(s.f, j, row - j < FORWARD_ROWS ?
			        row - j : FORWARD_ROWS, got + j * v, &err) < 0)
				die(&err);
		for (size_t j = 0; j < row; j++)
			good &= !memcmp(got + j * v, want +
			    (forward_position(s.f, j) - s.m.shift) * v,
			    v * sizeof *got);
		ok(good, "%s: rows %s are those of the whole", name, lists[i]);
		free(got);
	}
	ranges_free(&r);
	free(want);
	close_subject(&s);
}

/* Whatever came before, equal requests give equal bits. */
static void
test_stateless(const char *name)
{
	static const size_t length[] = { 3, 150, 17, 64 };
	static const int order[] = { 3, 0, 2, 1, 0, 3, 1, 2 };
	int32_t id[4][150];
	float *first[4] = { 0 }, *again;
	struct subject s;
	int good = 1;

	open_subject(&s, model_path(name), NULL, pools[1], 0);
	for (int i = 0; i < 4; i++)
		make_ids(&s.m, id[i], 150, (uint32_t)i);
	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		int i = order[k];

		again = all_logits(&s, id[i], length[i]);
		if (!first[i]) {
			first[i] = again;
			continue;
		}
		good &= !memcmp(first[i], again, forward_rows(s.f) *
		    s.m.n_vocab * sizeof *again);
		free(again);
	}
	ok(good, "%s: requests in any order give the same bits", name);
	for (int i = 0; i < 4; i++)
		free(first[i]);
	close_subject(&s);
}

/* What a request can be refused for. */
static void
refuses(struct subject *s, size_t n, int32_t odd, const char *rows,
    const char *message)
{
	int32_t id[600] = { 0 };
	struct ranges r = { 0 };
	struct err err = { 0 };

	id[2] = odd;
	if (ranges_parse(&r, rows, strlen(rows), 0, &err) < 0)
		die(&err);
	ok(forward_hidden(s->f, id, n, &r, &err) < 0, "refused: %s", message);
	is(err.msg, message, "its message");
	ranges_free(&r);
}

static void
test_requests(void)
{
	struct subject s;

	open_subject(&s, model_path("tiny-dream-q4km"), NULL, pools[1], 0);
	refuses(&s, 0, 0, "1:1", "the sequence is empty");
	refuses(&s, 513, 0, "1:1", "the sequence has 513 tokens, more than the "
	    "512 of --max-length");
	refuses(&s, 5, 272, "1:1",
	    "token 272 at position 2 is outside the vocabulary of 272");
	refuses(&s, 5, -1, "1:1",
	    "token -1 at position 2 is outside the vocabulary of 272");
	refuses(&s, 5, 0, "0:1", "position 0 cannot be predicted by a model "
	    "that predicts from the row before");
	refuses(&s, 5, 0, "4:2",
	    "rows 4:2 are outside the sequence of 5 tokens");
	refuses(&s, 5, 0, "1:1,9:1",
	    "rows 9:1 are outside the sequence of 5 tokens");
	close_subject(&s);
}

/* Run a program of the build that writes the golden model of this name. */
static void
make(const char *name, const char *sha, const char *program,
    const char *const *option)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char run[256], words[8][128], *argv[9] = { run }, hex[65], *bytes;
	struct err err = { 0 };
	size_t n;
	int status, i = 0;
	pid_t pid;

	snprintf(run, sizeof run, "%s/%s", build, program);
	for (; option[i]; i++) {
		snprintf(words[i], sizeof words[i], "%s", option[i]);
		argv[i + 1] = words[i];
	}
	snprintf(words[i], sizeof words[i], "--output=%s", model_path(name));
	argv[i + 1] = words[i];
	pid = fork();
	if (pid == 0) {
		execv(run, argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (io_slurp_file(model_path(name), &bytes, &n, &err) < 0)
		die(&err);
	sha256_hex(bytes, n, hex);
	is(hex, sha, name);
	free(bytes);
}

static void
make_models(void)
{
	static const char *const llada[] = { "--arch=llada", NULL };
	static const char *const dream[] = { "--arch=dream", NULL };
	static const char *const q8_0[] = { "--type=Q8_0",
		"--model=lib/models/pocket-dream-f16-00001-of-00002.gguf",
		NULL };

	make("tiny-llada-f32", "ff8941166f6704717b2af250aedfa247e400b5d6c240cb"
	    "3ae544f2234b2270ad", "tests/tiny-model", llada);
	make("tiny-dream-f32", "d1064c2f18dcc0e8e2f75b7fc01447eab5a2a67ef97d6d"
	    "b9772f4ae0a87ca51c", "tests/tiny-model", dream);
	make("pocket-dream-q8_0", "7ea1a9c9f3bf058f41090ad517de52248e5cb691e43"
	    "b7be308ceb6c76426487c", "bin/gguf-quantize", q8_0);
}

int
main(void)
{
	static const char *const made[] = { "tiny-llada-f32",
		"tiny-dream-f32", "pocket-dream-q8_0" };
	struct err err = { 0 };
	char *text;
	size_t n;

	if (!mkdtemp(dir) ||
	    io_slurp_file(GOLDEN "metrics.json", &text, &n, &err) < 0 ||
	    json_parse(&metrics, text, n, &err) < 0)
		die(&err);
	for (int i = 0; i < 3; i++)
		if (pool_open(&pools[i], n_threads[i], &err) < 0)
			die(&err);
	make_models();
	test_stages("tiny-llada-f32", 0);
	test_stages("tiny-dream-f32", 0);
	test_stages("tiny-llada-q4km", 1);
	test_accuracy();
	test_bits("pocket-llada-q8_0");
	test_bits("pocket-llada-q4_k_m");
	test_same_bits("tiny-llada-q4km", 0);
	test_same_bits("tiny-dream-q4km", 0);
	test_same_bits("tiny-dream-f32", 0);
	test_same_bits("tiny-llada-q4km", 1);
	test_subsets("tiny-llada-q4km");
	test_subsets("tiny-dream-q4km");
	test_subsets("tiny-dream-f32");
	test_stateless("tiny-dream-q4km");
	test_requests();
	for (int i = 0; i < 3; i++)
		unlink(model_path(made[i]));
	rmdir(dir);
	for (int i = 0; i < 3; i++)
		pool_close(pools[i]);
	json_free(&metrics);
	free(text);
	return tap_end();
}
