// SPDX-License-Identifier: LGPL-2.1-or-later
// A plot over time by uPlot. uPlot draws on a canvas and sets styles by script, which the page's
// Content-Security-Policy allows; its text comes from here, never from a sandbox. The label says the same in words.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface PlotProps {
	label: string; // the whole of it, for those who do not see it
	name: string; // of the values
	times: readonly number[]; // seconds since 1970
	values: readonly (number | null)[];
	format: (value: number) => string;
	bars?: boolean;
	height?: number;
	seconds?: number; // the least span that is shown
	limit?: number | null; // a line across, unless the values are far below it
}

// Far below the limit the values would be a flat line at the bottom: then the limit is not drawn.
function limitOf({ values, limit }: PlotProps): number | null {
	return limit && values.some((value) => value !== null && value > limit / 5) ? limit : null;
}

function dataOf(props: PlotProps): uPlot.AlignedData {
	const limit = limitOf(props);
	return [[...props.times], [...props.values], props.times.map(() => limit)] as uPlot.AlignedData;
}

const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Bars stand on their times: half a step more on either side.
function span(props: PlotProps, min: number, max: number): [number, number] {
	if (props.times.length === 0) return [Date.now() / 1000 - (props.seconds ?? 60), Date.now() / 1000];
	const [first = min, second = max] = props.times;
	const last = props.times.at(-1) ?? max; // of one time, uPlot makes a day
	if (props.seconds) return [Math.min(first, last - props.seconds), last];
	const half = props.bars ? (second - first) / 2 : 0;
	return [min - half, max + half];
}

function options(current: () => PlotProps, width: number): uPlot.Options {
	const props = current();
	const axis: uPlot.Axis = {
		stroke: colour("--muted"),
		grid: { stroke: colour("--line"), width: 1 },
		ticks: { stroke: colour("--line"), width: 1 },
		font: "12px system-ui, sans-serif",
	};
	const series: uPlot.Series = {
		label: props.name,
		stroke: colour("--accent"),
		fill: colour("--accent") + "33",
		width: 1.5,
		points: { show: false },
		value: (_plot, value: number | null) => (value === null ? "–" : props.format(value)),
	};
	const bars = props.bars ? uPlot.paths.bars?.({ size: [0.8, 40] }) : undefined;
	if (bars) series.paths = bars;
	return {
		width,
		height: props.height ?? 150,
		legend: { show: false },
		cursor: { show: false },
		scales: {
			x: { range: (_plot, min, max) => span(current(), min, max) },
			y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
		},
		axes: [
			{ ...axis, values: props.seconds ? "{HH}:{mm}:{ss}" : "{HH}:{mm}", space: 70, size: 30 },
			{ ...axis, size: 74, values: (_plot, splits) => splits.map((value) => props.format(value)) },
		],
		series: [
			{},
			series,
			{ label: "limit", stroke: colour("--bad"), dash: [6, 4], width: 1, points: { show: false } },
		],
	};
}

export function Plot(props: PlotProps) {
	const box = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const newest = useRef(props);
	newest.current = props;

	useEffect(() => {
		const element = box.current!;
		const make = () => {
			plot.current?.destroy();
			const { current } = newest;
			plot.current = new uPlot(
				options(() => newest.current, element.clientWidth),
				dataOf(current),
				element,
			);
		};
		make();
		const observer = new ResizeObserver(() =>
			plot.current?.setSize({ width: element.clientWidth, height: newest.current.height ?? 150 }),
		);
		observer.observe(element);
		dark.addEventListener("change", make);
		return () => {
			observer.disconnect();
			dark.removeEventListener("change", make);
			plot.current?.destroy();
			plot.current = null;
		};
	}, []);

	useEffect(() => {
		plot.current?.setData(dataOf(props));
	}, [props.times, props.values, props.limit]);

	return <div ref={box} class="plot" role="img" aria-label={props.label} />;
}
