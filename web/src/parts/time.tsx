// SPDX-License-Identifier: LGPL-2.1-or-later
import { useEffect, useState } from "preact/hooks";
import { secondsSince, span } from "./format";

// The page's clock: every Age on it is drawn again together.
const ticks = new Set<() => void>();
window.setInterval(() => {
	if (!document.hidden) for (const run of ticks) run();
}, 1000);

function useClock(): void {
	const [, setNow] = useState(0);
	useEffect(() => {
		const run = () => setNow(Date.now());
		ticks.add(run);
		return () => void ticks.delete(run);
	}, []);
}

function local(at: string): string {
	const date = new Date(at);
	return Number.isNaN(date.getTime()) ? at : date.toLocaleString("sv");
}

// How long ago; the full time is its title.
export function Age({ at, until }: { at: string | null; until?: string | null }) {
	useClock();
	const end = until ? Date.parse(until) : Date.now();
	const seconds = secondsSince(at, end);
	if (!at || seconds === null) return <>–</>;
	return (
		<time dateTime={at} title={local(at)}>
			{span(seconds)}
		</time>
	);
}

export function Clock({ at }: { at: string | null }) {
	if (!at) return <>–</>;
	const text = local(at);
	const today = local(new Date().toISOString()).slice(0, 10);
	return (
		<time dateTime={at} title={text}>
			{text.startsWith(today) ? text.slice(11) : text}
		</time>
	);
}
