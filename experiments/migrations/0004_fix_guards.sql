-- SPDX-License-Identifier: GPL-2.0-or-later
-- Guards are tested again where the fix is: each winner was held against the incumbent of its time, so
-- that several small losses within their margins may add up beyond them. What each guard said about
-- the fix, the state of a fix that breaks one, and why.
DROP VIEW v_campaign;
CREATE TABLE fix_new(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL UNIQUE REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	config INTEGER REFERENCES config(id) CHECK (typeof(config) IN ('integer', 'null')),
	stage INTEGER REFERENCES stage(id) CHECK (typeof(stage) IN ('integer', 'null')),
	state TEXT NOT NULL CHECK (state IN
		('validated', 'accepted, pending convergence', 'gain not seen again', 'not measured',
		'rejected: guard', 'rejected: loss not held')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	est REAL CHECK (typeof(est) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer'),
	fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
	soak_drift REAL CHECK (typeof(soak_drift) IN ('real', 'null')),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer')
);
INSERT INTO fix_new(id, campaign, config, stage, state, est, lo, hi, n, fingerprint, soak_drift, at_us)
SELECT id, campaign, config, stage, state, est, lo, hi, n, fingerprint, soak_drift, at_us FROM fix;
DROP TABLE fix;
ALTER TABLE fix_new RENAME TO fix;

CREATE TABLE fix_guard(
	stage INTEGER NOT NULL REFERENCES stage(id) CHECK (typeof(stage) = 'integer'),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 0),
	metric TEXT NOT NULL CHECK (typeof(metric) = 'text'),
	stat TEXT NOT NULL CHECK (typeof(stat) = 'text'),
	rule TEXT NOT NULL CHECK (rule IN ('margin', 'at_most', 'at_least', 'failures')),
	equal TEXT NOT NULL CHECK (equal IN ('step', 'samples', 'tokens')),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n >= 0),
	value REAL CHECK (typeof(value) IN ('real', 'null')),
	worsening REAL CHECK (typeof(worsening) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	bound REAL CHECK (typeof(bound) IN ('real', 'null')),
	state TEXT NOT NULL CHECK (state IN ('passed', 'unsettled', 'violated')),
	PRIMARY KEY (stage, seq)
) WITHOUT ROWID;

CREATE VIEW v_campaign AS
SELECT c.id AS campaign, c.name, c.state, c.reason, c.mode, c.scheduler, c.alpha, c.confirm_max,
	datetime(c.created_us / 1000000, 'unixepoch') AS created_utc,
	datetime(c.ended_us / 1000000, 'unixepoch') AS ended_utc,
	(SELECT count(*) FROM hypothesis h WHERE h.campaign = c.id) AS hypotheses,
	(SELECT count(*) FROM verdict v WHERE v.campaign = c.id AND v.outcome = 'accepted'
		AND v.hypothesis IS NOT NULL) AS wins,
	f.state AS fix, f.reason AS fix_reason, f.est, f.lo, f.hi, f.n AS fix_blocks, f.soak_drift,
	c.recipe_path, c.recipe_hash
FROM campaign c LEFT JOIN fix f ON f.campaign = c.id;

DROP VIEW v_guard;
CREATE VIEW v_guard AS
SELECT v.campaign, v.hypothesis, v.stage, s.kind AS stage_kind, v.look, v.outcome, g.metric, g.stat,
	g.rule, g.equal, g.n, g.value, g.worsening, g.lo, g.hi, g.bound, g.state
FROM verdict v JOIN guard_result g ON g.verdict = v.id JOIN stage s ON s.id = v.stage
UNION ALL
SELECT s.campaign, NULL, s.id, s.kind, NULL, NULL, g.metric, g.stat, g.rule, g.equal, g.n, g.value,
	g.worsening, g.lo, g.hi, g.bound, g.state
FROM stage s JOIN fix_guard g ON g.stage = s.id;
