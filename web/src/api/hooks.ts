// SPDX-License-Identifier: LGPL-2.1-or-later
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./client";
import { onEvents } from "./live";
import type { EgressEvent } from "./types";

export interface Loaded<T> {
	data: T | null;
	problem: Problem | null; // of the newest request; data may be of an older one
	reload: () => void;
}

export function asProblem(error: unknown): Problem {
	return error instanceof Problem ? error : new Problem(0, String(error));
}

const AGAIN_MS = 5000;
const PASSES = [0, 429, 503]; // the service is away, or busy

// Loads at once, when a dependency changes, and every intervalMs while the page is visible. 0: until it is there.
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[], intervalMs = 0): Loaded<T> {
	const [data, setData] = useState<T | null>(null);
	const [problem, setProblem] = useState<Problem | null>(null);
	const current = useRef(0);
	const busy = useRef(false);

	const retry = useRef<number | undefined>(undefined);

	const run = useCallback(async (asked: number) => {
		window.clearTimeout(retry.current);
		busy.current = true;
		try {
			const got = await load();
			if (asked !== current.current) return;
			setData(got);
			setProblem(null);
		} catch (error) {
			if (asked !== current.current) return;
			const failed = asProblem(error);
			setProblem(failed);
			if (intervalMs === 0 && PASSES.includes(failed.status))
				retry.current = window.setTimeout(() => void run(asked), AGAIN_MS);
		} finally {
			if (asked === current.current) busy.current = false;
		}
	}, deps);

	const reload = useCallback(() => void run(++current.current), [run]);

	useEffect(() => {
		setData(null);
		setProblem(null);
		reload();
		const again = () => {
			if (!document.hidden && !busy.current) reload();
		};
		const timer = intervalMs > 0 ? window.setInterval(again, intervalMs) : undefined;
		if (intervalMs > 0) document.addEventListener("visibilitychange", again);
		return () => {
			current.current++;
			window.clearTimeout(retry.current);
			window.clearInterval(timer);
			document.removeEventListener("visibilitychange", again);
		};
	}, [reload, intervalMs]);

	return { data, problem, reload };
}

export function useEvents(run: (events: readonly EgressEvent[]) => void): void {
	const newest = useRef(run);
	newest.current = run;
	useEffect(() => onEvents((events) => newest.current(events)), []);
}

// The value, after it has not changed for so long: what is asked about it is not asked at each key.
export function useSettled<T>(value: T, ms = 400): T {
	const [settled, setSettled] = useState(value);
	useEffect(() => {
		const timer = window.setTimeout(() => setSettled(value), ms);
		return () => window.clearTimeout(timer);
	}, [value, ms]);
	return settled;
}

// An action of a button or form: whether it is under way, and how the last one failed.
export function useAction(): {
	busy: boolean;
	problem: Problem | null;
	start: (run: () => Promise<void>) => Promise<void>;
	clear: () => void;
} {
	const [busy, setBusy] = useState(false);
	const [problem, setProblem] = useState<Problem | null>(null);
	const start = useCallback(async (run: () => Promise<void>) => {
		setBusy(true);
		setProblem(null);
		try {
			await run();
		} catch (error) {
			setProblem(asProblem(error));
		} finally {
			setBusy(false);
		}
	}, []);
	const clear = useCallback(() => setProblem(null), []);
	return { busy, problem, start, clear };
}
