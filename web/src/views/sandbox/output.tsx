// SPDX-License-Identifier: LGPL-2.1-or-later
import { useEffect, useRef, useState } from "preact/hooks";
import { useOutput } from "../../api/output";
import { Panel } from "../../parts/note";

const NOTES = {
	open: "Nothing was printed yet.",
	ended: "The output has ended.",
	none: "There is no output to show: the service keeps that of the sandboxes that it started.",
};

export function OutputPanel({ id }: { id: string }) {
	const { pieces, state } = useOutput(id);
	const [follow, setFollow] = useState(true);
	const box = useRef<HTMLPreElement>(null);

	useEffect(() => {
		if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [pieces, follow]);

	const followBox = (
		<label class="check">
			<input type="checkbox" checked={follow} onChange={(event) => setFollow(event.currentTarget.checked)} />
			Follow
		</label>
	);
	return (
		<Panel title="Output" aside={pieces.length > 0 ? followBox : null}>
			{pieces.length > 0 ? (
				<pre ref={box} class="output" tabIndex={0} aria-label="Output">
					{pieces.map((piece, i) => (
						<span key={i} class={piece.stream}>
							{piece.text}
						</span>
					))}
				</pre>
			) : null}
			{pieces.length === 0 || state !== "open" ? <p class="muted">{NOTES[state]}</p> : null}
		</Panel>
	);
}
