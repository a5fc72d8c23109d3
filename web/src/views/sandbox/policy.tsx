// SPDX-License-Identifier: LGPL-2.1-or-later
// The policy in force: layers from the top to the bottom, with the origin of each entry. Floors are many and always
// the same, so that they are folded.
import type { PolicyEntry, Sandbox } from "../../api/types";
import { Badge, Lock } from "../../parts/badge";
import { Foreign } from "../../parts/foreign";
import { plural } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

const COLUMNS: Column<PolicyEntry>[] = [
	{ head: "Entry", wide: true, cell: (p) => <Foreign text={p.entry} class="code" /> },
	{ head: "Action", cell: (p) => <Badge word={p.action} /> },
	{ head: "Layer", cell: (p) => (p.layer === "floor" ? <Lock label="floor" /> : p.layer) },
	{ head: "Origin", cell: (p) => <Foreign text={p.origin} class="code" /> },
];

function Entries({ caption, entries }: { caption: string; entries: readonly PolicyEntry[] }) {
	return (
		<Table
			caption={caption}
			columns={COLUMNS}
			rows={entries}
			keyOf={(p) => `${p.layer} ${p.action} ${p.entry} ${p.origin}`}
			rowClass={(p) => (p.layer === "floor" ? "locked" : "")}
			empty="The sandbox told no policy."
		/>
	);
}

export function PolicyPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!sandbox.policy) return null;
	const floors = sandbox.policy.filter((p) => p.layer === "floor");
	const others = sandbox.policy.filter((p) => p.layer !== "floor");
	return (
		<Panel title="Policy in force" aside={<span class="muted">generation {sandbox.generation}</span>}>
			{sandbox.air_gapped ? (
				<p class="note">Air-gapped: of what is below, only floors, denies and the live lists count.</p>
			) : null}
			{floors.length > 0 ? (
				<details>
					<summary>
						<Lock label={plural(floors.length, "floor")} /> that nothing lifts
					</summary>
					<Entries caption="Floors" entries={floors} />
				</details>
			) : null}
			<Entries caption="Policy in force" entries={others} />
			{sandbox.ruleset ? (
				<details>
					<summary>The kernel's ruleset</summary>
					<pre tabIndex={0}>{sandbox.ruleset}</pre>
				</details>
			) : null}
		</Panel>
	);
}
