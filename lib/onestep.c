#include "onestep.h"

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "io.h"
#include "npy.h"
#include "tokline.h"

int
onestep_greeting(struct greeting *g, const char *path, struct err *err)
{
	char *text;
	size_t n;
	int rc;

	if (io_slurp_file(path, &text, &n, err) < 0)
		return -1;
	rc = greeting_parse(g, text, strcspn(text, "\n"), err);
	free(text);
	return rc < 0 ? err_prefix(err, "%s", path) : 0;
}

int
onestep_plan(FILE *f, const struct sampler *s, const struct step *t,
    const int32_t *canvas, int guided, struct err *err)
{
	struct ranges r = { 0 };
	int32_t *uncond;
	int rc = 0;

	for (size_t i = 0; t->wanted && i < t->n && rc == 0; i++)
		rc = ranges_add(&r, (uint64_t)t->undecided[i], err);
	ranges_write(f, &r);
	putc('\n', f);
	ranges_free(&r);
	if (rc < 0 || !guided)
		return rc;
	uncond = calloc((size_t)s->length + 1, sizeof *uncond);
	if (!uncond)
		return err_set(err, "out of memory");
	uncond_canvas(s, uncond, canvas);
	rc = tokline_write(f, uncond, (size_t)s->length, err);
	free(uncond);
	return rc;
}

static int
open_logits(struct npy *a, struct logits *l, const char *path,
    const struct sampler *s, const struct step *t, const struct greeting *g,
    struct err *err)
{
	uint64_t all = s->length - (uint64_t)g->first;

	if (npy_open(a, path, err) < 0)
		return -1;
	if (a->type != NPY_F4 || a->n_dims != 2 || a->shape[1] != g->vocab ||
	    (a->shape[0] != t->n && a->shape[0] != all))
		return err_set(err, "%s: not %zu or %llu rows of %llu f32",
		    path, t->n, (unsigned long long)all,
		    (unsigned long long)g->vocab);
	if ((uintptr_t)a->data % sizeof *l->data)
		return err_set(err, "%s: the array is not aligned", path);
	l->data = a->data;
	l->vocab = (size_t)g->vocab;
	l->by_position = a->shape[0] != t->n;
	l->first = (uint64_t)g->first;
	return 0;
}

int
onestep_decide(const struct sampler *s, struct step *t, int32_t *canvas,
    const struct greeting *g, const char *logits, const char *uncond,
    float cfg, const struct kern *kern, struct err *err)
{
	struct npy a = { 0 }, b = { 0 };
	struct logits c = { 0 }, u = { 0 };
	struct reducer r = { .scratch.kern = kern };
	int rc = open_logits(&a, &c, logits, s, t, g, err);

	if (rc == 0 && uncond)
		rc = open_logits(&b, &u, uncond, s, t, g, err);
	if (rc == 0)
		rc = step_reduce(s, t, &c, uncond ? &u : NULL, cfg, &r, err);
	if (rc == 0) {
		sampler_select(s, t);
		sampler_update(t, canvas);
	}
	reducer_free(&r);
	npy_close(&a);
	npy_close(&b);
	return rc;
}
