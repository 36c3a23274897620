/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What history.h needs beside the store: words, nights, and what its rows own. */
#include "experiments/history.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/words.h"

MODEL_WORDS(series_source, SERIES_OBSERVED, "canary", "imported", "observed")
MODEL_WORDS(series_role, SERIES_PAIR, "current", "reference", "pair")
MODEL_WORDS(change_direction, CHANGE_NEITHER, "worse", "better", "neither")
MODEL_WORDS(change_level, CHANGE_DISMISSED, "suspect", "confirmed", "dismissed")
MODEL_WORDS(regression_kind, REGRESSION_SHIFT, "worse", "better", "shift")
MODEL_WORDS(regression_state, REGRESSION_DISMISSED, "open", "acknowledged", "fixed", "accepted",
	    "transient", "dismissed")
MODEL_WORDS(observation_state, OBSERVATION_COPY, "counted", "without", "copy")
MODEL_WORDS(cause_kind, CAUSE_METRIC, "environment", "node", "metric")
MODEL_WORDS(canary_purpose, CANARY_REVALIDATE, "night", "rerun", "revalidate")

bool history_night_valid(const char *night)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month, day, last;

	if (!night || strlen(night) != 10 || night[4] != '-' || night[7] != '-')
		return false;
	year = str_digits(night, 4);
	month = str_digits(night + 5, 2);
	day = str_digits(night + 8, 2);
	if (year < 1 || month < 1 || month > 12)
		return false;
	last = days[month - 1];
	if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
		last++;
	return day >= 1 && day <= last;
}

void series_row_done(struct series_row *s)
{
	free(s->workload);
	free(s->config);
	free(s->place);
	free(s->metric);
	free(s->stat);
	free(s->unit);
	*s = (struct series_row){0};
}

void series_rows_free(struct series_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		series_row_done(&v[i]);
	free(v);
}

void observation_row_done(struct observation_row *o)
{
	free(o->path);
	*o = (struct observation_row){0};
}

void replicate_rows_free(struct replicate_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].nodes);
	free(v);
}

void regression_row_done(struct regression_row *r)
{
	free(r->who);
	free(r->note);
	*r = (struct regression_row){0};
}

void regression_rows_free(struct regression_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		regression_row_done(&v[i]);
	free(v);
}

void change_rows_free(struct change_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].why);
	free(v);
}

void cause_rows_free(struct cause_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		free(v[i].was);
		free(v[i].is);
		free(v[i].why);
	}
	free(v);
}
