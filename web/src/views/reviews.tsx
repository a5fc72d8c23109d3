// SPDX-License-Identifier: LGPL-2.1-or-later
import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import { useAction, useLoad } from "../api/hooks";
import type { List, ReviewTask } from "../api/types";
import { href, replaceQuery, type Route } from "../app/route";
import { useMay } from "../app/session";
import { Badge } from "../parts/badge";
import { Dialog } from "../parts/dialog";
import { ChoiceField, TextField } from "../parts/field";
import { Foreign } from "../parts/foreign";
import { count } from "../parts/format";
import { Loading, ProblemNote } from "../parts/note";
import { Table, type Column } from "../parts/table";
import { Clock } from "../parts/time";

const POLL_MS = 5000;

// Closes an open task with a note, or opens a closed one again.
function TaskDialog({ task, onClose, onDone }: { task: ReviewTask; onClose: () => void; onDone: () => void }) {
	const [note, setNote] = useState(task.note ?? "");
	const action = useAction();
	const state = task.state === "open" ? "closed" : "open";
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			await post(`/review-tasks/${task.id}`, { state, note });
			onDone();
		});
	};
	return (
		<Dialog title={`${state === "closed" ? "Close" : "Reopen"} task ${task.id}`} onClose={onClose}>
			<form onSubmit={submit}>
				<p>
					<Foreign text={task.cause} />
				</p>
				<div class="fields">
					<TextField label="Note" value={note} onInput={setNote} whole placeholder="what it was" />
				</div>
				<ProblemNote problem={action.problem} />
				<div class="buttons">
					<button type="submit" class="primary" disabled={action.busy}>
						{state === "closed" ? "Close the task" : "Reopen the task"}
					</button>
					<button type="button" onClick={onClose}>
						Cancel
					</button>
				</div>
			</form>
		</Dialog>
	);
}

function columns(choose: ((task: ReviewTask) => void) | null): Column<ReviewTask>[] {
	return [
		{ head: "Task", title: true, cell: (t) => t.id },
		{ head: "State", cell: (t) => <Badge word={t.state} /> },
		{
			head: "Cause",
			wide: true,
			cell: (t) => (
				<>
					<Foreign text={t.cause} />
					{t.note ? <Foreign text={t.note} class="below muted" /> : null}
				</>
			),
		},
		{
			head: "Sandbox",
			cell: (t) => (
				<a class="code" href={href("sandboxes", t.sandbox_id)}>
					{t.sandbox_id}
				</a>
			),
		},
		{
			head: "Workspace",
			cell: (t) =>
				t.workspace ? (
					<a href={href("rules", t.workspace)}>
						<Foreign text={t.workspace} />
					</a>
				) : (
					"–"
				),
		},
		{
			head: "Refusals",
			numeric: true,
			cell: (t) => (
				<a href={href("refusals", null, { by: "sandbox", key: t.sandbox_id })}>{count(t.n_denies)}</a>
			),
		},
		{ head: "First", cell: (t) => <Clock at={t.first_at} /> },
		{ head: "Last", cell: (t) => <Clock at={t.last_at} /> },
		{
			head: "Actions",
			cell: (t) =>
				choose ? (
					<button
						type="button"
						aria-label={`${t.state === "open" ? "Close" : "Reopen"} … task ${t.id}`}
						onClick={() => choose(t)}
					>
						{t.state === "open" ? "Close …" : "Reopen …"}
					</button>
				) : (
					"–"
				),
		},
	];
}

export function ReviewsView({ route }: { route: Route }) {
	const state = route.query.get("state") ?? "open";
	const [chosen, setChosen] = useState<ReviewTask | null>(null);
	const may = useMay();
	const { data, problem, reload } = useLoad(
		() => get<List<ReviewTask>>("/review-tasks", { state: state === "all" ? null : state, limit: 200 }),
		[state],
		POLL_MS,
	);
	return (
		<>
			<h1 tabIndex={-1}>Review tasks</h1>
			<p>A sandbox with too many refusals gets a task: somebody looks at what it wanted, and closes it.</p>
			<form class="filters" onSubmit={(event) => event.preventDefault()}>
				<ChoiceField
					label="State"
					value={state}
					onChange={(value) => replaceQuery(route, { state: value })}
				>
					<option value="open">Open</option>
					<option value="closed">Closed</option>
					<option value="all">All</option>
				</ChoiceField>
			</form>
			<ProblemNote problem={problem} />
			{data ? (
				<Table
					caption="Review tasks"
					columns={columns(may.change ? setChosen : null)}
					rows={data.items}
					keyOf={(t) => t.id}
					empty={state === "open" ? "No task is open." : "There is no task."}
				/>
			) : problem ? null : (
				<Loading what="review tasks" />
			)}
			{chosen ? (
				<TaskDialog
					task={chosen}
					onClose={() => setChosen(null)}
					onDone={() => {
						setChosen(null);
						reload();
					}}
				/>
			) : null}
		</>
	);
}
