// SPDX-License-Identifier: LGPL-2.1-or-later
import { useState } from "preact/hooks";
import { useRecentEvents } from "../../api/events";
import { EventTable } from "../../parts/events";
import { Loading, Panel, ProblemNote } from "../../parts/note";

const SHOWN = 20;

export function EventsPanel({ id }: { id: string }) {
	const [all, setAll] = useState(false);
	const { data, problem } = useRecentEvents({ sandbox: id });
	const more = (data?.length ?? 0) - SHOWN;
	return (
		<Panel title="Events">
			<ProblemNote problem={problem} />
			{data ? (
				<EventTable
					caption="Events, newest first"
					events={all ? data : data.slice(0, SHOWN)}
					withSandbox={false}
					empty="There is no event yet: nothing was connected to, nothing was refused."
				/>
			) : problem ? null : (
				<Loading what="events" />
			)}
			{more > 0 ? (
				<button type="button" aria-expanded={all} onClick={() => setAll(!all)}>
					{all ? "Show fewer" : `Show ${more} more`}
				</button>
			) : null}
		</Panel>
	);
}
