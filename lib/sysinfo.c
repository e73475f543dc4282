/* For sched_getaffinity, which POSIX has no equivalent of. */
#define _GNU_SOURCE

#include "sysinfo.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096 };

/* The first line of ROOT/PATH, without LF.  0, or -1. */
static int
read_line(const char *root, const char *path, char *buf, size_t size)
{
	char full[PATH];
	FILE *f;
	int rc = -1;

	if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >=
	    sizeof full)
		return -1;
	f = fopen(full, "re");
	if (!f)
		return -1;
	if (fgets(buf, (int)size, f)) {
		buf[strcspn(buf, "\n")] = '\0';
		rc = 0;
	}
	fclose(f);
	return rc;
}

/* A file that holds one number; "max" and -1 mean no limit. */
static int
read_number(const char *root, const char *path, uint64_t *v)
{
	char buf[64], *end;

	if (read_line(root, path, buf, sizeof buf) < 0)
		return -1;
	if (!strcmp(buf, "max") || buf[0] == '-') {
		*v = UINT64_MAX;
		return 0;
	}
	*v = strtoull(buf, &end, 10);
	return end == buf ? -1 : 0;
}

/* The number behind "KEY" and white space or a colon in a file of such lines.*/
static int
read_field(const char *root, const char *path, const char *key, uint64_t *v)
{
	char full[PATH], line[256];
	size_t n = strlen(key);
	int rc = -1;
	FILE *f;

	if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >=
	    sizeof full)
		return -1;
	f = fopen(full, "re");
	if (!f)
		return -1;
	while (rc < 0 && fgets(line, sizeof line, f))
		if (!strncmp(line, key, n) && strchr(": \t", line[n]) &&
		    line[n]) {
			*v = strtoull(line + n + 1, NULL, 10);
			rc = 0;
		}
	fclose(f);
	return rc;
}

/*
 * This process's group of a version 1 controller, or of version 2 (controller
 * ""): the path behind the second colon of a line of /proc/self/cgroup.
 */
static int
group_path(const char *root, const char *controller, char *path, size_t size)
{
	char full[PATH], line[PATH];
	FILE *f;
	int rc = -1;

	snprintf(full, sizeof full, "%.*s/proc/self/cgroup", PATH / 2, root);
	f = fopen(full, "re");
	if (!f)
		return -1;
	while (rc < 0 && fgets(line, sizeof line, f)) {
		char *names = strchr(line, ':');
		char *group = names ? strchr(names + 1, ':') : NULL;
		int match = 0;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (!*controller)
			match = names[1] == '\0';
		for (char *s = strtok(names + 1, ","); s && *controller;
		     s = strtok(NULL, ","))
			match |= !strcmp(s, controller);
		if (match) {
			snprintf(path, size, "%s", group);
			rc = 0;
		}
	}
	fclose(f);
	return rc;
}

/*
 * Call one(root, folder, ...) for a group and all its ancestors and keep the
 * smallest answer: each of them limits.  In a container the path may be one of
 * the host's that is not visible; then only the mount's top answers.
 */
static uint64_t
least(const char *root, const char *mount, const char *controller,
    uint64_t (*one)(const char *root, const char *folder))
{
	char group[PATH / 2] = "", folder[PATH];
	uint64_t min = UINT64_MAX, v;
	char *slash;

	if (group_path(root, controller, group, sizeof group) < 0)
		return min;
	for (;;) {
		snprintf(folder, sizeof folder, "%s%s", mount,
		    strcmp(group, "/") ? group : "");
		v = one(root, folder);
		min = v < min ? v : min;
		slash = strrchr(group, '/');
		if (!slash)
			return min;
		*slash = '\0';
	}
}

static int
join(char *to, const char *folder, const char *name)
{
	return snprintf(to, PATH + 64, "%s/%s", folder, name);
}

/* Files of a memory controller, and the fields of its memory.stat. */
struct memory_names {
	const char *limit, *usage, *cache, *shared;
};

static uint64_t
memory_left(const char *root, const char *folder, const struct memory_names *n)
{
	char p[PATH + 64];
	uint64_t limit, used, cache = 0, shared = 0;

	join(p, folder, n->limit);
	if (read_number(root, p, &limit) < 0 || limit == UINT64_MAX)
		return UINT64_MAX;
	join(p, folder, n->usage);
	if (read_number(root, p, &used) < 0)
		return limit;
	join(p, folder, "memory.stat");
	/* files of a tmpfs are counted as cache but cannot be dropped */
	if (read_field(root, p, n->cache, &cache) == 0 &&
	    read_field(root, p, n->shared, &shared) == 0)
		cache -= shared < cache ? shared : cache;
	used -= cache < used ? cache : used;
	return limit > used ? limit - used : 0;
}

static uint64_t
memory_v2(const char *root, const char *folder)
{
	static const struct memory_names names = { "memory.max",
		"memory.current", "file", "shmem" };

	return memory_left(root, folder, &names);
}

static uint64_t
memory_v1(const char *root, const char *folder)
{
	static const struct memory_names names = { "memory.limit_in_bytes",
		"memory.usage_in_bytes", "total_cache", "total_shmem" };

	return memory_left(root, folder, &names);
}

uint64_t
sysinfo_memory_at(const char *root)
{
	uint64_t min = UINT64_MAX, v;

	/* "MemAvailable:   123 kB" */
	if (read_field(root, "/proc/meminfo", "MemAvailable", &v) == 0)
		min = v * 1024;
	v = least(root, "/sys/fs/cgroup", "", memory_v2);
	min = v < min ? v : min;
	v = least(root, "/sys/fs/cgroup/memory", "memory", memory_v1);
	return v < min ? v : min;
}

static uint64_t
quota_v2(const char *root, const char *folder)
{
	char p[PATH + 64], line[64], *end;
	uint64_t quota, period;

	join(p, folder, "cpu.max"); /* "max 100000" or "150000 100000" */
	if (read_line(root, p, line, sizeof line) < 0)
		return UINT64_MAX;
	quota = strtoull(line, &end, 10);
	if (end == line)
		return UINT64_MAX;
	period = strtoull(end, NULL, 10);
	return period ? quota / period : UINT64_MAX;
}

static uint64_t
quota_v1(const char *root, const char *folder)
{
	char p[PATH + 64];
	uint64_t quota, period;

	join(p, folder, "cpu.cfs_quota_us");
	if (read_number(root, p, &quota) < 0 || quota == UINT64_MAX)
		return UINT64_MAX;
	join(p, folder, "cpu.cfs_period_us");
	if (read_number(root, p, &period) < 0 || !period)
		return UINT64_MAX;
	return quota / period;
}

uint64_t
sysinfo_quota_at(const char *root)
{
	uint64_t v2 = least(root, "/sys/fs/cgroup", "", quota_v2);
	uint64_t v1 = least(root, "/sys/fs/cgroup/cpu", "cpu", quota_v1);

	return v1 < v2 ? v1 : v2;
}

/* The lowest CPU on the same core, or the CPU itself if unknown. */
static unsigned
first_sibling(const char *root, unsigned cpu)
{
	char path[128], line[256], *end;
	unsigned long first;

	/* "0,8" or "0-1" */
	snprintf(path, sizeof path,
	    "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
	if (read_line(root, path, line, sizeof line) < 0)
		return cpu;
	first = strtoul(line, &end, 10);
	return end == line ? cpu : (unsigned)first;
}

unsigned
sysinfo_cores_at(const char *root, const unsigned *cpu, unsigned n)
{
	unsigned *seen = malloc(n * sizeof *seen), count = 0;

	if (!seen)
		return n;
	for (unsigned i = 0; i < n; i++) {
		unsigned core = first_sibling(root, cpu[i]), j = 0;

		while (j < count && seen[j] != core)
			j++;
		if (j == count)
			seen[count++] = core;
	}
	free(seen);
	return count;
}

/* The CPUs this process may run on (malloc), or NULL. */
static unsigned *
allowed_cpus(unsigned *n)
{
	unsigned *cpu = NULL;

	*n = 0;
	for (size_t count = 1024; count <= 1u << 20; count *= 4) {
		cpu_set_t *set = CPU_ALLOC(count);
		size_t size = CPU_ALLOC_SIZE(count);

		if (set && sched_getaffinity(0, size, set) == 0)
			cpu = malloc(
			    (size_t)CPU_COUNT_S(size, set) * sizeof *cpu);
		for (size_t i = 0; cpu && i < count; i++)
			if (CPU_ISSET_S(i, size, set))
				cpu[(*n)++] = (unsigned)i;
		if (set)
			CPU_FREE(set);
		if (cpu)
			break;
	}
	return cpu;
}

unsigned
sysinfo_cores(void)
{
	uint64_t quota = sysinfo_quota_at("");
	unsigned n, cores, *cpu = allowed_cpus(&n);
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpu)
		cores = sysinfo_cores_at("", cpu, n);
	else
		cores = online > 0 ? (unsigned)online : 1;
	free(cpu);
	if (quota < cores)
		cores = (unsigned)quota;
	return cores ? cores : 1;
}

uint64_t
sysinfo_memory(void)
{
	return sysinfo_memory_at("");
}
