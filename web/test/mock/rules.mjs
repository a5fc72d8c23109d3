// SPDX-License-Identifier: LGPL-2.1-or-later
// Rules, their workspaces, and what explain says by them.

function covers(pattern, host, port) {
	const [name, ports] = pattern.split(":");
	const named = name === "*" || name === host || (name.startsWith("*.") && host.endsWith(name.slice(1)));
	return named && (!ports || Number(ports) === port);
}

function explain({ state, body }) {
	if (!body.host) return explainOther(body);
	if (!body.port) return [422, { detail: "a port is a number from 1 to 65535", field: "port" }];
	const draft = body.rule ? [{ priority: 100, enabled: true, ...body.rule, id: "draft" }] : [];
	const matches = [
		...state.system_rules.filter((r) => r.is_floor).map((r) => ({ layer: "floor", ...r })),
		...[...state.rules.filter((r) => r.workspace === body.workspace && r.id !== body.rule?.id), ...draft]
			.sort((a, b) => a.priority - b.priority)
			.map((r) => ({ layer: "rule", ...r })),
		{ layer: "default", action: "deny", pattern: "*", enabled: true },
	]
		.filter((r) => r.enabled && covers(r.pattern, body.host, body.port))
		.map(({ layer, action, pattern, id }, i) => ({
			layer,
			action,
			text: pattern,
			origin: id === "draft" ? "draft" : id ? `rule ${id}` : "install.yaml:4",
			decided: i === 0,
		}));
	const [decided] = matches;
	const isDraft = (m) => m.origin === "draft";
	const says = {
		matches: matches.some(isDraft),
		decides: isDraft(decided),
		above: matches.some(isDraft) && !isDraft(decided) ? decided : null,
	};
	says.why = says.decides
		? "the draft decides"
		: says.above
			? `the draft does not decide: the ${says.above.layer} '${says.above.text}' comes first`
			: "the draft does not match";
	return [
		200,
		{
			verdict: decided.action,
			subject: `${body.protocol} ${body.host}:${body.port}`,
			reason: decided.layer === "floor" ? "floor" : `${decided.layer}_${decided.action}`,
			why: `${decided.layer} ${decided.text} says ${decided.action}`,
			generation: 0,
			decided,
			matches,
			n_more: 0,
			changes: decided.layer === "floor" ? [] : [`a rule that allows ${body.host}:${body.port}`],
			...(body.rule ? { draft: says } : {}),
		},
	];
}

function explainOther(body) {
	const subject = body.mount ? `mount ${body.mount}` : `command ${body.command}`;
	return [
		200,
		{
			verdict: "deny",
			subject,
			reason: "not_listed",
			why: `${subject}: nothing grants it`,
			generation: 0,
			decided: null,
			matches: [],
			n_more: 0,
			changes: ["an entry of the profile"],
		},
	];
}

let next = 100;
const followed = { sandboxes: 1, failed: 0, cut: 0 };

function add(list, workspace, is_floor, body) {
	if (!body.pattern || / /.test(body.pattern))
		return [422, { detail: `${body.pattern}: a pattern has no space`, field: "pattern" }];
	const rule = {
		id: next++,
		workspace,
		type: "network",
		priority: 100,
		enabled: true,
		is_floor,
		note: null,
		created_by: "ana",
		created_at: new Date().toISOString(),
		changed_by: null,
		changed_at: null,
		...body,
	};
	list.push(rule);
	return [201, { ...rule, followed }];
}

function change(list, id, body) {
	const rule = list.find((r) => r.id === Number(id));
	if (!rule) return [404, { detail: `there is no rule ${id}` }];
	Object.assign(rule, body, { changed_by: "ana", changed_at: new Date().toISOString() });
	return [200, { ...rule, followed }];
}

function drop(list, id) {
	const at = list.findIndex((r) => r.id === Number(id));
	if (at < 0) return [404, { detail: `there is no rule ${id}` }];
	list.splice(at, 1);
	return [204, null];
}

const list = (items) => [200, { items, next_cursor: null }];
const settings = ({ state }, w) => [200, state.workspaces[w] ?? { network_default_action: null }];
const rules = "/workspaces/([^/]+)/sandbox/rules";

export const ruleRoutes = [
	["POST", /^\/explain$/, explain],
	[
		"GET",
		/^\/workspaces$/,
		({ state }) =>
			list(
				Object.entries(state.workspaces).map(([name, s]) => ({
					name,
					...s,
					n_rules: state.rules.filter((r) => r.workspace === name).length,
				})),
			),
	],
	[
		"POST",
		/^\/workspaces$/,
		({ state, body }) => (
			(state.workspaces[body.name] = { network_default_action: null }),
			[201, { name: body.name }]
		),
	],
	["GET", new RegExp(`^${rules}$`), ({ state }, w) => list(state.rules.filter((r) => r.workspace === w))],
	["POST", new RegExp(`^${rules}$`), ({ state, body }, w) => add(state.rules, w, false, body)],
	["PATCH", new RegExp(`^${rules}/(\\d+)$`), ({ state, body }, w, id) => change(state.rules, id, body)],
	["DELETE", new RegExp(`^${rules}/(\\d+)$`), ({ state }, w, id) => drop(state.rules, id)],
	["GET", /^\/workspaces\/([^/]+)\/sandbox\/settings$/, settings],
	[
		"PUT",
		/^\/workspaces\/([^/]+)\/sandbox\/settings$/,
		({ state, body }, w) => [200, (state.workspaces[w] = body)],
	],
	["GET", /^\/sandbox\/system-rules$/, ({ state }) => list(state.system_rules)],
	[
		"POST",
		/^\/sandbox\/system-rules$/,
		({ state, body }) => add(state.system_rules, null, body.is_floor ?? false, body),
	],
	["PATCH", /^\/sandbox\/system-rules\/(\d+)$/, ({ state, body }, id) => change(state.system_rules, id, body)],
	["DELETE", /^\/sandbox\/system-rules\/(\d+)$/, ({ state }, id) => drop(state.system_rules, id)],
];
