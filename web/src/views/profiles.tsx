// SPDX-License-Identifier: LGPL-2.1-or-later
import { get, segment } from "../api/client";
import { useLoad } from "../api/hooks";
import type { List, Profile } from "../api/types";
import { href } from "../app/route";
import { Foreign } from "../parts/foreign";
import { Loading, Panel, ProblemNote } from "../parts/note";
import { Table, type Column } from "../parts/table";

const COLUMNS: Column<Profile>[] = [
	{ head: "Profile", title: true, cell: (p) => <a href={href("profiles", p.name)}>{p.name}</a> },
	{
		head: "Description",
		wide: true,
		cell: (p) => (p.error ? <Foreign text={p.error} /> : <Foreign text={p.description} />),
	},
];

function ProfileView({ name }: { name: string }) {
	const { data, problem } = useLoad(() => get<Profile>(`/profiles/${segment(name)}`), [name]);
	return (
		<>
			<p class="crumbs">
				<a href={href("profiles")}>Profiles</a>
			</p>
			<h1 tabIndex={-1}>
				Profile <code>{name}</code>
			</h1>
			<ProblemNote problem={problem} />
			{!data && !problem ? <Loading what="the profile" /> : null}
			{data ? (
				<>
					<p>
						<Foreign text={data.description} />
					</p>
					<p class="muted">
						File <Foreign text={data.file} class="code" />
					</p>
					<p>
						<a class="button" href={href("explain", null, { profile: name })}>
							Explain a connection by it
						</a>
					</p>
					{data.error ? (
						<p class="note problem">
							<Foreign text={data.error} />
						</p>
					) : null}
					{data.yaml ? (
						<Panel title="All of it, with what it extends">
							<pre tabIndex={0}>{data.yaml}</pre>
						</Panel>
					) : null}
				</>
			) : null}
		</>
	);
}

function ProfileList() {
	const { data, problem } = useLoad(() => get<List<Profile>>("/profiles"), []);
	return (
		<>
			<h1 tabIndex={-1}>Profiles</h1>
			<p>
				A profile says what a sandbox may read, write, execute and reach:{" "}
				<code>sbx-run --profile NAME -- COMMAND</code>
			</p>
			<ProblemNote problem={problem} />
			{data ? (
				<Table
					caption="Profiles"
					columns={COLUMNS}
					rows={data.items}
					keyOf={(p) => p.name}
					empty="There is none."
				/>
			) : problem ? null : (
				<Loading what="profiles" />
			)}
		</>
	);
}

export function ProfilesView({ name }: { name: string | null }) {
	return name === null ? <ProfileList /> : <ProfileView name={name} />;
}
