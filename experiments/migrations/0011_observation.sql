-- SPDX-License-Identifier: GPL-2.0-or-later
-- Logs of ordinary jobs that were read for an observed series. state: counted, without (the metric is not
-- in it), copy (another path with the same bytes counts). The point of a night is made of its counted ones.
CREATE TABLE observation(
	series INTEGER NOT NULL REFERENCES series(id) CHECK (typeof(series) = 'integer'),
	path TEXT NOT NULL CHECK (typeof(path) = 'text' AND path <> ''),
	size INTEGER NOT NULL CHECK (typeof(size) = 'integer' AND size >= 0),
	mtime_us INTEGER NOT NULL CHECK (typeof(mtime_us) = 'integer'),
	hash TEXT NOT NULL CHECK (typeof(hash) = 'text'),
	state TEXT NOT NULL CHECK (state IN ('counted', 'without', 'copy')),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	value REAL CHECK (typeof(value) IN ('real', 'null')),
	read_us INTEGER NOT NULL CHECK (typeof(read_us) = 'integer'),
	PRIMARY KEY (series, path)
) WITHOUT ROWID;
CREATE INDEX observation_by_hash ON observation(series, hash);
CREATE INDEX observation_by_night ON observation(series, night);
