-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Ten million events: events by name and by address; refusals by owner; a database whose older events
-- are not counted yet.

CREATE INDEX sandbox_egress_event_name ON sandbox_egress_event (fqdn_pinned)
	WHERE fqdn_pinned IS NOT NULL;
CREATE INDEX sandbox_egress_event_ip ON sandbox_egress_event (remote_ip) WHERE remote_ip IS NOT NULL;

-- The counts of migration 4, with the scope that a reader asks for. They are made anew from the events.
DROP TABLE egress_counted;
DROP TABLE egress_deny_count;
DROP TABLE egress_deny_sandbox;
DELETE FROM egress_event_span;

-- One row. Every event up to last_id is counted, except for those from gap_first to gap_last (0, 0:
-- none): where many are not, the newest come first (src/store/admin/count.c).
CREATE TABLE egress_counted (
	last_id INTEGER NOT NULL,
	gap_first INTEGER NOT NULL,
	gap_last INTEGER NOT NULL
);
INSERT INTO egress_counted VALUES (0, 0, 0);

--   kind         0: by remote_ip, 1: by fqdn_pinned (or remote_ip, without a name), both in all; 5 and
--                6: the same for the workspace `scope`; 7 and 8: for the owner (uid) `scope`; 2: by
--                sandbox_id; 4: by reason
--   span         seconds that the row is about: 60, 3600, 21600 or 86400. Minutes of kind 4 go after
--                two days, others after three hours
--   at           their beginning, seconds since 1970
--   scope        '' in kinds 0, 1, 2 and 4
--   key          '' for NULL
--   workspace    in kinds 2 and 4; '' for NULL and in all others
--   owner        for whom the service started the sandbox: in kinds 2, 4, 5 and 6; -1: nobody
--   n            refusals
--   n_rows       rows of sandbox_egress_event, from first_id to last_id
CREATE TABLE egress_deny_count (
	kind INTEGER NOT NULL,
	span INTEGER NOT NULL,
	at INTEGER NOT NULL,
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	workspace TEXT NOT NULL,
	owner INTEGER NOT NULL,
	n INTEGER NOT NULL,
	n_rows INTEGER NOT NULL,
	first_id INTEGER NOT NULL,
	last_id INTEGER NOT NULL,
	PRIMARY KEY (kind, span, at, scope, key, workspace, owner)
) WITHOUT ROWID;

-- Which sandboxes a count is about, by the hour. Kinds 0, 1 and 4, and 3: by workspace.
CREATE TABLE egress_deny_sandbox (
	at INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	key TEXT NOT NULL,
	sandbox_id TEXT NOT NULL,
	workspace TEXT NOT NULL,
	owner INTEGER NOT NULL,
	PRIMARY KEY (at, kind, key, sandbox_id)
) WITHOUT ROWID;
