// SPDX-License-Identifier: LGPL-2.1-or-later
import type { Flow, Sandbox } from "../../api/types";
import { Foreign } from "../../parts/foreign";
import { bytes } from "../../parts/format";
import { Destination } from "../../parts/events";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";
import { Age } from "../../parts/time";

const since = (f: Flow) => f.since ?? (f.since_ms ? new Date(f.since_ms).toISOString() : null);

const COLUMNS: Column<Flow>[] = [
	{ head: "Destination", wide: true, cell: (f) => <Destination {...f} /> },
	{ head: "Protocol", cell: (f) => f.protocol },
	{ head: "Out", numeric: true, cell: (f) => bytes(f.bytes_out) },
	{ head: "In", numeric: true, cell: (f) => bytes(f.bytes_in) },
	{ head: "Open for", numeric: true, cell: (f) => <Age at={since(f)} /> },
	{ head: "Allowed by", cell: (f) => <Foreign text={f.rule} class="code" /> },
];

export function FlowsPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!sandbox.live) return null;
	return (
		<Panel title="Open flows">
			<Table
				caption="Open flows"
				columns={COLUMNS}
				rows={sandbox.flows ?? []}
				keyOf={(f) => `${f.protocol} ${f.name} ${f.ip} ${f.port} ${since(f)}`}
				empty="No flow is open."
			/>
		</Panel>
	);
}
