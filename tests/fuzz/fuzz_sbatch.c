/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as an sbatch script: every word stands where it says, every index points at something.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/script/sbatch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_command(const struct sbatch *s, const struct shell_command *c)
{
	check(c->start <= c->end && c->end <= s->n && c->line <= c->last_line);
	for (size_t i = 0; i < c->words.n; i++) {
		const struct shell_word *w = &c->words.v[i];

		check(w->start <= w->end && w->end <= s->n && w->line >= 1);
		check(w->start == w->end || /* the `for` that stands for its header */
		      (strlen(w->text) == w->end - w->start &&
		       memcmp(w->text, s->text + w->start, w->end - w->start) == 0));
	}
	for (size_t i = 0; i < c->n_assigns; i++)
		check(shell_name_length(c->assigns[i].name) == strlen(c->assigns[i].name));
}

static void check_script(const struct sbatch *s)
{
	check(s->components >= 1);
	for (size_t i = 0; i < s->n_options; i++)
		check(s->options[i].line >= 1 && s->options[i].component < s->components);
	for (size_t i = 0; i < s->body.n; i++)
		check_command(s, &s->body.v[i]);
	for (size_t i = 0; i < s->n_vars; i++)
		check(s->vars[i].command < s->body.n);
	for (size_t i = 0; i < s->n_launches; i++) {
		const struct sbatch_launch *l = &s->launches[i];

		check(l->command < s->body.n);
		check(l->inner_word < s->body.v[l->command].words.n);
		check(l->inner_word || l->program_word < s->body.v[l->command].words.n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sbatch s = {0};
	struct err e = {0};
	bool known;

	if (sbatch_parse("f.sbatch", (const char *)data, n, &s, &e) < 0) {
		check(s.text == NULL && strstr(e.text, "f.sbatch:"));
		return 0;
	}
	check_script(&s);
	for (size_t i = 0; i < s.n_launches; i++)
		sbatch_arg(&s.launches[i], "--save", &known);
	sbatch_free(&s);
	return 0;
}
