-- SPDX-License-Identifier: GPL-2.0-or-later
-- A trial that is ok may have a reason too: what was noticed about it (processes that it left, output
-- that was cut). It belongs among the faults, with its log.
DROP VIEW v_fault;
CREATE VIEW v_fault AS
SELECT s.campaign, s.id AS stage, s.seq AS stage_seq, s.kind AS stage_kind, b.idx AS block_index,
	a.number AS attempt, t.slot, r.label AS arm_label, t.state, t.reason, t.log_path
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
JOIN trial t ON t.attempt = a.id
JOIN arm r ON r.id = t.arm
WHERE t.state <> 'ok' OR t.reason IS NOT NULL
UNION ALL
SELECT s.campaign, s.id, s.seq, s.kind, b.idx, a.number, NULL, NULL, a.state, a.reason,
	a.dir || '/agent.out'
FROM stage s
JOIN block b ON b.stage = s.id
JOIN attempt a ON a.block = b.id
WHERE a.state IN ('void', 'lost');
