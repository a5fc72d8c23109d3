// SPDX-License-Identifier: LGPL-2.1-or-later
// The workspaces, each with its rules, and the rules of the host.
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { useAction, useLoad } from "../../api/hooks";
import { workspaces } from "../../api/rules";
import type { Workspace } from "../../api/types";
import { href, type Route } from "../../app/route";
import { useMay } from "../../app/session";
import { Badge } from "../../parts/badge";
import { TextField } from "../../parts/field";
import { Foreign } from "../../parts/foreign";
import { count } from "../../parts/format";
import { Loading, Panel, ProblemNote } from "../../parts/note";
import { Table, type Column } from "../../parts/table";
import { HostRules, WorkspaceRules } from "./view";

const COLUMNS: Column<Workspace>[] = [
	{
		head: "Workspace",
		title: true,
		cell: (w) => (
			<a href={href("rules", w.name)}>
				<Foreign text={w.name} />
			</a>
		),
	},
	{
		head: "Default",
		cell: (w) => (w.network_default_action ? <Badge word={w.network_default_action} /> : "the profile's"),
	},
	{ head: "Rules", numeric: true, cell: (w) => count(w.n_rules) },
];

function AddWorkspace({ onDone }: { onDone: () => void }) {
	const [name, setName] = useState("");
	const action = useAction();
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			await post("/workspaces", { name });
			setName("");
			onDone();
		});
	};
	return (
		<form class="apart" onSubmit={submit}>
			<div class="filters">
				<TextField label="New workspace" value={name} onInput={setName} required />
				<button type="submit" disabled={action.busy}>
					Add
				</button>
			</div>
			<ProblemNote problem={action.problem} />
		</form>
	);
}

function WorkspaceList() {
	const may = useMay();
	const { data, problem, reload } = useLoad(workspaces, []);
	return (
		<>
			<h1 tabIndex={-1}>Rules</h1>
			<p>
				A workspace is a name that runs have in common: <code>sbx-run --workspace NAME</code>. Its rules
				hold for all of them, at once also for those that run already.
			</p>
			<Panel title="Workspaces">
				<ProblemNote problem={problem} />
				{data ? (
					<Table
						caption="Workspaces"
						columns={COLUMNS}
						rows={data}
						keyOf={(w) => w.name}
						empty="There is no workspace yet."
					/>
				) : problem ? null : (
					<Loading what="workspaces" />
				)}
				{may.change && !may.session.workspace ? <AddWorkspace onDone={reload} /> : null}
			</Panel>
			<HostRules />
		</>
	);
}

export function RulesView({ route }: { route: Route }) {
	return route.argument === null ? <WorkspaceList /> : <WorkspaceRules workspace={route.argument} />;
}
