/*
 * dllm-batch: prompts from a file, answers in order into a file, going on where
 * an earlier run ended.  The command behind "--", dllm run, answers them.
 */
#define PROG "dllm-batch"
#define TOOL_MIXED 0
#define USAGE "dllm-batch [options] --output FILE -- COMMAND [ARG...]"

#include "tool.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "child.h"
#include "filter.h"
#include "jsonl.h"

static const char *input, *output;
static int output_given, jsonl = -1, verbose;

static const struct opt options[] = {
	{ "input", OPT_STR, &input, "FILE",
	    "the prompts, one a line (default: standard input)" },
	{ "output", OPT_STR, &output, "FILE",
	    "the answers: JSON lines, added to what is there",
	    .given = &output_given, .required = 1 },
	{ "jsonl", OPT_FLAG, &jsonl,
	    .help = "prompts are JSON lines, \"prompt\" (default for *.jsonl)" },
	{ "lines", OPT_CLEAR, &jsonl,
	    .help = "prompts are plain lines, whatever the file's name" },
	{ "verbose", OPT_FLAG, &verbose,
	    .help = "say on standard error what was answered" },
	{ 0 }
};

struct text {
	char *s;
	size_t n;
};

static struct {
	struct text *prompt;
	size_t n, cap;
	size_t done; /* prompts answered */
	int fd;      /* of the output */
	struct child child;
} the;

/*
 * Copy text as it comes back from a JSON string: in the output it must be the
 * prompt that was asked, also where bytes are no UTF-8.
 */
static int
copy_text(struct text *to, const char *s, size_t n, struct err *err)
{
	struct json_doc doc = { 0 };
	char *quoted = NULL;
	size_t len;
	FILE *f = open_memstream(&quoted, &len);
	int rc = -1;

	if (f)
		json_put_string(f, s, n);
	if (!f || fclose(f) != 0)
		err_set(err, "out of memory");
	else
		rc = json_parse(&doc, quoted, len, err);
	if (rc == 0) {
		to->n = doc.root->text_len;
		to->s = malloc(to->n + 1);
		if (to->s)
			memcpy(to->s, doc.root->text, to->n + 1);
		else
			rc = err_set(err, "out of memory");
	}
	json_free(&doc);
	free(quoted);
	return rc;
}

static int
add_prompt(const char *s, size_t n, struct err *err)
{
	struct text *p;

	if (memchr(s, '\0', n))
		return err_set(err, "prompt %zu holds a NUL byte", the.n + 1);
	if (the.n == the.cap) {
		the.cap = the.cap ? 2 * the.cap : 256;
		p = realloc(the.prompt, the.cap * sizeof *p);
		if (!p)
			return err_set(err, "out of memory");
		the.prompt = p;
	}
	if (copy_text(&the.prompt[the.n], s, n, err) < 0)
		return -1;
	the.n++;
	return 0;
}

static int
add_lines(const char *s, const char *end, struct err *err)
{
	const char *lf;

	for (; s < end; s = lf + 1) {
		lf = memchr(s, '\n', (size_t)(end - s));
		if (!lf)
			lf = end;
		if (add_prompt(s, (size_t)(lf - s), err) < 0)
			return -1;
	}
	return 0;
}

static int
add_objects(const char *s, const char *end, struct err *err)
{
	struct jsonl in = { .at = s, .end = end };
	const struct json *prompt;
	int got;

	while ((got = jsonl_next(&in, err)) > 0) {
		prompt = jsonl_string(&in, "prompt", err);
		if (!prompt ||
		    add_prompt(prompt->text, prompt->text_len, err) < 0) {
			got = -1;
			break;
		}
	}
	jsonl_free(&in);
	return got;
}

static int
ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static void
read_prompts(void)
{
	const char *name = input && strcmp(input, "-") ? input :
	                                                 "standard input";
	struct err err = { 0 };
	char *s;
	size_t n;
	int rc;

	if (io_slurp_file(input ? input : "-", &s, &n, &err) < 0)
		tool_fail(&err);
	if (jsonl < 0)
		jsonl = ends_in(name, ".jsonl");
	rc = jsonl ? add_objects(s, s + n, &err) : add_lines(s, s + n, &err);
	if (rc < 0) {
		err_prefix(&err, "%s", name);
		tool_fail(&err);
	}
	free(s);
}

/* The answers in s..end are those of the first prompts. */
static int
check_answers(const char *s, const char *end, struct err *err)
{
	struct jsonl in = { .at = s, .end = end };
	const struct json *v;
	int got;

	while ((got = jsonl_next(&in, err)) > 0) {
		v = jsonl_string(&in, "prompt", err);
		if (v && the.done == the.n)
			err_set(err, "line %lu: there are only %zu prompts",
			    in.line, the.n);
		else if (v && (v->text_len != the.prompt[the.done].n ||
		    memcmp(v->text, the.prompt[the.done].s, v->text_len)))
			err_set(err, "line %lu is not the answer to prompt "
			    "%zu", in.line, the.done + 1);
		if (err->set)
			break;
		the.done++;
	}
	jsonl_free(&in);
	return err->set ? -1 : 0;
}

/* Bytes that the beginning of an answer could be. */
static int
is_half_answer(const char *s, size_t n)
{
	static const char begin[] = "{\"prompt\":";

	return !memcmp(s, begin, n < sizeof begin - 1 ? n : sizeof begin - 1);
}

/*
 * Open the output, alone, and count the answers in it.  A last line without
 * its end is what a run was writing when it died: it goes.
 */
static void
open_output(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct err err = { 0 };
	struct stat st;
	char *s;
	size_t n, whole;

	the.fd = open(output, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (the.fd < 0) {
		err_sys(&err, "cannot open '%s'", output);
		tool_fail(&err);
	}
	if (fstat(the.fd, &st) == 0 && !S_ISREG(st.st_mode))
		return; /* a pipe, a device: nothing to go on from */
	if (fcntl(the.fd, F_SETLK, &lock) < 0 &&
	    (errno == EACCES || errno == EAGAIN)) {
		err_set(&err, "%s: another run is writing it", output);
		tool_fail(&err);
	}
	if (io_slurp(the.fd, output, &s, &n, &err) < 0)
		tool_fail(&err);
	for (whole = n; whole > 0 && s[whole - 1] != '\n';)
		whole--;
	if (check_answers(s, s + whole, &err) < 0) {
		err_prefix(&err, "%s", output);
		tool_fail(&err);
	}
	if (!is_half_answer(s + whole, n - whole)) {
		err_set(&err, "%s: the last line is not the beginning of an "
		    "answer", output);
		tool_fail(&err);
	}
	if (whole < n && ftruncate(the.fd, (off_t)whole) < 0) {
		err_sys(&err, "%s: cannot remove the last, half line", output);
		tool_fail(&err);
	}
	free(s);
}

/* The thread that sends what is left: the child may answer meanwhile. */
struct feeder {
	FILE *to;
	size_t from;
};

static void *
feed(void *arg)
{
	struct feeder *f = arg;

	for (size_t i = f->from; i < the.n && !ferror(f->to); i++)
		fwrite(the.prompt[i].s, 1, the.prompt[i].n + 1, f->to);
	fclose(f->to); /* if the child has died, its answers tell */
	return NULL;
}

/* {"prompt":PROMPT, and the members of the child's object, in one write */
static void
put_answer(const struct text *prompt, const char *line, size_t n)
{
	struct err err = { 0 };
	struct json_doc doc = { 0 };
	char *s = NULL;
	size_t len;
	FILE *f;

	if (json_parse(&doc, line, n, &err) < 0 ||
	    doc.root->type != JSON_OBJECT) {
		err_set(&err, "not a JSON object");
		err_prefix(&err, "%s: the answer to prompt %zu",
		    the.child.name, the.done + 1);
		tool_fail(&err);
	}
	f = open_memstream(&s, &len);
	if (f) {
		fputs("{\"prompt\":", f);
		json_put_string(f, prompt->s, prompt->n);
		if (doc.root->n)
			putc(',', f);
		while (*line != '{')
			line++, n--;
		fwrite(line + 1, 1, n - 1, f);
		putc('\n', f);
	}
	if (!f || fclose(f) != 0 || io_write_all(the.fd, s, len) < 0) {
		err_sys(&err, "cannot write '%s'", output);
		tool_fail(&err);
	}
	free(s);
	json_free(&doc);
}

__attribute__((noreturn)) static void
fail_child(struct err *err)
{
	tool_say("ERROR: ", err->msg);
	_exit(filter_status(&the.child));
}

static void
run(char **command)
{
	struct err err = { 0 };
	struct feeder feeder;
	char where[64];
	pthread_t thread;
	ssize_t n;

	child_ignore_sigpipe();
	if (child_start(&the.child, command, -1, NULL, &err) < 0)
		tool_fail(&err);
	feeder.to = the.child.to;
	feeder.from = the.done;
	the.child.to = NULL;
	if (pthread_create(&thread, NULL, feed, &feeder) != 0) {
		err_set(&err, "cannot start a thread");
		tool_fail(&err);
	}
	for (; the.done < the.n; the.done++) {
		snprintf(where, sizeof where, "before it answered prompt %zu",
		    the.done + 1);
		n = child_line(&the.child, where, &err);
		if (n < 0)
			fail_child(&err);
		put_answer(&the.prompt[the.done], the.child.line, (size_t)n);
		if (verbose)
			fprintf(stderr, "answered: %zu of %zu\n",
			    the.done + 1, the.n);
	}
	pthread_join(thread, NULL);
	if (child_end(&the.child, &err) < 0)
		fail_child(&err);
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Answer the prompts of a file, in order.  What the output file "
	    "answers already is\nnot asked again.");

	if (rest == argc) {
		err_set(&err, "the command to run is missing (-- dllm run "
		              "--null --json)");
		tool_usage(&err);
	}
	read_prompts();
	open_output();
	if (verbose)
		fprintf(stderr, "answered: %zu of %zu\n", the.done, the.n);
	if (the.done < the.n)
		run(argv + rest);
	if (close(the.fd) < 0) {
		err_sys(&err, "cannot write '%s'", output);
		tool_fail(&err);
	}
	for (size_t i = 0; i < the.n; i++)
		free(the.prompt[i].s);
	free(the.prompt);
	return tool_finish();
}
