/*
 * dllm-watch: draw the canvas of a step trace while it fills.  On a terminal
 * each step is drawn over the one before; elsewhere the frames follow each
 * other.
 */
#define PROG "dllm-watch"
#define USAGE "dllm-watch --model PATH [OPTION...] [FILE]"
#include "tool.h"

#include <sys/ioctl.h>

#include "gguf.h"
#include "json.h"
#include "screen.h"
#include "tokline.h"
#include "vocab.h"

static const char *model_path;
static int whole_canvas, frames, have_model;
static uint64_t width;

static const struct opt options[] = {
	{ .name = "model",
	    .type = OPT_STR,
	    .to = &model_path,
	    .arg = "PATH",
	    .help = "GGUF file whose vocabulary the trace uses",
	    .given = &have_model,
	    .required = 1 },
	{ .name = "frames",
	    .type = OPT_FLAG,
	    .to = &frames,
	    .help = "one frame after the other, on a terminal too" },
	{ .name = "canvas",
	    .type = OPT_FLAG,
	    .to = &whole_canvas,
	    .help = "show the prompt too" },
	{ .name = "width",
	    .type = OPT_UINT,
	    .to = &width,
	    .arg = "N",
	    .help = "columns (the terminal's, or 80)",
	    .min = 10,
	    .max = 10000 },
	{ .name = NULL },
};

struct watch {
	struct vocab vocab;
	struct screen screen;
	struct screen_style style;
	int redraw; /* draw over the frame before */
	unsigned rows, cols;
	unsigned drawn;		/* rows of the frame before */
	int32_t last_pos;	/* last position decided in this step */
	uint64_t prompt, steps; /* of the sequence; steps 0: not known */
	struct tokens canvas;
	unsigned char *fresh; /* (canvas.n) */
	size_t fresh_cap;
};

/* A whole number of a trace in [0, max], or -1. */
static int64_t
number(const struct json *object, const char *key, double max)
{
	const struct json *v = json_get(object, key);

	if (!v || v->type != JSON_NUMBER || !(v->number >= 0) ||
	    v->number > max || v->number != (double)(int64_t)v->number)
		return -1;
	return (int64_t)v->number;
}

static int
read_canvas(struct watch *w, const struct json *line, struct err *err)
{
	const struct json *a = json_get(line, "canvas");

	if (!a || a->type != JSON_ARRAY)
		return err_set(err, "no array \"canvas\"");
	w->canvas.n = 0;
	for (a = a->first; a; a = a->next) {
		if (a->type != JSON_NUMBER || !(a->number >= 0) ||
		    a->number > INT32_MAX)
			return err_set(err, "\"canvas\" holds no token ids");
		if (tokens_push(&w->canvas, (int32_t)a->number, err) < 0)
			return -1;
	}
	if (w->canvas.n > w->fresh_cap) {
		unsigned char *fresh = realloc(w->fresh, w->canvas.n);

		if (!fresh)
			return err_sys(err, "cannot hold the canvas");
		w->fresh = fresh;
		w->fresh_cap = w->canvas.n;
	}
	if (w->canvas.n)
		memset(w->fresh, 0, w->canvas.n);
	return 0;
}

static void
mark_fresh(struct watch *w, const struct json *line)
{
	const struct json *a = json_get(line, "positions");

	w->last_pos = -1;
	for (a = a && a->type == JSON_ARRAY ? a->first : NULL; a; a = a->next)
		if (a->type == JSON_NUMBER && a->number >= 0 &&
		    a->number < (double)w->canvas.n) {
			w->fresh[(size_t)a->number] = 1;
			if ((int32_t)a->number > w->last_pos)
				w->last_pos = (int32_t)a->number;
		}
}

static void
measure(struct watch *w)
{
	struct winsize size;

	w->rows = 24;
	w->cols = 80;
	if (w->redraw && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 &&
	    size.ws_col > 10) {
		w->rows = size.ws_row;
		w->cols = size.ws_col;
	}
	if (width)
		w->cols = (unsigned)width;
}

/*
 * The first cell to show: a frame that is higher than the terminal could not
 * be drawn over, so show the part around the last decision.
 */
static size_t
first_cell(const struct watch *w, unsigned room)
{
	size_t i = 0, end, total = 0, wanted = 0;

	for (; i < w->screen.n; total++) {
		size_t next = screen_row(&w->screen, i, w->cols, &end);

		if (w->screen.cell[i].pos <= w->last_pos)
			wanted = total;
		i = next;
	}
	if (total <= room)
		return 0;
	wanted = wanted < room / 2 ? 0 : wanted - room / 2;
	if (wanted > total - room)
		wanted = total - room;
	for (i = 0; wanted--;)
		i = screen_row(&w->screen, i, w->cols, &end);
	return i;
}

static int
draw(struct watch *w, const char *head, struct err *err)
{
	size_t from = whole_canvas ? 0 : (size_t)w->prompt;
	size_t i, next, end;
	unsigned room, row = 0;

	measure(w);
	if (screen_fill(&w->screen, &w->vocab, w->canvas.id, from, w->canvas.n,
		w->fresh, &w->style, err) < 0)
		return -1;
	/* One row for the head and one for the cursor below. */
	room = w->redraw ? w->rows - 2 : (unsigned)-1;
	i = w->redraw ? first_cell(w, room) : 0;
	if (w->redraw && w->drawn)
		printf("\033[%uA\r\033[J", w->drawn);
	printf("%.*s\n", (int)w->cols, head);
	for (; i < w->screen.n && row < room; i = next, row++) {
		next = screen_row(&w->screen, i, w->cols, &end);
		screen_put(stdout, &w->screen, i, end, &w->style);
		putchar('\n');
	}
	if (!w->redraw)
		putchar('\n');
	w->drawn = row + 1;
	if (fflush(stdout) || ferror(stdout))
		return err_sys(err, "cannot write standard output");
	return 0;
}

/* Positions of the generated part that are decided. */
static size_t
decided(const struct watch *w)
{
	size_t n = 0;

	for (size_t i = (size_t)w->prompt; i < w->canvas.n; i++)
		n += w->canvas.id[i] != w->vocab.special.mask;
	return n;
}

static int
begin_sequence(struct watch *w, const struct json *line, struct err *err)
{
	const struct json *o = json_get(line, "options");
	int64_t prompt = number(line, "prompt", INT32_MAX), steps;

	if (number(line, "dllm_trace", 1) != 1)
		return err_set(err, "a trace of another version");
	if (read_canvas(w, line, err) < 0)
		return -1;
	if (prompt < 0 || (size_t)prompt > w->canvas.n)
		return err_set(err, "\"prompt\" is not a position");
	w->prompt = (uint64_t)prompt;
	steps =
	    o && o->type == JSON_OBJECT ? number(o, "steps", INT32_MAX) : -1;
	w->steps = steps < 0 ? 0 : (uint64_t)steps;
	w->drawn = 0;
	w->last_pos = -1;
	return draw(w, "step 0", err);
}

static int
show_step(struct watch *w, const struct json *line, struct err *err)
{
	int64_t step = number(line, "step", INT32_MAX);
	int64_t block = number(line, "block", INT32_MAX);
	char head[128], of[32] = "";

	if (step < 0 || block < 0)
		return err_set(err, "a step without number or block");
	if (read_canvas(w, line, err) < 0)
		return -1;
	if (w->prompt > w->canvas.n)
		return err_set(err, "the canvas became shorter");
	mark_fresh(w, line);
	if (w->steps)
		snprintf(of, sizeof of, "/%llu", (unsigned long long)w->steps);
	snprintf(head, sizeof head, "step %lld%s  block %lld  decided %zu/%zu",
	    (long long)step + 1, of, (long long)block + 1, decided(w),
	    w->canvas.n - (size_t)w->prompt);
	return draw(w, head, err);
}

static int
take_line(
    struct watch *w, const char *text, size_t n, int begun, struct err *err)
{
	struct json_doc doc = { 0 };
	const struct json *o;
	int r = -1;

	if (json_parse(&doc, text, n, err) == 0) {
		o = doc.root;
		if (o->type != JSON_OBJECT)
			err_set(err, "not an object");
		else if (json_get(o, "dllm_trace"))
			r = begin_sequence(w, o, err);
		else if (!begun)
			err_set(err, "not a step trace");
		else if (json_get(o, "step"))
			r = show_step(w, o, err);
		else
			r = 0; /* the end of a sequence */
	}
	json_free(&doc);
	return r;
}

static int
watch_file(struct watch *w, FILE *f, const char *name, struct err *err)
{
	char *line = NULL;
	size_t cap = 0, len;
	unsigned long n = 0;
	int got, r = 0;

	while (r == 0 && (got = io_line(f, &line, &cap, &len)) != 0) {
		if (got < 0)
			r = err_sys(err, f == stdin ? "cannot read %s" :
			                              "cannot read '%s'",
			    name);
		else if (got == 2)
			r = err_set(err, "%s ended inside a line", name);
		else if (take_line(w, line, len, n++ > 0, err) < 0)
			r = err_prefix(err, "%s: line %lu", name, n);
	}
	free(line);
	return r;
}

/* Does the environment say that output is UTF-8? */
static int
utf8_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strstr(v, "UTF-8") || strstr(v, "utf8") ||
			       strstr(v, "utf-8") || strstr(v, "UTF8");
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	struct gguf gguf = { 0 };
	struct watch w = { .redraw = 0 };
	const char *path = NULL;
	FILE *f = stdin;
	int rest = tool_start(options, argc, argv,
	    "Draw the canvas of a step trace (dllm-sample --trace) while it\n"
	    "fills.  Without FILE, or with -, standard input is the trace.");

	if (rest < argc)
		path = argv[rest++];
	tool_no_operands(rest, argc, argv);
	w.redraw = !frames && isatty(1);
	w.style = (struct screen_style){ '_', '$', "", "" };
	if (utf8_locale()) {
		w.style.mask = 0x2591; /* light shade */
		w.style.end = 0x220E;  /* end of proof */
	}
	if (w.redraw) {
		w.style.fresh_on = "\033[7m";
		w.style.fresh_off = "\033[27m";
	}
	if (gguf_open(&gguf, model_path, &err) < 0 ||
	    vocab_load(&w.vocab, &gguf, &err) < 0)
		tool_fail(&err);
	if (path && strcmp(path, "-")) {
		f = fopen(path, "r");
		if (!f) {
			err_sys(&err, "cannot open '%s'", path);
			tool_fail(&err);
		}
	}
	if (watch_file(&w, f, f == stdin ? "standard input" : path, &err) < 0) {
		if (errno == EPIPE && ferror(stdout))
			raise(SIGPIPE);
		tool_fail(&err);
	}
	if (f != stdin)
		fclose(f);
	screen_free(&w.screen);
	tokens_free(&w.canvas);
	free(w.fresh);
	vocab_free(&w.vocab);
	gguf_close(&gguf);
	return tool_finish();
}
