// SPDX-License-Identifier: LGPL-2.1-or-later
// The refusals behind a row, and those that come.
import { useEffect, useRef } from "preact/hooks";
import { useRecentEvents } from "../../api/events";
import type { DenialsBy } from "../../api/types";
import { EventTable } from "../../parts/events";
import { Foreign } from "../../parts/foreign";
import { Loading, Panel, ProblemNote } from "../../parts/note";

export function KeyEvents({ by, value, closed }: { by: DenialsBy; value: string; closed: string }) {
	const { data, problem } = useRecentEvents({ action: "deny", [by]: value });
	const head = useRef<HTMLParagraphElement>(null);
	useEffect(() => {
		head.current?.focus();
		head.current?.scrollIntoView({ block: "nearest" });
	}, [by, value]);
	return (
		<Panel title="Events" aside={<a href={closed}>Close</a>}>
			<p ref={head} tabIndex={-1}>
				Refusals of <Foreign text={value} class="code" />
			</p>
			<ProblemNote problem={problem} />
			{data ? (
				<EventTable
					caption="Refusals, newest first"
					events={data}
					withSandbox
					empty="There is none left."
				/>
			) : problem ? null : (
				<Loading what="events" />
			)}
		</Panel>
	);
}
