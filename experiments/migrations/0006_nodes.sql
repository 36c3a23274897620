-- SPDX-License-Identifier: GPL-2.0-or-later
-- What the cluster's accounts say that an allocation took, and which switches its nodes hang on.
CREATE TABLE allocation_account(
	allocation INTEGER PRIMARY KEY REFERENCES allocation(id) CHECK (typeof(allocation) = 'integer'),
	elapsed_s INTEGER CHECK (typeof(elapsed_s) IN ('integer', 'null')),
	maxrss_kib INTEGER CHECK (typeof(maxrss_kib) IN ('integer', 'null')),
	energy_j INTEGER CHECK (typeof(energy_j) IN ('integer', 'null')),
	tres TEXT NOT NULL CHECK (typeof(tres) = 'text'),
	at_us INTEGER NOT NULL CHECK (typeof(at_us) = 'integer')
);
ALTER TABLE allocation_node ADD COLUMN switches TEXT CHECK (typeof(switches) IN ('text', 'null'));

CREATE VIEW v_allocation AS
SELECT l.campaign, l.id AS allocation, l.scheduler, l.job_id, l.outcome, l.reason,
	datetime(l.start_us / 1000000, 'unixepoch') AS start_utc,
	datetime(l.end_us / 1000000, 'unixepoch') AS end_utc,
	(l.end_us - l.start_us) / 1e6 AS wall_s,
	(SELECT group_concat(node) FROM (SELECT node FROM allocation_node n WHERE n.allocation = l.id
		ORDER BY node)) AS nodes,
	(SELECT group_concat(switches) FROM (SELECT DISTINCT switches FROM allocation_node n
		WHERE n.allocation = l.id AND n.switches IS NOT NULL ORDER BY switches)) AS switches,
	a.elapsed_s, a.maxrss_kib / 1024.0 AS maxrss_mib, a.energy_j, a.tres
FROM allocation l LEFT JOIN allocation_account a ON a.allocation = l.id;
