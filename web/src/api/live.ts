// SPDX-License-Identifier: LGPL-2.1-or-later
// One connection for the events of all views. The browser connects again by itself and says the id of the last
// event that it has, so none is missed. After an answer that is no stream it gives up, and this module tries again.
// A page in the background has no connection: a browser has six for each service, whatever the number of pages.
import { apiUrl, get } from "./client";
import type { EgressEvent } from "./types";

export type LiveState = "connecting" | "open" | "lost";

const RETRY_MS = 5000;
const TOGETHER_MS = 100; // events of so long are shown at once
const FLOOD_MS = 500; // the same, after more than FLOOD came together
const FLOOD = 50;

type Listener = (events: readonly EgressEvent[]) => void;

const listeners = new Set<Listener>();
const stateListeners = new Set<(state: LiveState) => void>();
const gapListeners = new Set<() => void>();
let source: EventSource | null = null;
let state: LiveState = "connecting";
let retry: number | undefined;
let lastId: string | null = null;
let waiting: EgressEvent[] = [];
let together = TOGETHER_MS;

function setState(now: LiveState): void {
	state = now;
	for (const run of stateListeners) run(now);
}

function deliver(): void {
	const events = waiting;
	waiting = [];
	together = events.length > FLOOD ? FLOOD_MS : TOGETHER_MS;
	for (const run of listeners) run(events);
}

function take(message: MessageEvent<string>): void {
	if (message.lastEventId) lastId = message.lastEventId;
	try {
		waiting.push(JSON.parse(message.data) as EgressEvent);
	} catch {
		return;
	}
	if (waiting.length === 1) window.setTimeout(deliver, together);
}

// Events may have come that are not in the stream: before it began, or because the service left them out.
function tellGap(): void {
	for (const run of gapListeners) run();
}

function connect(): void {
	disconnect();
	setState("connecting");
	source = new EventSource(apiUrl("/events", { after: lastId }));
	source.onopen = () => {
		setState("open");
		tellGap();
	};
	source.onmessage = take;
	source.addEventListener("event", take);
	source.addEventListener("lost", (message) => {
		lastId = message.lastEventId || lastId;
		tellGap();
	});
	source.onerror = () => {
		setState("lost");
		if (source?.readyState !== EventSource.CLOSED) return;
		retry = window.setTimeout(connect, RETRY_MS);
		get("/session").catch(() => undefined); // an EventSource does not tell a 401, this does
	};
}

function disconnect(): void {
	window.clearTimeout(retry);
	source?.close();
	source = null;
}

function follow(): void {
	if (document.hidden) disconnect();
	else if (!source) connect();
}

export function startLive(): void {
	document.addEventListener("visibilitychange", follow);
	follow();
}

export function stopLive(): void {
	document.removeEventListener("visibilitychange", follow);
	disconnect();
}

function listen<T>(all: Set<T>, run: T): () => void {
	all.add(run);
	return () => void all.delete(run);
}

export const onEvents = (run: Listener) => listen(listeners, run);
// Lists of events are to be read again.
export const onGap = (run: () => void) => listen(gapListeners, run);

export function onLiveState(run: (state: LiveState) => void): () => void {
	run(state);
	return listen(stateListeners, run);
}
