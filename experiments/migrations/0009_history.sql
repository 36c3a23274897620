-- SPDX-License-Identifier: GPL-2.0-or-later
-- Series over nights, what changed in them, and the regressions that people are told of. The tables of
-- schema 1 by these names were never written.
DROP TABLE change;
DROP TABLE point;
DROP TABLE series;

-- What a value holds for: driver, libraries, kernel, ..., as a JSON object of texts with sorted keys.
CREATE TABLE environment(
	id INTEGER PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE CHECK (typeof(hash) = 'text' AND hash <> ''),
	text TEXT NOT NULL CHECK (typeof(text) = 'text')
);

-- A metric of a fixed configuration. source: canary (measured by fettle, can be measured again), imported
-- (a team's own history), observed (read from logs of ordinary jobs: suspects only). role: current,
-- reference (the arm beside it in each block) or pair (current over reference, block by block; unit 1).
-- place: partition or set of nodes, '' where it does not matter. config: hash of the configuration,
-- '' not known. unit '': none. min_effect: relative change that matters.
CREATE TABLE series(
	id INTEGER PRIMARY KEY,
	source TEXT NOT NULL CHECK (source IN ('canary', 'imported', 'observed')),
	workload TEXT NOT NULL CHECK (typeof(workload) = 'text' AND workload <> ''),
	config TEXT NOT NULL CHECK (typeof(config) = 'text'),
	role TEXT NOT NULL CHECK (role IN ('current', 'reference', 'pair')),
	place TEXT NOT NULL CHECK (typeof(place) = 'text'),
	metric TEXT NOT NULL CHECK (typeof(metric) = 'text' AND metric <> ''),
	stat TEXT NOT NULL CHECK (typeof(stat) = 'text' AND stat <> ''),
	unit TEXT NOT NULL CHECK (typeof(unit) = 'text'),
	better TEXT NOT NULL CHECK (better IN ('up', 'down', 'none')),
	min_effect REAL NOT NULL CHECK (typeof(min_effect) = 'real' AND min_effect >= 0),
	campaign INTEGER REFERENCES campaign(id) CHECK (typeof(campaign) IN ('integer', 'null')),
	created_us INTEGER NOT NULL CHECK (typeof(created_us) = 'integer'),
	ended_us INTEGER CHECK (typeof(ended_us) IN ('integer', 'null')),
	UNIQUE (source, workload, config, role, place, metric, stat)
);
CREATE INDEX series_by_campaign ON series(campaign);

-- One night of a series: the mean of its replicates. night: local date on which the night's window opens.
CREATE TABLE point(
	id INTEGER PRIMARY KEY,
	series INTEGER NOT NULL REFERENCES series(id) CHECK (typeof(series) = 'integer'),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer'),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n > 0),
	value REAL NOT NULL CHECK (typeof(value) = 'real'),
	sd REAL CHECK (typeof(sd) IN ('real', 'null')),
	environment INTEGER REFERENCES environment(id) CHECK (typeof(environment) IN ('integer', 'null')),
	stage INTEGER REFERENCES stage(id) CHECK (typeof(stage) IN ('integer', 'null')),
	UNIQUE (series, night)
);
CREATE INDEX point_by_stage ON point(stage) WHERE stage IS NOT NULL;

CREATE TABLE replicate(
	point INTEGER NOT NULL REFERENCES point(id) CHECK (typeof(point) = 'integer'),
	idx INTEGER NOT NULL CHECK (typeof(idx) = 'integer' AND idx >= 0),
	value REAL NOT NULL CHECK (typeof(value) = 'real'),
	nodes TEXT NOT NULL CHECK (typeof(nodes) = 'text'),
	PRIMARY KEY (point, idx)
) WITHOUT ROWID;

-- Changes that moved together: what people are told of, once. kind: worse, better, or shift (the cost
-- moved from one metric to another). level: suspect (never pages) or confirmed (by a paired re-run, or by
-- the strict detector where no re-run is possible). state: open until somebody acknowledges it, says that
-- it is fixed or the new normal; transient: it went away by itself; dismissed: the re-run did not show it.
CREATE TABLE regression(
	id INTEGER PRIMARY KEY,
	kind TEXT NOT NULL CHECK (kind IN ('worse', 'better', 'shift')),
	level TEXT NOT NULL CHECK (level IN ('suspect', 'confirmed')),
	state TEXT NOT NULL CHECK (state IN
		('open', 'acknowledged', 'fixed', 'accepted', 'transient', 'dismissed')),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	found_night TEXT NOT NULL CHECK (found_night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	confirmed_night TEXT CHECK (typeof(confirmed_night) IN ('text', 'null')),
	found_us INTEGER NOT NULL CHECK (typeof(found_us) = 'integer'),
	state_us INTEGER NOT NULL CHECK (typeof(state_us) = 'integer'),
	who TEXT CHECK (typeof(who) IN ('text', 'null')),
	note TEXT CHECK (typeof(note) IN ('text', 'null'))
);
CREATE INDEX regression_by_state ON regression(state);

-- A change point of one series. night: the first one after the change; it lies in [first_night,
-- last_night]. est, lo, hi: relative change of the metric, in its own direction (not + is better).
-- rerun: the stage that measured it again; why: what that said.
CREATE TABLE change(
	id INTEGER PRIMARY KEY,
	series INTEGER NOT NULL REFERENCES series(id) CHECK (typeof(series) = 'integer'),
	regression INTEGER NOT NULL REFERENCES regression(id) CHECK (typeof(regression) = 'integer'),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	first_night TEXT NOT NULL CHECK (typeof(first_night) = 'text'),
	last_night TEXT NOT NULL CHECK (typeof(last_night) = 'text'),
	direction TEXT NOT NULL CHECK (direction IN ('worse', 'better', 'neither')),
	level TEXT NOT NULL CHECK (level IN ('suspect', 'confirmed', 'dismissed')),
	est REAL NOT NULL CHECK (typeof(est) = 'real'),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	p REAL CHECK (typeof(p) IN ('real', 'null')),
	rerun INTEGER REFERENCES stage(id) CHECK (typeof(rerun) IN ('integer', 'null')),
	why TEXT CHECK (typeof(why) IN ('text', 'null')),
	found_us INTEGER NOT NULL CHECK (typeof(found_us) = 'integer')
);
CREATE INDEX change_by_series ON change(series, night);
CREATE INDEX change_by_regression ON change(regression);

-- What may have caused a regression, likeliest first. kind: environment (key went from was to is), node
-- (key is its name), metric (a probe metric that moved with it). proved: the re-run had this alone
-- between its arms.
CREATE TABLE cause(
	regression INTEGER NOT NULL REFERENCES regression(id) CHECK (typeof(regression) = 'integer'),
	rank INTEGER NOT NULL CHECK (typeof(rank) = 'integer' AND rank >= 1),
	kind TEXT NOT NULL CHECK (kind IN ('environment', 'node', 'metric')),
	key TEXT NOT NULL CHECK (typeof(key) = 'text' AND key <> ''),
	was TEXT CHECK (typeof(was) IN ('text', 'null')),
	"is" TEXT CHECK (typeof("is") IN ('text', 'null')),
	score REAL NOT NULL CHECK (typeof(score) = 'real'),
	proved INTEGER NOT NULL CHECK (typeof(proved) = 'integer' AND proved IN (0, 1)),
	why TEXT NOT NULL CHECK (typeof(why) = 'text'),
	PRIMARY KEY (regression, rank)
) WITHOUT ROWID;

-- What a canary stage is for. night: a night's look at a fixed configuration; rerun: a suspicion measured
-- again; revalidate: a fix in an environment other than the one that it was validated in.
CREATE TABLE canary(
	stage INTEGER PRIMARY KEY REFERENCES stage(id),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	purpose TEXT NOT NULL CHECK (purpose IN ('night', 'rerun', 'revalidate')),
	regression INTEGER REFERENCES regression(id) CHECK (typeof(regression) IN ('integer', 'null'))
);

CREATE VIEW v_series AS
SELECT s.id AS series, s.source, s.workload, s.config, s.role, s.place, s.metric, s.stat, s.unit, s.better,
	p.night, p.value, p.n, p.sd, p.environment, datetime(p.at_us / 1000000, 'unixepoch') AS at_utc
FROM series s JOIN point p ON p.series = s.id;

CREATE VIEW v_regression AS
SELECT r.id AS regression, r.kind, r.level, r.state, r.night, r.found_night, r.confirmed_night, r.who, r.note,
	c.id AS change, c.series, s.workload, s.place, s.metric, s.stat, s.role, c.night AS change_night,
	c.first_night, c.last_night, c.direction, c.level AS change_level, c.est, c.lo, c.hi, c.p,
	(SELECT key FROM cause u WHERE u.regression = r.id AND u.rank = 1) AS cause,
	(SELECT was FROM cause u WHERE u.regression = r.id AND u.rank = 1) AS cause_was,
	(SELECT "is" FROM cause u WHERE u.regression = r.id AND u.rank = 1) AS cause_is
FROM regression r JOIN change c ON c.regression = r.id JOIN series s ON s.id = c.series;

CREATE VIEW v_cause AS
SELECT u.regression, u.rank, u.kind, u.key, u.was, u."is", u.score, u.proved, u.why, r.night, r.level, r.state
FROM cause u JOIN regression r ON r.id = u.regression;
