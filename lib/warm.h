/*
 * A mapped model costs page faults when it is first used: about two seconds of
 * CPU time for 5 GB in a virtual machine.  Half of that is left when
 * MADV_POPULATE_READ, which takes 0.1 s, has entered the pages into the table.
 * A thread of its own does that, because a file that is not in the page cache
 * is also read by it, and nobody should wait for that before the first request.
 */
#ifndef WARM_H
#define WARM_H

#include "gguf.h"

struct warm;

/*
 * Start to map all pages of the files of g, which must stay open until
 * warm_stop.  NULL if that cannot be done: nothing but time is lost.
 */
struct warm *warm_start(const struct gguf *g);

/* Stop, finished or not, and wait for it.  NULL is harmless. */
void warm_stop(struct warm *w);

#endif
