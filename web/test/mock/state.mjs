// SPDX-License-Identifier: LGPL-2.1-or-later
// The state of the service that the tests ask. Names and commands in it are as bad as a sandbox can make them.

export const HOSTILE_NAME = '<img src=x onerror="window.hacked=1">.example.org';
export const HOSTILE_COMMAND = ["sh", "-c", "</td><script>window.hacked=1</script> \u202egnp.exe \u0007"];

const T0 = Date.parse("2026-11-25T12:00:00.000Z");

export function time(secondsAgo) {
	return new Date(Date.now() - secondsAgo * 1000).toISOString();
}

export function sandbox(id, more = {}) {
	return {
		id,
		profile: "install",
		workspace: "shop",
		analysis_id: null,
		state: "running",
		live: true,
		command: ["npm", "ci"],
		created_at: time(320),
		started_at: time(319),
		ended_at: null,
		exit_status: null,
		generation: 1,
		air_gapped: false,
		allow_internet_access: true,
		allow_out: [],
		deny_out: [],
		n_events: 12,
		owner: "ana",
		metadata: {},
		timeout_at: null,
		usage: { cpu_us: 4_200_000, memory_bytes: 187_000_000, flows: 3, n_denied: 44 },
		...more,
	};
}

export function event(id, more = {}) {
	return {
		id,
		sandbox_id: "24083cd4e153",
		workspace: "shop",
		at: time(60),
		action: "deny",
		protocol: "tcp",
		ip: "203.0.113.9",
		port: 443,
		name: "telemetry.example.org",
		reason: "default_deny",
		rule: null,
		request: null,
		count: 1,
		generation: 1,
		bytes_out: 0,
		bytes_in: 0,
		duration_ms: 0,
		...more,
	};
}

const detail = {
	policy: [
		{ entry: "ipinfo.io", action: "deny", layer: "floor", origin: "sbx" },
		{ entry: "169.254.0.0/16", action: "deny", layer: "floor", origin: "system.yaml:12" },
		{ entry: "*.tracker.example", action: "deny", layer: "rule", origin: "rule 2" },
		{ entry: "api.example.org:443", action: "allow", layer: "rule", origin: "rule 1" },
		{ entry: "files.example.org", action: "allow", layer: "live", origin: "live" },
		{ entry: "*.npmjs.example:443", action: "allow", layer: "profile", origin: "install.yaml:9" },
		{ entry: "*", action: "deny", layer: "default", origin: "install.yaml:4" },
	],
	flows: [
		{
			name: "cdn.npmjs.example",
			ip: "203.0.113.20",
			port: 443,
			protocol: "tcp",
			bytes_out: 18_220,
			bytes_in: 48_120_000,
			since_ms: T0,
			rule: "*.npmjs.example:443",
		},
		{
			name: HOSTILE_NAME,
			ip: "2001:db8::7",
			port: 443,
			protocol: "tcp",
			bytes_out: 900,
			bytes_in: 5_300,
			since_ms: T0,
			rule: "rule 1",
		},
	],
	limits: {
		enforce: "strict",
		memory_bytes: { asked: 1_073_741_824, ceiling: 4_294_967_296, enforced_by: "cgroup" },
		cpus_milli: { asked: 1500, ceiling: null, enforced_by: "cgroup" },
		pids: { asked: 512, ceiling: null, enforced_by: "cgroup" },
		disk_bytes: { asked: null, ceiling: null, enforced_by: "nothing" },
		wall_time_ms: { asked: 3_600_000, ceiling: null, enforced_by: "launcher" },
	},
	selftest: [
		{ probe: "caps", ok: true, detail: "none" },
		...Array(9).fill({ probe: "connect_refused", ok: true, detail: "reset by the broker" }),
		{ probe: "direct connection", ok: true, detail: "refused: Network is unreachable" },
		{ probe: "metadata service", ok: true, detail: "refused" },
	],
	wall_left_ms: 3_200_000,
	ruleset: "table inet sbx {\n\tchain output {\n\t\ttype filter hook output priority 0; policy drop;\n\t}\n}\n",
};

function rule(id, more) {
	return {
		id,
		workspace: "shop",
		type: "network",
		pattern: "example.org",
		action: "allow",
		priority: 100,
		enabled: true,
		is_floor: false,
		note: null,
		created_by: "ana",
		created_at: time(90_000),
		changed_by: null,
		changed_at: null,
		...more,
	};
}

const PROFILES = [
	["agent", "an AI agent that works in a repository"],
	["build", "compilers and the packages they ask for"],
	["default", "what every profile begins with"],
	["install", "package managers, and nothing of the user's"],
	["none", "no network at all"],
].map(([name, description]) => ({
	name,
	description,
	file: `/usr/share/sbx/profiles/${name}.yaml`,
	error: null,
	yaml: `# ${name}\ndescription: ${description}\nnetwork:\n  mode: ${name === "none" ? "offline" : "fetch"}\n`,
}));

export function emptyState() {
	return {
		session: { name: "ana", role: "admin", workspace: null, own_only: false },
		sandboxes: [],
		details: {},
		events: [],
		rules: [],
		system_rules: [],
		tasks: [],
		workspaces: {},
		profiles: PROFILES,
		output: [],
	};
}

export function usualState() {
	const hostile = sandbox("bad000000bad", {
		profile: "agent",
		workspace: "lab",
		command: HOSTILE_COMMAND,
		created_at: time(7_300),
		started_at: time(7_299),
		usage: { cpu_us: 90_000_000, memory_bytes: 1_900_000_000, flows: 1, n_denied: 1840 },
	});
	const ended = sandbox("77aa10c3e5f0", {
		state: "done",
		live: false,
		exit_status: 0,
		command: ["make", "-j4"],
		profile: "build",
		workspace: null,
		created_at: time(9_000),
		started_at: time(8_999),
		ended_at: time(8_400),
		usage: null,
	});
	return {
		...emptyState(),
		sandboxes: [
			sandbox("24083cd4e153", { metadata: { job: "41" }, timeout_at: time(-3_200) }),
			hostile,
			sandbox("9be1f2009c11", {
				profile: "none",
				workspace: null,
				command: ["sleep", "600"],
				air_gapped: true,
				created_at: time(8),
				started_at: time(7),
				usage: { cpu_us: 3_000, memory_bytes: 1_200_000, flows: 0, n_denied: 0 },
			}),
			ended,
		],
		details: { "24083cd4e153": detail, bad000000bad: detail },
		events: [
			event(1, {
				at: time(300),
				action: "allow",
				name: "cdn.npmjs.example",
				reason: "list_allow",
				rule: "*.npmjs.example:443",
				bytes_in: 48_120_000,
				bytes_out: 18_220,
				duration_ms: 5_100,
			}),
			event(2, { at: time(240), count: 40 }),
			event(3, {
				at: time(120),
				name: HOSTILE_NAME,
				sandbox_id: "bad000000bad",
				workspace: "lab",
				reason: "rule_deny",
				rule: "rule 2 *.example.org",
				count: 1800,
			}),
			event(4, {
				at: time(30),
				name: null,
				ip: "169.254.169.254",
				port: 80,
				reason: "floor",
				rule: "169.254.0.0/16",
			}),
			event(5, { at: time(5), request: "GET /v1/collect?x=<b>", count: 3 }),
		],
		rules: [
			rule(1, { pattern: "api.example.org:443", priority: 50, note: "the shop's own API" }),
			rule(2, { pattern: "*.tracker.example", action: "deny" }),
			rule(3, { pattern: "old.example.org", enabled: false, note: "until the move" }),
		],
		system_rules: [
			rule(90, {
				workspace: null,
				pattern: "*.corp.example",
				action: "deny",
				is_floor: true,
				priority: 0,
				note: "never from a sandbox",
				created_by: "root",
			}),
			rule(91, { workspace: null, pattern: "mirror.example", priority: 200, created_by: "root" }),
		],
		tasks: [
			{
				id: 7,
				sandbox_id: "bad000000bad",
				workspace: "lab",
				cause: "1800 refusals in a minute",
				state: "open",
				n_denies: 1840,
				first_at: time(400),
				last_at: time(5),
				note: null,
			},
			{
				id: 6,
				sandbox_id: "77aa10c3e5f0",
				workspace: null,
				cause: "200 refusals in a minute",
				state: "closed",
				n_denies: 200,
				first_at: time(8_800),
				last_at: time(8_500),
				note: "a mirror was moved",
			},
		],
		workspaces: { lab: { network_default_action: null }, shop: { network_default_action: "deny" } },
		output: [
			{ event: "stdout", text: "added 18 packages in 4s\n" },
			{ event: "stderr", text: "npm warn <script>window.hacked=1</script>\n" },
		],
	};
}
