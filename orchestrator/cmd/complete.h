/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a shell offers for a command line that is being typed. The completion files of bash, zsh and
 * fish (fettle.bash, fettle.zsh, fettle.fish) know nothing of fettle: they ask `fettle complete`,
 * and the answer comes from the table of commands, from the options that the command itself reads,
 * and from its usage line: a word of small letters there is offered as it is, and a placeholder
 * (CAMPAIGN, SERIES, KNOB, FILE) by what there is of its kind, in the workspace or in the program.
 * A new command completes with nothing to be done for it but that its usage line uses these words.
 *
 * An answer is a line a candidate, "WORD" or "WORD<TAB>what it is", or :files, :dirs, :recipes
 * where the shell is to offer its own.
 */
#ifndef FETTLE_CMD_COMPLETE_H
#define FETTLE_CMD_COMPLETE_H

#include <argp.h>
#include <stdbool.h>

#include "orchestrator/base/str.h"

/* The last argument with which `fettle complete` calls a command: to be answered, not done. It is
 * an option that no command has. */
#define COMPLETE_MARK "--complete this"

/* Answer for argv[1..argc-1], the last of them unfinished and perhaps empty. */
void complete_words(const struct argp *argp, int argc, char **argv, struct buf *out);

/* One candidate, if it begins with `typed`. about may be NULL; only its first line is taken. */
void complete_offer(struct buf *out, const char *typed, const char *word, const char *about);

#endif
