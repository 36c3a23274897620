/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/init.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

void init_done(struct init *i)
{
	free(i->copy);
	free(i->workdir);
	free(i->name);
	strv_free(&i->refused);
	strv_free(&i->said);
	kvs_free(&i->resources);
	strv_free(&i->variables);
	strv_free(&i->redirects);
	strv_free(&i->command);
	kvs_free(&i->env);
	strv_free(&i->env_at);
	strv_free(&i->secrets);
	strv_free(&i->knobs);
}

__attribute__((format(printf, 4, 0))) static void put(struct strv *list, const struct init *i,
						      int line, const char *fmt, va_list ap)
{
	struct buf b = {0};

	buf_printf(&b, "%s:%d: ", i->s->name, line);
	buf_vprintf(&b, fmt, ap);
	strv_add(list, b.data);
	buf_free(&b);
}

void init_refuse(struct init *i, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(&i->refused, i, line, fmt, ap);
	va_end(ap);
}

void init_say(struct init *i, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(&i->said, i, line, fmt, ap);
	va_end(ap);
}

bool init_skips(const struct init *i, int line)
{
	int64_t v;

	for (size_t k = 0; k < i->o->skip.n; k++)
		if (str_to_i64(i->o->skip.v[k], &v) && v == line)
			return true;
	return false;
}

/* -- which launch ------------------------------------------------------------------------------ */

static bool is_candidate(const struct init *i, const struct sbatch_launch *l)
{
	return !l->errand && !init_skips(i, l->line);
}

static void list_launches(const struct init *i, struct buf *out)
{
	for (size_t k = 0; k < i->s->n_launches; k++) {
		const struct sbatch_launch *l = &i->s->launches[k];

		if (is_candidate(i, l))
			buf_printf(out, "%s%d (%s)", out->len ? ", " : "", l->line,
				   l->program ? l->program : "?");
	}
}

static const struct sbatch_launch *launch_at(const struct init *i, int64_t line)
{
	for (size_t k = 0; k < i->s->n_launches; k++) {
		const struct sbatch_launch *l = &i->s->launches[k];

		if (line >= l->line && line <= l->last_line)
			return l;
	}
	return NULL;
}

static void asked_launch(struct init *i)
{
	struct buf b = {0};
	int64_t line = 0;

	if (str_to_i64(i->o->launch, &line))
		i->launch = launch_at(i, line);
	if (i->launch)
		return;
	list_launches(i, &b);
	init_refuse(i, (int)line,
		    "--launch: no launch stands on this line; there is one on line %s",
		    b.data ? b.data : "(none)");
	buf_free(&b);
}

void init_find_launch(struct init *i)
{
	struct buf b = {0};
	size_t n = 0;

	if (i->o->launch) {
		asked_launch(i);
		return;
	}
	for (size_t k = 0; k < i->s->n_launches; k++)
		if (is_candidate(i, &i->s->launches[k])) {
			i->launch = &i->s->launches[k];
			n++;
		}
	if (n == 1)
		return;
	i->launch = NULL;
	list_launches(i, &b);
	if (n == 0)
		init_refuse(i, 1,
			    "no line of it starts a program that fettle knows how to find: srun, "
			    "mpirun, torchrun, accelerate launch, deepspeed, apptainer exec, "
			    "python");
	else
		init_refuse(i, 1,
			    "it launches several programs, on lines %s: say which one is to become "
			    "faster, --launch LINE",
			    b.data);
	buf_free(&b);
}
