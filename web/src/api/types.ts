// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of the API (docs/API.md). Names, commands and paths in them may come from a sandbox: they
// are shown as text, never as markup.

export type Role = "viewer" | "operator" | "admin";

export interface Session {
	name: string;
	role: Role;
	workspace: string | null;
	own_only?: boolean;
}

export interface List<T> {
	items: T[];
	next_cursor: string | null;
}

export interface Usage {
	cpu_us?: number | null;
	memory_bytes?: number | null;
	memory_peak_bytes?: number | null;
	disk_bytes?: number | null;
	pids?: number | null;
	flows?: number | null;
	bytes_in?: number | null;
	bytes_out?: number | null;
	n_denied?: number | null; // refusals since its start
}

export interface PolicyEntry {
	entry: string;
	action: "allow" | "deny";
	layer: string;
	origin: string;
}

export interface Flow {
	name: string;
	ip: string;
	port: number;
	protocol: string;
	bytes_out: number;
	bytes_in: number;
	since_ms?: number;
	since?: string;
	rule: string;
}

export interface Limit {
	asked: number | null;
	ceiling: number | null;
	enforced_by: string;
}

export interface Probe {
	probe: string;
	ok: boolean;
	detail: string;
}

export interface Sandbox {
	id: string;
	profile: string;
	workspace: string | null;
	analysis_id: string | null;
	state: string;
	live: boolean;
	command: string[] | null;
	created_at: string | null;
	started_at: string | null;
	ended_at: string | null;
	exit_status: number | null;
	generation: number;
	air_gapped: boolean;
	allow_out: string[] | null;
	deny_out: string[] | null;
	n_events: number;
	owner?: string | null;
	metadata?: Record<string, string> | null;
	timeout_at?: string | null;
	usage?: Usage | null; // a moment ago
	// of one sandbox alone
	policy?: PolicyEntry[];
	flows?: Flow[];
	limits?: Record<string, Limit | string>;
	selftest?: Probe[];
	wall_left_ms?: number | null; // until it is ended; null: there is no such time
	ruleset?: string | null;
}

export interface NetworkChange {
	generation: number;
	cut: number;
	air_gapped: boolean;
	allow_out: string[];
	deny_out: string[];
}

export interface EgressEvent {
	id: number;
	sandbox_id: string;
	workspace: string | null;
	at: string;
	action: string;
	protocol: string;
	ip: string | null;
	port: number | null;
	name: string | null;
	reason: string;
	rule: string | null;
	request: string | null;
	count: number;
	generation: number | null;
	bytes_out: number | null;
	bytes_in: number | null;
	duration_ms: number | null;
}

export type DenialsBy = "ip" | "name" | "workspace" | "sandbox" | "reason";

export interface Denial {
	key: string | null;
	count: number;
	n_rows?: number;
	n_sandboxes: number;
	first: string | null;
	last: string | null;
	last_reason: string | null;
	last_name: string | null;
	last_ip: string | null;
	last_port: number | null;
	last_protocol: string | null;
	last_rule: string | null;
}

export interface Denials extends List<Denial> {
	uncounted?: number; // events of the window that are not in the counts yet
	series?: { at: string; count: number }[];
}

export interface Rule {
	id: number;
	workspace: string | null;
	type: string | null;
	pattern: string | null;
	action: "allow" | "deny" | null;
	priority: number;
	enabled: boolean;
	is_floor: boolean;
	note: string | null;
	created_by?: string | null;
	created_at?: string | null;
	changed_by?: string | null;
	changed_at?: string | null;
	followed?: { sandboxes: number; failed: number; cut: number };
}

export interface RuleDraft {
	type: string;
	pattern: string;
	action: "allow" | "deny";
	priority: number;
	note?: string;
	is_floor?: boolean; // of the host alone
}

export interface Workspace {
	name: string;
	network_default_action?: "allow" | "deny" | null;
	n_rules?: number;
}

export interface Settings {
	network_default_action: "allow" | "deny" | null;
}

export interface ReviewTask {
	id: number;
	sandbox_id: string;
	workspace: string | null;
	cause: string;
	state: "open" | "closed";
	n_denies: number;
	first_at: string | null;
	last_at: string | null;
	note: string | null;
}

export interface Match {
	layer: string;
	action: string;
	text: string;
	origin: string;
	decided: boolean;
}

export interface Explained {
	verdict: "allow" | "deny";
	subject: string;
	reason: string;
	why: string;
	generation: number;
	decided: Match | null;
	matches: Match[];
	n_more: number;
	changes: string[];
	draft?: { matches: boolean; decides: boolean; above: Match | null; why: string };
}

export interface Profile {
	name: string;
	description: string | null;
	yaml?: string | null;
	file?: string | null;
	error?: string | null;
}
