// SPDX-License-Identifier: LGPL-2.1-or-later
// The workspace's default: for a destination that no rule, live list or entry of the profile has.
import { useState } from "preact/hooks";
import { get, put, segment } from "../../api/client";
import { useAction, useLoad } from "../../api/hooks";
import type { Settings } from "../../api/types";
import { ChoiceField } from "../../parts/field";
import { Panel, ProblemNote } from "../../parts/note";

export function NetworkDefault({ workspace, mayChange }: { workspace: string; mayChange: boolean }) {
	const path = `/workspaces/${segment(workspace)}/sandbox/settings`;
	const { data, problem, reload } = useLoad(() => get<Settings>(path), [path]);
	const [chosen, setChosen] = useState<string | null>(null);
	const [result, setResult] = useState("");
	const action = useAction();
	const now = data?.network_default_action ?? "";
	const value = chosen ?? now;

	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			setResult("");
			await put<Settings>(path, { network_default_action: value || null });
			setResult("The default is in force.");
			setChosen(null);
			reload();
		});
	};

	return (
		<Panel title="Where no entry decides">
			<form onSubmit={submit}>
				<div class="filters">
					<ChoiceField label="Default" value={value} onChange={setChosen}>
						<option value="">as the profile says</option>
						<option value="deny">deny</option>
						<option value="allow">allow</option>
					</ChoiceField>
					{mayChange ? (
						<button type="submit" disabled={action.busy || value === now}>
							Save
						</button>
					) : null}
					<span role="status">{result}</span>
				</div>
				<ProblemNote problem={action.problem ?? (problem?.status === 404 ? null : problem)} />
			</form>
		</Panel>
	);
}
