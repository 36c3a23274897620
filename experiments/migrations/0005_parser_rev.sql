-- SPDX-License-Identifier: GPL-2.0-or-later
-- Which revision of the parsers made the values of an attempt out of its files (NULL: one before they were
-- counted): `fettle reparse` reads the files again.
ALTER TABLE attempt ADD COLUMN parser_rev INTEGER CHECK (typeof(parser_rev) IN ('integer', 'null'));

DROP VIEW v_metric;
CREATE VIEW v_metric AS
SELECT v.campaign, v.trial, v.stage, v.stage_kind, v.block_index, v.slot, v.arm_label, v.counted,
	d.name AS metric, m.stat, l.labels, m.value, d.unit, d.better, a.parser_rev
FROM v_trial v
JOIN trial t ON t.id = v.trial
JOIN attempt a ON a.id = t.attempt
JOIN metric m ON m.trial = v.trial
JOIN metric_def d ON d.id = m.def
JOIN labelset l ON l.id = m.label;
