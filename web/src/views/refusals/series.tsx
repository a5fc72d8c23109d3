// SPDX-License-Identifier: LGPL-2.1-or-later
import { useMemo } from "preact/hooks";
import { count } from "../../parts/format";
import { Panel } from "../../parts/note";
import { Plot } from "../../parts/plot";

export function OverTime({ series }: { series: readonly { at: string; count: number }[] }) {
	const times = useMemo(() => series.map(({ at }) => Date.parse(at) / 1000), [series]);
	const values = useMemo(() => series.map((point) => point.count), [series]);
	const total = values.reduce((sum, n) => sum + n, 0);
	const most = Math.max(0, ...values);
	return (
		<Panel title="Over time">
			<Plot
				bars
				label={`Refusals over time: ${count(total)} in all, at most ${count(most)} at once`}
				name="Refusals"
				times={times}
				values={values}
				format={(n) => (Number.isInteger(n) ? count(n) : "")}
			/>
		</Panel>
	);
}
