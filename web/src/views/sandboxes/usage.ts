// SPDX-License-Identifier: LGPL-2.1-or-later
// CPU per second from two answers of the list, and refusals of a day.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import { useEvents, useLoad } from "../../api/hooks";
import type { Denials, Sandbox } from "../../api/types";

const REFUSALS_POLL_MS = 15_000;
const STALE_MS = 10_000; // CPU time that has not grown for so long is no late sample

interface Sample {
	cpu_us: number;
	at: number; // by this browser: only differences count
	rate: number | null;
}

// The service asks launchers now and then: the list may bring one sample several times.
export function nextSample(old: Sample | undefined, cpu_us: number, at: number): Sample {
	if (!old) return { cpu_us, at, rate: null };
	if (cpu_us === old.cpu_us) return at - old.at > STALE_MS ? { cpu_us, at, rate: 0 } : old;
	return { cpu_us, at, rate: Math.max(0, cpu_us - old.cpu_us) / ((at - old.at) * 1000) };
}

// By id; 1: one processor, all of the time.
export function useCpuRates(sandboxes: readonly Sandbox[] | undefined): ReadonlyMap<string, Sample> {
	const samples = useRef<ReadonlyMap<string, Sample>>(new Map());
	const seen = useRef<readonly Sandbox[] | undefined>(undefined);
	if (sandboxes && sandboxes !== seen.current) {
		seen.current = sandboxes;
		const next = new Map<string, Sample>();
		for (const { id, usage } of sandboxes)
			if (typeof usage?.cpu_us === "number")
				next.set(id, nextSample(samples.current.get(id), usage.cpu_us, performance.now()));
		samples.current = next;
	}
	return samples.current;
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
