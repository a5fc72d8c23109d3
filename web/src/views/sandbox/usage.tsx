// SPDX-License-Identifier: LGPL-2.1-or-later
// Usage as plots, from answers every second while the view is open.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, segment } from "../../api/client";
import { useLoad } from "../../api/hooks";
import type { Sandbox, Usage } from "../../api/types";
import { bytes, count, percent } from "../../parts/format";
import { Panel, ProblemNote } from "../../parts/note";
import { Plot } from "../../parts/plot";

const POLL_MS = 1000;
const KEPT = 300;
const LEAST_S = 30;

interface Series {
	times: number[];
	cpu: (number | null)[];
	memory: (number | null)[];
	flows: (number | null)[];
}

const NONE: Series = { times: [], cpu: [], memory: [], flows: [] };

function limitOf({ limits }: Sandbox, name: string): number | null {
	const limit = limits?.[name];
	return typeof limit === "object" ? limit.asked : null;
}

export function UsagePanel({ sandbox }: { sandbox: Sandbox }) {
	const { id } = sandbox;
	const memory = limitOf(sandbox, "memory_bytes");
	const milli = limitOf(sandbox, "cpus_milli");
	const { data, problem } = useLoad(() => get<Usage>(`/sandboxes/${segment(id)}/metrics`), [id], POLL_MS);
	const [series, setSeries] = useState<Series>(NONE);
	const last = useRef<{ cpu_us: number; at: number } | null>(null);

	useEffect(() => {
		setSeries(NONE);
		last.current = null;
	}, [id]);

	useEffect(() => {
		if (!data) return;
		const at = performance.now();
		let cpu: number | null = null;
		if (data.cpu_us !== null && data.cpu_us !== undefined) {
			const old = last.current;
			if (old && at > old.at) cpu = Math.max(0, data.cpu_us - old.cpu_us) / ((at - old.at) * 1000);
			last.current = { cpu_us: data.cpu_us, at };
		}
		const add = <T,>(list: T[], value: T) => [...list, value].slice(-KEPT);
		setSeries((s) => ({
			times: add(s.times, Date.now() / 1000),
			cpu: add(s.cpu, cpu),
			memory: add(s.memory, data.memory_bytes ?? null),
			flows: add(s.flows, data.flows ?? null),
		}));
	}, [data]);

	return (
		<Panel title="Usage">
			<ProblemNote problem={problem} />
			<div class="plots">
				<Figure
					name="CPU"
					now={percent(series.cpu.at(-1))}
					more={milli ? `limit ${percent(milli / 1000)}` : ""}
					limit={milli && milli / 1000}
					times={series.times}
					values={series.cpu}
					format={percent}
				/>
				<Figure
					name="Memory"
					now={bytes(data?.memory_bytes)}
					more={[
						data?.memory_peak_bytes && `at most ${bytes(data.memory_peak_bytes)}`,
						memory && `limit ${bytes(memory)}`,
					]
						.filter(Boolean)
						.join(", ")}
					limit={memory}
					times={series.times}
					values={series.memory}
					format={bytes}
				/>
				<Figure
					name="Flows"
					now={count(data?.flows)}
					more={`${bytes(data?.bytes_in)} in, ${bytes(data?.bytes_out)} out`}
					times={series.times}
					values={series.flows}
					format={(n) => (Number.isInteger(n) ? count(n) : "")}
				/>
			</div>
			<p class="muted">
				{count(data?.pids)} threads
				{typeof data?.disk_bytes === "number" ? `, ${bytes(data.disk_bytes)} in files of its own` : null}
				{data?.cpu_us === null ? ". CPU is not measured: this sandbox has no control group of its own" : null}
			</p>
		</Panel>
	);
}

interface FigureProps {
	name: string;
	now: string;
	more?: string; // beside the number
	times: number[];
	values: (number | null)[];
	format: (n: number) => string;
	limit?: number | null;
}

function Figure({ name, now, more, ...plot }: FigureProps) {
	return (
		<figure>
			<figcaption>
				{name} <strong>{now}</strong>
				<small>{more || "\u00a0"}</small>
			</figcaption>
			<Plot
				seconds={LEAST_S}
				label={`${name} over time, now ${now}${more ? `, ${more}` : ""}`}
				name={name}
				{...plot}
			/>
		</figure>
	);
}
