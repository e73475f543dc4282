/*
 * Unit tests print TAP: call ok() for each check, return tap_end() from main.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int tap_n, tap_failed;

/* One check; the name is a printf format.  Returns the condition. */
__attribute__((format(printf, 2, 3))) static inline int
ok(int condition, const char *name, ...)
{
	va_list ap;

	printf("%s %d - ", condition ? "ok" : "not ok", ++tap_n);
	va_start(ap, name);
	vprintf(name, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !condition;
	return condition;
}

/* Equal strings? */
static inline int
is(const char *got, const char *want, const char *name)
{
	if (ok(!strcmp(got, want), "%s", name))
		return 1;
	printf("# got:  %s\n# want: %s\n", got, want);
	return 0;
}

static inline void
skip(const char *name, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_n, name, why);
}

static inline int
tap_end(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

#endif
