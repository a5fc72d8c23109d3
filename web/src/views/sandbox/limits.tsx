// SPDX-License-Identifier: LGPL-2.1-or-later
// Limits: a name ends in its unit.
import type { Limit, Sandbox } from "../../api/types";
import { bytes, count, span } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

type Row = Limit & { name: string };

const UNITS: [string, (value: number) => string][] = [
	["_bytes", bytes],
	["_ms", (value) => span(value / 1000)],
	["_milli", (value) => String(value / 1000)],
];

function amount(name: string, value: number | null): string {
	if (value === null) return "–";
	const unit = UNITS.find(([suffix]) => name.endsWith(suffix));
	return unit ? unit[1](value) : count(value);
}

const plainName = (name: string) => name.replace(/_(bytes|ms|milli)$/, "").replaceAll("_", " ");

const COLUMNS: Column<Row>[] = [
	{ head: "Limit", title: true, cell: (l) => plainName(l.name) },
	{ head: "Value", numeric: true, cell: (l) => amount(l.name, l.asked) },
	{ head: "Ceiling", numeric: true, cell: (l) => amount(l.name, l.ceiling) },
	{ head: "Enforced by", cell: (l) => (l.asked === null ? "–" : l.enforced_by) },
];

export function LimitsPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!sandbox.limits) return null;
	const { enforce } = sandbox.limits;
	const rows = Object.entries(sandbox.limits)
		.filter((entry): entry is [string, Limit] => typeof entry[1] === "object")
		.map(([name, limit]) => ({ name, ...limit }))
		.filter(({ asked, ceiling }) => asked !== null || ceiling !== null);
	return (
		<Panel title="Limits" aside={typeof enforce === "string" ? <span class="muted">{enforce}</span> : null}>
			<Table caption="Limits" columns={COLUMNS} rows={rows} keyOf={(l) => l.name} empty="No limit is set." />
		</Panel>
	);
}
