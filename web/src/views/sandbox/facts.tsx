// SPDX-License-Identifier: LGPL-2.1-or-later
import type { ComponentChildren } from "preact";
import { post, segment } from "../../api/client";
import { useAction } from "../../api/hooks";
import type { Sandbox } from "../../api/types";
import { href } from "../../app/route";
import { Badge } from "../../parts/badge";
import { Foreign } from "../../parts/foreign";
import { commandLine, count, span } from "../../parts/format";
import { ProblemNote } from "../../parts/note";
import { Age, Clock } from "../../parts/time";

function Fact({ name, children, whole }: { name: string; children: ComponentChildren; whole?: boolean }) {
	return (
		<div class={whole ? "whole" : ""}>
			<dt>{name}</dt>
			<dd>{children}</dd>
		</div>
	);
}

function Timeout({ sandbox, reload }: { sandbox: Sandbox; reload: () => void }) {
	const action = useAction();
	const set = (seconds: number) =>
		void action.start(async () => {
			await post(`/sandboxes/${segment(sandbox.id)}/timeout`, { timeout: seconds });
			reload();
		});
	return (
		<>
			<span class="buttons tight">
				<button type="button" disabled={action.busy} onClick={() => set(600)}>
					10 min from now
				</button>
				<button type="button" disabled={action.busy} onClick={() => set(3600)}>
					1 h from now
				</button>
			</span>
			<ProblemNote problem={action.problem} />
		</>
	);
}

export function Facts({
	sandbox: s,
	mayChange,
	reload,
}: {
	sandbox: Sandbox;
	mayChange: boolean;
	reload: () => void;
}) {
	return (
		<dl class="facts">
			<Fact name="State">
				<Badge word={s.state} />
				{s.exit_status !== null ? ` exit status ${s.exit_status}` : ""}
			</Fact>
			<Fact name="Profile">
				<a href={href("profiles", s.profile)}>{s.profile}</a>
			</Fact>
			<Fact name="Workspace">
				{s.workspace ? (
					<a href={href("rules", s.workspace)}>
						<Foreign text={s.workspace} />
					</a>
				) : (
					"none"
				)}
			</Fact>
			<Fact name="Owner">
				<Foreign text={s.owner} />
			</Fact>
			<Fact name={s.live ? "Running for" : "Ran for"}>
				<Age at={s.started_at ?? s.created_at} until={s.ended_at} />
			</Fact>
			<Fact name="Created">
				<Clock at={s.created_at} />
			</Fact>
			{s.ended_at ? (
				<Fact name="Ended">
					<Clock at={s.ended_at} />
				</Fact>
			) : null}
			<Fact name="Policy generation">{count(s.generation)}</Fact>
			{s.analysis_id ? (
				<Fact name="Analysis">
					<Foreign text={s.analysis_id} class="code" />
				</Fact>
			) : null}
			{Object.entries(s.metadata ?? {}).map(([name, value]) => (
				<Fact key={name} name={name}>
					<Foreign text={value} />
				</Fact>
			))}
			<Fact name="Command" whole>
				<pre tabIndex={0} class="command">
					<Foreign text={commandLine(s.command)} />
				</pre>
			</Fact>
			{s.live ? (
				<Fact name="Ends at the latest" whole>
					{typeof s.wall_left_ms === "number" ? `in ${span(s.wall_left_ms / 1000)}` : "no time is set"}{" "}
					{mayChange ? <Timeout sandbox={s} reload={reload} /> : null}
				</Fact>
			) : null}
		</dl>
	);
}
