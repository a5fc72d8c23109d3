// SPDX-License-Identifier: LGPL-2.1-or-later
import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { useLoad } from "../../api/hooks";
import type { List, Sandbox } from "../../api/types";
import { replaceQuery, type Route } from "../../app/route";
import { useMay } from "../../app/session";
import { Loading, ProblemNote } from "../../parts/note";
import { Table } from "../../parts/table";
import { sandboxColumns } from "./columns";
import { FirstRun } from "./first";
import { useCpuRates } from "./usage";

const POLL_MS = 2000;
const PAGE = 100;
const STATES = [
	["live", "Running now"],
	["", "All"],
	["done", "Done"],
	["killed", "Killed"],
	["timed_out", "Timed out"],
	["failed_policy", "Failed: policy"],
	["failed_safety_setup", "Failed: safety"],
] as const;

export function SandboxesView({ route }: { route: Route }) {
	const state = route.query.get("state") ?? "live";
	const workspace = route.query.get("workspace") ?? "";
	const [before, setBefore] = useState<string[]>([]); // cursors of the pages before this one
	const cursor = before.at(-1) ?? null;
	const may = useMay();

	const { data, problem, reload } = useLoad(
		() =>
			get<List<Sandbox>>("/sandboxes", {
				state: state === "all" ? null : state,
				workspace,
				cursor,
				limit: PAGE,
			}),
		[state, workspace, cursor],
		POLL_MS,
	);
	const rates = useCpuRates(data?.items);
	// Nothing runs: has anything ever run?
	const none = data !== null && data.items.length === 0 && !workspace && !cursor;
	const ever = useLoad(
		() => (none ? get<List<Sandbox>>("/sandboxes", { limit: 1 }) : Promise.resolve(null)),
		[none],
	);

	const filter = (name: string) => (event: Event) => {
		setBefore([]);
		replaceQuery(route, {
			[name]: (event.currentTarget as HTMLInputElement).value || (name === "state" ? "all" : ""),
		});
	};

	return (
		<>
			<h1 tabIndex={-1}>Sandboxes</h1>
			<p>
				Commands that run apart from this host, each with a policy. The air gap cuts every connection of one and
				refuses new ones; <em>Refused</em> counts those that its policy did not let through since its start.
			</p>
			<form class="filters" onSubmit={(event) => event.preventDefault()}>
				<label>
					State
					<select value={state === "all" ? "" : state} onChange={filter("state")}>
						{STATES.map(([value, text]) => (
							<option key={value} value={value}>
								{text}
							</option>
						))}
					</select>
				</label>
				<label>
					Workspace
					<input type="search" value={workspace} placeholder="all" onChange={filter("workspace")} />
				</label>
			</form>
			<ProblemNote problem={problem} />
			{data === null ? (
				problem ? null : (
					<Loading what="sandboxes" />
				)
			) : none && ever.data?.items.length === 0 ? (
				<FirstRun />
			) : (
				<Table
					caption="Sandboxes"
					columns={sandboxColumns({ rates, mayChange: may.change, reload })}
					rows={data.items}
					keyOf={(sandbox) => sandbox.id}
					empty={state === "live" ? "No sandbox is running." : "There is no such sandbox."}
				/>
			)}
			{data && (before.length > 0 || data.next_cursor) ? (
				<div class="buttons">
					<button
						type="button"
						disabled={before.length === 0}
						onClick={() => setBefore(before.slice(0, -1))}
					>
						Previous page
					</button>
					<button
						type="button"
						disabled={!data.next_cursor}
						onClick={() => data.next_cursor && setBefore([...before, data.next_cursor])}
					>
						Next page
					</button>
				</div>
			) : null}
		</>
	);
}
