// SPDX-License-Identifier: LGPL-2.1-or-later
// Requests to the service that the page came from. The page lies in ui/ below the API, so that a proxy may put
// both below a path of its own.

export const apiBase = new URL("..", document.baseURI);

export function apiUrl(path: string, query: Record<string, string | number | null | undefined> = {}): string {
	const url = new URL(path.replace(/^\//, ""), apiBase);
	for (const [name, value] of Object.entries(query))
		if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
	return url.href;
}

// A path's segment that may hold anything: a workspace, a profile.
export const segment = encodeURIComponent;

// A problem document (RFC 9457), or the same made of what came in its place.
export class Problem extends Error {
	readonly status: number;
	readonly code: string;
	readonly field: string | null;

	constructor(status: number, detail: string, code = "", field: string | null = null) {
		super(detail);
		this.status = status;
		this.code = code;
		this.field = field;
	}
}

async function problemOf(response: Response): Promise<Problem> {
	const text = await response.text().catch(() => "");
	try {
		const body = JSON.parse(text) as { detail?: string; title?: string; code?: string; field?: string };
		const detail = body.detail ?? body.title ?? response.statusText;
		return new Problem(response.status, detail, body.code, body.field ?? null);
	} catch {
		return new Problem(response.status, `the service answered ${response.status} ${response.statusText}`);
	}
}

const gone = new EventTarget();

// Called when the service says that the session is over.
export function onUnauthorized(run: () => void): () => void {
	gone.addEventListener("unauthorized", run);
	return () => gone.removeEventListener("unauthorized", run);
}

async function send(method: string, url: string, body?: unknown): Promise<Response> {
	const init: RequestInit = { method, headers: { Accept: "application/json" }, credentials: "same-origin" };
	if (body !== undefined) {
		init.headers = { Accept: "application/json", "Content-Type": "application/json" };
		init.body = JSON.stringify(body);
	}
	let response: Response;
	try {
		response = await fetch(url, init);
	} catch {
		throw new Problem(0, "the service does not answer");
	}
	if (response.ok) return response;
	if (response.status === 401) gone.dispatchEvent(new Event("unauthorized"));
	throw await problemOf(response);
}

async function json<T>(response: Response): Promise<T> {
	return (response.status === 204 ? undefined : await response.json()) as T;
}

export type Query = Record<string, string | number | null | undefined>;

export const get = async <T>(path: string, query?: Query): Promise<T> =>
	json<T>(await send("GET", apiUrl(path, query)));
export const post = async <T>(path: string, body?: unknown): Promise<T> =>
	json<T>(await send("POST", apiUrl(path), body));
export const put = async <T>(path: string, body: unknown): Promise<T> =>
	json<T>(await send("PUT", apiUrl(path), body));
export const patch = async <T>(path: string, body: unknown): Promise<T> =>
	json<T>(await send("PATCH", apiUrl(path), body));
export const remove = async (path: string): Promise<void> => {
	await send("DELETE", apiUrl(path));
};
