// SPDX-License-Identifier: LGPL-2.1-or-later
import { useEffect, useRef, useState } from "preact/hooks";
import { useOutput, useOutputPart, type Output, type Piece } from "../../api/output";
import { TextField } from "../../parts/field";
import { count } from "../../parts/format";
import { Panel, ProblemNote } from "../../parts/note";

function noteOf(output: Output): string {
	if (output.state === "none")
		return "There is no output to show: the service keeps that of the sandboxes that it started.";
	const status = output.exitStatus === null ? "" : ` Exit status ${output.exitStatus}.`;
	if (output.state === "ended") return `The output has ended at offset ${count(output.offset)}.${status}`;
	return output.pieces.length > 0 ? `Up to offset ${count(output.offset)}.` : "Nothing was printed yet.";
}

function Pieces({ pieces, follow }: { pieces: readonly Piece[]; follow: boolean }) {
	const box = useRef<HTMLPreElement>(null);
	useEffect(() => {
		if (box.current) box.current.scrollTop = follow ? box.current.scrollHeight : box.current.scrollTop;
	}, [pieces, follow]);
	return (
		<pre ref={box} class="output" tabIndex={0} aria-label="Output">
			{pieces.map((piece, i) => (
				<span key={i} class={piece.stream}>
					{piece.text}
				</span>
			))}
		</pre>
	);
}

// Chooses where the shown part begins; back to the newest by null.
function From({ next, part, onChoose }: { next: number | null; part: boolean; onChoose: (at: number | null) => void }) {
	const [text, setText] = useState("0");
	const submit = (event: Event) => {
		event.preventDefault();
		onChoose(Number(text));
	};
	return (
		<form class="filters" onSubmit={submit}>
			<TextField label="From offset" type="number" min={0} value={text} onInput={setText} required />
			<button type="submit">Show</button>
			{next !== null ? (
				<button type="button" onClick={() => onChoose(next)}>
					Next part
				</button>
			) : null}
			{part ? (
				<button type="button" onClick={() => onChoose(null)}>
					Newest, as it comes
				</button>
			) : null}
		</form>
	);
}

export function OutputPanel({ id }: { id: string }) {
	const output = useOutput(id);
	const [follow, setFollow] = useState(true);
	const [from, setFrom] = useState<number | null>(null);
	const { data: part, problem } = useOutputPart(id, from);
	const shown = from === null ? output.pieces : (part?.pieces ?? []);

	const followBox = (
		<label class="check">
			<input type="checkbox" checked={follow} onChange={(event) => setFollow(event.currentTarget.checked)} />
			Follow
		</label>
	);
	return (
		<Panel title="Output" aside={from === null && output.pieces.length > 0 ? followBox : null}>
			{shown.length > 0 ? <Pieces key={String(from)} pieces={shown} follow={from === null && follow} /> : null}
			<ProblemNote problem={problem} />
			<p class="muted" role="status">
				{from === null ? noteOf(output) : null}
				{from === null && output.cut ? " Older output is not shown: see it from an offset." : null}
				{part ? `Offsets ${count(from)} to ${count(part.next)}.` : null}
				{part && part.pieces.length === 0 ? " Nothing is there." : null}
			</p>
			{output.pieces.length > 0 ? (
				<From
					next={part && part.next > (from ?? 0) ? part.next : null}
					part={from !== null}
					onChoose={setFrom}
				/>
			) : null}
		</Panel>
	);
}
