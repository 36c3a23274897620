/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a knob is passed in each framework. The catalogue writes it as text, and a campaign that
 * names its framework (workload.framework) gets its knobs passed so:
 *
 *   "--x"         argument and value, two words     "x="         one word, as Hydra and OmegaConf
 *   "--x="        argument and value, one word                   take it (also "--x=")
 *   "flag --x"    there for true, absent for false  "env NAME"   environment variable
 *   "key a.b"     key of the framework's JSON       "code TEXT"  only in code: what to write there
 *   "not TEXT"    there is no way: why
 *
 * A knob of true and false may end with the two words that the framework takes: "--x True/False".
 * A key needs the file that the command names (workload.config). Code is for people: a campaign
 * that needs it is refused.
 */
#ifndef FETTLE_SCRIPT_PASSED_H
#define FETTLE_SCRIPT_PASSED_H

#include "orchestrator/script/reader.h"

extern const char *const passed_frameworks[]; /* NULL at the end */

enum passed_kind { PASSED_ARG, PASSED_FLAG, PASSED_ENV, PASSED_KEY, PASSED_CODE, PASSED_NOT };

/* One text, taken apart. */
struct passed {
	enum passed_kind kind;
	char *target;   /* argument, variable, key, or the text of "code" and "not"; heap */
	char *yes, *no; /* words for true and false; heap, NULL: those */
};
/* false when it has none of the forms above. */
bool passed_parse(const char *text, struct passed *out);
void passed_done(struct passed *p);

/* Reader of a schema field: a table of such texts by framework, and of plain texts by the places
 * "script", "shell", "srun" and "torchrun"; into a struct kvs. */
int passed_read(const struct reader *r, const struct json *v, const char *path, void *out,
		struct err *e);

/* Pass the knob, which stands at `path`, as the workload's framework takes it. ERR_RECIPE where
 * that is not possible, with what to do. */
int passed_apply(const struct reader *r, struct knob *k, const struct workload *w, const char *path,
		 struct err *e);

#endif
