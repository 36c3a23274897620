-- SPDX-License-Identifier: GPL-2.0-or-later
-- The store, schema 1. Released migrations are never edited: a change is a new file.
-- Plain tables typed by CHECK(typeof()): STRICT needs SQLite 3.37, and RHEL 8 has 3.26, RHEL 9 3.34.
-- Times are INTEGER microseconds of UTC; NULL is "not known" and never 0. Views at the end are the
-- public interface (experiments/SCHEMA.md); tables may change with any migration.
PRAGMA application_id = 1718908012;

CREATE TABLE workspace(
	id INTEGER PRIMARY KEY CHECK (id = 1),
	uuid TEXT NOT NULL CHECK (typeof(uuid) = 'text' AND length(uuid) = 36),
	created_us INTEGER NOT NULL CHECK (typeof(created_us) = 'integer')
);

CREATE TABLE schema_upgrade(
	id INTEGER PRIMARY KEY,
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer'),
	from_version INTEGER NOT NULL CHECK (typeof(from_version) = 'integer'),
	to_version INTEGER NOT NULL CHECK (typeof(to_version) = 'integer'),
	program_version TEXT NOT NULL CHECK (typeof(program_version) = 'text')
);

-- AUTOINCREMENT where an id leaves the database (directories, job names, what users typed): it must
-- never mean something else later, even after rows were deleted.
CREATE TABLE campaign(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL CHECK (typeof(name) = 'text'),
	recipe_path TEXT NOT NULL CHECK (typeof(recipe_path) = 'text'),
	recipe_hash TEXT NOT NULL CHECK (typeof(recipe_hash) = 'text'),
	scheduler TEXT NOT NULL CHECK (typeof(scheduler) = 'text'),
	state TEXT NOT NULL CHECK (state IN ('running', 'stopped', 'done', 'failed')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	mode TEXT NOT NULL CHECK (mode IN ('quick', 'standard', 'long', 'strict')),
	seed INTEGER NOT NULL CHECK (typeof(seed) = 'integer'),
	alpha REAL NOT NULL CHECK (typeof(alpha) = 'real' AND alpha >= 0 AND alpha <= 1),
	confirm_max INTEGER NOT NULL CHECK (typeof(confirm_max) = 'integer' AND confirm_max >= 0),
	env_json TEXT NOT NULL CHECK (typeof(env_json) = 'text'),
	created_us INTEGER NOT NULL CHECK (typeof(created_us) = 'integer'),
	ended_us INTEGER CHECK (typeof(ended_us) IN ('integer', 'null')),
	deadline_us INTEGER CHECK (typeof(deadline_us) IN ('integer', 'null'))
);
CREATE INDEX campaign_by_name ON campaign(name);

CREATE TABLE recipe_source(
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer'),
	name TEXT NOT NULL CHECK (typeof(name) = 'text'),
	path TEXT NOT NULL CHECK (typeof(path) = 'text'),
	text TEXT NOT NULL CHECK (typeof(text) = 'text'),
	hash TEXT NOT NULL CHECK (typeof(hash) = 'text'),
	PRIMARY KEY (campaign, seq)
);

-- The row stays when the lease is dropped, so that the fence only grows.
CREATE TABLE lease(
	campaign INTEGER PRIMARY KEY REFERENCES campaign(id),
	held INTEGER NOT NULL CHECK (typeof(held) = 'integer' AND held IN (0, 1)),
	host TEXT NOT NULL CHECK (typeof(host) = 'text'),
	boot_id TEXT NOT NULL CHECK (typeof(boot_id) = 'text'),
	pid INTEGER NOT NULL CHECK (typeof(pid) = 'integer'),
	start_ticks INTEGER NOT NULL CHECK (typeof(start_ticks) = 'integer'),
	heartbeat_us INTEGER NOT NULL CHECK (typeof(heartbeat_us) = 'integer'),
	fence INTEGER NOT NULL CHECK (typeof(fence) = 'integer' AND fence > 0)
);

-- argv_json is an array of texts; env_json an object, null for a variable to unset.
CREATE TABLE config(
	id INTEGER PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE CHECK (typeof(hash) = 'text' AND length(hash) = 32),
	argv_json TEXT NOT NULL CHECK (typeof(argv_json) = 'text'),
	env_json TEXT NOT NULL CHECK (typeof(env_json) = 'text')
);

CREATE TABLE setting(
	config INTEGER NOT NULL REFERENCES config(id) CHECK (typeof(config) = 'integer'),
	knob TEXT NOT NULL CHECK (typeof(knob) = 'text'),
	value TEXT NOT NULL CHECK (typeof(value) = 'text'),
	PRIMARY KEY (config, knob)
);

CREATE TABLE hypothesis(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	round INTEGER NOT NULL CHECK (typeof(round) = 'integer'),
	rank INTEGER NOT NULL CHECK (typeof(rank) = 'integer'),
	knob TEXT NOT NULL CHECK (typeof(knob) = 'text'),
	value TEXT NOT NULL CHECK (typeof(value) = 'text'),
	from_value TEXT CHECK (typeof(from_value) IN ('text', 'null')),
	class TEXT NOT NULL CHECK (class IN ('neutral', 'numerics', 'optimisation')),
	proof TEXT NOT NULL CHECK (proof IN ('none', 'delivered', 'acknowledged', 'effective')),
	user_defined INTEGER NOT NULL CHECK (typeof(user_defined) = 'integer' AND user_defined IN (0, 1)),
	bottleneck TEXT NOT NULL CHECK (bottleneck IN
		('unknown', 'compute', 'communication', 'storage', 'host', 'memory')),
	evidence TEXT NOT NULL CHECK (typeof(evidence) = 'text'),
	gain REAL CHECK (typeof(gain) IN ('real', 'null')),
	ceiling REAL CHECK (typeof(ceiling) IN ('real', 'null')),
	state TEXT NOT NULL CHECK (state IN
		('proposed', 'linted_out', 'not_tried', 'screened_out', 'tested')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null'))
);
CREATE INDEX hypothesis_by_rank ON hypothesis(campaign, round, rank);

CREATE TABLE finding(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	round INTEGER NOT NULL CHECK (typeof(round) = 'integer'),
	bottleneck TEXT NOT NULL CHECK (bottleneck IN
		('unknown', 'compute', 'communication', 'storage', 'host', 'memory')),
	share REAL CHECK (typeof(share) IN ('real', 'null')),
	evidence TEXT NOT NULL CHECK (typeof(evidence) = 'text'),
	rule TEXT NOT NULL CHECK (typeof(rule) = 'text')
);
CREATE INDEX finding_by_round ON finding(campaign, round);

CREATE TABLE stage(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	hypothesis INTEGER REFERENCES hypothesis(id) CHECK (typeof(hypothesis) IN ('integer', 'null')),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer'),
	round INTEGER NOT NULL CHECK (typeof(round) = 'integer'),
	kind TEXT NOT NULL CHECK (kind IN
		('aa', 'verify', 'screen', 'confirm', 'ablate', 'final', 'soak', 'canary', 'converge')),
	planned_blocks INTEGER NOT NULL CHECK (typeof(planned_blocks) = 'integer'),
	alpha_share REAL NOT NULL CHECK (typeof(alpha_share) = 'real'),
	ssr REAL NOT NULL CHECK (typeof(ssr) = 'real'),
	df0 INTEGER NOT NULL CHECK (typeof(df0) = 'integer'),
	open INTEGER NOT NULL CHECK (typeof(open) = 'integer' AND open IN (0, 1)),
	note TEXT CHECK (typeof(note) IN ('text', 'null')),
	avoid_nodes TEXT CHECK (typeof(avoid_nodes) IN ('text', 'null')),
	UNIQUE (campaign, seq)
);

CREATE TABLE arm(
	id INTEGER PRIMARY KEY,
	stage INTEGER NOT NULL REFERENCES stage(id) CHECK (typeof(stage) = 'integer'),
	idx INTEGER NOT NULL CHECK (typeof(idx) = 'integer' AND idx >= 0),
	role TEXT NOT NULL CHECK (role IN ('baseline', 'treatment')),
	config INTEGER NOT NULL REFERENCES config(id) CHECK (typeof(config) = 'integer'),
	hypothesis INTEGER REFERENCES hypothesis(id) CHECK (typeof(hypothesis) IN ('integer', 'null')),
	label TEXT NOT NULL CHECK (typeof(label) = 'text'),
	UNIQUE (stage, idx)
);

-- What an ablate stage found about each of its treatment arms: the fix without one accepted change.
-- est, lo, hi: relative effect of the removal, + is better without the change.
CREATE TABLE ablation(
	arm INTEGER PRIMARY KEY REFERENCES arm(id),
	knobs TEXT NOT NULL CHECK (typeof(knobs) = 'text' AND knobs <> ''),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n >= 0),
	est REAL CHECK (typeof(est) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	outcome TEXT NOT NULL CHECK (outcome IN ('pays', 'open', 'useless', 'dropped')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null'))
);

-- A treatment arm that carries a hypothesis, against the baseline arm of its stage. It is one of the
-- tested ones once there is a verdict on (stage, hypothesis).
CREATE TABLE experiment(
	id INTEGER PRIMARY KEY,
	stage INTEGER NOT NULL REFERENCES stage(id) CHECK (typeof(stage) = 'integer'),
	hypothesis INTEGER NOT NULL REFERENCES hypothesis(id) CHECK (typeof(hypothesis) = 'integer'),
	baseline INTEGER NOT NULL REFERENCES arm(id) CHECK (typeof(baseline) = 'integer'),
	treatment INTEGER NOT NULL UNIQUE REFERENCES arm(id) CHECK (typeof(treatment) = 'integer'),
	UNIQUE (stage, hypothesis)
);

CREATE TABLE block(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	stage INTEGER NOT NULL REFERENCES stage(id) CHECK (typeof(stage) = 'integer'),
	idx INTEGER NOT NULL CHECK (typeof(idx) = 'integer' AND idx >= 0),
	UNIQUE (stage, idx)
);

-- What a block runs, in order.
CREATE TABLE slot(
	block INTEGER NOT NULL REFERENCES block(id) CHECK (typeof(block) = 'integer'),
	idx INTEGER NOT NULL CHECK (typeof(idx) = 'integer' AND idx >= 0),
	arm INTEGER NOT NULL REFERENCES arm(id) CHECK (typeof(arm) = 'integer'),
	repeat INTEGER NOT NULL CHECK (typeof(repeat) = 'integer'),
	kind TEXT NOT NULL CHECK (kind IN ('warmup', 'timed')),
	PRIMARY KEY (block, idx)
) WITHOUT ROWID;

CREATE TABLE allocation(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	scheduler TEXT NOT NULL CHECK (typeof(scheduler) = 'text'),
	token TEXT NOT NULL UNIQUE CHECK (typeof(token) = 'text'),
	job_id TEXT CHECK (typeof(job_id) IN ('text', 'null')),
	outcome TEXT CHECK (typeof(outcome) IN ('text', 'null')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	planned_us INTEGER NOT NULL CHECK (typeof(planned_us) = 'integer'),
	submitted_us INTEGER CHECK (typeof(submitted_us) IN ('integer', 'null')),
	start_us INTEGER CHECK (typeof(start_us) IN ('integer', 'null')),
	end_us INTEGER CHECK (typeof(end_us) IN ('integer', 'null'))
);
CREATE INDEX allocation_by_campaign ON allocation(campaign);

-- by_agent: told by the agent, which knows all of them; the scheduler's list may be cut.
CREATE TABLE allocation_node(
	allocation INTEGER NOT NULL REFERENCES allocation(id) CHECK (typeof(allocation) = 'integer'),
	node TEXT NOT NULL CHECK (typeof(node) = 'text' AND node <> ''),
	by_agent INTEGER NOT NULL CHECK (typeof(by_agent) = 'integer' AND by_agent IN (0, 1)),
	PRIMARY KEY (allocation, node)
) WITHOUT ROWID;

CREATE TABLE attempt(
	id INTEGER PRIMARY KEY,
	block INTEGER NOT NULL REFERENCES block(id) CHECK (typeof(block) = 'integer'),
	number INTEGER NOT NULL CHECK (typeof(number) = 'integer' AND number > 0),
	allocation INTEGER NOT NULL REFERENCES allocation(id) CHECK (typeof(allocation) = 'integer'),
	state TEXT NOT NULL CHECK (state IN ('planned', 'submitted', 'valid', 'void', 'lost')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	dir TEXT NOT NULL UNIQUE CHECK (typeof(dir) = 'text'),
	manifest_hash TEXT CHECK (typeof(manifest_hash) IN ('text', 'null')),
	ended_us INTEGER CHECK (typeof(ended_us) IN ('integer', 'null')),
	UNIQUE (block, number),
	CHECK ((state = 'valid') = (manifest_hash IS NOT NULL))
);
CREATE UNIQUE INDEX attempt_valid_once ON attempt(block) WHERE state = 'valid';
CREATE INDEX attempt_by_allocation ON attempt(allocation);

CREATE TABLE trial(
	id INTEGER PRIMARY KEY,
	attempt INTEGER NOT NULL REFERENCES attempt(id) CHECK (typeof(attempt) = 'integer'),
	slot INTEGER NOT NULL CHECK (typeof(slot) = 'integer' AND slot >= 0),
	arm INTEGER NOT NULL REFERENCES arm(id) CHECK (typeof(arm) = 'integer'),
	repeat INTEGER NOT NULL CHECK (typeof(repeat) = 'integer'),
	kind TEXT NOT NULL CHECK (kind IN ('warmup', 'timed')),
	state TEXT NOT NULL CHECK (state IN ('ok', 'failed', 'void', 'lost')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	exit_status INTEGER NOT NULL CHECK (typeof(exit_status) = 'integer'),
	term_signal INTEGER NOT NULL CHECK (typeof(term_signal) = 'integer'),
	start_us INTEGER NOT NULL CHECK (typeof(start_us) = 'integer'),
	wall_us INTEGER NOT NULL CHECK (typeof(wall_us) = 'integer'),
	user_us INTEGER NOT NULL CHECK (typeof(user_us) = 'integer'),
	sys_us INTEGER NOT NULL CHECK (typeof(sys_us) = 'integer'),
	maxrss_kib INTEGER NOT NULL CHECK (typeof(maxrss_kib) = 'integer'),
	node TEXT CHECK (typeof(node) IN ('text', 'null')),
	log_path TEXT CHECK (typeof(log_path) IN ('text', 'null')),
	UNIQUE (attempt, slot)
);
CREATE INDEX trial_by_arm ON trial(arm);

-- What the rules of trial quality found in an attempt, void ones too; slot NULL: the attempt as a whole.
CREATE TABLE quality_finding(
	attempt INTEGER NOT NULL REFERENCES attempt(id) CHECK (typeof(attempt) = 'integer'),
	seq INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 0),
	rule TEXT NOT NULL CHECK (rule IN
		('fail_slow', 'steady', 'drift', 'outliers', 'clocks', 'throttle', 'neighbour')),
	action TEXT NOT NULL CHECK (action IN ('note', 'void')),
	slot INTEGER CHECK (typeof(slot) IN ('integer', 'null')),
	value REAL CHECK (typeof(value) IN ('real', 'null')),
	bound REAL CHECK (typeof(bound) IN ('real', 'null')),
	text TEXT NOT NULL CHECK (typeof(text) = 'text'),
	PRIMARY KEY (attempt, seq)
) WITHOUT ROWID;

CREATE TABLE effective(
	trial INTEGER NOT NULL REFERENCES trial(id) CHECK (typeof(trial) = 'integer'),
	rank INTEGER NOT NULL CHECK (typeof(rank) = 'integer'),
	key TEXT NOT NULL CHECK (typeof(key) = 'text'),
	value TEXT NOT NULL CHECK (typeof(value) = 'text'),
	level TEXT NOT NULL CHECK (level IN ('none', 'delivered', 'acknowledged', 'effective')),
	PRIMARY KEY (trial, rank, key, level, value)
) WITHOUT ROWID;

CREATE TABLE metric_def(
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE CHECK (typeof(name) = 'text'),
	unit TEXT NOT NULL CHECK (typeof(unit) = 'text'),
	better TEXT NOT NULL CHECK (better IN ('up', 'down', 'none')),
	min REAL CHECK (typeof(min) IN ('real', 'null')),
	max REAL CHECK (typeof(max) IN ('real', 'null')),
	summary TEXT NOT NULL CHECK (typeof(summary) = 'text')
);

-- "k=v,k=v" in the order of the keys; '' for a value of the whole trial.
CREATE TABLE labelset(
	id INTEGER PRIMARY KEY,
	labels TEXT NOT NULL UNIQUE CHECK (typeof(labels) = 'text')
);

CREATE TABLE metric(
	trial INTEGER NOT NULL REFERENCES trial(id) CHECK (typeof(trial) = 'integer'),
	def INTEGER NOT NULL REFERENCES metric_def(id) CHECK (typeof(def) = 'integer'),
	label INTEGER NOT NULL REFERENCES labelset(id) CHECK (typeof(label) = 'integer'),
	stat TEXT NOT NULL CHECK (typeof(stat) = 'text' AND stat <> ''),
	value REAL NOT NULL CHECK (typeof(value) = 'real'),
	PRIMARY KEY (trial, def, label, stat)
) WITHOUT ROWID;

CREATE TABLE verdict(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	campaign INTEGER NOT NULL REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	stage INTEGER NOT NULL REFERENCES stage(id) CHECK (typeof(stage) = 'integer'),
	hypothesis INTEGER REFERENCES hypothesis(id) CHECK (typeof(hypothesis) IN ('integer', 'null')),
	look INTEGER NOT NULL CHECK (typeof(look) = 'integer'),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer'),
	final_look INTEGER NOT NULL CHECK (typeof(final_look) = 'integer' AND final_look IN (0, 1)),
	outcome TEXT NOT NULL CHECK (outcome IN
		('invalid', 'rejected: guard', 'accepted', 'equivalent', 'rejected: no useful gain',
		'rejected: worse', 'inconclusive', 'continue')),
	reason TEXT CHECK (typeof(reason) IN ('text', 'null')),
	est REAL CHECK (typeof(est) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	df REAL CHECK (typeof(df) IN ('real', 'null')),
	p REAL CHECK (typeof(p) IN ('real', 'null')),
	p_star REAL CHECK (typeof(p_star) IN ('real', 'null')),
	alpha_spent REAL NOT NULL CHECK (typeof(alpha_spent) = 'real'),
	sign_flip_p REAL CHECK (typeof(sign_flip_p) IN ('real', 'null')),
	pending_convergence INTEGER NOT NULL
		CHECK (typeof(pending_convergence) = 'integer' AND pending_convergence IN (0, 1)),
	effect_unproved INTEGER NOT NULL
		CHECK (typeof(effect_unproved) = 'integer' AND effect_unproved IN (0, 1)),
	inputs_hash TEXT CHECK (typeof(inputs_hash) IN ('text', 'null')),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer'),
	CHECK (final_look = (outcome <> 'continue'))
);
CREATE INDEX verdict_by_campaign ON verdict(campaign);
CREATE INDEX verdict_by_hypothesis ON verdict(hypothesis);
CREATE INDEX verdict_by_stage ON verdict(stage);
CREATE TRIGGER verdict_no_update BEFORE UPDATE ON verdict
BEGIN
	SELECT raise(ABORT, 'verdicts are append-only: add a new one');
END;
CREATE TRIGGER verdict_no_delete BEFORE DELETE ON verdict
BEGIN
	SELECT raise(ABORT, 'verdicts are append-only: none is deleted');
END;

-- What each guard said at a look. equal: compared at the same step, or at the same samples or tokens.
CREATE TABLE guard_result(
	verdict INTEGER NOT NULL REFERENCES verdict(id) CHECK (typeof(verdict) = 'integer'),
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
	PRIMARY KEY (verdict, seq)
) WITHOUT ROWID;

-- One last word a test, and no look twice with the same pairs. A trigger and not two unique indexes:
-- INSERT OR REPLACE would delete what is in an index's way without asking the trigger above, and an
-- index on coalesce(hypothesis, 0) beside a trigger crashes SQLite 3.26.0.
CREATE TRIGGER verdict_no_replace BEFORE INSERT ON verdict
WHEN EXISTS (SELECT 1 FROM verdict v WHERE v.id = NEW.id)
	OR EXISTS (SELECT 1 FROM verdict v WHERE v.stage = NEW.stage
		AND coalesce(v.hypothesis, 0) = coalesce(NEW.hypothesis, 0)
		AND (v.final_look = 1 AND NEW.final_look = 1
			OR v.look = NEW.look AND v.n = NEW.n AND v.outcome = NEW.outcome))
BEGIN
	SELECT raise(ABORT, 'verdicts are append-only: this test has its verdict, or this look is stored');
END;

CREATE TABLE fix(
	id INTEGER PRIMARY KEY,
	campaign INTEGER NOT NULL UNIQUE REFERENCES campaign(id) CHECK (typeof(campaign) = 'integer'),
	config INTEGER REFERENCES config(id) CHECK (typeof(config) IN ('integer', 'null')),
	stage INTEGER REFERENCES stage(id) CHECK (typeof(stage) IN ('integer', 'null')),
	state TEXT NOT NULL CHECK (state IN
		('validated', 'accepted, pending convergence', 'gain not seen again', 'not measured',
		'rejected: loss not held')),
	est REAL CHECK (typeof(est) IN ('real', 'null')),
	lo REAL CHECK (typeof(lo) IN ('real', 'null')),
	hi REAL CHECK (typeof(hi) IN ('real', 'null')),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer'),
	fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
	soak_drift REAL CHECK (typeof(soak_drift) IN ('real', 'null')),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer')
);

-- A metric of a fixed configuration over nights; a night is the local date on which its window opens.
CREATE TABLE series(
	id INTEGER PRIMARY KEY,
	fix INTEGER NOT NULL REFERENCES fix(id) CHECK (typeof(fix) = 'integer'),
	config INTEGER NOT NULL REFERENCES config(id) CHECK (typeof(config) = 'integer'),
	def INTEGER NOT NULL REFERENCES metric_def(id) CHECK (typeof(def) = 'integer'),
	stat TEXT NOT NULL CHECK (typeof(stat) = 'text' AND stat <> ''),
	fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
	created_us INTEGER NOT NULL CHECK (typeof(created_us) = 'integer'),
	ended_us INTEGER CHECK (typeof(ended_us) IN ('integer', 'null')),
	UNIQUE (config, def, stat, fingerprint)
);

CREATE TABLE point(
	series INTEGER NOT NULL REFERENCES series(id) CHECK (typeof(series) = 'integer'),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	n INTEGER NOT NULL CHECK (typeof(n) = 'integer' AND n > 0),
	value REAL NOT NULL CHECK (typeof(value) = 'real'),
	sd REAL CHECK (typeof(sd) IN ('real', 'null')),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer'),
	PRIMARY KEY (series, night)
) WITHOUT ROWID;

CREATE TABLE change(
	id INTEGER PRIMARY KEY,
	series INTEGER NOT NULL REFERENCES series(id) CHECK (typeof(series) = 'integer'),
	night TEXT NOT NULL CHECK (night GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
	est REAL NOT NULL CHECK (typeof(est) = 'real'),
	p REAL CHECK (typeof(p) IN ('real', 'null')),
	found_us INTEGER NOT NULL CHECK (typeof(found_us) = 'integer'),
	UNIQUE (series, night)
);

CREATE TABLE event(
	id INTEGER PRIMARY KEY,
	campaign INTEGER REFERENCES campaign(id) CHECK (typeof(campaign) IN ('integer', 'null')),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer'),
	kind TEXT NOT NULL CHECK (typeof(kind) = 'text' AND kind <> ''),
	text TEXT NOT NULL CHECK (typeof(text) = 'text')
);
CREATE INDEX event_by_campaign ON event(campaign, kind);

-- -- the public interface ----------------------------------------------------------------------

CREATE VIEW v_campaign AS
SELECT c.id AS campaign, c.name, c.state, c.reason, c.mode, c.scheduler, c.alpha, c.confirm_max,
	datetime(c.created_us / 1000000, 'unixepoch') AS created_utc,
	datetime(c.ended_us / 1000000, 'unixepoch') AS ended_utc,
	(SELECT count(*) FROM hypothesis h WHERE h.campaign = c.id) AS hypotheses,
	(SELECT count(*) FROM verdict v WHERE v.campaign = c.id AND v.outcome = 'accepted'
		AND v.hypothesis IS NOT NULL) AS wins,
	f.state AS fix, f.est, f.lo, f.hi, f.n AS fix_blocks, f.soak_drift,
	c.recipe_path, c.recipe_hash
FROM campaign c LEFT JOIN fix f ON f.campaign = c.id;

CREATE VIEW v_trial AS
SELECT s.campaign, t.id AS trial, s.id AS stage, s.seq AS stage_seq, s.kind AS stage_kind, s.round,
	b.id AS block, b.idx AS block_index, a.number AS attempt, a.state AS attempt_state,
	t.slot, t.repeat, t.kind, t.arm, r.label AS arm_label, r.role AS arm_role, t.state, t.reason,
	(t.kind = 'timed' AND t.state = 'ok' AND a.state = 'valid') AS counted,
	t.exit_status, t.term_signal, datetime(t.start_us / 1000000, 'unixepoch') AS start_utc,
	t.wall_us / 1e6 AS wall_s, t.user_us / 1e6 AS user_s, t.sys_us / 1e6 AS sys_s,
	t.maxrss_kib / 1024.0 AS maxrss_mib, t.node, t.log_path, c.hash AS config_hash
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
JOIN trial t ON t.attempt = a.id
JOIN arm r ON r.id = t.arm
JOIN config c ON c.id = r.config;

CREATE VIEW v_metric AS
SELECT v.campaign, v.trial, v.stage, v.stage_kind, v.block_index, v.slot, v.arm_label, v.counted,
	d.name AS metric, m.stat, l.labels, m.value, d.unit, d.better
FROM v_trial v
JOIN metric m ON m.trial = v.trial
JOIN metric_def d ON d.id = m.def
JOIN labelset l ON l.id = m.label;

CREATE VIEW v_experiment AS
SELECT h.campaign, h.id AS hypothesis, h.round, h.knob, h.from_value, h.value, h.class,
	h.user_defined, s.id AS stage, s.seq AS stage_seq, s.kind AS stage_kind,
	x.baseline AS baseline_arm, x.treatment AS treatment_arm, v.outcome, v.reason, v.look, v.n,
	v.est, v.lo, v.hi, v.p, v.p_star, v.alpha_spent, v.pending_convergence, v.effect_unproved,
	datetime(v.at_us / 1000000, 'unixepoch') AS decided_utc
FROM hypothesis h
JOIN verdict v ON v.id = (SELECT max(w.id) FROM verdict w WHERE w.hypothesis = h.id)
JOIN stage s ON s.id = v.stage
LEFT JOIN experiment x ON x.stage = v.stage AND x.hypothesis = h.id
WHERE h.state = 'tested';

CREATE VIEW v_guard AS
SELECT v.campaign, v.hypothesis, v.stage, v.look, v.outcome, g.metric, g.stat, g.rule, g.equal, g.n,
	g.value, g.worsening, g.lo, g.hi, g.bound, g.state
FROM verdict v JOIN guard_result g ON g.verdict = v.id;

CREATE VIEW v_hypothesis AS
SELECT h.campaign, h.id AS hypothesis, h.round, h.rank, h.knob, h.from_value, h.value, h.class,
	h.bottleneck, h.gain AS predicted_gain, h.ceiling, h.state, h.reason, v.outcome, v.est, v.lo, v.hi,
	h.evidence
FROM hypothesis h
LEFT JOIN verdict v ON h.state = 'tested'
	AND v.id = (SELECT max(w.id) FROM verdict w WHERE w.hypothesis = h.id);

-- Trials that are not ok, and attempts that gave nothing (slot and arm NULL).
CREATE VIEW v_fault AS
SELECT s.campaign, s.id AS stage, s.seq AS stage_seq, s.kind AS stage_kind, b.idx AS block_index,
	a.number AS attempt, t.slot, r.label AS arm_label, t.state, t.reason, t.log_path
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
JOIN trial t ON t.attempt = a.id
JOIN arm r ON r.id = t.arm
WHERE t.state <> 'ok'
UNION ALL
SELECT s.campaign, s.id, s.seq, s.kind, b.idx, a.number, NULL, NULL, a.state, a.reason,
	a.dir || '/agent.out'
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
WHERE a.state IN ('void', 'lost');

CREATE VIEW v_quality AS
SELECT s.campaign, s.id AS stage, s.seq AS stage_seq, s.kind AS stage_kind, b.idx AS block_index,
	a.number AS attempt, a.state AS attempt_state, q.rule, q.action, q.slot, q.value, q.bound, q.text
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
JOIN quality_finding q ON q.attempt = a.id;

-- Time of an allocation as its scheduler gave it, else that of its trials; nodes 1 when unknown.
CREATE VIEW v_cost AS
SELECT c.id AS campaign,
	(SELECT count(*) FROM stage s JOIN block b ON b.stage = s.id JOIN attempt a ON a.block = b.id
		JOIN trial t ON t.attempt = a.id WHERE s.campaign = c.id AND t.kind = 'timed') AS trials_timed,
	(SELECT count(*) FROM stage s JOIN block b ON b.stage = s.id JOIN attempt a ON a.block = b.id
		JOIN trial t ON t.attempt = a.id WHERE s.campaign = c.id) AS trials_all,
	(SELECT count(*) FROM allocation l JOIN attempt a ON a.allocation = l.id
		WHERE l.campaign = c.id) AS attempts,
	(SELECT count(*) FROM allocation l JOIN attempt a ON a.allocation = l.id
		WHERE l.campaign = c.id AND a.state IN ('void', 'lost')) AS attempts_void,
	(SELECT count(*) FROM allocation l WHERE l.campaign = c.id) AS allocations,
	(SELECT coalesce(sum(t.wall_us), 0) / 1e6 FROM allocation l JOIN attempt a ON a.allocation = l.id
		JOIN trial t ON t.attempt = a.id WHERE l.campaign = c.id) AS trial_s,
	(SELECT coalesce(sum(coalesce(l.end_us - l.start_us,
			(SELECT sum(t.wall_us) FROM attempt a JOIN trial t ON t.attempt = a.id
				WHERE a.allocation = l.id), 0)
		* max(1, (SELECT count(*) FROM allocation_node n WHERE n.allocation = l.id))), 0) / 1e6
		FROM allocation l WHERE l.campaign = c.id) AS node_s
FROM campaign c;
