// SPDX-License-Identifier: LGPL-2.1-or-later
// Requests that sbxd takes, by its own document (docs/openapi.json): it would refuse a page that asks for more.
import { readFileSync } from "node:fs";

const FILE = process.env.SBX_WEB_OPENAPI ?? "../../../docs/openapi.json";
const document = JSON.parse(readFileSync(FILE, "utf8"));

const operations = Object.entries(document.paths).map(([path, methods]) => ({
	pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`),
	methods,
}));

function bodyProblem(schema, value, field) {
	if (value === null || typeof value !== "object" || Array.isArray(value) || !schema?.properties) return null;
	for (const [name, inner] of Object.entries(value)) {
		const known = schema.properties[name];
		if (!known) return `${field}${name}: there is no such member`;
		const wrong = bodyProblem(known, inner, `${field}${name}.`);
		if (wrong) return wrong;
	}
	const missing = (schema.required ?? []).find((name) => !(name in value));
	return missing ? `${field}${missing} is missing` : null;
}

// Why sbxd would refuse the request, or null.
export function refusal(method, url, body) {
	const row = operations.find(({ pattern }) => pattern.test(url.pathname))?.methods[method.toLowerCase()];
	if (!row) return `there is no ${method} ${url.pathname}`;
	for (const name of url.searchParams.keys())
		if (!row.parameters.some((p) => p.in === "query" && p.name === name)) return `there is no parameter ${name}`;
	const schema = row.requestBody?.content["application/json"].schema;
	if (body !== null && !schema) return "the route takes no body";
	return bodyProblem(schema, body, "");
}
