-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- The service (sbxd): its tokens, audit and sandboxes; counts of refusals; indexes for its lists.

-- Bearer tokens.
--
--   hash         SHA-256 of the token, 64 hex digits; the token itself is nowhere
--   workspace    NULL: all
--   last_used_ms at most a minute old
CREATE TABLE api_token (
	name TEXT PRIMARY KEY NOT NULL,
	hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*'),
	role TEXT NOT NULL CHECK (role = 'viewer' OR role = 'operator' OR role = 'admin'),
	workspace TEXT,
	created_ms INTEGER NOT NULL,
	created_by TEXT NOT NULL,
	expires_ms INTEGER,
	last_used_ms INTEGER
) WITHOUT ROWID;

-- Changes that came through the service.
--
--   action       "PUT /sandboxes/{id}/network"
--   object       the id or name of what was changed
--   before_json  its state before; NULL: there was none, or it is not known
--   after_json   its state after; NULL: it is gone
CREATE TABLE api_audit (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at_ms INTEGER NOT NULL,
	principal TEXT NOT NULL,
	action TEXT NOT NULL,
	object TEXT,
	before_json TEXT,
	after_json TEXT
);

-- Sandboxes that the service started. The row is written before the launcher's.
--
--   metadata     JSON object of strings
--   timeout_ms   when the service ends it (since 1970); NULL: not at all
--   waits        1: the launcher's row has not come yet; the start may have been cut
CREATE TABLE api_sandbox (
	sandbox_id TEXT PRIMARY KEY NOT NULL,
	owner_uid INTEGER NOT NULL,
	owner TEXT NOT NULL,
	metadata TEXT NOT NULL DEFAULT '{}',
	timeout_ms INTEGER,
	made_ms INTEGER NOT NULL,
	waits INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;

CREATE INDEX api_sandbox_owner ON api_sandbox (owner_uid);
CREATE INDEX api_sandbox_waits ON api_sandbox (made_ms) WHERE waits = 1;
CREATE TRIGGER sandbox_comes AFTER INSERT ON sandbox BEGIN
	UPDATE api_sandbox SET waits = 0 WHERE sandbox_id = NEW.id;
END;

-- Refusals added up, so that a list of them reads no events. Events are added in batches after they
-- were written, in the order of their ids; egress_counted has the last one, in one row. The rows of
-- reason overflow are not in here, because they grow. (src/store/admin/count.c)
CREATE TABLE egress_counted (
	last_id INTEGER NOT NULL
);
INSERT INTO egress_counted VALUES (0);

--   kind         0: by remote_ip, 1: by fqdn_pinned (or remote_ip, without a name), both in all, with
--                workspace ''; 5 and 6: the same for each workspace; 2: by sandbox_id; 4: by reason,
--                and so by workspace
--   span         seconds that the row is about: 60, 3600 or 86400. Minutes go after two days
--   at           their beginning, seconds since 1970
--   key          '' for NULL, like workspace in kinds 2 and 4
--   n            refusals
--   n_rows       rows of sandbox_egress_event, from first_id to last_id
CREATE TABLE egress_deny_count (
	kind INTEGER NOT NULL,
	span INTEGER NOT NULL,
	at INTEGER NOT NULL,
	key TEXT NOT NULL,
	workspace TEXT NOT NULL,
	n INTEGER NOT NULL,
	n_rows INTEGER NOT NULL,
	first_id INTEGER NOT NULL,
	last_id INTEGER NOT NULL,
	PRIMARY KEY (kind, span, at, key, workspace)
) WITHOUT ROWID;

-- Which sandboxes a count is about, by the hour. Kind 3: by workspace.
CREATE TABLE egress_deny_sandbox (
	at INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	key TEXT NOT NULL,
	sandbox_id TEXT NOT NULL,
	workspace TEXT NOT NULL,
	PRIMARY KEY (at, kind, key, sandbox_id)
) WITHOUT ROWID;

-- Ids of the events of ten minutes (`at`: the first second), of every action: where a page that begins
-- or ends at a time has to look.
CREATE TABLE egress_event_span (
	at INTEGER PRIMARY KEY,
	first_id INTEGER NOT NULL,
	last_id INTEGER NOT NULL
);

-- Pages of events and sandboxes with one of these filters. Index entries are in the order of the ids.
CREATE INDEX sandbox_egress_event_workspace ON sandbox_egress_event (workspace) WHERE workspace IS NOT NULL;
CREATE INDEX sandbox_egress_event_reason ON sandbox_egress_event (reason);
CREATE INDEX sandbox_egress_event_rare ON sandbox_egress_event (action)
	WHERE action = 'panic' OR action = 'notice';
CREATE INDEX sandbox_workspace ON sandbox (workspace) WHERE workspace IS NOT NULL;
CREATE INDEX sandbox_ended ON sandbox (state) WHERE ended_ms IS NOT NULL;
