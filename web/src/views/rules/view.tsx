// SPDX-License-Identifier: LGPL-2.1-or-later
import { useState } from "preact/hooks";
import { useLoad } from "../../api/hooks";
import { allRules } from "../../api/rules";
import type { Rule } from "../../api/types";
import { href } from "../../app/route";
import { useMay } from "../../app/session";
import { Foreign } from "../../parts/foreign";
import { Loading, Panel, ProblemNote } from "../../parts/note";
import { NetworkDefault } from "./default";
import { RuleDialog } from "./dialog";
import { RuleTable } from "./table";
import { Tester } from "./tester";

const POLL_MS = 5000;

// The order in which they are judged: floors, then by priority, whoever's they are.
function inOrder(rules: readonly Rule[]): Rule[] {
	return [...rules].sort(
		(a, b) => Number(b.is_floor) - Number(a.is_floor) || a.priority - b.priority || a.id - b.id,
	);
}

export function WorkspaceRules({ workspace }: { workspace: string }) {
	const may = useMay();
	const [edited, setEdited] = useState<Rule | "new" | null>(null);
	const [result, setResult] = useState("");
	const own = useLoad(() => allRules(workspace), [workspace], POLL_MS);
	const host = useLoad(() => allRules(null), [], POLL_MS);
	const done = (text: string) => {
		setEdited(null);
		setResult(text);
		own.reload();
		host.reload();
	};

	return (
		<>
			<p class="crumbs">
				<a href={href("rules")}>Workspaces</a>
			</p>
			<h1 tabIndex={-1}>
				Rules of <Foreign text={workspace} />
			</h1>
			<p>
				They hold for the sandboxes of this workspace, above their live lists and profiles. Of the rules that
				match, the lowest priority decides. A floor comes before all rules, and no rule lifts it.
			</p>
			<div class="beside">
				<div>
					<Panel
						title="In the order in which they are judged"
						aside={
							may.change ? (
								<button type="button" class="primary" onClick={() => setEdited("new")}>
									Add a rule
								</button>
							) : null
						}
					>
						<p role="status" class="result">
							{result}
						</p>
						<ProblemNote problem={own.problem} />
						{host.problem?.status === 403 ? (
							<p class="note">The host's rules and floors, which come first, are not yours to see.</p>
						) : (
							<ProblemNote problem={host.problem} />
						)}
						{own.data ? (
							<RuleTable
								rules={inOrder([...(host.data ?? []), ...own.data])}
								mayChange={(rule) => rule.workspace === workspace && may.change}
								onEdit={setEdited}
								onDone={done}
								empty="There is no rule: the profile and the default decide."
							/>
						) : own.problem ? null : (
							<Loading what="rules" />
						)}
					</Panel>
					<NetworkDefault workspace={workspace} mayChange={may.change} />
				</div>
				<Tester workspace={workspace} />
			</div>
			{edited ? (
				<RuleDialog
					workspace={workspace}
					rule={edited === "new" ? null : edited}
					onClose={() => setEdited(null)}
					onDone={done}
				/>
			) : null}
		</>
	);
}

// Rules of the host hold in every workspace. Only an admin changes them.
export function HostRules() {
	const may = useMay();
	const [edited, setEdited] = useState<Rule | "new" | null>(null);
	const [result, setResult] = useState("");
	const { data, problem, reload } = useLoad(() => allRules(null), [], POLL_MS);
	const done = (text: string) => {
		setEdited(null);
		setResult(text);
		reload();
	};
	if (problem?.status === 403) return null;
	return (
		<Panel
			title="Rules of the host"
			aside={
				may.administer ? (
					<button type="button" onClick={() => setEdited("new")}>
						Add a rule of the host
					</button>
				) : null
			}
		>
			<p>They hold in every workspace. A floor is a deny that no rule, list or profile lifts.</p>
			<p role="status" class="result">
				{result}
			</p>
			<ProblemNote problem={problem} />
			{data ? (
				<RuleTable
					rules={inOrder(data)}
					mayChange={(rule) => may.administer && !(rule.is_floor && rule.created_by === "sbx")}
					onEdit={setEdited}
					onDone={done}
					empty="The host has no rule of its own. The floors of sbx hold."
				/>
			) : null}
			{edited ? (
				<RuleDialog
					workspace={null}
					rule={edited === "new" ? null : edited}
					onClose={() => setEdited(null)}
					onDone={done}
				/>
			) : null}
		</Panel>
	);
}
