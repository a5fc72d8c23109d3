// SPDX-License-Identifier: LGPL-2.1-or-later
// In the dialog of a rule: what it would say to a destination or command, beside what is said now.
import { useState } from "preact/hooks";
import { useAction } from "../../api/hooks";
import { explain, type Question } from "../../api/rules";
import type { Explained, Rule, RuleDraft } from "../../api/types";
import { DraftNote, ExplainedNote } from "../../parts/explained";
import { ChoiceField, PortField, TextField } from "../../parts/field";
import { ProblemNote } from "../../parts/note";

// A destination that the pattern covers.
function sampleOf(pattern: string): { host: string; port: string; protocol: string } {
	const [, host = "", port = "443"] = /^([^/]*?)(?::(\d+).*)?(?:\/.*)?$/.exec(pattern) ?? [];
	const protocol = pattern.endsWith("/udp") ? "udp" : "tcp";
	return { host: host.replace(/^\*\./, "www."), port, protocol };
}

interface Props {
	workspace: string | null;
	draft: RuleDraft;
	rule: Rule | null; // the draft takes its place
}

export function DraftTester({ workspace, draft, rule }: Props) {
	const [chosen, setChosen] = useState<{ host?: string; port?: string; protocol?: string }>({});
	const [command, setCommand] = useState<string | null>(null);
	const [profile, setProfile] = useState("");
	const [answers, setAnswers] = useState<{ of: string; now: Explained; then: Explained } | null>(null);
	const action = useAction();
	const { host, port, protocol } = { ...sampleOf(draft.pattern), ...chosen };
	const isTool = draft.type === "tool";

	const question: Question = {
		profile: profile || undefined,
		workspace: workspace ?? undefined,
		...(isTool ? { command: command ?? draft.pattern } : { protocol, host, port: Number(port) }),
	};
	const asked = JSON.stringify([question, draft]); // answers to anything else are old
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			const [then, now] = await Promise.all([
				explain({ ...question, rule: { ...draft, id: rule?.id } }),
				explain(question),
			]);
			setAnswers({ of: asked, now, then });
		});
	};

	return (
		<form class="tester" onSubmit={submit} aria-label="Test the draft">
			<h3>Test it before you save</h3>
			<div class="fields">
				{isTool ? (
					<TextField label="Command" value={command ?? draft.pattern} onInput={setCommand} required />
				) : (
					<>
						<TextField
							label="Host or address"
							value={host}
							onInput={(value) => setChosen({ ...chosen, host: value })}
							required
						/>
						<PortField value={port} onInput={(value) => setChosen({ ...chosen, port: value })} />
						<ChoiceField
							label="Protocol"
							value={protocol}
							onChange={(value) => setChosen({ ...chosen, protocol: value })}
						>
							<option value="tcp">TCP</option>
							<option value="udp">UDP</option>
						</ChoiceField>
					</>
				)}
				<TextField label="Profile" value={profile} onInput={setProfile} placeholder="default" />
			</div>
			<div class="buttons">
				<button type="submit" disabled={action.busy || draft.pattern === ""}>
					Explain
				</button>
			</div>
			<ProblemNote problem={action.problem} />
			{answers?.of === asked ? (
				<>
					<h3>As it is now</h3>
					<ExplainedNote explained={answers.now} />
					<h3>With the draft</h3>
					<DraftNote explained={answers.then} />
				</>
			) : null}
		</form>
	);
}
