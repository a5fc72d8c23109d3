// SPDX-License-Identifier: LGPL-2.1-or-later
// A service that follows sbxd's API as far as the page uses it, over a state in memory. Every request is kept in
// .log, so that a test can say what was asked.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { refusal } from "./contract.mjs";
import { routes } from "./routes.mjs";

export const CSP =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
	html: "text/html; charset=utf-8",
	js: "text/javascript",
	css: "text/css",
	svg: "image/svg+xml",
	txt: "text/plain",
};

class Service {
	constructor(state, dist) {
		this.state = state;
		this.dist = dist;
		this.followers = new Set();
		this.streams = new Set(); // of output
		this.fail = null; // how each request fails: {status, detail}
		this.log = [];
		this.refused = []; // requests that sbxd would not take
	}

	// A new event: into the state and to those who follow.
	emit(event) {
		this.state.events.push(event);
		for (const response of this.followers) this.send(response, event);
	}

	send(response, event) {
		response.write(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`);
	}

	// Ends every stream, as a service does that ends.
	cut() {
		for (const response of [...this.followers, ...this.streams]) response.destroy();
	}

	async static(path, response) {
		const name = path === "/ui/" ? "index.html" : path.slice("/ui/".length);
		try {
			if (!/^[a-z]+\.[a-z]+$/.test(name)) throw new Error("no such file");
			const data = await readFile(join(this.dist, name));
			response.writeHead(200, {
				"Content-Type": TYPES[name.split(".")[1]],
				"Content-Security-Policy": CSP,
				"X-Content-Type-Options": "nosniff",
			});
			response.end(data);
		} catch {
			problem(response, 404, "there is no such file");
		}
	}

	async handle(request, response) {
		const url = new URL(request.url, "http://mock");
		if (url.pathname === "/") return response.writeHead(302, { Location: "/ui/" }).end();
		if (url.pathname.startsWith("/ui/")) return this.static(url.pathname, response);
		let text = "";
		for await (const part of request) text += part;
		const body = text ? JSON.parse(text) : null;
		this.log.push({
			method: request.method,
			path: url.pathname,
			lastEventId: request.headers["last-event-id"],
			query: Object.fromEntries(url.searchParams),
			body,
		});
		if (this.fail) return problem(response, this.fail.status, this.fail.detail);
		const refused = refusal(request.method, url, body);
		if (refused) this.refused.push(`${request.method} ${request.url}: ${refused}`);
		if (!this.state.session) return problem(response, 401, "send a token");
		for (const [method, pattern, run] of routes) {
			const match = method === request.method && pattern.exec(url.pathname);
			if (!match) continue;
			const parts = match.slice(1).map(decodeURIComponent);
			const call = {
				service: this,
				state: this.state,
				url,
				query: url.searchParams,
				body,
				request,
				response,
			};
			return answer(response, run(call, ...parts));
		}
		problem(response, 404, "there is no such path");
	}
}

function problem(response, status, detail, more = {}) {
	response.writeHead(status, { "Content-Type": "application/problem+json" });
	response.end(JSON.stringify({ type: "about:blank", title: "problem", status, code: "x", detail, ...more }));
}

// A handler's result: [status, JSON]; a refusal {problem}; undefined: it answers itself.
function answer(response, result) {
	if (result === undefined) return;
	const [status, value] = result;
	if (status >= 400) return problem(response, status, value.detail, value);
	response.writeHead(status, { "Content-Type": "application/json" });
	response.end(status === 204 ? undefined : JSON.stringify(value));
}

export async function startService(state, dist, port = 0) {
	const service = new Service(state, dist);
	const server = createServer((request, response) => {
		service.handle(request, response).catch((error) => {
			console.error(error);
			response.destroy();
		});
	});
	await new Promise((done) => server.listen(port, "127.0.0.1", done));
	service.url = `http://127.0.0.1:${server.address().port}`;
	service.stop = () =>
		new Promise((done) => {
			server.closeAllConnections();
			server.close(done);
		});
	return service;
}
