-- SPDX-License-Identifier: GPL-2.0-or-later
-- What a resume counts from, so that a campaign that stopped because its budget of trials or node
-- hours was used up, or because blocks were lost again and again, goes on and does not stop at once.
-- resume_attempt: the newest attempt at that time; lost and void ones up to it are forgiven.
ALTER TABLE campaign ADD COLUMN resume_attempt INTEGER NOT NULL DEFAULT 0
	CHECK (typeof(resume_attempt) = 'integer');
ALTER TABLE campaign ADD COLUMN resume_trials INTEGER NOT NULL DEFAULT 0
	CHECK (typeof(resume_trials) = 'integer');
ALTER TABLE campaign ADD COLUMN resume_node_s REAL NOT NULL DEFAULT 0.0
	CHECK (typeof(resume_node_s) = 'real');
