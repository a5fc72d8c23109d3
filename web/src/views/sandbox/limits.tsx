// SPDX-License-Identifier: LGPL-2.1-or-later
import type { Limit, Sandbox } from "../../api/types";
import { bytes, count, span } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

type Row = Limit & { name: string };

function amount(name: string, value: number | null): string {
	if (value === null) return "–";
	if (/memory|disk|bytes|tmp|size|file/.test(name)) return bytes(value);
	if (/wall|time|cpu_s/.test(name)) return span(value);
	return count(value);
}

const COLUMNS: Column<Row>[] = [
	{ head: "Limit", title: true, cell: (l) => l.name.replaceAll("_", " ") },
	{ head: "Value", numeric: true, cell: (l) => amount(l.name, l.asked) },
	{ head: "Ceiling", numeric: true, cell: (l) => amount(l.name, l.ceiling) },
	{ head: "Enforced by", cell: (l) => l.enforced_by },
];

export function LimitsPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!sandbox.limits) return null;
	const rows = Object.entries(sandbox.limits)
		.filter((entry): entry is [string, Limit] => typeof entry[1] === "object")
		.map(([name, limit]) => ({ name, ...limit }));
	return (
		<Panel title="Limits">
			<Table
				caption="Limits"
				columns={COLUMNS}
				rows={rows}
				keyOf={(l) => l.name}
				empty="There is no limit."
			/>
		</Panel>
	);
}
