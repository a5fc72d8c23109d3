// SPDX-License-Identifier: LGPL-2.1-or-later
import { useMemo } from "preact/hooks";
import { count } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Plot } from "../../parts/plot";

interface Point {
	at: string;
	count: number;
}

// The service leaves out times without refusals: here they are 0.
function filled(series: readonly Point[], seconds: number, step: number): { times: number[]; values: number[] } {
	const bucket = (ms: number) => Math.floor(ms / 1000 / step);
	const counts = new Map<number, number>();
	for (const { at, count: n } of series) {
		const key = bucket(Date.parse(at));
		counts.set(key, (counts.get(key) ?? 0) + n);
	}
	const last = Math.max(bucket(Date.now()), ...counts.keys());
	const keys = Array.from({ length: seconds / step }, (_, i) => last - seconds / step + 1 + i);
	return { times: keys.map((key) => key * step), values: keys.map((key) => counts.get(key) ?? 0) };
}

export function OverTime(props: { series: readonly Point[]; seconds: number; step: number }) {
	const { series, seconds, step } = props;
	const { times, values } = useMemo(() => filled(series, seconds, step), [series, seconds, step]);
	const bars = useMemo(() => values.map((n) => n || null), [values]);
	const total = values.reduce((sum, n) => sum + n, 0);
	const each = step === 60 ? "a minute" : "an hour";
	return (
		<Panel title="Over time" aside={<span class="muted">{`${count(total)} in all, each bar ${each}`}</span>}>
			<Plot
				bars
				label={`Refusals over time: ${count(total)} in all, at most ${count(Math.max(...values))} in ${each}`}
				name="Refusals"
				times={times}
				values={bars}
				format={(n) => (Number.isInteger(n) ? count(n) : "")}
			/>
		</Panel>
	);
}
