/*
 * Options of the bench programs that are lists: words, or numbers, with commas
 * between.  A word that means nothing is a usage error.
 */
#ifndef LIST_H
#define LIST_H

#include <string.h>

#include "tool.h"

/* The next word of a list, its length in *n; NULL at the end. */
static inline const char *
list_next(const char **list, size_t *n)
{
	const char *word = *list;

	if (!word)
		return NULL;
	*n = strcspn(word, ",");
	*list = word[*n] ? word + *n + 1 : NULL;
	return word;
}

/* Is the word one of the list, or the list "all"? */
static inline int
list_has(const char *list, const char *word)
{
	size_t n;

	if (!strcmp(list, "all"))
		return 1;
	for (const char *w; (w = list_next(&list, &n));)
		if (n == strlen(word) && !memcmp(w, word, n))
			return 1;
	return 0;
}

/* Every word must be one of known (n of them), but for "all" alone. */
static inline void
list_check(const char *option, const char *list, const char *const *known,
    size_t n_known)
{
	struct err err = { 0 };
	size_t n, i;

	if (!strcmp(list, "all"))
		return;
	for (const char *w; (w = list_next(&list, &n));) {
		for (i = 0; i < n_known; i++)
			if (n == strlen(known[i]) && !memcmp(w, known[i], n))
				break;
		if (i < n_known)
			continue;
		err_set(&err, "--%s: unknown '%.*s'", option,
		    n < 40 ? (int)n : 40, w);
		tool_usage(&err);
	}
}

/* The numbers of a list, each from min to max, at most `room`; their count. */
static inline size_t
list_numbers(const char *option, const char *list, uint64_t min, uint64_t max,
    size_t *v, size_t room)
{
	struct err err = { 0 };
	size_t n, count = 0;
	uint64_t number;
	char text[24];

	for (const char *w; (w = list_next(&list, &n)); v[count++] = number) {
		snprintf(text, sizeof text, "%.*s",
		    n < sizeof text ? (int)n : (int)sizeof text - 1, w);
		if (opt_uint(text, min, max, &number) < 0)
			err_set(&err, "--%s: '%s' is not a number from %llu to "
			              "%llu", option, text,
			    (unsigned long long)min, (unsigned long long)max);
		else if (count == room)
			err_set(&err, "--%s: more than %zu numbers", option,
			    room);
		if (err.set)
			tool_usage(&err);
	}
	return count;
}

#endif
