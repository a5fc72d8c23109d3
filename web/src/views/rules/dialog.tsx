// SPDX-License-Identifier: LGPL-2.1-or-later
// A new rule, or a change of one. Before it is saved, the draft can be explained for a host.
import { useState } from "preact/hooks";
import { asProblem, useAction } from "../../api/hooks";
import { addRule, changeRule, explain } from "../../api/rules";
import type { Explained, Rule, RuleDraft } from "../../api/types";
import { Dialog } from "../../parts/dialog";
import { ExplainedNote } from "../../parts/explained";
import { ChoiceField, TextField } from "../../parts/field";
import { ProblemNote } from "../../parts/note";
import { followedText } from "./table";

// A destination that the pattern covers.
function sampleOf(pattern: string): { host: string; port: number } {
	const [, host = "", port] = /^([^/]*?)(?::(\d+).*)?(?:\/.*)?$/.exec(pattern) ?? [];
	return { host: host.replace(/^\*\./, "www."), port: port ? Number(port) : 443 };
}

interface Props {
	workspace: string | null; // null: of the host
	rule: Rule | null; // null: a new one
	onClose: () => void;
	onDone: (text: string) => void;
}

export function RuleDialog({ workspace, rule, onClose, onDone }: Props) {
	const [pattern, setPattern] = useState(rule?.pattern ?? "");
	const [action, setAction] = useState<"allow" | "deny">(rule?.action ?? "allow");
	const [type, setType] = useState(rule?.type ?? "network");
	const [priority, setPriority] = useState(String(rule?.priority ?? 100));
	const [note, setNote] = useState(rule?.note ?? "");
	const [floor, setFloor] = useState(rule?.is_floor ?? false);
	const [tested, setTested] = useState<Explained | null>(null);
	const [withDraft, setWithDraft] = useState(true);
	const saving = useAction();
	const testing = useAction();

	const draft = (): RuleDraft => ({ type, pattern, action, priority: Number(priority), note });
	const save = (event: Event) => {
		event.preventDefault();
		void saving.start(async () => {
			if (rule) {
				const { type: _, ...change } = draft(); // a rule keeps its type
				const got = await changeRule(rule, change);
				onDone(`Rule ${rule.id} is changed.${followedText(got)}`);
			} else {
				const got = await addRule(
					workspace,
					workspace === null ? { ...draft(), is_floor: floor } : draft(),
				);
				onDone(`Rule ${got.id} is added.${followedText(got)}`);
			}
		});
	};
	const test = () =>
		void testing.start(async () => {
			saving.clear();
			setTested(null);
			const { host, port } = sampleOf(pattern);
			const question = { workspace: workspace ?? undefined, protocol: "tcp", host, port };
			try {
				setTested(await explain({ ...question, rule: draft() }));
				setWithDraft(true);
			} catch (error) {
				if (asProblem(error).field !== "rule") throw error;
				setTested(await explain(question)); // a service that judges no drafts
				setWithDraft(false);
			}
		});

	return (
		<Dialog title={rule ? `Edit rule ${rule.id}` : "Add a rule"} onClose={onClose}>
			<form onSubmit={save}>
				<div class="fields">
					<ChoiceField label="Action" value={action} onChange={(v) => setAction(v as "allow" | "deny")}>
						<option value="allow">allow</option>
						<option value="deny">deny</option>
					</ChoiceField>
					{rule ? null : (
						<ChoiceField label="Of" value={type} onChange={setType}>
							<option value="network">the network</option>
							<option value="tool">a tool</option>
						</ChoiceField>
					)}
					<TextField
						label="Priority, lowest first"
						type="number"
						value={priority}
						onInput={setPriority}
						required
					/>
					<TextField
						label="Pattern"
						value={pattern}
						onInput={setPattern}
						required
						whole
						placeholder="api.example.org:443, *.example.org, 192.0.2.0/24"
					/>
					<TextField label="Note" value={note} onInput={setNote} whole placeholder="why" />
				</div>
				{workspace === null && !rule ? (
					<label class="check">
						<input
							type="checkbox"
							checked={floor}
							onChange={(e) => setFloor(e.currentTarget.checked)}
						/>
						A floor: a deny that nothing lifts
					</label>
				) : null}
				{tested ? <ExplainedNote explained={tested} /> : null}
				{tested && !withDraft ? <p class="muted">That is so now, without the draft.</p> : null}
				<ProblemNote problem={testing.problem} />
				<ProblemNote problem={saving.problem} />
				<div class="buttons">
					<button type="submit" class="primary" disabled={saving.busy}>
						Save
					</button>
					{type === "network" ? (
						<button type="button" disabled={testing.busy || pattern === ""} onClick={test}>
							Explain the draft
						</button>
					) : null}
					<button type="button" onClick={onClose}>
						Cancel
					</button>
				</div>
			</form>
		</Dialog>
	);
}
