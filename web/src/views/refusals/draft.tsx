// SPDX-License-Identifier: LGPL-2.1-or-later
// The rule that would allow what was refused, as a draft: it is changed or confirmed, and explained before.
import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/client";
import { useAction, useLoad } from "../../api/hooks";
import { addRule, explain, workspaces } from "../../api/rules";
import type { Denial, DenialsBy, EgressEvent, List } from "../../api/types";
import { href } from "../../app/route";
import { Dialog } from "../../parts/dialog";
import { ExplainedNote } from "../../parts/explained";
import { Suggestions, TextField } from "../../parts/field";
import { destination, plural } from "../../parts/format";
import { ProblemNote } from "../../parts/note";

// The newest refusal of the row: its workspace, protocol and port are the draft's.
async function newestOf(denial: Denial, by: DenialsBy): Promise<EgressEvent | null> {
	const list = await get<List<EgressEvent>>("/events", { action: "deny", [by]: denial.key, limit: 100 });
	return list.items.reduce<EgressEvent | null>((a, b) => (a && a.id > b.id ? a : b), null);
}

const WHY_NOT: Record<string, string> = {
	floor: "A floor refused this. No rule lifts a floor: the draft would change nothing.",
	air_gap:
		"The sandbox was air-gapped or offline. A rule opens nothing there: its live list does, or the switch.",
};

export function Draft({ denial, by, onClose }: { denial: Denial; by: DenialsBy; onClose: () => void }) {
	const host = denial.last_name || denial.last_ip || "";
	const [pattern, setPattern] = useState(destination(host, denial.last_port));
	const [workspace, setWorkspace] = useState(by === "workspace" ? (denial.key ?? "") : "");
	const [note, setNote] = useState("");
	const [saved, setSaved] = useState("");
	const newest = useLoad(() => newestOf(denial, by), [denial, by]);
	const known = useLoad(workspaces, []);
	const action = useAction();
	const protocol = newest.data?.protocol === "udp" ? "udp" : "tcp";
	const port = denial.last_port ?? newest.data?.port ?? 443;
	const now = useLoad(
		() => explain({ workspace: workspace || undefined, protocol, host, port }),
		[workspace, protocol, host, port],
	);

	useEffect(() => {
		if (newest.data?.workspace) setWorkspace((old) => old || newest.data!.workspace!);
	}, [newest.data]);

	const whyNot = denial.last_reason ? WHY_NOT[denial.last_reason] : undefined;
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			const text = protocol === "udp" && !pattern.includes("/") ? `${pattern}/udp` : pattern;
			const rule = { type: "network", pattern: text, action: "allow" as const, priority: 100, note };
			const got = await addRule(workspace, rule);
			const followed = got.followed
				? `, followed by ${plural(got.followed.sandboxes, "sandbox", "sandboxes")}`
				: "";
			setSaved(`Rule ${got.id} is in force${followed}.`);
		});
	};

	return (
		<Dialog title="A rule that would allow it" onClose={onClose}>
			{saved ? (
				<>
					<p role="status" class="note good">
						{saved}
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
			) : (
				<form onSubmit={submit}>
					{whyNot ? <p class="note problem">{whyNot}</p> : null}
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
					{now.data ? <ExplainedNote explained={now.data} /> : <ProblemNote problem={now.problem} />}
					<ProblemNote problem={action.problem} />
					<div class="buttons">
						<button
							type="submit"
							class="primary"
							disabled={action.busy || denial.last_reason === "floor"}
						>
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
