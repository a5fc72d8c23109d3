-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Rules, workspaces, tasks for people who review; what a change of a running sandbox leaves in its row;
-- what an event tells about a flow.

-- The policy in force now.
--
--   generation   1 at the start, one more with each change
--   air_gapped   only what allow_out lists leaves the sandbox
--   allow_out    JSON array of list entries, in force since the change that made the generation
--   deny_out     the same
ALTER TABLE sandbox ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sandbox ADD COLUMN air_gapped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandbox ADD COLUMN allow_out TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sandbox ADD COLUMN deny_out TEXT NOT NULL DEFAULT '[]';

--   workspace    the sandbox's
--   generation   of the policy that decided; NULL: none did
--   bytes_out    of a flow that ended, from the sandbox; NULL for every other event. If raw_pkts flows are
--                one row, their sum
--   bytes_in     the same, to the sandbox
--   duration_ms  of the longest of them
ALTER TABLE sandbox_egress_event ADD COLUMN workspace TEXT;
ALTER TABLE sandbox_egress_event ADD COLUMN generation INTEGER;
ALTER TABLE sandbox_egress_event ADD COLUMN bytes_out INTEGER;
ALTER TABLE sandbox_egress_event ADD COLUMN bytes_in INTEGER;
ALTER TABLE sandbox_egress_event ADD COLUMN duration_ms INTEGER;

-- Rules of workspaces (docs/RULES.md). An id is never used again: events name rules by it.
--
--   workspace    NULL: of the host, for every workspace
--   pattern      rule_type network: an entry of a list; tool: an entry of commands.allow
--   priority     the lowest that matches decides
--   is_floor     of the host, denies, and no other rule lifts it
CREATE TABLE sandbox_rule (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	workspace TEXT,
	rule_type TEXT NOT NULL CHECK (rule_type = 'network' OR rule_type = 'tool'),
	pattern TEXT NOT NULL,
	action TEXT NOT NULL CHECK (action = 'allow' OR action = 'deny'),
	priority INTEGER NOT NULL DEFAULT 100 CHECK (priority BETWEEN 0 AND 1000000),
	enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled = 0 OR enabled = 1),
	is_floor INTEGER NOT NULL DEFAULT 0
		CHECK (is_floor = 0 OR (is_floor = 1 AND workspace IS NULL AND action = 'deny')),
	note TEXT,
	created_by TEXT,
	created_ms INTEGER,
	changed_by TEXT,
	changed_ms INTEGER
);

-- Each start of a sandbox looks for the rows of its workspace and of the host.
CREATE INDEX sandbox_rule_workspace ON sandbox_rule (workspace);

--   network_default_action   NULL: the profile's default holds
CREATE TABLE workspace (
	name TEXT PRIMARY KEY NOT NULL,
	network_default_action TEXT
		CHECK (network_default_action = 'allow' OR network_default_action = 'deny'),
	changed_by TEXT,
	changed_ms INTEGER
) WITHOUT ROWID;

-- A sandbox that somebody should look at: one row for each cause.
--
--   n_denies     refusals that the cause was about, up to last_ms
CREATE TABLE egress_review_task (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	sandbox_id TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	workspace TEXT,
	cause TEXT NOT NULL,
	state TEXT NOT NULL DEFAULT 'open' CHECK (state = 'open' OR state = 'closed'),
	n_denies INTEGER NOT NULL,
	first_ms INTEGER NOT NULL,
	last_ms INTEGER NOT NULL,
	note TEXT,
	UNIQUE (sandbox_id, cause)
);

-- The floors of policy/lists/shipped.c, so that a list of rules shows them. They hold without these rows.
INSERT INTO sandbox_rule (rule_type, pattern, action, priority, is_floor, note, created_by) VALUES
	('network', 'ipinfo.io', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '*.ipinfo.io', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '169.254.169.254', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '169.254.170.2', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '100.100.100.200', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '168.63.129.16', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '192.0.0.192', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'fd00:ec2::254', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.google.internal', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '*.metadata.google.internal', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.goog', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '*.metadata.goog', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'instance-data', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'instance-data.ec2.internal', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.azure.internal', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.packet.net', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.platformequinix.com', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.tencentyun.com', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.exoscale.com', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'metadata.cloud.ibm.com', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', '*.metadata.cloud.ibm.com', 'deny', 0, 1, 'shipped', 'sbx'),
	('network', 'rancher-metadata', 'deny', 0, 1, 'shipped', 'sbx');
