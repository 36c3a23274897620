/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For node_exporter's textfile collector: the text format of Prometheus, which is OpenMetrics too
 * (gauges only, each family in one piece, "# EOF" at the end). recipes/monitoring/README.md says
 * what each name means. What may grow is bounded: a monitoring system pays for each label value for
 * years.
 */
#include <math.h>

#include "experiments/regress.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/outlet.h"

/* A cluster watches some hundred series; regressions that are open at once are some dozen. */
enum { SERIES_MAX = 2000, REGRESSIONS_MAX = 200, DAY_S = 86400 };

static void family(struct buf *out, const char *name, const char *help)
{
	buf_printf(out, "# HELP fettle_%s %s\n# TYPE fettle_%s gauge\n", name, help, name);
}

static void put_label(struct buf *out, const char *name, const char *value)
{
	struct buf clean = {0};

	outlet_text(&clean, value, OUTLET_TEXT_MAX);
	buf_printf(out, ",%s=\"", name);
	for (const char *p = clean.data ? clean.data : ""; *p; p++) {
		if (*p == '\\' || *p == '"')
			buf_char(out, '\\');
		buf_char(out, *p);
	}
	buf_char(out, '"');
	buf_free(&clean);
}

/* Every sample names its workspace: the files of two teams on one machine stand side by side. */
static void begin(struct buf *out, const struct outlet_view *v, const char *name)
{
	struct buf labels = {0};

	put_label(&labels, "workspace", v->workspace);
	buf_printf(out, "fettle_%s{%s", name, labels.data + 1);
	buf_free(&labels);
}

static void end(struct buf *out, double value)
{
	buf_str(out, "} ");
	if (isfinite(value))
		buf_number(out, value);
	else
		buf_str(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
	buf_char(out, '\n');
}

static void plain(struct buf *out, const struct outlet_view *v, const char *name, const char *help,
		  double value)
{
	family(out, name, help);
	begin(out, v, name);
	end(out, value);
}

/* -- series ----------------------------------------------------------------------------------- */

static size_t series_shown(const struct outlet_view *v)
{
	return v->n_series < SERIES_MAX ? v->n_series : SERIES_MAX;
}

static void begin_series(struct buf *out, const struct outlet_view *v, const char *name,
			 const struct series_row *s)
{
	_cleanup_free_ char *id = xasprintf("%lld", (long long)s->id);

	begin(out, v, name);
	put_label(out, "series", id);
	put_label(out, "workload", s->workload);
	put_label(out, "place", s->place);
	put_label(out, "metric", s->metric);
	put_label(out, "stat", s->stat);
	put_label(out, "unit", s->unit);
	put_label(out, "role", series_role_name(s->role));
	put_label(out, "source", series_source_name(s->source));
}

static void series(struct buf *out, const struct outlet_view *v)
{
	family(out, "series_value", "Newest night of a series, in the unit that the label says.");
	for (size_t i = 0; i < series_shown(v); i++)
		if (v->series[i].nights) {
			begin_series(out, v, "series_value", &v->series[i].row);
			end(out, v->series[i].value);
		}
	family(out, "series_change_ratio",
	       "Newest night against the last one that is so many nights older, less 1.");
	for (size_t i = 0; i < series_shown(v); i++) {
		const struct nights_glance *g = &v->series[i];

		for (int month = 0; month < 2; month++) {
			double change = month ? g->month : g->week;

			if (isnan(change))
				continue;
			begin_series(out, v, "series_change_ratio", &g->row);
			put_label(out, "nights", month ? "30" : "7");
			end(out, change);
		}
	}
	family(out, "series_last_night_timestamp_seconds",
	       "Date of a series' newest night, midnight UTC.");
	for (size_t i = 0; i < series_shown(v); i++)
		if (v->series[i].nights) {
			begin_series(out, v, "series_last_night_timestamp_seconds",
				     &v->series[i].row);
			end(out, (double)regress_day(v->series[i].last) * DAY_S);
		}
	plain(out, v, "series_omitted", "Series that are not in this file, which is bounded.",
	      (double)(v->n_series - series_shown(v)));
}

/* -- regressions ------------------------------------------------------------------------------ */

static size_t regressions_shown(const struct outlet_view *v)
{
	return v->n_regressions < REGRESSIONS_MAX ? v->n_regressions : REGRESSIONS_MAX;
}

/* Only of those that are open or acknowledged: the others were not loaded. Zeros too, so that a
 * sum over them is there from the first night on. */
static void counts(struct buf *out, const struct outlet_view *v)
{
	family(out, "regressions", "Regressions that are open or acknowledged.");
	for (int kind = REGRESSION_WORSE; kind <= REGRESSION_SHIFT; kind++)
		for (int level = CHANGE_SUSPECT; level <= CHANGE_CONFIRMED; level++)
			for (int state = REGRESSION_OPEN; state <= REGRESSION_ACKNOWLEDGED;
			     state++) {
				size_t n = 0;

				for (size_t i = 0; i < v->n_regressions; i++) {
					const struct regression_row *r = &v->regressions[i].row;

					n += (int)r->kind == kind && (int)r->level == level &&
					     (int)r->state == state;
				}
				begin(out, v, "regressions");
				put_label(out, "kind",
					  regression_kind_name((enum regression_kind)kind));
				put_label(out, "level",
					  change_level_name((enum change_level)level));
				put_label(out, "state",
					  regression_state_name((enum regression_state)state));
				end(out, (double)n);
			}
}

static void begin_regression(struct buf *out, const struct outlet_view *v, const char *name,
			     const struct regression_row *r)
{
	_cleanup_free_ char *id = xasprintf("%lld", (long long)r->id);

	begin(out, v, name);
	put_label(out, "regression", id);
}

static void put_moved(struct buf *out, const struct regression_view *r)
{
	const struct series_row *s = r->n_moved ? &r->moved[0].series : NULL;

	put_label(out, "workload", s ? s->workload : "");
	put_label(out, "place", s ? s->place : "");
	put_label(out, "metric", s ? s->metric : "");
	put_label(out, "night", r->row.night);
}

static void regressions(struct buf *out, const struct outlet_view *v)
{
	counts(out, v);
	family(out, "regression_open",
	       "1 while nobody has said what becomes of it, 0 when acknowledged.");
	for (size_t i = 0; i < regressions_shown(v); i++) {
		const struct regression_row *r = &v->regressions[i].row;

		begin_regression(out, v, "regression_open", r);
		put_label(out, "kind", regression_kind_name(r->kind));
		put_label(out, "level", change_level_name(r->level));
		end(out, r->state == REGRESSION_OPEN);
	}
	family(out, "regression_change_ratio",
	       "Relative change of the series that speaks for a regression; NaN when none does.");
	for (size_t i = 0; i < regressions_shown(v); i++) {
		const struct regression_view *r = &v->regressions[i];

		begin_regression(out, v, "regression_change_ratio", &r->row);
		put_moved(out, r);
		end(out, r->n_moved ? r->moved[0].change.est : NAN);
	}
	family(out, "regression_cause_info", "Likeliest cause of a regression; always 1.");
	for (size_t i = 0; i < regressions_shown(v); i++) {
		struct buf cause = {0};

		outlet_cause(&cause, &v->regressions[i]);
		if (cause.len) {
			begin_regression(out, v, "regression_cause_info", &v->regressions[i].row);
			put_label(out, "cause", cause.data);
			end(out, 1);
		}
		buf_free(&cause);
	}
	plain(out, v, "regressions_omitted",
	      "Regressions that are not in this file, which is bounded.",
	      (double)(v->n_regressions - regressions_shown(v)));
}

static void night(struct buf *out, const struct outlet_view *v)
{
	if (!v->night)
		return;
	plain(out, v, "night_completed_timestamp_seconds", "When the last night came to its end.",
	      floor((double)v->night->completed_us / 1e6));
	plain(out, v, "night_status",
	      "Exit status of the last night: 0, 1 regression, 3 something left, 4 needs somebody.",
	      v->night->status);
	plain(out, v, "night_node_seconds", "Node time that the last night took.",
	      v->night->node_s);
	plain(out, v, "night_duration_seconds", "Time from begin to end of the last night.",
	      v->night->wall_s);
}

static void write_metrics(const struct outlet_view *v, struct buf *out)
{
	series(out, v);
	regressions(out, v);
	night(out, v);
	buf_str(out, "# EOF\n");
}

const struct outlet outlet_metrics = {
	.name = "metrics",
	.summary = "OpenMetrics for node_exporter's textfile collector",
	.write = write_metrics};
