-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Changes that the database itself does not make (of a running sandbox) have their row before them.
--
--   outcome     'made'; NULL: it is about to be made, or the service ended before it knew the outcome.
--               after_json has what was asked for then
ALTER TABLE api_audit ADD COLUMN outcome TEXT DEFAULT 'made';
