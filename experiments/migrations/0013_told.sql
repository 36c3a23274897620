-- SPDX-License-Identifier: GPL-2.0-or-later
-- When people were told of a regression by a message; NULL: not yet. One is told once.
ALTER TABLE regression ADD COLUMN told_us INTEGER CHECK (typeof(told_us) IN ('integer', 'null'));
