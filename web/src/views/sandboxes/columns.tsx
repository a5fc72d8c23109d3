// SPDX-License-Identifier: LGPL-2.1-or-later
import { remove, segment } from "../../api/client";
import type { Sandbox } from "../../api/types";
import { href } from "../../app/route";
import { AirGap } from "../../parts/airgap";
import { Badge } from "../../parts/badge";
import { Confirm } from "../../parts/confirm";
import { Foreign } from "../../parts/foreign";
import { bytes, commandLine, count, percent } from "../../parts/format";
import type { Column } from "../../parts/table";
import { Age } from "../../parts/time";

export function Kill({ sandbox, onKilled }: { sandbox: Sandbox; onKilled: () => void }) {
	return (
		<Confirm
			button="Kill"
			label={`Kill ${sandbox.id}`}
			title="Kill this sandbox?"
			confirm="Kill it"
			run={async () => {
				await remove(`/sandboxes/${segment(sandbox.id)}`);
				onKilled();
			}}
		>
			<p>
				Every process in <code>{sandbox.id}</code> ends at once:
			</p>
			<p>
				<Foreign text={commandLine(sandbox.command)} class="code" />
			</p>
		</Confirm>
	);
}

interface Context {
	rates: ReadonlyMap<string, { rate: number | null }>;
	mayChange: boolean;
	reload: () => void;
}

export function sandboxColumns({ rates, mayChange, reload }: Context): Column<Sandbox>[] {
	return [
		{
			head: "Sandbox",
			title: true,
			cell: (s) => (
				<a class="code" href={href("sandboxes", s.id)}>
					{s.id}
				</a>
			),
		},
		{ head: "State", cell: (s) => <Badge word={s.state} /> },
		{ head: "Profile", cell: (s) => <a href={href("profiles", s.profile)}>{s.profile}</a> },
		{
			head: "Workspace",
			cell: (s) =>
				s.workspace ? (
					<a href={href("rules", s.workspace)}>
						<Foreign text={s.workspace} />
					</a>
				) : (
					"–"
				),
		},
		{ head: "Command", wide: true, cell: (s) => <Foreign text={commandLine(s.command)} class="code" /> },
		{ head: "Age", numeric: true, cell: (s) => <Age at={s.started_at ?? s.created_at} until={s.ended_at} /> },
		{ head: "CPU", numeric: true, cell: (s) => (s.live ? percent(rates.get(s.id)?.rate) : "–") },
		{ head: "Memory", numeric: true, cell: (s) => bytes(s.usage?.memory_bytes) },
		{ head: "Flows", numeric: true, cell: (s) => count(s.usage?.flows) },
		{
			head: "Refused",
			numeric: true,
			cell: (s) => (
				<a
					href={href("refusals", null, { by: "sandbox", key: s.id })}
					aria-label={`Refusals of ${s.id}: ${s.live ? count(s.usage?.n_denied) : "its events"}`}
				>
					{s.live ? count(s.usage?.n_denied) : "events"}
				</a>
			),
		},
		{
			head: "Air gap",
			cell: (s) => (s.live ? <AirGap sandbox={s} disabled={!mayChange} onChanged={reload} /> : "–"),
		},
		{
			head: "Actions",
			cell: (s) => (s.live && mayChange ? <Kill sandbox={s} onKilled={reload} /> : "–"),
		},
	];
}
