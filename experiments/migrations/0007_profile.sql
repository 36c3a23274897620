-- SPDX-License-Identifier: GPL-2.0-or-later
-- Stages of kind profile: one untimed trial of the incumbent under a profiler. Views name the table, so
-- they must not be looked at while it has another name.
PRAGMA legacy_alter_table=ON;
CREATE TABLE stage_new(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	hypothesis INTEGER REFERENCES hypothesis(id) CHECK (typeof(hypothesis) IN ('integer', 'null')),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer'),
	round INTEGER NOT NULL CHECK (typeof(round) = 'integer'),
	kind TEXT NOT NULL CHECK (kind IN
		('aa', 'verify', 'screen', 'confirm', 'ablate', 'final', 'soak', 'canary', 'converge', 'profile')),
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
