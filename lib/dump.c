#include "dump.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "npy.h"

int
dump_folder(const char *dir, struct err *err)
{
	int empty = 1;
	struct dirent *e;
	DIR *d;

	if (mkdir(dir, 0777) == 0)
		return 0;
	if (errno != EEXIST || !(d = opendir(dir)))
		return err_sys(err, "cannot make '%s'", dir);
	while ((e = readdir(d)))
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(d);
	if (empty)
		return 0;
	return err_set(err, "--dump '%s': the folder is not empty", dir);
}

static int
write_stage(void *arg, int layer, const char *stage, const float *data,
    size_t n, size_t width, struct err *err)
{
	const char *dir = arg;
	char path[4096], number[16] = "";

	if (layer >= 0)
		snprintf(number, sizeof number, "%02d.", layer);
	if ((size_t)snprintf(path, sizeof path, "%s/%s%s.npy", dir, number,
	        stage) >= sizeof path)
		return err_set(err, "the name of the folder is too long");
	return npy_save_f32(path, n, width, data, err);
}

int
dump_stages(const char *dir, struct forward *f, const struct tokens *t,
    struct err *err)
{
	return forward_stages(f, t->id, t->n, write_stage, (void *)dir, err);
}
