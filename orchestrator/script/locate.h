/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a field stands in a Lua text. Evaluated values have no lines, so the text is read once
 * more: a scanner that knows strings, comments, long brackets, table constructors and blocks finds
 * the constructor that the file returns and walks down the path in it. It follows `return name` to
 * the last `name = {...}` and looks for the table inside a helper's call (`workload("x", {...})`).
 * It never fails: what it cannot find gets the line of the nearest table around it.
 */
#ifndef FETTLE_SCRIPT_LOCATE_H
#define FETTLE_SCRIPT_LOCATE_H

/* Line (from 1) of the field at `path` (see fieldpath.h). 1 for a text without any table. */
int locate_line(const char *text, const char *path);

#endif
