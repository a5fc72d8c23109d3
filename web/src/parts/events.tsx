// SPDX-License-Identifier: LGPL-2.1-or-later
// A list of egress events, newest first.
import type { EgressEvent } from "../api/types";
import { href } from "../app/route";
import { Badge } from "./badge";
import { Foreign } from "./foreign";
import { bytes, count, destination } from "./format";
import { Reason } from "./reason";
import { Table, type Column } from "./table";
import { Clock } from "./time";

interface DestinationProps {
	name: string | null;
	ip: string | null;
	port: number | null;
	protocol: string | null;
}

// A name that DNS was asked for has no port yet: 53 is that of the resolver.
export function Destination({ name, ip, port: given, protocol }: DestinationProps) {
	const port = protocol === "dns" ? null : given;
	return (
		<>
			<Foreign text={destination(name || ip, port)} class="code" />
			{name && ip ? <small class="below">{ip}</small> : null}
		</>
	);
}

function columns(withSandbox: boolean): Column<EgressEvent>[] {
	const all: (Column<EgressEvent> | null)[] = [
		{ head: "When", cell: (e) => <Clock at={e.at} /> },
		{ head: "Verdict", cell: (e) => <Badge word={e.action} /> },
		{
			head: "Destination",
			wide: true,
			cell: (e) => (
				<>
					<Destination name={e.name} ip={e.ip} port={e.port} protocol={e.protocol} />
					{e.request ? <Foreign text={e.request} class="code below" /> : null}
				</>
			),
		},
		{ head: "Protocol", cell: (e) => e.protocol },
		{ head: "Reason", cell: (e) => <Reason reason={e.reason} rule={e.rule} /> },
		withSandbox
			? {
					head: "Sandbox",
					cell: (e) => (
						<a class="code" href={href("sandboxes", e.sandbox_id)}>
							{e.sandbox_id}
						</a>
					),
				}
			: null,
		{ head: "Times", numeric: true, cell: (e) => count(e.count) },
		{ head: "Out", numeric: true, cell: (e) => (e.action === "allow" ? bytes(e.bytes_out) : "–") },
		{ head: "In", numeric: true, cell: (e) => (e.action === "allow" ? bytes(e.bytes_in) : "–") },
	];
	return all.filter((column) => column !== null);
}

export function EventTable(props: {
	caption: string;
	events: readonly EgressEvent[];
	withSandbox: boolean;
	empty: string;
}) {
	return (
		<Table
			caption={props.caption}
			columns={columns(props.withSandbox)}
			rows={props.events}
			keyOf={(e) => e.id}
			empty={props.empty}
		/>
	);
}
