// SPDX-License-Identifier: LGPL-2.1-or-later
// The probes that ran inside before the command did.
import type { Probe, Sandbox } from "../../api/types";
import { Badge } from "../../parts/badge";
import { Foreign } from "../../parts/foreign";
import { Panel } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

const COLUMNS: Column<Probe>[] = [
	{ head: "Probe", title: true, cell: (p) => p.probe },
	{ head: "Result", cell: (p) => <Badge word={p.ok ? "passed" : "failed"} /> },
	{ head: "Detail", wide: true, cell: (p) => <Foreign text={p.detail} /> },
];

export function SelftestPanel({ sandbox }: { sandbox: Sandbox }) {
	if (!Array.isArray(sandbox.selftest)) return null;
	return (
		<Panel title="Self-test">
			<Table
				caption="Self-test"
				columns={COLUMNS}
				rows={sandbox.selftest}
				keyOf={(p) => p.probe}
				empty="No probe was recorded."
			/>
		</Panel>
	);
}
