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
	draftOf: ((d: Denial) => void) | null; // null: the caller may not add rules
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
				{d.last_reason === "floor" ? <Lock label="floor" /> : (d.last_reason ?? "–").replaceAll("_", " ")}
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
					{d.key ? (
						<a class="button" href={ways.eventsOf(d)} aria-label={`Events of ${d.key}`}>
							Events
						</a>
					) : null}
					{ways.draftOf && (d.last_name || d.last_ip) ? (
						<button
							type="button"
							aria-label={`Allow … ${d.last_name || d.last_ip}`}
							onClick={() => ways.draftOf?.(d)}
						>
							Allow …
						</button>
					) : null}
				</span>
			),
		},
	];
}
