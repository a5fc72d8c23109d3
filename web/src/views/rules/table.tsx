// SPDX-License-Identifier: LGPL-2.1-or-later
import { changeRule, removeRule } from "../../api/rules";
import { useAction } from "../../api/hooks";
import type { Rule } from "../../api/types";
import { Badge, Lock } from "../../parts/badge";
import { Confirm } from "../../parts/confirm";
import { Foreign } from "../../parts/foreign";
import { plural } from "../../parts/format";
import { ProblemNote } from "../../parts/note";
import { Table, type Column } from "../../parts/table";

// Running sandboxes that follow a change, and the flows that it cut.
export function followedText(rule: Rule | undefined): string {
	const followed = rule?.followed;
	if (!followed) return "";
	const failed =
		followed.failed > 0 ? `; ${plural(followed.failed, "sandbox", "sandboxes")} could not follow` : "";
	const followers = plural(followed.sandboxes, "sandbox", "sandboxes");
	return ` ${followers} followed, cut ${plural(followed.cut, "flow")}${failed}.`;
}

function RuleActions({
	rule,
	onEdit,
	onDone,
}: {
	rule: Rule;
	onEdit: (rule: Rule) => void;
	onDone: (text: string) => void;
}) {
	const action = useAction();
	const turn = () =>
		void action.start(async () => {
			const got = await changeRule(rule, { enabled: !rule.enabled });
			onDone(`Rule ${rule.id} is ${rule.enabled ? "off" : "on"}.${followedText(got)}`);
		});
	return (
		<>
			<span class="buttons tight">
				<button type="button" aria-label={`Edit rule ${rule.id}`} onClick={() => onEdit(rule)}>
					Edit
				</button>
				<button
					type="button"
					aria-label={`Turn ${rule.enabled ? "off" : "on"} rule ${rule.id}`}
					disabled={action.busy}
					onClick={turn}
				>
					{rule.enabled ? "Turn off" : "Turn on"}
				</button>
				<Confirm
					button="Delete"
					label={`Delete rule ${rule.id}`}
					title={`Delete rule ${rule.id}?`}
					confirm="Delete it"
					run={async () => {
						await removeRule(rule);
						onDone(`Rule ${rule.id} is deleted.`);
					}}
				>
					<p>
						{rule.action} <Foreign text={rule.pattern} class="code" />. Running sandboxes follow at
						once.
					</p>
				</Confirm>
			</span>
			<ProblemNote problem={action.problem} />
		</>
	);
}

const FLOORS_OPEN = 5; // more than so many are folded

function byline(rule: Rule): string {
	const by = rule.changed_by ?? rule.created_by;
	return by ? `by ${by}` : "";
}

interface Props {
	rules: readonly Rule[];
	mayChange: (rule: Rule) => boolean;
	onEdit: (rule: Rule) => void;
	onDone: (text: string) => void;
	empty: string;
}

export function RuleTable({ rules, mayChange, onEdit, onDone, empty }: Props) {
	const columns: Column<Rule>[] = [
		{ head: "Priority", numeric: true, cell: (r) => (r.is_floor ? <Lock label="floor" /> : r.priority) },
		{ head: "Action", cell: (r) => (r.action ? <Badge word={r.action} /> : "–") },
		{
			head: "Pattern",
			wide: true,
			cell: (r) => (
				<>
					<Foreign text={r.pattern} class="code" />
					{r.enabled ? null : <Badge word="off" />}
					{r.type !== "network" ? <small class="below">{r.type}</small> : null}
					<Foreign text={[r.note, byline(r)].filter(Boolean).join(", ")} class="below muted" />
				</>
			),
		},
		{ head: "Of", cell: (r) => (r.workspace === null ? "host" : "workspace") },
		{
			head: "Actions",
			cell: (r) =>
				mayChange(r) ? (
					<RuleActions rule={r} onEdit={onEdit} onDone={onDone} />
				) : (
					<span class="muted">{r.is_floor ? <Lock label="locked" /> : "–"}</span>
				),
		},
	];
	const floors = rules.filter((r) => r.is_floor);
	const others = rules.filter((r) => !r.is_floor);
	const table = (caption: string, rows: readonly Rule[]) => (
		<Table
			caption={caption}
			columns={columns}
			rows={rows}
			keyOf={(r) => r.id}
			rowClass={(r) => `${r.is_floor ? "locked" : ""} ${r.enabled ? "" : "off"}`}
			empty={empty}
		/>
	);
	return (
		<>
			{floors.length > 0 ? (
				<details open={floors.length <= FLOORS_OPEN}>
					<summary>
						<Lock label={plural(floors.length, "floor")} /> that nothing lifts
					</summary>
					{table("Floors", floors)}
				</details>
			) : null}
			{table("Rules", others)}
		</>
	);
}
