/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/history_look.h"

#include <stdio.h>
#include <string.h>

#include "experiments/history.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/track.h"

/* "" while no series has a point. */
static int newest_night(struct db *db, char out[11], struct err *e)
{
	struct series_row *v = NULL;
	size_t n = 0;
	int rc = history_series_list(db, 0, &v, &n, e);

	out[0] = '\0';
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct series_extent x;

		if ((rc = history_extent(db, v[i].id, &x, e)) == 0 && strcmp(x.last, out) > 0)
			str_copy(out, 11, x.last);
	}
	series_rows_free(v, n);
	return rc;
}

int history_look(struct workspace *w, bool as_json, struct err *e)
{
	struct track_result found = {0};
	char night[11];
	int rc = newest_night(w->db, night, e);

	if (rc < 0 || !*night)
		return rc;
	rc = track_night(w->db, night, clock_utc_us(w->clock), &found, e);
	if (rc == 0 && !as_json)
		printf("looked at %d series up to %s: %d confirmed, %d suspected; %d regressions are "
		       "open: fettle regressions\n",
		       found.series, night, found.confirmed, found.suspects, found.open_confirmed);
	return rc;
}
