// SPDX-License-Identifier: LGPL-2.1-or-later
// The rule that would allow what was refused, as a draft: it is changed or confirmed, and explained before.
import { useEffect, useState } from "preact/hooks";
import { get, segment } from "../../api/client";
import { useAction, useLoad, useSettled } from "../../api/hooks";
import { addRule, explain, workspaces } from "../../api/rules";
import type { Denial, DenialsBy, EgressEvent, List, RuleDraft, Sandbox } from "../../api/types";
import { href } from "../../app/route";
import { Dialog } from "../../parts/dialog";
import { DraftNote, ExplainedNote } from "../../parts/explained";
import { Suggestions, TextField } from "../../parts/field";
import { destination } from "../../parts/format";
import { ProblemNote } from "../../parts/note";
import { followedText } from "../rules/table";
import { portOf } from "./columns";

// The sandbox of the row's newest refusal: its policy is asked about. null: it is not known any more.
async function newestOf(denial: Denial, by: DenialsBy): Promise<{ sandbox: Sandbox | null }> {
	const query = denial.key ? { [by]: denial.key } : { ip: denial.last_ip };
	const [event] = (await get<List<EgressEvent>>("/events", { ...query, action: "deny", limit: 1 })).items;
	if (!event) return { sandbox: null };
	return { sandbox: await get<Sandbox>(`/sandboxes/${segment(event.sandbox_id)}`).catch(() => null) };
}

const NO_WORKSPACE =
	"The sandbox runs without a workspace: a rule of one holds for the next runs with --workspace, not for it.";

function Saved({ text, workspace, onClose }: { text: string; workspace: string; onClose: () => void }) {
	return (
		<>
			<p role="status" class="note good">
				{text}
			</p>
			<div class="buttons">
				<a class="button" href={href("rules", workspace)} onClick={onClose}>
					Rules of {workspace}
				</a>
				<button type="button" onClick={onClose}>
					Done
				</button>
			</div>
		</>
	);
}

export function Draft({ denial, by, onClose }: { denial: Denial; by: DenialsBy; onClose: () => void }) {
	const host = denial.last_name || denial.last_ip || "";
	const port = portOf(denial) ?? 443;
	const protocol = denial.last_protocol === "udp" ? "udp" : "tcp";
	const [pattern, setPattern] = useState(destination(host, portOf(denial)) + (protocol === "udp" ? "/udp" : ""));
	const [workspace, setWorkspace] = useState(by === "workspace" ? (denial.key ?? "") : "");
	const [note, setNote] = useState("");
	const [saved, setSaved] = useState("");
	const newest = useLoad(() => newestOf(denial, by), [denial, by]);
	const known = useLoad(workspaces, []);
	const action = useAction();
	const sandbox = newest.data?.sandbox;

	useEffect(() => {
		if (sandbox?.workspace) setWorkspace((old) => old || sandbox.workspace!);
	}, [sandbox]);

	const draft: RuleDraft = { type: "network", pattern, action: "allow", priority: 100, note };
	const isKnown = newest.data !== null || newest.problem !== null;
	const settled = useSettled(isKnown ? JSON.stringify([workspace, pattern]) : "");
	const asked = { profile: sandbox?.profile, workspace: workspace || undefined, protocol, host, port };
	const before = useLoad(async () => (settled ? explain(asked) : null), [settled]);
	const then = useLoad(
		async () => (settled && pattern ? explain({ ...asked, rule: draft }) : null),
		[settled],
	);

	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			const got = await addRule(workspace, draft);
			setSaved(`Rule ${got.id} is in force.${followedText(got)}`);
		});
	};

	return (
		<Dialog title="A rule that would allow it" onClose={onClose}>
			{saved ? (
				<Saved text={saved} workspace={workspace} onClose={onClose} />
			) : (
				<form onSubmit={submit}>
					<p>This is a draft: nothing changes before you add it.</p>
					{sandbox && !sandbox.workspace ? <p class="note">{NO_WORKSPACE}</p> : null}
					<div class="fields">
						<TextField
							label="Workspace"
							value={workspace}
							onInput={setWorkspace}
							required
							list="draft-workspaces"
						/>
						<TextField label="Allow" value={pattern} onInput={setPattern} required whole />
						<TextField
							label="Note"
							value={note}
							onInput={setNote}
							whole
							placeholder="why it is allowed"
						/>
					</div>
					<Suggestions id="draft-workspaces" values={known.data?.map((w) => w.name) ?? []} />
					<h3>As it is now</h3>
					{before.data ? <ExplainedNote explained={before.data} /> : <ProblemNote problem={before.problem} />}
					<h3>With the draft</h3>
					{then.data ? <DraftNote explained={then.data} /> : <ProblemNote problem={then.problem} />}
					<ProblemNote problem={action.problem} />
					<div class="buttons">
						<button type="submit" class="primary" disabled={action.busy}>
							Add the rule
						</button>
						<button type="button" onClick={onClose}>
							Cancel
						</button>
					</div>
				</form>
			)}
		</Dialog>
	);
}
