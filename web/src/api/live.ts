// SPDX-License-Identifier: LGPL-2.1-or-later
// One connection for the events of all views. The browser connects again by itself and says the id of the
// last event that it has, so none is missed; only after an answer that is no stream it gives up, and then this
// module tries again.
import { apiUrl } from "./client";
import type { EgressEvent } from "./types";

export type LiveState = "connecting" | "open" | "lost";

const RETRY_MS = 5000;

type Listener = (event: EgressEvent) => void;

const listeners = new Set<Listener>();
const stateListeners = new Set<(state: LiveState) => void>();
let source: EventSource | null = null;
let state: LiveState = "connecting";
let retry: number | undefined;

function setState(now: LiveState): void {
	state = now;
	for (const run of stateListeners) run(now);
}

function take(message: MessageEvent<string>): void {
	let event: EgressEvent;
	try {
		event = JSON.parse(message.data) as EgressEvent;
	} catch {
		return;
	}
	for (const run of listeners) run(event);
}

export function startLive(): void {
	stopLive();
	setState("connecting");
	source = new EventSource(apiUrl("/events"));
	source.onopen = () => setState("open");
	source.onmessage = take;
	source.addEventListener("event", take);
	source.onerror = () => {
		setState("lost");
		if (source?.readyState === EventSource.CLOSED) retry = window.setTimeout(startLive, RETRY_MS);
	};
}

export function stopLive(): void {
	window.clearTimeout(retry);
	source?.close();
	source = null;
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
