// SPDX-License-Identifier: LGPL-2.1-or-later
// The live lists: what this sandbox alone may reach, or not, until it ends.
import { useEffect, useState } from "preact/hooks";
import { put, segment } from "../../api/client";
import { useAction } from "../../api/hooks";
import type { NetworkChange, Sandbox } from "../../api/types";
import { plural } from "../../parts/format";
import { Panel, ProblemNote } from "../../parts/note";

const lines = (text: string) =>
	text
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean);

export function NetworkPanel({
	sandbox,
	mayChange,
	reload,
}: {
	sandbox: Sandbox;
	mayChange: boolean;
	reload: () => void;
}) {
	const [allow, setAllow] = useState("");
	const [deny, setDeny] = useState("");
	const [edited, setEdited] = useState(false);
	const [result, setResult] = useState("");
	const action = useAction();
	const allowNow = (sandbox.allow_out ?? []).join("\n");
	const denyNow = (sandbox.deny_out ?? []).join("\n");

	// Answers of the service do not overwrite what is being typed.
	useEffect(() => {
		if (edited) return;
		setAllow(allowNow);
		setDeny(denyNow);
	}, [allowNow, denyNow, edited]);

	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			setResult("");
			const got = await put<NetworkChange>(`/sandboxes/${segment(sandbox.id)}/network`, {
				allow_out: lines(allow),
				deny_out: lines(deny),
			});
			setResult(`generation ${got.generation} is in force, cut ${plural(got.cut, "flow")}`);
			setEdited(false);
			reload();
		});
	};
	const edit = (set: (text: string) => void) => (event: Event) => {
		set((event.currentTarget as HTMLTextAreaElement).value);
		setEdited(true);
	};

	return (
		<Panel title="Live lists">
			<p class="muted">
				For this sandbox alone, until it ends: above its profile, below floors and rules. Flows that are no
				longer allowed are cut.
			</p>
			<form onSubmit={submit}>
				<div class="fields">
					<label>
						Allow, one entry a line
						<textarea
							class="code"
							rows={3}
							spellcheck={false}
							readOnly={!mayChange}
							placeholder="files.example.org:443"
							value={allow}
							onInput={edit(setAllow)}
						/>
					</label>
					<label>
						Deny, one entry a line
						<textarea
							class="code"
							rows={3}
							spellcheck={false}
							readOnly={!mayChange}
							placeholder="*.example.org"
							value={deny}
							onInput={edit(setDeny)}
						/>
					</label>
				</div>
				<ProblemNote problem={action.problem} />
				<div class="buttons tight">
					{mayChange ? (
						<button type="submit" class="primary" disabled={action.busy || !edited}>
							Put in force
						</button>
					) : null}
					{edited ? (
						<button type="button" onClick={() => setEdited(false)}>
							Discard
						</button>
					) : null}
					<span role="status">{result}</span>
				</div>
			</form>
		</Panel>
	);
}
