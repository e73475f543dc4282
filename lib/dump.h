/*
 * Every stage of a forward pass as .npy files in a folder of their own.
 */
#ifndef DUMP_H
#define DUMP_H

#include "err.h"
#include "forward.h"
#include "tokline.h"

/*
 * Make the folder, or take an empty one; -1 (the error names it) where it
 * cannot be made or holds anything.
 */
int dump_folder(const char *dir, struct err *err);

/*
 * Run the tokens and write NN.STAGE.npy, or STAGE.npy before and behind the
 * layers, see dllm-forward(1).  When the run fails the files of the stages
 * before remain.
 */
int dump_stages(const char *dir, struct forward *f, const struct tokens *t,
    struct err *err);

#endif
