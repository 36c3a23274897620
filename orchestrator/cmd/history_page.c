/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/history_page.h"

#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/regressions.h"

int history_page(struct workspace *w, struct nights *n, const struct nights_glance *g, size_t n_g,
		 const char *since, const char *lang, struct buf *out, size_t *open, struct err *e)
{
	struct nights_series *v = xcalloc(n_g + 1, sizeof *v);
	struct regression_view *r = NULL;
	size_t n_r = 0, alarms = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n_g; i++)
		rc = nights_load(n, &g[i].row, since, &v[i], e);
	if (rc == 0 && (rc = regressions_load(w->db, true, &r, &n_r, e)) == 0) {
		lang_begin(lang);
		nights_page(fs_basename(w->root), v, n_g, r, n_r, out);
		lang_end();
	}
	for (size_t i = 0; i < n_r; i++)
		alarms += regressions_status(&r[i], 1) != 0;
	if (open)
		*open = alarms;
	regression_views_free(r, n_r);
	for (size_t i = 0; i < n_g; i++)
		nights_series_done(&v[i]);
	free(v);
	return rc;
}
