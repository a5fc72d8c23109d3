// SPDX-License-Identifier: LGPL-2.1-or-later
// Usage of the rows that are in sight, and refusals of a day: the list itself has neither. A host
// may have a thousand sandboxes, and a window shows some twenty of them.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, segment } from "../../api/client";
import { useEvents, useLoad } from "../../api/hooks";
import type { Denials, Usage } from "../../api/types";

const POLL_MS = 3000;
const ROWS_MAX = 25;
const REFUSALS_POLL_MS = 15_000;

export interface RowUsage extends Usage {
	cpu: number | null; // 1: one processor, all of the time
	at: number;
}

function keysInSight(): string[] {
	const rows = [...document.querySelectorAll<HTMLElement>("main tbody tr[data-key][data-live]")];
	return rows
		.filter((row) => {
			const { top, bottom } = row.getBoundingClientRect();
			return bottom > 0 && top < window.innerHeight;
		})
		.map((row) => row.dataset["key"]!)
		.slice(0, ROWS_MAX);
}

export function cpuRate(old: RowUsage | undefined, now: Usage, at: number): number | null {
	if (!old || typeof old.cpu_us !== "number" || typeof now.cpu_us !== "number" || at <= old.at)
		return old?.cpu ?? null;
	return Math.max(0, now.cpu_us - old.cpu_us) / ((at - old.at) * 1000);
}

// By id. Times are this browser's: only their difference counts.
export function useRowUsage(ids: string): ReadonlyMap<string, RowUsage> {
	const [usage, setUsage] = useState<ReadonlyMap<string, RowUsage>>(new Map());
	const busy = useRef(false);
	useEffect(() => {
		const run = async () => {
			if (busy.current || document.hidden) return;
			busy.current = true;
			const keys = keysInSight();
			const answers = await Promise.allSettled(
				keys.map((id) => get<Usage>(`/sandboxes/${segment(id)}/metrics`)),
			);
			busy.current = false;
			const at = performance.now();
			setUsage((old) => {
				const next = new Map(old);
				answers.forEach((answer, i) => {
					if (answer.status !== "fulfilled") return;
					const id = keys[i]!;
					next.set(id, { ...answer.value, cpu: cpuRate(old.get(id), answer.value, at), at });
				});
				return next;
			});
		};
		void run();
		const timer = window.setInterval(() => void run(), POLL_MS);
		return () => window.clearInterval(timer);
	}, [ids]);
	return usage;
}

// Refusals of the last day by sandbox; those that come are added at once.
export function useRefusals(): ReadonlyMap<string, number> {
	const { data } = useLoad(
		() => get<Denials>("/denials", { by: "sandbox", window: "24h", limit: 1000 }),
		[],
		REFUSALS_POLL_MS,
	);
	const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
	useEffect(() => {
		if (data) setCounts(new Map(data.items.map((row) => [row.key ?? "", row.count])));
	}, [data]);
	useEvents((event) => {
		if (event.action !== "deny") return;
		setCounts((old) => new Map(old).set(event.sandbox_id, (old.get(event.sandbox_id) ?? 0) + event.count));
	});
	return counts;
}
