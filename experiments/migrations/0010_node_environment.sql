-- SPDX-License-Identifier: GPL-2.0-or-later
-- What each node of an attempt was when it ran: the environment that its values hold for.
CREATE TABLE node_environment(
	attempt INTEGER NOT NULL REFERENCES attempt(id) CHECK (typeof(attempt) = 'integer'),
	node TEXT NOT NULL CHECK (typeof(node) = 'text' AND node <> ''),
	environment INTEGER NOT NULL REFERENCES environment(id) CHECK (typeof(environment) = 'integer'),
	PRIMARY KEY (attempt, node)
) WITHOUT ROWID;

CREATE VIEW v_environment AS
SELECT s.campaign, b.stage, s.kind, b.idx AS block, a.number AS attempt, n.node, n.environment, e.text
FROM node_environment n JOIN attempt a ON a.id = n.attempt JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage
	JOIN environment e ON e.id = n.environment
WHERE a.state = 'valid';
