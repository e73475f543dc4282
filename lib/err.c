#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (e->set)
		return -1;
	e->set = 1;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t n;

	if (e->set)
		return -1;
	e->set = 1;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof e->msg - n, ": %s", strerror(saved));
	errno = saved;
	return -1;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
	char old[sizeof e->msg];
	va_list ap;
	size_t n;

	memcpy(old, e->msg, sizeof old);
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof e->msg - n, ": %s", e->set ? old : "error");
	e->set = 1;
	return -1;
}

unsigned
err_line(char *buf, unsigned size, const char *prog, const char *kind,
    const char *msg)
{
	int n = snprintf(buf, size, "%s: %s%s", prog, kind, msg);

	if (n < 0)
		n = 0;
	if ((unsigned)n > size - 2)
		n = (int)size - 2;
	for (int i = 0; i < n; i++)
		if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f)
			buf[i] = '?';
		else if (buf[i] == '\xC2' && (buf[i + 1] & 0xE0) == 0x80)
			buf[i] = buf[i + 1] = '?'; /* U+0080 to U+009F */
	buf[n] = '\n';
	buf[n + 1] = '\0';
	return (unsigned)n + 1;
}
