/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/outlet.h"

#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

int outlet_load(struct db *db, struct outlet_view *v, struct err *e)
{
	struct nights *n = NULL;
	int rc = nights_open(db, &n, e);

	if (rc == 0)
		rc = nights_glances(n, NULL, false, &v->series, &v->n_series, e);
	nights_close(n);
	if (rc == 0 &&
	    (rc = regressions_load(db, false, &v->regressions, &v->n_regressions, e)) < 0)
		outlet_view_done(v);
	return rc;
}

void outlet_view_done(struct outlet_view *v)
{
	regression_views_free(v->regressions, v->n_regressions);
	nights_glances_free(v->series, v->n_series);
	v->regressions = NULL;
	v->series = NULL;
	v->n_regressions = v->n_series = 0;
}

bool outlet_is_alarm(const struct regression_row *r)
{
	return r->kind == REGRESSION_WORSE && r->level == CHANGE_CONFIRMED &&
	       r->state == REGRESSION_OPEN;
}

bool outlet_is_told(const struct outlet_view *v, const struct regression_row *r)
{
	return outlet_is_alarm(r) && !(v->news && r->told_us);
}

size_t outlet_count_told(const struct outlet_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_regressions; i++)
		n += outlet_is_told(v, &v->regressions[i].row);
	return n;
}

void outlet_text(struct buf *out, const char *s, size_t max)
{
	struct buf clean = {0};
	size_t n;

	text_line(&clean, s);
	n = clean.len;
	if (n > max)
		for (n = max - 3; n > 0 && ((unsigned char)clean.data[n] & 0xc0) == 0x80; n--)
			;
	buf_put(out, clean.data ? clean.data : "", n);
	if (n < clean.len)
		buf_str(out, "...");
	buf_free(&clean);
}

void outlet_moved(struct buf *out, const struct regression_view *r)
{
	const struct regression_moved *m = r->n_moved ? &r->moved[0] : NULL;
	_cleanup_free_ char *title = m ? nights_title(&m->series) : NULL;
	struct buf name = {0}, workload = {0}, place = {0};

	if (!m)
		return;
	nights_effect(m->change.est, m->change.lo, m->change.hi, out);
	buf_char(out, ' ');
	outlet_text(&name, title, OUTLET_TEXT_MAX);
	outlet_text(&workload, m->series.workload, OUTLET_TEXT_MAX);
	outlet_text(&place, m->series.place, OUTLET_TEXT_MAX);
	if (*m->series.place)
		buf_printf(out, _("%s of %s on %s"), name.data, workload.data, place.data);
	else
		buf_printf(out, _("%s of %s"), name.data, workload.data);
	buf_free(&name);
	buf_free(&workload);
	buf_free(&place);
}

void outlet_cause(struct buf *out, const struct regression_view *r)
{
	struct buf text = {0};

	if (r->n_causes == 0)
		return;
	regression_cause(&r->causes[0], &text);
	outlet_text(out, text.data, OUTLET_TEXT_MAX);
	buf_free(&text);
}

void outlet_headline(struct buf *out, const struct outlet_view *v)
{
	size_t n = outlet_count_told(v);

	if (n == 0)
		buf_str(out, v->news ? _("no new regression") : _("no open regression"));
	else if (v->news)
		buf_printf(out, _n("%zu new regression", "%zu new regressions", n), n);
	else
		buf_printf(out, _n("%zu open regression", "%zu open regressions", n), n);
}

const struct outlet *outlet_find(const char *name)
{
	for (size_t i = 0; outlet_table[i]; i++)
		if (str_eq(outlet_table[i]->name, name))
			return outlet_table[i];
	return NULL;
}
