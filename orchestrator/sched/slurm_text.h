/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What Slurm's commands print, into the records of orchestrator/slurm/PROTOCOL.md. Pure: text in,
 * values out. All times are asked for as Unix seconds (SLURM_TIME_FORMAT=%s); a word that is not
 * known becomes "unknown", never an end.
 */
#ifndef FETTLE_SCHED_SLURM_TEXT_H
#define FETTLE_SCHED_SLURM_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

/* For squeue -O and sacct -P -o: the fields of a record in the order in which they are read. */
#define SLURM_TEXT_SQUEUE                                                                          \
	"JobID:|,State:|,exit_code:|,RestartCnt:|,StartTime:|,EndTime:|,SubmitTime:|,Partition:|," \
	"NodeList:|,Reason:|,ReasonList:|,Name:"
#define SLURM_TEXT_SACCT                                                                 \
	"JobIDRaw,State,ExitCode,Start,End,Submit,Partition,NodeList,ElapsedRaw,MaxRSS," \
	"ConsumedEnergyRaw,AllocTRES,JobName"

/* Bits of a state's name, "CANCELLED by 0" too; false (and bits that mean unknown) for another. */
bool slurm_text_state(const char *word, uint32_t *bits);

/* Job records of squeue's lines, an array (a root). Node lists are as Slurm writes them
 * ("n[1-2]"). Lines that are none are left out. */
struct json *slurm_text_squeue(const char *text);

/* Records of sacct's lines, one a job: its own line and what its steps used at most (memory) or
 * altogether (energy, or what the job's own line says, when that is more). */
struct json *slurm_text_sacct(const char *text);

/* "KEY=value" of `scontrol -o show`, or "KEY = value" of `scontrol show config`; heap, NULL when it
 * is not there or "(null)". */
char *slurm_text_value(const char *text, const char *key);

/* "sbatch: Job 10 to start at 1795978812 using 2 processors on nodes n[3-4] in partition tune".
 * False: there is no such line. Texts are heap. */
bool slurm_text_forecast(const char *text, int64_t *start_s, char **nodes, char **partition);

/* The line of stderr that says what was refused, without who says it, and the others appended to
 * *said, a line each. Heap. */
char *slurm_text_refusal(const char *text, struct buf *said);

/* State of a node by sinfo's word. */
bool slurm_text_node_idle(const char *word), slurm_text_node_out(const char *word);

/* "1.5G" or "123K" in KiB; -1: no number. */
int64_t slurm_text_kib(const char *word);

#endif
