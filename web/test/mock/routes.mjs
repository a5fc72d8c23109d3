// SPDX-License-Identifier: LGPL-2.1-or-later
import { ruleRoutes } from "./rules.mjs";

const unknown = (what) => [404, { detail: `there is no ${what}` }];

function page(items, query) {
	const limit = Number(query.get("limit") ?? 100);
	const at = Number(query.get("cursor") ?? 0);
	const next = at + limit < items.length ? String(at + limit) : null;
	return [200, { items: items.slice(at, at + limit), next_cursor: next }];
}

function listSandboxes({ state, query }) {
	const wanted = query.get("state");
	const items = state.sandboxes.filter(
		(s) =>
			(!wanted || (wanted === "live" ? s.live : s.state === wanted)) &&
			(!query.get("workspace") || s.workspace === query.get("workspace")),
	);
	for (const s of items) if (s.usage) s.usage.cpu_us += 100_000;
	return page(items, query);
}

function getSandbox({ state }, id) {
	const found = state.sandboxes.find((s) => s.id === id);
	return found ? [200, { ...found, ...state.details[id] }] : unknown(`sandbox ${id}`);
}

function putNetwork({ state, body }, id) {
	const found = state.sandboxes.find((s) => s.id === id);
	if (!found) return unknown(`sandbox ${id}`);
	if (body.allow_out?.includes("bad pattern"))
		return [422, { detail: "bad pattern: it has a space", field: "allow_out" }];
	const cut = body.air_gapped ? (found.usage?.flows ?? 0) : 0;
	Object.assign(found, body, { generation: found.generation + 1 });
	if (body.air_gapped) found.usage.flows = 0;
	const { generation, air_gapped, allow_out, deny_out } = found;
	return [200, { generation, cut, air_gapped, allow_out, deny_out }];
}

function killSandbox({ state }, id) {
	const found = state.sandboxes.find((s) => s.id === id);
	if (!found) return unknown(`sandbox ${id}`);
	Object.assign(found, { state: "killed", live: false, ended_at: new Date().toISOString() });
	return [204, null];
}

function metrics({ state }, id) {
	const found = state.sandboxes.find((s) => s.id === id);
	if (!found) return unknown("sandbox");
	const { usage } = found;
	if (!usage) return [200, { cpu_us: null, memory_bytes: null, flows: null }];
	usage.cpu_us += 300_000;
	return [
		200,
		{
			...usage,
			memory_peak_bytes: usage.memory_bytes * 2,
			disk_bytes: 9_000_000,
			pids: 14,
			bytes_in: 48_125_300,
			bytes_out: 19_120,
		},
	];
}

function listEvents({ service, state, query, request, response }, sandbox = query.get("sandbox")) {
	const keep = (e) =>
		(!sandbox || e.sandbox_id === sandbox) &&
		["workspace", "action", "reason", "ip", "name"].every((k) => !query.get(k) || e[k] === query.get(k));
	if (!request.headers.accept?.includes("text/event-stream"))
		return page(state.events.filter(keep).reverse(), query);
	response.writeHead(200, { "Content-Type": "text/event-stream" });
	response.write(":\n\n");
	const after = Number(request.headers["last-event-id"] ?? query.get("after") ?? NaN);
	for (const e of state.events.filter((e) => e.id > after)) service.send(response, e);
	service.followers.add(response);
	response.on("close", () => service.followers.delete(response));
	return undefined;
}

// state.output: the frames of the log; one that is lost has bytes in the place of a text.
function output({ service, state, query, request, response }) {
	if (!state.output) return [404, { detail: "no output of this sandbox is kept here" }];
	const from = Number(request.headers["last-event-id"] ?? query.get("offset") ?? 0);
	let next = 0;
	const frames = state.output.map((frame) => ({ ...frame, offset: next, next: (next += size(frame)) }));
	const wanted = frames.filter((frame) => frame.offset >= from);
	if (!request.headers.accept?.includes("text/event-stream"))
		return [
			200,
			{
				items: wanted
					.filter((f) => f.event !== "lost")
					.map(({ event: stream, text, base64, offset }) => ({ offset, stream, at: "", text, base64 })),
				next_offset: next,
				lost_bytes: wanted.reduce((n, f) => n + (f.bytes ?? 0), 0),
				ended: false,
				exit_status: null,
			},
		];
	response.writeHead(200, { "Content-Type": "text/event-stream" });
	for (const { event, next: id, ...data } of wanted)
		response.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
	service.streams.add(response);
	response.on("close", () => service.streams.delete(response));
	return undefined;
}

const size = ({ text, base64, bytes }) => bytes ?? (text ?? base64).length;

const KEYS = { ip: "ip", name: "name", workspace: "workspace", sandbox: "sandbox_id", reason: "reason" };

function denials({ state, query }) {
	const by = KEYS[query.get("by") ?? "ip"];
	const rows = new Map();
	for (const e of state.events.filter((e) => e.action === "deny")) {
		const key = e[by];
		const row = rows.get(key) ?? { key, count: 0, n_rows: 0, sandboxes: new Set(), first: e.at };
		row.count += e.count;
		row.n_rows++;
		row.sandboxes.add(e.sandbox_id);
		Object.assign(row, {
			last: e.at,
			last_reason: e.reason,
			last_name: e.name,
			last_ip: e.ip,
			last_port: e.port,
			last_protocol: e.protocol,
			last_rule: e.rule,
		});
		rows.set(key, row);
	}
	const items = [...rows.values()]
		.map(({ sandboxes, ...row }) => ({ ...row, n_sandboxes: sandboxes.size }))
		.sort((a, b) => b.count - a.count);
	const step = query.get("series") === "minute" ? 60_000 : 3_600_000;
	const series = Array.from({ length: 24 }, (_, i) => ({
		at: new Date(Date.now() - (23 - i) * step).toISOString(),
		count: Math.round(40 + 35 * Math.sin(i / 3)),
	}));
	const { uncounted = 0 } = state;
	return [200, { items, next_cursor: null, uncounted, ...(query.get("series") ? { series } : {}) }];
}

function postTask({ state, body }, id) {
	const task = state.tasks.find((t) => t.id === Number(id));
	if (!task) return unknown("review task");
	Object.assign(task, body);
	return [200, task];
}

function getProfile({ state }, name) {
	const found = state.profiles.find((p) => p.name === name);
	return found ? [200, found] : unknown(`profile ${name}`);
}

const sandbox = "/sandboxes/([^/]+)";

export const routes = [
	["GET", /^\/session$/, ({ state }) => [200, state.session]],
	["POST", /^\/session\/logout$/, ({ state }) => ((state.session = null), [204, null])],
	["GET", /^\/sandboxes$/, listSandboxes],
	["GET", new RegExp(`^${sandbox}$`), getSandbox],
	["DELETE", new RegExp(`^${sandbox}$`), killSandbox],
	["PUT", new RegExp(`^${sandbox}/network$`), putNetwork],
	["GET", new RegExp(`^${sandbox}/metrics$`), metrics],
	["GET", new RegExp(`^${sandbox}/events$`), listEvents],
	["GET", new RegExp(`^${sandbox}/output$`), output],
	["GET", /^\/events$/, (call) => listEvents(call)],
	["GET", /^\/denials$/, denials],
	[
		"GET",
		/^\/review-tasks$/,
		({ state, query }) =>
			page(
				state.tasks.filter((t) => !query.get("state") || t.state === query.get("state")),
				query,
			),
	],
	["POST", /^\/review-tasks\/(\d+)$/, postTask],
	[
		"GET",
		/^\/profiles$/,
		({ state, query }) =>
			page(
				state.profiles.map(({ yaml, ...p }) => p),
				query,
			),
	],
	["GET", /^\/profiles\/([^/]+)$/, getProfile],
	...ruleRoutes,
];
