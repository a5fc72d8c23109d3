// SPDX-License-Identifier: LGPL-2.1-or-later
// A new rule, or a change of one. Before it is saved, the draft can be tested.
import { useState } from "preact/hooks";
import { useAction } from "../../api/hooks";
import { addRule, changeRule } from "../../api/rules";
import type { Rule, RuleDraft } from "../../api/types";
import { Dialog } from "../../parts/dialog";
import { ChoiceField, TextField } from "../../parts/field";
import { ProblemNote } from "../../parts/note";
import { DraftTester } from "./draft_tester";
import { followedText } from "./table";

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
	const saving = useAction();

	const draft: RuleDraft = { type, pattern, action, priority: Number(priority), note };
	if (workspace === null) draft.is_floor = floor;
	const save = (event: Event) => {
		event.preventDefault();
		void saving.start(async () => {
			if (rule) {
				const { type: _, is_floor: __, ...change } = draft; // a rule keeps these
				const got = await changeRule(rule, change);
				onDone(`Rule ${rule.id} is changed.${followedText(got)}`);
			} else {
				const got = await addRule(workspace, draft);
				onDone(`Rule ${got.id} is added.${followedText(got)}`);
			}
		});
	};

	return (
		<Dialog title={rule ? `Edit rule ${rule.id}` : "Add a rule"} onClose={onClose}>
			<form id="rule" onSubmit={save}>
				<div class="fields">
					<ChoiceField label="Action" value={action} onChange={(v) => setAction(v as "allow" | "deny")}>
						<option value="allow">allow</option>
						<option value="deny">deny</option>
					</ChoiceField>
					{rule ? null : (
						<ChoiceField label="Kind" value={type} onChange={setType}>
							<option value="network">network</option>
							<option value="tool">tool</option>
						</ChoiceField>
					)}
					<TextField
						label="Priority, lowest first"
						type="number"
						min={0}
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
						placeholder={
							type === "tool" ? "git, npm" : "api.example.org:443, *.example.org, 192.0.2.0/24"
						}
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
						A floor: a deny that no rule, list or profile lifts
					</label>
				) : null}
				<ProblemNote problem={saving.problem} />
			</form>
			<DraftTester workspace={workspace} draft={draft} rule={rule} />
			<div class="buttons">
				<button type="submit" form="rule" class="primary" disabled={saving.busy}>
					Save
				</button>
				<button type="button" onClick={onClose}>
					Cancel
				</button>
			</div>
		</Dialog>
	);
}
