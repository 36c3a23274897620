-- SPDX-License-Identifier: GPL-2.0-or-later
-- Who began a campaign and who submitted a job, in a workspace of several users; NULL: before that was kept.
ALTER TABLE campaign ADD COLUMN user TEXT CHECK (typeof(user) IN ('text', 'null'));
ALTER TABLE allocation ADD COLUMN user TEXT CHECK (typeof(user) IN ('text', 'null'));

DROP VIEW v_campaign;
CREATE VIEW v_campaign AS
SELECT c.id AS campaign, c.name, c.state, c.reason, c.mode, c.scheduler, c.alpha, c.confirm_max,
	datetime(c.created_us / 1000000, 'unixepoch') AS created_utc,
	datetime(c.ended_us / 1000000, 'unixepoch') AS ended_utc,
	(SELECT count(*) FROM hypothesis h WHERE h.campaign = c.id) AS hypotheses,
	(SELECT count(*) FROM verdict v WHERE v.campaign = c.id AND v.outcome = 'accepted'
		AND v.hypothesis IS NOT NULL) AS wins,
	f.state AS fix, f.reason AS fix_reason, f.est, f.lo, f.hi, f.n AS fix_blocks, f.soak_drift,
	c.recipe_path, c.recipe_hash, c.user
FROM campaign c LEFT JOIN fix f ON f.campaign = c.id;

DROP VIEW v_allocation;
CREATE VIEW v_allocation AS
SELECT l.campaign, l.id AS allocation, l.scheduler, l.job_id, l.outcome, l.reason,
	datetime(l.start_us / 1000000, 'unixepoch') AS start_utc,
	datetime(l.end_us / 1000000, 'unixepoch') AS end_utc,
	(l.end_us - l.start_us) / 1e6 AS wall_s,
	(SELECT group_concat(node) FROM (SELECT node FROM allocation_node n WHERE n.allocation = l.id
		ORDER BY node)) AS nodes,
	(SELECT group_concat(switches) FROM (SELECT DISTINCT switches FROM allocation_node n
		WHERE n.allocation = l.id AND n.switches IS NOT NULL ORDER BY switches)) AS switches,
	a.elapsed_s, a.maxrss_kib / 1024.0 AS maxrss_mib, a.energy_j, a.tres, l.user
FROM allocation l LEFT JOIN allocation_account a ON a.allocation = l.id;
