// SPDX-License-Identifier: LGPL-2.1-or-later
// CPU per second from two answers of the list.
import { useRef } from "preact/hooks";
import type { Sandbox } from "../../api/types";

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
