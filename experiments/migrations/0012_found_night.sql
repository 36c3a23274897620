-- SPDX-License-Identifier: GPL-2.0-or-later
-- The last night whose points took part in suspecting a change: what is to judge it is later.
ALTER TABLE change ADD COLUMN found_night TEXT CHECK (typeof(found_night) IN ('text', 'null'));
