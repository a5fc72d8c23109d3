// SPDX-License-Identifier: LGPL-2.1-or-later
// Beside the rules: what they say to a destination.
import { useState } from "preact/hooks";
import { useAction } from "../../api/hooks";
import { explain } from "../../api/rules";
import type { Explained } from "../../api/types";
import { ExplainedDetail, ExplainedNote } from "../../parts/explained";
import { ChoiceField, PortField, TextField } from "../../parts/field";
import { Panel, ProblemNote } from "../../parts/note";

export function Tester({ workspace }: { workspace: string }) {
	const [host, setHost] = useState("");
	const [port, setPort] = useState("443");
	const [protocol, setProtocol] = useState("tcp");
	const [profile, setProfile] = useState("");
	const [answer, setAnswer] = useState<Explained | null>(null);
	const action = useAction();
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			setAnswer(null);
			setAnswer(
				await explain({ workspace, profile: profile || undefined, protocol, host, port: Number(port) }),
			);
		});
	};
	return (
		<Panel title="Test a host">
			<p class="muted">What the saved rules say to it. A rule that you write has a test of its own.</p>
			<form onSubmit={submit}>
				<div class="fields">
					<TextField label="Host or address" value={host} onInput={setHost} required whole />
					<PortField value={port} onInput={setPort} />
					<ChoiceField label="Protocol" value={protocol} onChange={setProtocol}>
						<option value="tcp">TCP</option>
						<option value="udp">UDP</option>
					</ChoiceField>
					<TextField label="Profile" value={profile} onInput={setProfile} placeholder="default" />
				</div>
				<div class="buttons tight">
					<button type="submit" disabled={action.busy}>
						Explain
					</button>
				</div>
			</form>
			<ProblemNote problem={action.problem} />
			{answer ? (
				<>
					<ExplainedNote explained={answer} />
					<ExplainedDetail explained={answer} />
				</>
			) : null}
		</Panel>
	);
}
