// SPDX-License-Identifier: LGPL-2.1-or-later
// stdout and stderr as they come. The service keeps what is kept (bounded on disk); this view keeps its newest part.
import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl, segment } from "../../api/client";
import { visible } from "../../parts/foreign";
import { Panel } from "../../parts/note";

const KEPT = 200_000; // characters

interface Piece {
	stream: string;
	text: string;
}

function textOf(data: string): string {
	const { text, base64 } = JSON.parse(data) as { text?: string; base64?: string };
	if (text !== undefined) return text;
	const raw = Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0));
	return new TextDecoder().decode(raw);
}

// Colours and cursor movements of a terminal are left out; other control characters are shown.
const plain = (text: string) =>
	text
		.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "")
		.split("\n")
		.map((line) => visible(line.replace(/\t/g, "    ").replace(/\r$/, "")))
		.join("\n");

function append(pieces: readonly Piece[], piece: Piece): Piece[] {
	const all = [...pieces];
	const last = all.at(-1);
	if (last?.stream === piece.stream) all[all.length - 1] = { ...last, text: last.text + piece.text };
	else all.push(piece);
	let length = all.reduce((n, p) => n + p.text.length, 0);
	while (length > KEPT && all.length > 0) {
		const [first] = all;
		const cut = Math.min(length - KEPT, first!.text.length);
		length -= cut;
		if (cut === first!.text.length) all.shift();
		else all[0] = { ...first!, text: first!.text.slice(cut) };
	}
	return all;
}

export function OutputPanel({ id }: { id: string }) {
	const [pieces, setPieces] = useState<Piece[]>([]);
	const [end, setEnd] = useState("");
	const [follow, setFollow] = useState(true);
	const box = useRef<HTMLPreElement>(null);

	useEffect(() => {
		setPieces([]);
		setEnd("");
		const source = new EventSource(apiUrl(`/sandboxes/${segment(id)}/output`));
		const take = (stream: string) => (message: MessageEvent<string>) =>
			setPieces((old) => append(old, { stream, text: plain(textOf(message.data)) }));
		source.addEventListener("stdout", take("stdout"));
		source.addEventListener("stderr", take("stderr"));
		source.addEventListener("lost", () =>
			setPieces((old) => append(old, { stream: "lost", text: "\n[older output was not kept]\n" })),
		);
		source.addEventListener("end", () => {
			setEnd("The output has ended.");
			source.close();
		});
		source.onerror = () => {
			if (source.readyState === EventSource.CLOSED)
				setEnd("There is no output to show: the service keeps that of the sandboxes that it started.");
		};
		return () => source.close();
	}, [id]);

	useEffect(() => {
		if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [pieces, follow]);

	return (
		<Panel
			title="Output"
			aside={
				<label class="check">
					<input
						type="checkbox"
						checked={follow}
						onChange={(event) => setFollow(event.currentTarget.checked)}
					/>
					Follow
				</label>
			}
		>
			{pieces.length > 0 ? (
				<pre ref={box} class="output" tabIndex={0} aria-label="Output">
					{pieces.map((piece, i) => (
						<span key={i} class={piece.stream}>
							{piece.text}
						</span>
					))}
				</pre>
			) : null}
			{end || pieces.length === 0 ? <p class="muted">{end || "Nothing was printed yet."}</p> : null}
		</Panel>
	);
}
