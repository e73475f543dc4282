/*
 * machine: the member "machine" of a result file, for scripts; the arguments
 * are the command that makes it.
 *
 *   build/bench/machine bench/generate --model PATH
 */
#include "machine.h"

int
main(int argc, char **argv)
{
	machine_put(stdout, argc - 1, argv + 1);
	return fclose(stdout) ? 1 : 0;
}
