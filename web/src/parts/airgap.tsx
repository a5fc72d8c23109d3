// SPDX-License-Identifier: LGPL-2.1-or-later
// The air-gap switch. The service answers after the flows that are no longer allowed were cut, and the switch
// says how many they were.
import { useState } from "preact/hooks";
import { put, segment } from "../api/client";
import { useAction } from "../api/hooks";
import type { NetworkChange, Sandbox } from "../api/types";
import { plural } from "./format";
import { ProblemNote } from "./note";

export function AirGap({
	sandbox,
	disabled,
	onChanged,
}: {
	sandbox: Pick<Sandbox, "id" | "air_gapped">;
	disabled: boolean;
	onChanged: () => void;
}) {
	const action = useAction();
	const [result, setResult] = useState("");
	const [asked, setAsked] = useState<boolean | null>(null);
	const on = asked ?? sandbox.air_gapped;

	const change = () =>
		void action.start(async () => {
			setResult("");
			setAsked(!on);
			try {
				const body = { air_gapped: !on };
				const got = await put<NetworkChange>(`/sandboxes/${segment(sandbox.id)}/network`, body);
				const cut = `cut ${plural(got.cut, "flow")}`;
				setResult(got.air_gapped ? cut : got.cut > 0 ? `opened, ${cut}` : "opened");
				onChanged();
			} finally {
				setAsked(null);
			}
		});

	return (
		<div class="airgap">
			<button
				type="button"
				role="switch"
				aria-checked={on}
				aria-label={`Air gap of ${sandbox.id}`}
				class="switch"
				disabled={disabled || action.busy}
				onClick={change}
			>
				<span class="knob" aria-hidden="true" />
			</button>
			<span role="status" class="result">
				{result}
			</span>
			<ProblemNote problem={action.problem} />
		</div>
	);
}
