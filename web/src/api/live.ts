// SPDX-License-Identifier: LGPL-2.1-or-later
// One connection for the events of all views. The browser connects again by itself and says the id of the last
// event that it has, so none is missed. After an answer that is no stream it gives up, and this module tries again.
// A page in the background has no connection: a browser has six for each service, whatever the number of pages.
import { apiUrl } from "./client";
import type { EgressEvent } from "./types";

export type LiveState = "connecting" | "open" | "lost";

const RETRY_MS = 5000;
const TOGETHER_MS = 100; // events of so long are shown at once

type Listener = (event: EgressEvent) => void;

const listeners = new Set<Listener>();
const stateListeners = new Set<(state: LiveState) => void>();
let source: EventSource | null = null;
let state: LiveState = "connecting";
let retry: number | undefined;
let lastId: string | null = null;
let waiting: EgressEvent[] = [];

function setState(now: LiveState): void {
	state = now;
	for (const run of stateListeners) run(now);
}

function deliver(): void {
	const events = waiting;
	waiting = [];
	for (const event of events) for (const run of listeners) run(event);
}

function take(message: MessageEvent<string>): void {
	if (message.lastEventId) lastId = message.lastEventId;
	try {
		waiting.push(JSON.parse(message.data) as EgressEvent);
	} catch {
		return;
	}
	if (waiting.length === 1) window.setTimeout(deliver, TOGETHER_MS);
}

function connect(): void {
	disconnect();
	setState("connecting");
	source = new EventSource(apiUrl("/events", { after: lastId }));
	source.onopen = () => setState("open");
	source.onmessage = take;
	source.addEventListener("event", take);
	source.onerror = () => {
		setState("lost");
		if (source?.readyState === EventSource.CLOSED) retry = window.setTimeout(connect, RETRY_MS);
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

export function onEvent(run: Listener): () => void {
	listeners.add(run);
	return () => listeners.delete(run);
}

export function onLiveState(run: (state: LiveState) => void): () => void {
	stateListeners.add(run);
	run(state);
	return () => stateListeners.delete(run);
}
