// SPDX-License-Identifier: LGPL-2.1-or-later
import type { ComponentChildren } from "preact";
import type { Denial, DenialsBy } from "../../api/types";
import { href } from "../../app/route";
import { Foreign } from "../../parts/foreign";
import { count } from "../../parts/format";
import { Destination } from "../../parts/events";
import { isForRules, Reason } from "../../parts/reason";
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
	if (d.key === null || d.key === "") return `no ${HEADS[by].toLowerCase()}`;
	if (by === "sandbox")
		return (
			<a class="code" href={href("sandboxes", d.key)}>
				{d.key}
			</a>
		);
	if (by === "reason") return d.key.replaceAll("_", " ");
	return <Foreign text={d.key} class="code" />;
}

// A name that DNS was asked for has no port yet.
export const portOf = (d: Denial) => (d.last_protocol === "dns" ? null : d.last_port);

interface Ways {
	eventsOf: (d: Denial) => string;
	othersOf: (by: DenialsBy) => string;
	draftOf: ((d: Denial) => void) | null; // null: the caller may not add rules
}

// The events of a row; those of refusals without a name or workspace are found by another group.
function Events({ denial: d, by, ways }: { denial: Denial; by: DenialsBy; ways: Ways }) {
	const other = by === "name" ? "ip" : by === "ip" ? "name" : "sandbox";
	if (d.key)
		return (
			<a class="button" href={ways.eventsOf(d)} aria-label={`Events of ${d.key}`}>
				Events
			</a>
		);
	return (
		<a class="button" href={ways.othersOf(other)}>
			By {HEADS[other].toLowerCase()}
		</a>
	);
}

// No rule lifts a floor or an air gap: there is nothing to allow, and Explain says why. Nor does it mend a connection.
function Allow({ denial: d, draftOf }: { denial: Denial; draftOf: NonNullable<Ways["draftOf"]> }) {
	const host = d.last_name || d.last_ip;
	if (!host) return null;
	if (isForRules(d.last_reason))
		return (
			<button type="button" aria-label={`Allow … ${host}`} onClick={() => draftOf(d)}>
				Allow …
			</button>
		);
	if (d.last_reason !== "floor" && d.last_reason !== "air_gap") return null;
	return (
		<a
			class="button"
			href={href("explain", null, { host, port: portOf(d), protocol: d.last_protocol })}
			aria-label={`Explain ${host}`}
		>
			Explain
		</a>
	);
}

export function denialColumns(by: DenialsBy, ways: Ways): Column<Denial>[] {
	const last: Column<Denial> = {
		head: by === "name" ? "Last address" : by === "ip" ? "Last name" : "Last destination",
		cell: (d) =>
			by === "name" && d.last_protocol === "dns" ? (
				"none: DNS refused the name"
			) : (
				<Destination
					name={by === "name" ? null : d.last_name}
					ip={by === "ip" && d.last_name ? null : d.last_ip}
					port={d.last_port}
					protocol={d.last_protocol}
				/>
			),
	};
	const reason: Column<Denial> = {
		head: "Why",
		cell: (d) => <Reason reason={d.last_reason} rule={d.last_rule} />,
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
