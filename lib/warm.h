/*
 * A mapped model costs time for its pages.  Where the page cache has the file in
 * huge pages (2 MB), that is next to nothing; a file of 5 GB in small ones costs
 * two seconds of CPU time when it is first read, and more than one every time
 * after that, for no table of a CPU holds so many pages (a virtual machine on
 * Zen 5).  What is not in the cache yet is therefore read into huge pages, and
 * what is in small ones is entered at once, which halves the first cost.  A
 * thread does that: nobody should wait for the disk before the first request.
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
