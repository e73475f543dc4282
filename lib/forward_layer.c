/*
 * The layers: attention and feed-forward, over the current rows.
 */
#include <string.h>

#include "forward_state.h"

enum { MIN_PIECE = 4 }; /* tokens a thread claims at least */

/* Run fn over all current rows, in items of f->unit of them. */
static void
over_rows(struct forward *f, pool_fn *fn)
{
	pool_run(f->pool, fn, f, (f->n_cur + f->unit - 1) / f->unit, 1);
}

/* The rows of items from to to-1. */
static void
item_rows(const struct forward *f, size_t *from, size_t *to)
{
	*from *= f->unit;
	*to *= f->unit;
	if (*to > f->n_cur)
		*to = f->n_cur;
}

/* The inputs of up to three matrices are about to be packed. */
static void
want_packed(struct forward *f, const struct matrix *a, const struct matrix *b,
    const struct matrix *c)
{
	const struct matrix *all[] = { a, b, c };

	f->want_quant = f->want_float = 0;
	for (int i = 0; i < 3; i++) {
		if (!all[i])
			continue;
		f->want_quant |= uses_quant(f, all[i]);
		f->want_float |= !uses_quant(f, all[i]);
	}
	f->unit = max2(MIN_PIECE, f->k->lanes);
	if (f->want_float)
		f->unit = max2(f->unit, KERN_FLOAT_LANES);
	if (f->want_quant)
		xquant_place(&f->xq, f->buf[XQ], a->n_in, f->n_cur);
	f->xf.n_in = a->n_in;
	f->xf.n_tok = f->n_cur;
	f->xf.x = f->buf[XF];
}

static void
pack(struct forward *f, size_t from, size_t to, const float *x, size_t width)
{
	size_t good;

	if (f->want_quant) {
		good = f->k->pack_quant(
		    &f->xq, from, to - from, x + from * width, width);
		if (good < to - from)
			forward_note_bad(f, from + good, 0);
	}
	if (f->want_float) {
		good = f->k->pack_float(
		    &f->xf, from, to - from, x + from * width, width);
		if (good < to - from)
			forward_note_bad(f, from + good, 0);
	}
}

static void
embd_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct matrix *e = &f->m->embd;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++)
		f->k->decode(e->type,
		    e->data + (size_t)f->ids[t] * e->row_bytes, e->n_in,
		    fbuf(f, X) + t * e->n_in);
}

/* x += residual; h = norm of x; pack h. */
static void
norm_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	size_t d = f->m->n_embd;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++) {
		float *x = fbuf(f, X) + t * d;

		if (f->residual)
			f->k->add(x, f->residual + t * d, d);
		if (f->k->rmsnorm(fbuf(f, H) + t * d, x, f->norm, d,
		        f->m->eps) < 0) {
			forward_note_bad(f, t, 1);
			return;
		}
	}
	pack(f, from, to, fbuf(f, H), d);
}

static void
attn_pack_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;

	(void)thread;
	item_rows(f, &from, &to);
	pack(f, from, to, fbuf(f, ATTN), f->m->n_heads * f->m->head_dim);
}

/* gate = silu(gate) * up; pack it. */
static void
act_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	size_t d = f->m->n_ff;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++)
		f->k->silu_mul(fbuf(f, GATE) + t * d, fbuf(f, GATE) + t * d,
		    fbuf(f, UP) + t * d, d);
	pack(f, from, to, fbuf(f, GATE), d);
}

/* Rotate q and k; arrange the keys. */
static void
rope_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct model *m = f->m;
	size_t q = m->n_heads * m->head_dim, kv = m->n_kv_heads * m->head_dim;
	size_t half = m->head_dim / 2;
	size_t keys = kern_panels(f->n, KERN_KEY_LANES);

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++) {
		const float *c = fbuf(f, COS) + t * half;
		const float *s = fbuf(f, SIN) + t * half;

		f->k->rope(fbuf(f, Q) + t * q, m->n_heads, m->head_dim, c, s,
		    m->family->neox);
		f->k->rope(fbuf(f, K) + t * kv, m->n_kv_heads, m->head_dim, c,
		    s, m->family->neox);
		if (!f->k->all_finite(fbuf(f, Q) + t * q, q))
			forward_note_bad(f, t, 0);
		if (!f->k->all_finite(fbuf(f, K) + t * kv, kv))
			forward_note_bad(f, t, 1);
		if (!f->k->all_finite(fbuf(f, V) + t * kv, kv))
			forward_note_bad(f, t, 2);
	}
	for (size_t h = 0; h < m->n_kv_heads; h++)
		f->k->pack_keys(fbuf(f, KT) + h * keys * m->head_dim, from,
		    to - from, fbuf(f, K) + from * kv + h * m->head_dim, kv,
		    m->head_dim);
}

/* Items are (head, block of queries); a query is a row that x will keep. */
static void
attention_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct model *m = f->m;
	size_t d = m->head_dim, q = m->n_heads * d, kv = m->n_kv_heads * d;
	size_t keys = kern_panels(f->n, KERN_KEY_LANES);
	size_t blocks = (f->n_cur + KERN_QUERIES - 1) / KERN_QUERIES;
	float *e = fbuf(f, SCORES) + thread * KERN_QUERIES * keys;
	const float *query[KERN_QUERIES];

	for (size_t i = from; i < to; i++) {
		size_t head = i / blocks, first = i % blocks * KERN_QUERIES;
		size_t kv_head = head / (m->n_heads / m->n_kv_heads), n;

		for (n = 0; n < KERN_QUERIES && first + n < f->n_cur; n++)
			query[n] = fbuf(f, Q) + raw_row(f, first + n) * q +
			    head * d;
		f->k->attention(fbuf(f, ATTN) + first * q + head * d, q, query,
		    n, fbuf(f, KT) + kv_head * keys * d,
		    fbuf(f, V) + kv_head * d, kv, f->n, d, f->scale, e);
	}
}

struct products
forward_products(const struct forward *f, size_t first, size_t count)
{
	return (struct products){ .kern = f->k,
		.scratch = f->buf[SCRATCH],
		.scratch_bytes = f->scratch_bytes,
		.xq = f->o.float_activations ? NULL : &f->xq,
		.xf = &f->xf,
		.first = first,
		.count = count };
}

/* y = w * the packed input, for all current rows. */
static void
product(struct forward *f, const struct matrix *w, float *y)
{
	struct products job = forward_products(f, 0, f->n_cur);

	product_add(&job, w, y, NULL);
	product_run(&job, f->pool);
	forward_lap(f, FORWARD_PRODUCT);
}

int
forward_norm(struct forward *f, const struct stage_name names[3],
    const float *norm, const float *residual, const struct matrix *a,
    const struct matrix *b, const struct matrix *c, struct err *err)
{
	f->norm = norm;
	f->residual = residual;
	want_packed(f, a, b, c);
	over_rows(f, norm_job);
	forward_lap(f, FORWARD_NORM);
	return forward_check(f, names, err);
}

/* From here on x holds only the rows that are wanted. */
static void
gather(struct forward *f)
{
	size_t d = f->m->n_embd;

	/* rows ascend: each moves down or stays */
	for (size_t i = 0; i < f->n_rows; i++)
		memmove(fbuf(f, X) + i * d, fbuf(f, X) + raw_row(f, i) * d,
		    d * sizeof(float));
}

static int
run_attention(struct forward *f, int i, struct err *err)
{
	const struct stage_name qkv[] = { { i, "q" }, { i, "k" }, { i, "v" } };
	const struct stage_name attn[3] = { { i, "attn" } };
	const struct model *m = f->m;
	const struct layer *y = &m->layer[i];
	struct products job = forward_products(f, 0, f->n_cur);
	size_t q = m->n_heads * m->head_dim, kv = m->n_kv_heads * m->head_dim;

	product_add(&job, &y->q, fbuf(f, Q), y->q_bias);
	product_add(&job, &y->k, fbuf(f, K), y->k_bias);
	product_add(&job, &y->v, fbuf(f, V), y->v_bias);
	product_run(&job, f->pool);
	forward_lap(f, FORWARD_PRODUCT);
	f->unit = KERN_KEY_LANES;
	over_rows(f, rope_job);
	forward_lap(f, FORWARD_ROPE);
	if (forward_check(f, qkv, err) < 0 ||
	    forward_stage(f, i, "q", fbuf(f, Q), q, err) < 0 ||
	    forward_stage(f, i, "k", fbuf(f, K), kv, err) < 0 ||
	    forward_stage(f, i, "v", fbuf(f, V), kv, err) < 0)
		return -1;
	if ((size_t)i + 1 == m->n_layers && f->n_rows < f->n) {
		f->gathered = 1;
		f->n_cur = f->n_rows;
	}
	pool_run(f->pool, attention_job, f,
	    m->n_heads * ((f->n_cur + KERN_QUERIES - 1) / KERN_QUERIES), 1);
	forward_lap(f, FORWARD_ATTENTION);
	if (forward_stage(f, i, "attn", fbuf(f, ATTN), q, err) < 0)
		return -1;
	want_packed(f, &y->attn_out, NULL, NULL);
	over_rows(f, attn_pack_job);
	forward_lap(f, FORWARD_QUANTISE);
	if (forward_check(f, attn, err) < 0)
		return -1;
	product(f, &y->attn_out, fbuf(f, T));
	if (f->gathered)
		gather(f);
	return forward_stage(f, i, "attn_out", fbuf(f, T), m->n_embd, err);
}

static int
run_ffn(struct forward *f, int i, struct err *err)
{
	const struct stage_name act[3] = { { i, "ffn_act" } };
	const struct model *m = f->m;
	const struct layer *y = &m->layer[i];
	struct products job = forward_products(f, 0, f->n_cur);

	product_add(&job, &y->gate, fbuf(f, GATE), NULL);
	product_add(&job, &y->up, fbuf(f, UP), NULL);
	product_run(&job, f->pool);
	forward_lap(f, FORWARD_PRODUCT);
	want_packed(f, &y->down, NULL, NULL);
	over_rows(f, act_job);
	forward_lap(f, FORWARD_ACT);
	if (forward_stage(f, i, "ffn_act", fbuf(f, GATE), m->n_ff, err) < 0 ||
	    forward_check(f, act, err) < 0)
		return -1;
	product(f, &y->down, fbuf(f, T));
	return forward_stage(f, i, "ffn_out", fbuf(f, T), m->n_embd, err);
}

int
forward_layer(struct forward *f, int i, struct err *err)
{
	const struct layer *y = &f->m->layer[i];
	const struct stage_name first[3] = { { i, "attn_norm" },
		{ i - 1, i ? "out" : "embd" } };
	const struct stage_name second[3] = { { i, "ffn_norm" },
		{ i, "attn_res" } };
	size_t d = f->m->n_embd;

	if (forward_norm(f, first, y->attn_norm, i ? fbuf(f, T) : NULL, &y->q,
	        &y->k, &y->v, err) < 0 ||
	    (i && forward_stage(f, i - 1, "out", fbuf(f, X), d, err) < 0) ||
	    forward_stage(f, i, "attn_norm", fbuf(f, H), d, err) < 0 ||
	    run_attention(f, i, err) < 0)
		return -1;
	if (forward_norm(f, second, y->ffn_norm, fbuf(f, T), &y->gate, &y->up,
	        NULL, err) < 0 ||
	    forward_stage(f, i, "attn_res", fbuf(f, X), d, err) < 0 ||
	    forward_stage(f, i, "ffn_norm", fbuf(f, H), d, err) < 0)
		return -1;
	return run_ffn(f, i, err);
}

void
forward_embed(struct forward *f)
{
	f->unit = MIN_PIECE;
	over_rows(f, embd_job);
	forward_lap(f, FORWARD_EMBD);
}
