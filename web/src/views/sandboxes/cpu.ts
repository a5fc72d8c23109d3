// SPDX-License-Identifier: LGPL-2.1-or-later
// CPU time per second, from two answers of the list. Times are this browser's: only their difference counts.
import type { Sandbox } from "../../api/types";

interface Sample {
	cpu_us: number;
	at: number;
	rate: number | null;
}

export class CpuRates {
	private samples = new Map<string, Sample>();

	take(sandboxes: readonly Sandbox[], now = performance.now()): void {
		const next = new Map<string, Sample>();
		for (const { id, usage } of sandboxes) {
			const cpu_us = usage?.cpu_us;
			if (cpu_us === null || cpu_us === undefined) continue;
			const old = this.samples.get(id);
			const ms = old ? now - old.at : 0;
			const rate = old && ms > 200 ? Math.max(0, cpu_us - old.cpu_us) / (ms * 1000) : (old?.rate ?? null);
			next.set(id, { cpu_us, at: now, rate });
		}
		this.samples = next;
	}

	// 1: one processor, all of the time; null: not known yet.
	rate(id: string): number | null {
		return this.samples.get(id)?.rate ?? null;
	}
}
