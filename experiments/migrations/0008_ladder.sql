-- SPDX-License-Identifier: GPL-2.0-or-later
-- Stages of kind ladder, and what each of them found: what its upper rung keeps of the throughput a rank
-- (1: all of it) against the rung below and against the first, with 95 % intervals, and where the rest went,
-- as shares of the step's time on it. NULL: not measured. Views name the table stage, so they must not be
-- looked at while it has another name.
PRAGMA legacy_alter_table=ON;
CREATE TABLE stage_new(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	hypothesis INTEGER REFERENCES hypothesis(id) CHECK (typeof(hypothesis) IN ('integer', 'null')),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer'),
	round INTEGER NOT NULL CHECK (typeof(round) = 'integer'),
	kind TEXT NOT NULL CHECK (kind IN
		('aa', 'verify', 'screen', 'confirm', 'ablate', 'final', 'soak', 'canary', 'converge', 'profile',
		'ladder')),
	planned_blocks INTEGER NOT NULL CHECK (typeof(planned_blocks) = 'integer'),
	alpha_share REAL NOT NULL CHECK (typeof(alpha_share) = 'real'),
	ssr REAL NOT NULL CHECK (typeof(ssr) = 'real'),
	df0 INTEGER NOT NULL CHECK (typeof(df0) = 'integer'),
	open INTEGER NOT NULL CHECK (typeof(open) = 'integer' AND open IN (0, 1)),
	note TEXT CHECK (typeof(note) IN ('text', 'null')),
	avoid_nodes TEXT CHECK (typeof(avoid_nodes) IN ('text', 'null')),
	UNIQUE (campaign, seq)
);
INSERT INTO stage_new SELECT id, campaign, hypothesis, seq, round, kind, planned_blocks, alpha_share, ssr, df0,
	open, note, avoid_nodes FROM stage;
DROP TABLE stage;
ALTER TABLE stage_new RENAME TO stage;
PRAGMA legacy_alter_table=OFF;
CREATE TABLE rung(
	stage INTEGER PRIMARY KEY REFERENCES stage(id),
	nodes INTEGER NOT NULL CHECK (typeof(nodes) = 'integer' AND nodes > 0),
	tasks_per_node INTEGER NOT NULL CHECK (typeof(tasks_per_node) = 'integer' AND tasks_per_node > 0),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n >= 0),
	est REAL CHECK (typeof(est) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	total REAL CHECK (typeof(total) IN ('real', 'null')),
	total_lo REAL CHECK (typeof(total_lo) IN ('real', 'null')),
	total_hi REAL CHECK (typeof(total_hi) IN ('real', 'null')),
	communication REAL CHECK (typeof(communication) IN ('real', 'null')),
	straggler REAL CHECK (typeof(straggler) IN ('real', 'null')),
	input REAL CHECK (typeof(input) IN ('real', 'null')),
	rest REAL CHECK (typeof(rest) IN ('real', 'null')),
	held INTEGER NOT NULL CHECK (typeof(held) = 'integer' AND held IN (0, 1))
);
