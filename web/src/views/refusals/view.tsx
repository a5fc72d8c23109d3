// SPDX-License-Identifier: LGPL-2.1-or-later
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import { useEvents, useLoad } from "../../api/hooks";
import type { Denial, Denials, DenialsBy } from "../../api/types";
import { href, replaceQuery, type Route } from "../../app/route";
import { useMay } from "../../app/session";
import { ChoiceField } from "../../parts/field";
import { Loading, Panel, ProblemNote } from "../../parts/note";
import { Table } from "../../parts/table";
import { denialColumns } from "./columns";
import { Draft } from "./draft";
import { KeyEvents } from "./events";
import { OverTime } from "./series";

const BY: [DenialsBy, string][] = [
	["name", "By name"],
	["ip", "By address"],
	["workspace", "By workspace"],
	["sandbox", "By sandbox"],
	["reason", "By reason"],
];
const WINDOWS = [
	["1h", "Last hour", 3600, 60],
	["24h", "Last 24 hours", 86_400, 3600],
	["7d", "Last 7 days", 604_800, 3600],
] as const;
const POLL_MS = 10_000;
const SOON_MS = 1000;

// A refusal that comes is in the counts about a second later.
function useSoon(run: () => void): void {
	const timer = useRef<number | undefined>(undefined);
	useEvents((events) => {
		if (timer.current !== undefined || !events.some((event) => event.action === "deny")) return;
		timer.current = window.setTimeout(() => {
			timer.current = undefined;
			run();
		}, SOON_MS);
	});
	useEffect(() => () => window.clearTimeout(timer.current), []);
}

export function RefusalsView({ route }: { route: Route }) {
	const by = BY.find(([value]) => value === route.query.get("by"))?.[0] ?? "name";
	const [span, , seconds, step] = WINDOWS.find(([value]) => value === route.query.get("window")) ?? WINDOWS[1];
	const key = route.query.get("key");
	const [draft, setDraft] = useState<Denial | null>(null);
	const may = useMay();
	const { data, problem, reload } = useLoad(
		() => get<Denials>("/denials", { by, window: span, series: step === 60 ? "minute" : "hour", limit: 100 }),
		[by, span],
		POLL_MS,
	);
	useSoon(reload);

	return (
		<>
			<h1 tabIndex={-1}>Refusals</h1>
			<p>
				Names and connections that the policy of a sandbox did not let through. A rule of its workspace may
				allow one; a floor is a refusal that no rule lifts.
			</p>
			<form class="filters" onSubmit={(event) => event.preventDefault()}>
				<ChoiceField
					label="Group"
					value={by}
					onChange={(value) => replaceQuery(route, { by: value, key: null })}
				>
					{BY.map(([value, text]) => (
						<option key={value} value={value}>
							{text}
						</option>
					))}
				</ChoiceField>
				<ChoiceField label="Time" value={span} onChange={(value) => replaceQuery(route, { window: value })}>
					{WINDOWS.map(([value, text]) => (
						<option key={value} value={value}>
							{text}
						</option>
					))}
				</ChoiceField>
			</form>
			<ProblemNote problem={problem} />
			{!data && !problem ? <Loading what="refusals" /> : null}
			{data?.uncounted ? (
				<p role="status" class="note">
					{`${data.uncounted.toLocaleString("en")} older events are still being counted.`}
				</p>
			) : null}
			{data?.series && data.items.length > 0 ? (
				<OverTime series={data.series} seconds={seconds} step={step} />
			) : null}
			{data ? (
				<Panel title={BY.find(([value]) => value === by)![1]}>
					<Table
						caption={`Refusals, ${by}`}
						columns={denialColumns(by, {
							eventsOf: (d) => href("refusals", null, { by, window: span, key: d.key }),
							othersOf: (other) => href("refusals", null, { by: other, window: span }),
							draftOf: may.change ? setDraft : null,
						})}
						rows={data.items}
						keyOf={(d) => d.key ?? ""}
						rowClass={(d) => (d.key !== null && d.key === key ? "chosen" : "")}
						empty="Nothing was refused in this time."
					/>
				</Panel>
			) : null}
			{key !== null ? (
				<KeyEvents by={by} value={key} closed={href("refusals", null, { by, window: span })} />
			) : null}
			{draft ? <Draft denial={draft} by={by} onClose={() => setDraft(null)} /> : null}
		</>
	);
}
