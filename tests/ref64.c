/*
 * The transformer in double precision, written as plainly as it can be: the
 * oracle that dllm-forward is measured against.  Weights are what the file's
 * blocks decode to; nothing else is shared with the program under test but the
 * reading of the file.
 *
 * Reads one token line, writes logits as dllm-forward does, but as f8: a row
 * for every position that the model can predict.  --dump writes every stage.
 * --round N rounds the activations of quantised matrices to 8 bits with one
 * scale per N elements: what other ways of rounding would cost.
 */
#define PROG "ref64"
#define USAGE "ref64 --model PATH [--dump DIR] [--round N] <TOKENS >LOGITS"

#include <math.h>

#include "expand.h"
#include "model.h"
#include "npy.h"
#include "tokline.h"
#include "tool.h"

static const char *model_path, *dump_dir;
static struct model m;
static size_t n; /* tokens */
static uint64_t round_group;

static double *
zeros(size_t count)
{
	struct err err = { 0 };
	double *p = calloc(count + 1, sizeof *p);

	if (p)
		return p;
	err_set(&err, "out of memory");
	tool_fail(&err);
}

static void
put(FILE *f, size_t rows, size_t width, const double *x)
{
	uint64_t shape[2] = { rows, width };
	struct err err = { 0 };

	if (npy_write(f, NPY_F8, 2, shape, x) == 0 && fflush(f) == 0)
		return;
	err_sys(&err, "cannot write");
	tool_fail(&err);
}

/* One stage, x (n, width), as DIR/NN.NAME.npy; layer -1: DIR/NAME.npy. */
static void
stage(int layer, const char *name, const double *x, size_t width)
{
	struct err err = { 0 };
	char path[512], number[16] = "";
	FILE *f;

	if (!dump_dir)
		return;
	if (layer >= 0)
		snprintf(number, sizeof number, "%02d.", layer);
	snprintf(path, sizeof path, "%s/%s%s.npy", dump_dir, number, name);
	f = fopen(path, "wb");
	if (!f) {
		err_sys(&err, "cannot create '%s'", path);
		tool_fail(&err);
	}
	put(f, n, width, x);
	fclose(f);
}

/* A copy of x (n, width), rounded to 8 bits in groups along the width. */
static double *
rounded(const double *x, size_t width)
{
	size_t group = (size_t)round_group;
	double *y = zeros(n * width), max;

	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < width; i += group) {
			size_t at = t * width + i;
			size_t len = width - i < group ? width - i : group;

			max = 0;
			for (size_t j = at; j < at + len; j++)
				max = fmax(max, fabs(x[j]));
			for (size_t j = at; max > 0 && j < at + len; j++)
				y[j] = nearbyint(x[j] * 127 / max) * max / 127;
		}
	return y;
}

/* Eight sums that do not wait for each other: full-size models take long. */
static double
dot(const double *x, const float *w, size_t count)
{
	double s[8] = { 0 };
	size_t k = 0;

	for (; k + 8 <= count; k += 8)
		for (size_t i = 0; i < 8; i++)
			s[i] += x[k + i] * (double)w[k + i];
	for (; k < count; k++)
		s[0] += x[k] * (double)w[k];
	return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

/* y (n, n_out) = x (n, n_in) times w, plus the bias (n_out) unless NULL. */
static double *
product(const struct matrix *w, const float *bias, const double *x)
{
	double *y = zeros(n * w->n_out), *copy = NULL;
	float *row = malloc(w->n_in * sizeof *row);

	if (round_group && ggml_type_info(w->type)->use == GGML_QUANT)
		x = copy = rounded(x, w->n_in);
	for (size_t r = 0; r < w->n_out; r++) {
		decode_row(w->type, w->data + r * w->row_bytes, w->n_in, row);
		for (size_t t = 0; t < n; t++) {
			y[t * w->n_out + r] =
			    dot(x + t * w->n_in, row, w->n_in);
			if (bias)
				y[t * w->n_out + r] += (double)bias[r];
		}
	}
	free(row);
	free(copy);
	return y;
}

static double *
rmsnorm(const double *x, const float *w)
{
	size_t d = m.n_embd;
	double *y = zeros(n * d);

	for (size_t t = 0; t < n; t++) {
		double sum = 0, scale;

		for (size_t i = 0; i < d; i++)
			sum += x[t * d + i] * x[t * d + i];
		scale = 1 / sqrt(sum / (double)d + (double)m.eps);
		for (size_t i = 0; i < d; i++)
			y[t * d + i] = x[t * d + i] * scale * (double)w[i];
	}
	return y;
}

/* Turn the pairs of every head of x (n, heads, head_dim) by their angles. */
static void
rope(double *x, size_t heads)
{
	size_t hd = m.head_dim, half = hd / 2;

	for (size_t t = 0; t < n; t++)
		for (size_t h = 0; h < heads; h++)
			for (size_t i = 0; i < half; i++) {
				double *v = x + (t * heads + h) * hd;
				double *a = m.family->neox ? v + i : v + 2 * i;
				double *b = m.family->neox ? a + half : a + 1;
				double angle =
				    (double)t *
				    pow((double)m.rope_base,
					-2.0 * (double)i / (double)hd);
				double c = cos(angle), s = sin(angle), old = *a;

				*a = old * c - *b * s;
				*b = old * s + *b * c;
			}
}

/* One head of one token: q (head_dim), k and v from its key/value head on. */
static void
attend(
    double *out, const double *q, const double *k, const double *v, double *p)
{
	size_t hd = m.head_dim, stride = m.n_kv_heads * hd;
	double max = -INFINITY, sum = 0;

	for (size_t j = 0; j < n; j++) {
		p[j] = 0;
		for (size_t i = 0; i < hd; i++)
			p[j] += q[i] * k[j * stride + i];
		p[j] /= sqrt((double)hd);
		max = fmax(max, p[j]);
	}
	for (size_t j = 0; j < n; j++)
		sum += p[j] = exp(p[j] - max);
	for (size_t j = 0; j < n; j++)
		for (size_t i = 0; i < hd; i++)
			out[i] += p[j] / sum * v[j * stride + i];
}

static double *
attention(const double *q, const double *k, const double *v)
{
	size_t hd = m.head_dim, group = m.n_heads / m.n_kv_heads;
	double *out = zeros(n * m.n_heads * hd), *p = zeros(n);

	for (size_t t = 0; t < n; t++)
		for (size_t h = 0; h < m.n_heads; h++)
			attend(out + (t * m.n_heads + h) * hd,
			    q + (t * m.n_heads + h) * hd, k + h / group * hd,
			    v + h / group * hd, p);
	free(p);
	return out;
}

static void
add(double *x, const double *y)
{
	for (size_t i = 0; i < n * m.n_embd; i++)
		x[i] += y[i];
}

/* The first half of a layer: x is changed in place. */
static void
attention_block(double *x, int i)
{
	const struct layer *l = &m.layer[i];
	size_t nq = m.n_heads * m.head_dim, nkv = m.n_kv_heads * m.head_dim;
	double *h = rmsnorm(x, l->attn_norm);
	double *q = product(&l->q, l->q_bias, h);
	double *k = product(&l->k, l->k_bias, h);
	double *v = product(&l->v, l->v_bias, h);
	double *a, *o;

	stage(i, "attn_norm", h, m.n_embd);
	rope(q, m.n_heads);
	rope(k, m.n_kv_heads);
	stage(i, "q", q, nq);
	stage(i, "k", k, nkv);
	stage(i, "v", v, nkv);
	a = attention(q, k, v);
	stage(i, "attn", a, nq);
	o = product(&l->attn_out, NULL, a);
	stage(i, "attn_out", o, m.n_embd);
	add(x, o);
	stage(i, "attn_res", x, m.n_embd);
	free(h);
	free(q);
	free(k);
	free(v);
	free(a);
	free(o);
}

/* The second half. */
static void
feed_forward(double *x, int i)
{
	const struct layer *l = &m.layer[i];
	double *h = rmsnorm(x, l->ffn_norm);
	double *g = product(&l->gate, NULL, h);
	double *u = product(&l->up, NULL, h);
	double *o;

	stage(i, "ffn_norm", h, m.n_embd);
	for (size_t j = 0; j < n * m.n_ff; j++)
		g[j] = g[j] / (1 + exp(-g[j])) * u[j];
	stage(i, "ffn_act", g, m.n_ff);
	o = product(&l->down, NULL, g);
	stage(i, "ffn_out", o, m.n_embd);
	add(x, o);
	stage(i, "out", x, m.n_embd);
	free(h);
	free(g);
	free(u);
	free(o);
}

static double *
embed(const int32_t *id)
{
	size_t d = m.n_embd;
	double *x = zeros(n * d);
	float *row = malloc(d * sizeof *row);

	for (size_t t = 0; t < n; t++) {
		decode_row(m.embd.type,
		    m.embd.data + (size_t)id[t] * m.embd.row_bytes, d, row);
		for (size_t i = 0; i < d; i++)
			x[t * d + i] = (double)row[i];
	}
	free(row);
	return x;
}

static void
forward(const int32_t *id)
{
	double *x = embed(id), *h, *logits;

	stage(-1, "embd", x, m.n_embd);
	for (size_t i = 0; i < m.n_layers; i++) {
		attention_block(x, (int)i);
		feed_forward(x, (int)i);
	}
	h = rmsnorm(x, m.norm);
	stage(-1, "norm", h, m.n_embd);
	logits = product(&m.head, NULL, h);
	stage(-1, "logits", logits, m.n_vocab);
	/* Row t predicts position t + shift: the last may predict none. */
	put(stdout, n - m.shift, m.n_vocab, logits);
	free(x);
	free(h);
	free(logits);
}

int
main(int argc, char **argv)
{
	const struct opt options[] = {
		{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
		    .given = &(int){ 0 }, .help = "GGUF model" },
		{ "dump", OPT_STR, &dump_dir, .arg = "DIR",
		    .help = "write every stage into this folder" },
		{ "round", OPT_UINT, &round_group, .arg = "N", .min = 1,
		    .help = "round activations to 8 bits per N elements" },
		{ 0 }
	};
	struct tokline in = { .f = stdin };
	struct tokens t = { 0 };
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Logits of one token line in double precision.");

	tool_no_operands(rest, argc, argv);
	if (model_open(&m, model_path, &err) < 0)
		tool_fail(&err);
	if (tokline_read(&in, &t, &err) <= 0 || t.n < 1 + m.shift) {
		err_set(&err, "a line of tokens is needed");
		tool_fail(&err);
	}
	for (size_t i = 0; i < t.n; i++)
		if ((size_t)t.id[i] >= m.n_vocab) {
			err_set(&err, "no such token");
			tool_fail(&err);
		}
	n = t.n;
	forward(t.id);
	tokens_free(&t);
	tokline_free(&in);
	model_close(&m);
	return tool_finish();
}
