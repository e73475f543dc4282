/*
 * Cores and memory, from trees of files like those of /proc and /sys.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysinfo.h"
#include "tap.h"

static char root[] = "/tmp/dllm-sysinfo.XXXXXX";

/* Write a file and the folders above it. */
static void
put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (char *p = full + sizeof root; *p; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(full, 0777);
			*p = '/';
		}
	f = fopen(full, "w");
	if (!f) {
		perror(full);
		exit(1);
	}
	fputs(text, f);
	fclose(f);
}

static int
drop(const char *path, const struct stat *st, int type, struct FTW *w)
{
	(void)st;
	(void)type;
	return w->level ? remove(path) : 0;
}

static void
clear(void)
{
	nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void
test_memory(void)
{
	ok(sysinfo_memory_at(root) == UINT64_MAX, "nothing is known");
	put("/proc/meminfo", "MemTotal:       100 kB\nMemFree:  5 kB\n"
	    "MemAvailable:      64 kB\n");
	ok(sysinfo_memory_at(root) == 64 * 1024, "MemAvailable");
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	ok(sysinfo_memory_at(root) == 64 * 1024, "a group without a limit");
	put("/sys/fs/cgroup/a/memory.max", "50000\n");
	put("/sys/fs/cgroup/a/memory.current", "30000\n");
	put("/sys/fs/cgroup/a/memory.stat", "anon 1000\nfile 9000\n"
	    "file_mapped 7\nshmem 2000\n");
	ok(sysinfo_memory_at(root) == 50000 - (30000 - 7000),
	    "an ancestor's limit, less usage without cache but with tmpfs");
	put("/sys/fs/cgroup/a/memory.current", "90000\n");
	ok(sysinfo_memory_at(root) == 0, "a group above its limit");
	clear();
	put("/proc/self/cgroup",
	    "12:cpuset:/\n4:memory:/job/x\n2:cpu,cpuacct:/job/x\n");
	put("/sys/fs/cgroup/memory/job/x/memory.limit_in_bytes", "40000\n");
	put("/sys/fs/cgroup/memory/job/x/memory.usage_in_bytes", "10000\n");
	put("/sys/fs/cgroup/memory/job/x/memory.stat",
	    "cache 1\ntotal_cache 4000\ntotal_shmem 0\n");
	ok(sysinfo_memory_at(root) == 40000 - 6000, "version 1 of the groups");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "20000\n");
	ok(sysinfo_memory_at(root) == 20000, "and their top");
	clear();
}

static void
test_quota(void)
{
	ok(sysinfo_quota_at(root) == UINT64_MAX, "no quota is known");
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/cpu.max", "max 100000\n");
	ok(sysinfo_quota_at(root) == UINT64_MAX, "no quota is set");
	put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
	ok(sysinfo_quota_at(root) == 2, "two and a half CPUs are two");
	clear();
	put("/proc/self/cgroup", "2:cpu,cpuacct:/job\n");
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	ok(sysinfo_quota_at(root) == 3, "version 1");
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
	ok(sysinfo_quota_at(root) == UINT64_MAX, "version 1 without a limit");
	clear();
}

static void
test_cores(void)
{
	static const unsigned cpu[] = { 0, 1, 2, 3 };

	ok(sysinfo_cores_at(root, cpu, 4) == 4, "unknown: one core each");
	put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
	    "0,2\n");
	put("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
	    "0,2\n");
	put("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
	    "1,3\n");
	put("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
	    "1,3\n");
	ok(sysinfo_cores_at(root, cpu, 4) == 2, "siblings count once");
	ok(sysinfo_cores_at(root, cpu + 2, 2) == 2,
	    "one thread of each core allowed");
	ok(sysinfo_cores_at(root, cpu, 1) == 1, "one CPU allowed");
	clear();
}

int
main(void)
{
	if (!mkdtemp(root))
		return 1;
	test_memory();
	test_quota();
	test_cores();
	rmdir(root);
	ok(sysinfo_cores() >= 1, "this machine has a core");
	ok(sysinfo_memory() > 0, "this machine has memory");
	return tap_end();
}
