// SPDX-License-Identifier: LGPL-2.1-or-later
// The probes that ran inside before the command did. Equal ones are one row.
import type { Probe, Sandbox } from "../../api/types";
import { Badge } from "../../parts/badge";
import { Foreign } from "../../parts/foreign";
import { count } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

type Row = Probe & { key: string; times: number };

const COLUMNS: Column<Row>[] = [
	{ head: "Probe", title: true, cell: (p) => p.probe.replaceAll("_", " ") },
	{ head: "Result", cell: (p) => <Badge word={p.ok ? "passed" : "failed"} /> },
	{ head: "Times", numeric: true, cell: (p) => count(p.times) },
	{ head: "Detail", wide: true, cell: (p) => <Foreign text={p.detail} /> },
];

function together(probes: readonly Probe[]): Row[] {
	const rows = new Map<string, Row>();
	for (const probe of probes) {
		const key = JSON.stringify([probe.probe, probe.ok, probe.detail]);
		rows.set(key, { ...probe, key, times: (rows.get(key)?.times ?? 0) + 1 });
	}
	return [...rows.values()];
}

export function SelftestPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!Array.isArray(sandbox.selftest)) return null;
	return (
		<Panel title="Self-test">
			<p class="muted">Tried inside, before the command ran: each of these had to fail, or work, as it says.</p>
			<Table
				caption="Self-test"
				columns={COLUMNS}
				rows={together(sandbox.selftest)}
				keyOf={(p) => p.key}
				empty="No probe was recorded."
			/>
		</Panel>
	);
}
