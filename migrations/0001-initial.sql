-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- The first schema: sandboxes and their events.
--
-- A migration runs inside a transaction that src/store/store.c opens; it must not begin or end one.
-- A migration that was released is never edited: the next change is the next number.

-- One run of a command. Rows are in the order the runs began (rowid). Times are milliseconds since
-- 1970 UTC; what is not known yet is NULL.
CREATE TABLE sandbox (
	id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
	analysis_id TEXT,               -- the caller's own name for the job
	workspace TEXT,
	profile TEXT NOT NULL,
	policy_hash TEXT,               -- of the compiled policy that was in force
	state TEXT NOT NULL CHECK (state IN ('preparing', 'running', 'done', 'failed_safety_setup',
		'failed_policy', 'lost', 'killed', 'timed_out')),
	pid INTEGER NOT NULL,           -- the launcher's
	pid_start INTEGER NOT NULL,     -- its start time (proc(5), stat field 22; 0: unknown): pids recur
	uid INTEGER NOT NULL,           -- who the command runs as, on the host
	command TEXT NOT NULL,          -- JSON array of strings
	created_ms INTEGER NOT NULL,
	released_ms INTEGER,            -- when the command was let go
	ended_ms INTEGER,
	exit_status INTEGER,            -- of sbx-run
	selftest TEXT,                  -- JSON: what each probe saw
	receipt TEXT,                   -- JSON: the receipt as written with --receipt
	n_events INTEGER NOT NULL DEFAULT 0 -- rows in sandbox_egress_event, which are bounded
);

-- What is or seems to be up: what `ps` lists and a sweep for lost runs looks at.
CREATE INDEX sandbox_live ON sandbox (state) WHERE state IN ('preparing', 'running');
CREATE INDEX sandbox_analysis ON sandbox (analysis_id) WHERE analysis_id IS NOT NULL;

-- One row per event, or per many alike within a second: raw_pkts says how many. ts is ISO 8601 in
-- UTC with milliseconds, as strftime('%Y-%m-%dT%H:%M:%fZ') writes it, so that it sorts as text and
-- reads well; it is when the first of them happened.
CREATE TABLE sandbox_egress_event (
	id INTEGER PRIMARY KEY,
	sandbox_id TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	analysis_id TEXT,
	ts TEXT NOT NULL,
	action TEXT NOT NULL CHECK (action IN ('allow', 'deny', 'panic')),
	protocol TEXT NOT NULL,         -- tcp, udp, dns, icmp, other
	remote_ip TEXT,                 -- where it went (allow) or was meant to go (deny)
	remote_port INTEGER,
	fqdn_pinned TEXT,               -- the name that was asked for or pinned to the address
	reason TEXT NOT NULL,           -- a word of src/base/reason.h
	rule TEXT,                      -- the entry that decided, as written in the profile
	raw_pkts INTEGER NOT NULL CHECK (raw_pkts > 0)
);

CREATE INDEX sandbox_egress_event_sandbox ON sandbox_egress_event (sandbox_id);
CREATE INDEX sandbox_egress_event_ts ON sandbox_egress_event (ts);
CREATE INDEX sandbox_egress_event_analysis ON sandbox_egress_event (analysis_id)
	WHERE analysis_id IS NOT NULL;
-- Where the counts go once a sandbox has all the rows it may have.
CREATE INDEX sandbox_egress_event_overflow ON sandbox_egress_event (sandbox_id, action)
	WHERE reason = 'overflow';
