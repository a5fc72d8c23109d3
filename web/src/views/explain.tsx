// SPDX-License-Identifier: LGPL-2.1-or-later
// Asks the service for a verdict and its reasons, for a connection, a path or a command.
import { useState } from "preact/hooks";
import { useAction, useLoad } from "../api/hooks";
import { explain, workspaces, type Question } from "../api/rules";
import { get } from "../api/client";
import type { Explained, List, Profile } from "../api/types";
import type { Route } from "../app/route";
import { ExplainedDetail, ExplainedNote } from "../parts/explained";
import { ChoiceField, PortField, Suggestions, TextField } from "../parts/field";
import { Panel, ProblemNote } from "../parts/note";

type Kind = "tcp" | "udp" | "mount" | "command";

export function ExplainView({ route }: { route: Route }) {
	const start = (name: string) => route.query.get(name) ?? "";
	const [kind, setKind] = useState<Kind>(route.query.get("protocol") === "udp" ? "udp" : "tcp");
	const [profile, setProfile] = useState(start("profile"));
	const [workspace, setWorkspace] = useState(start("workspace"));
	const [id, setId] = useState(start("id"));
	const [host, setHost] = useState(start("host"));
	const [port, setPort] = useState(start("port") || "443");
	const [method, setMethod] = useState("");
	const [path, setPath] = useState("");
	const [target, setTarget] = useState("");
	const [answer, setAnswer] = useState<Explained | null>(null);
	const action = useAction();
	const profiles = useLoad(() => get<List<Profile>>("/profiles"), []);
	const known = useLoad(workspaces, []);

	const question = (): Question => {
		const by = id ? { id } : { profile: profile || undefined, workspace: workspace || undefined };
		if (kind === "mount") return { ...by, mount: target };
		if (kind === "command") return { ...by, command: target };
		const request = kind === "tcp" ? { method: method || undefined, path: path || undefined } : {};
		return { ...by, protocol: kind, host, port: Number(port), ...request };
	};
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			setAnswer(null);
			setAnswer(await explain(question()));
		});
	};
	const isFlow = kind === "tcp" || kind === "udp";

	return (
		<>
			<h1 tabIndex={-1}>Explain</h1>
			<p>May a sandbox do this, and which entry says so? Nothing is connected to and nothing is changed.</p>
			<Panel title="Question">
				<form onSubmit={submit}>
					<div class="fields">
						<ChoiceField label="About" value={kind} onChange={(value) => setKind(value as Kind)}>
							<option value="tcp">a TCP connection</option>
							<option value="udp">UDP</option>
							<option value="mount">a path</option>
							<option value="command">a command</option>
						</ChoiceField>
						{isFlow ? (
							<>
								<TextField label="Host or address" value={host} onInput={setHost} required />
								<PortField value={port} onInput={setPort} />
							</>
						) : (
							<TextField
								label={kind === "mount" ? "Path" : "Command"}
								value={target}
								onInput={setTarget}
								required
							/>
						)}
						{kind === "tcp" ? (
							<>
								<TextField
									label="Method, of a request"
									value={method}
									onInput={setMethod}
									placeholder="any"
								/>
								<TextField
									label="Path, of a request"
									value={path}
									onInput={setPath}
									placeholder="any"
								/>
							</>
						) : null}
					</div>
					<div class="fields">
						<TextField
							label="Running sandbox"
							value={id}
							onInput={setId}
							placeholder="none: by the next two"
						/>
						{id ? null : (
							<>
								<TextField
									label="Profile"
									value={profile}
									onInput={setProfile}
									list="profiles"
									placeholder="default"
								/>
								<TextField
									label="Workspace"
									value={workspace}
									onInput={setWorkspace}
									list="workspaces"
									placeholder="none"
								/>
							</>
						)}
					</div>
					<Suggestions id="profiles" values={profiles.data?.items.map((p) => p.name) ?? []} />
					<Suggestions id="workspaces" values={known.data?.map((w) => w.name) ?? []} />
					<div class="buttons tight">
						<button type="submit" class="primary" disabled={action.busy}>
							Explain
						</button>
					</div>
				</form>
			</Panel>
			<ProblemNote problem={action.problem} />
			{answer ? (
				<Panel title="Answer">
					<ExplainedNote explained={answer} />
					<ExplainedDetail explained={answer} />
				</Panel>
			) : null}
		</>
	);
}
