/*
 * The kernels of a tool that computes: those that DLLM_CPU names, or the best.
 * A word that is no group's name is a wrong command line.
 */
#ifndef TOOL_KERN_H
#define TOOL_KERN_H

#include "cpu.h"
#include "kern.h"
#include "tool.h"

static inline const struct kern *
tool_kern(void)
{
	const struct kern *k = NULL;
	struct err err = { 0 };
	enum kern_result rc =
	    kern_select(&k, getenv("DLLM_CPU"), cpu_flags(), &err);

	if (rc == KERN_OK)
		return k;
	err_prefix(&err, "DLLM_CPU");
	if (rc == KERN_UNKNOWN)
		tool_usage(&err);
	tool_fail(&err);
}

#endif
