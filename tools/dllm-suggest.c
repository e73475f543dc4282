/* dllm-suggest: print the candidate closest to a mistyped word. */
#define PROG "dllm-suggest"
#define USAGE "dllm-suggest WORD CANDIDATE..."
#include "tool.h"

static const struct opt options[] = { { .name = NULL } };

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	int rest = tool_start(options, argc, argv,
	    "Print the candidate that WORD was most likely meant to be.\n"
	    "Exit status 1, and no output, when none is near.");
	const char *near;

	if (argc - rest < 2) {
		err_set(&err, "a word and at least one candidate are needed");
		tool_usage(&err);
	}
	near = opt_closest(argv[rest], (const char *const *)argv + rest + 1);
	if (!near)
		return 1;
	puts(near);
	return tool_finish();
}
