-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- The first schema: sandboxes and their events.
--
-- A migration runs inside a transaction that src/store/store.c opens; it must not begin or end one.
-- A migration that was released is never edited: the next change is the next number.
--
-- Every run parses all of this before its first row. The meaning of a column therefore stands in
-- front of its table, not in it (SQLite keeps a statement with its comments). Each index has its
-- reason.

-- One run of a command. Rows are in the order the runs began (rowid). Times are milliseconds since
-- 1970 UTC; what is not known yet is NULL.
--
--   id           12 hex digits
--   analysis_id  the caller's own name for the job
--   policy_hash  of the compiled policy that was in force
--   state        one of those in the check, which only goes forward. A chain of OR, because for a long
--                IN list SQLite builds a table at every change
--   pid          the launcher's
--   pid_start    its start time (proc(5), stat field 22; 0: unknown): pids recur
--   uid          who the command runs as, on the host
--   command      JSON array of strings
--   released_ms  when the command was let go
--   exit_status  of sbx-run
--   selftest     JSON: what each probe saw
--   receipt      JSON: the receipt as written with --receipt
--   n_events     rows in sandbox_egress_event, which are bounded
--   cpu_us...    what the sandbox's cgroup used, and how long some of its processes waited (PSI); NULL without
CREATE TABLE sandbox (
	id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
	analysis_id TEXT,
	workspace TEXT,
	profile TEXT NOT NULL,
	policy_hash TEXT,
	state TEXT NOT NULL CHECK (state = 'preparing' OR state = 'running' OR state = 'done'
		OR state = 'failed_safety_setup' OR state = 'failed_policy' OR state = 'lost'
		OR state = 'killed' OR state = 'timed_out' OR state = 'oom_killed'),
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	command TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	released_ms INTEGER,
	ended_ms INTEGER,
	exit_status INTEGER,
	selftest TEXT,
	receipt TEXT,
	n_events INTEGER NOT NULL DEFAULT 0,
	cpu_us INTEGER,
	memory_peak_bytes INTEGER,
	cpu_pressure_us INTEGER,
	memory_pressure_us INTEGER,
	io_pressure_us INTEGER
);

-- What is or seems to be up: what `ps` lists and a sweep for lost runs looks at. Nothing in it changes
-- between the beginning and the end.
CREATE INDEX sandbox_live ON sandbox (created_ms) WHERE ended_ms IS NULL;
CREATE INDEX sandbox_analysis ON sandbox (analysis_id) WHERE analysis_id IS NOT NULL;

-- One row per event, or per many alike within a second.
--
--   ts           ISO 8601 in UTC with milliseconds, as strftime('%Y-%m-%dT%H:%M:%fZ') writes it, so that
--                it sorts as text and reads well; it is when the first of them happened
--   protocol     tcp, udp, dns, icmp, other
--   remote_ip    where it went (allow) or was meant to go (deny)
--   fqdn_pinned  the name that was asked for or pinned to the address
--   reason       a word of src/base/reason.h
--   rule         the entry that decided, as written in the profile
--   raw_pkts     how many this row stands for
CREATE TABLE sandbox_egress_event (
	id INTEGER PRIMARY KEY,
	sandbox_id TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	analysis_id TEXT,
	ts TEXT NOT NULL,
	action TEXT NOT NULL CHECK (action IN ('allow', 'deny', 'panic', 'notice')),
	protocol TEXT NOT NULL,
	remote_ip TEXT,
	remote_port INTEGER,
	fqdn_pinned TEXT,
	reason TEXT NOT NULL,
	rule TEXT,
	raw_pkts INTEGER NOT NULL CHECK (raw_pkts > 0)
);

CREATE INDEX sandbox_egress_event_sandbox ON sandbox_egress_event (sandbox_id);
CREATE INDEX sandbox_egress_event_ts ON sandbox_egress_event (ts);
CREATE INDEX sandbox_egress_event_analysis ON sandbox_egress_event (analysis_id)
	WHERE analysis_id IS NOT NULL;
