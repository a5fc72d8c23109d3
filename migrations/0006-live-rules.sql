-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- The live rules of a sandbox, beside allow_out and deny_out: a JSON array of texts, "allow api.example.org GET".
ALTER TABLE sandbox ADD COLUMN rules TEXT NOT NULL DEFAULT '[]';
