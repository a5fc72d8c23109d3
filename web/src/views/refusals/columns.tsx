// SPDX-License-Identifier: LGPL-2.1-or-later
import type { ComponentChildren } from "preact";
import type { Denial, DenialsBy } from "../../api/types";
import { href } from "../../app/route";
import { Lock } from "../../parts/badge";
import { Foreign } from "../../parts/foreign";
import { count } from "../../parts/format";
import { Destination } from "../../parts/events";
import type { Column } from "../../parts/table";
import { Clock } from "../../parts/time";

const HEADS: Record<DenialsBy, string> = {
	name: "Name",
	ip: "Address",
	workspace: "Workspace",
	sandbox: "Sandbox",
	reason: "Reason",
};

function keyCell(by: DenialsBy, d: Denial): ComponentChildren {
	if (d.key === null || d.key === "") return by === "workspace" ? "no workspace" : "no name";
	if (by === "sandbox")
		return (
			<a class="code" href={href("sandboxes", d.key)}>
				{d.key}
			</a>
		);
	if (by === "reason") return d.key.replaceAll("_", " ");
	return <Foreign text={d.key} class="code" />;
}

interface Ways {
	eventsOf: (d: Denial) => string;
	othersOf: (by: DenialsBy) => string;
	draftOf: ((d: Denial) => void) | null; // null: the caller may not add rules
}

// The events of a row; those of refusals without a name or workspace are found by another group.
function Events({ denial: d, by, ways }: { denial: Denial; by: DenialsBy; ways: Ways }) {
	const other = by === "name" ? "ip" : "sandbox";
	if (d.key)
		return (
			<a class="button" href={ways.eventsOf(d)} aria-label={`Events of ${d.key}`}>
				Events
			</a>
		);
	return (
		<a class="button" href={ways.othersOf(other)}>
			{other === "ip" ? "By address" : "By sandbox"}
		</a>
	);
}

// No rule lifts a floor: there is nothing to allow, and Explain says why.
function Allow({ denial: d, draftOf }: { denial: Denial; draftOf: NonNullable<Ways["draftOf"]> }) {
	const host = d.last_name || d.last_ip;
	if (!host) return null;
	if (d.last_reason !== "floor")
		return (
			<button type="button" aria-label={`Allow … ${host}`} onClick={() => draftOf(d)}>
				Allow …
			</button>
		);
	return (
		<a
			class="button"
			href={href("explain", null, { host, port: d.last_port, protocol: d.last_protocol })}
			aria-label={`Explain ${host}`}
		>
			Explain
		</a>
	);
}

export function denialColumns(by: DenialsBy, ways: Ways): Column<Denial>[] {
	const last: Column<Denial> = {
		head: by === "name" ? "Last address" : by === "ip" ? "Last name" : "Last destination",
		cell: (d) => (
			<Destination
				name={by === "name" ? null : d.last_name}
				ip={by === "ip" && d.last_name ? null : d.last_ip}
				port={d.last_port}
			/>
		),
	};
	const reason: Column<Denial> = {
		head: "Why",
		cell: (d) => (
			<>
				{d.last_reason === "floor" ? (
					<Lock label="floor: no rule lifts it" />
				) : (
					(d.last_reason ?? "–").replaceAll("_", " ")
				)}
				{d.last_rule ? <Foreign text={d.last_rule} class="code below" /> : null}
			</>
		),
	};
	return [
		{ head: HEADS[by], title: true, wide: true, cell: (d) => keyCell(by, d) },
		last,
		reason,
		{ head: "Sandboxes", numeric: true, cell: (d) => count(d.n_sandboxes) },
		{ head: "Refused", numeric: true, cell: (d) => count(d.count) },
		{ head: "Last", cell: (d) => <Clock at={d.last} /> },
		{
			head: "Actions",
			cell: (d) => (
				<span class="buttons tight">
					<Events denial={d} by={by} ways={ways} />
					{ways.draftOf ? <Allow denial={d} draftOf={ways.draftOf} /> : null}
				</span>
			),
		},
	];
}
