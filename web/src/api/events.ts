// SPDX-License-Identifier: LGPL-2.1-or-later
// The newest events that a filter lets through: those of the database, then those that come.
import { useEffect, useState } from "preact/hooks";
import { get, type Query } from "./client";
import { useEvents, useLoad, type Loaded } from "./hooks";
import { onGap } from "./live";
import type { EgressEvent, List } from "./types";

export interface EventFilter {
	sandbox?: string | null;
	workspace?: string | null;
	action?: string | null;
	reason?: string | null;
	name?: string | null;
	ip?: string | null;
}

const KEPT = 200;
const AGAIN_MS = 60_000; // and when the page comes to the front

function passes(event: EgressEvent, f: EventFilter): boolean {
	return (
		(!f.sandbox || event.sandbox_id === f.sandbox) &&
		(!f.workspace || event.workspace === f.workspace) &&
		(!f.action || event.action === f.action) &&
		(!f.reason || event.reason === f.reason) &&
		(!f.name || event.name === f.name) &&
		(!f.ip || event.ip === f.ip)
	);
}

// Newest first, each id once; the service's order is not relied upon.
function merge(old: readonly EgressEvent[], more: readonly EgressEvent[]): EgressEvent[] {
	const byId = new Map(old.map((event) => [event.id, event]));
	for (const event of more) byId.set(event.id, event);
	return [...byId.values()].sort((a, b) => b.id - a.id).slice(0, KEPT);
}

export function useRecentEvents(filter: EventFilter): Loaded<EgressEvent[]> {
	const key = JSON.stringify(filter);
	const [events, setEvents] = useState<EgressEvent[]>([]);
	const first = useLoad(
		() => get<List<EgressEvent>>("/events", { ...filter, limit: KEPT } as Query),
		[key],
		AGAIN_MS,
	);
	useEffect(() => setEvents([]), [key]);
	useEffect(() => {
		if (first.data) setEvents((old) => merge(old, first.data!.items));
	}, [first.data]);
	useEffect(() => onGap(first.reload), [first.reload]);
	useEvents((all) => {
		const wanted = all.filter((event) => passes(event, filter));
		if (wanted.length > 0) setEvents((old) => merge(old, wanted));
	});
	return { ...first, data: first.data ? events : null };
}
