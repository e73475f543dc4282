/*
 * Result files.  Each is one object, {"bench":NAME,"machine":{...},...}, with a
 * line for each of its results; machine says what is needed to understand them
 * later: CPU and its flags, compiler and its flags, commit (and whether the
 * tree differed from it), date, command, and how busy the machine was with
 * other things: its load, and the CPUs in use just before.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "busy.h"
#include "cpu.h"
#include "io.h"
#include "json.h"
#include "kern.h"
#include "sysinfo.h"

#ifndef DLLM_CFLAGS
#define DLLM_CFLAGS ""
#endif

/* The first line of a command's output, without its end; "" on failure. */
static inline void
machine_ask(const char *command, char *line, size_t size)
{
	FILE *f = popen(command, "r");

	if (!f || !fgets(line, (int)size, f))
		*line = 0;
	line[strcspn(line, "\n")] = 0;
	if (f)
		pclose(f);
}

static inline void
machine_string(FILE *out, const char *key, const char *s)
{
	fprintf(out, "\"%s\":", key);
	json_put_string(out, s, strlen(s));
	putc(',', out);
}

/* "machine":{...}, - one member of an object, with a comma behind. */
static inline void
machine_put(FILE *out, int argc, char **argv)
{
	char line[4096], command[4096] = "";
	time_t now = time(NULL);
	double busy = busy_now();

	fprintf(out, "\"machine\":{");
	machine_ask("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo", line,
	    sizeof line);
	machine_string(out, "cpu", line);
	machine_ask("sed -n 's/^flags[^:]*: //p' /proc/cpuinfo", line,
	    sizeof line);
	machine_string(out, "flags", line);
	*line = '\0';
	for (int i = 1; kern_names[i]; i++) {
		const struct kern *k;
		struct err err = { 0 };

		if (kern_select(&k, kern_names[i], cpu_flags(), &err) ==
		    KERN_OK)
			snprintf(line + strlen(line),
			    sizeof line - strlen(line), "%s%s",
			    *line ? " " : "", kern_names[i]);
	}
	machine_string(out, "groups", line);
	machine_string(out, "compiler", __VERSION__);
	machine_string(out, "cflags", DLLM_CFLAGS);
	machine_ask("git rev-parse HEAD 2>/dev/null", line, sizeof line);
	machine_string(out, "commit", line);
	machine_ask("git status --porcelain 2>/dev/null", line, sizeof line);
	fprintf(out, "\"dirty\":%s,", *line ? "true" : "false");
	strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	machine_string(out, "date", line);
	for (int i = 0; i < argc; i++) {
		size_t n = strlen(command);

		snprintf(command + n, sizeof command - n, "%s%s",
		    i ? " " : "", argv[i]);
	}
	machine_string(out, "command", command);
	machine_ask("cut -d' ' -f1 /proc/loadavg", line, sizeof line);
	machine_string(out, "load", line);
	fprintf(out, "\"busy\":%.2f,", busy);
	fprintf(out, "\"cores\":%u},\n", sysinfo_cores());
}

/* A result file: standard output where path is NULL. */
struct results {
	FILE *f;
	struct outfile file;
	size_t n;
};

/* Open it, and write all that stands before the first result. */
static inline int
results_begin(struct results *r, const char *path, const char *bench, int argc,
    char **argv, struct err *err)
{
	memset(r, 0, sizeof *r);
	if (path && io_create(&r->file, path, err) < 0)
		return -1;
	r->f = path ? r->file.f : stdout;
	fprintf(r->f, "{\"bench\":\"%s\",\n", bench);
	machine_put(r->f, argc, argv);
	fprintf(r->f, "\"results\":[");
	return 0;
}

/* Before each result, an object on one line. */
static inline void
results_next(struct results *r)
{
	fflush(r->f);
	fprintf(r->f, "%s\n", r->n++ ? "," : "");
}

/* The end; a file appears only now. */
static inline int
results_end(struct results *r, struct err *err)
{
	fprintf(r->f, "\n]}\n");
	return r->f == stdout ? 0 : io_commit(&r->file, err);
}

#endif
