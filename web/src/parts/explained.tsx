// SPDX-License-Identifier: LGPL-2.1-or-later
// The answer of POST /explain: the verdict, the entry that decided, all that match, and how it would turn.
import type { Explained, Match } from "../api/types";
import { Badge, Lock } from "./badge";
import { Foreign } from "./foreign";
import { Table, type Column } from "./table";

const COLUMNS: Column<Match>[] = [
	{ head: "Layer", cell: (m) => (m.layer === "floor" ? <Lock label="floor" /> : m.layer) },
	{ head: "Action", cell: (m) => <Badge word={m.action} /> },
	{
		head: "Entry",
		wide: true,
		cell: (m) => (
			<>
				<Foreign text={m.text} class="code" />
				{m.decided ? <strong class="below">decides</strong> : null}
			</>
		),
	},
	{ head: "Origin", cell: (m) => <Foreign text={m.origin} class="code" /> },
];

export function ExplainedNote({ explained: e }: { explained: Explained }) {
	return (
		<div role="status" class={`note ${e.verdict === "allow" ? "good" : "problem"}`}>
			<strong>{e.verdict === "allow" ? "Allowed" : "Refused"}</strong>:{" "}
			<Foreign text={e.subject} class="code" />
			<span class="below">
				<Foreign text={e.why} /> ({e.reason.replaceAll("_", " ")})
			</span>
		</div>
	);
}

// The same with a draft of a rule: the verdict, and what the draft has to do with it.
export function DraftNote({ explained: e }: { explained: Explained }) {
	return (
		<>
			<ExplainedNote explained={e} />
			{e.draft ? (
				<p class="muted">
					{e.draft.above?.layer === "floor" ? <Lock label="A floor: no rule lifts it. " /> : null}
					<Foreign text={e.draft.why} />
				</p>
			) : null}
		</>
	);
}

export function ExplainedDetail({ explained: e }: { explained: Explained }) {
	return (
		<>
			{e.matches.length > 0 ? (
				<Table
					caption="Entries that match"
					columns={COLUMNS}
					rows={e.matches}
					keyOf={(m) => `${m.layer} ${m.action} ${m.text} ${m.origin}`}
					rowClass={(m) => (m.layer === "floor" ? "locked" : "")}
				/>
			) : null}
			{e.n_more > 0 ? <p class="muted">and {e.n_more} more</p> : null}
			{e.changes.length > 0 ? (
				<>
					<h3>Each of these alone would turn it</h3>
					<ul>
						{e.changes.map((change) => (
							<li key={change}>
								<Foreign text={change} />
							</li>
						))}
					</ul>
				</>
			) : null}
		</>
	);
}
