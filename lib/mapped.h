/*
 * Files in memory, known by address.  Touching a page of a mapped file that has
 * become shorter, or cannot be read, is SIGBUS; with these the handler can say
 * which file it was.  Map and unmap in one thread, while no other uses them.
 */
#ifndef MAPPED_H
#define MAPPED_H

#include <stddef.h>

/*
 * The first n bytes (not 0) of a file, shared, PROT_READ or with PROT_WRITE.
 * `name` is copied.  NULL and errno on failure.
 */
void *mapped_open(int fd, size_t n, int protection, const char *name);

/* NULL is harmless. */
void mapped_close(void *p, size_t n);

/* The name of the file at an address, or NULL (async-signal-safe). */
const char *mapped_name(const void *address);

#endif
