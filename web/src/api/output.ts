// SPDX-License-Identifier: LGPL-2.1-or-later
// stdout and stderr of a sandbox as they come; from where it was after the page was in the background.
import { useEffect, useState } from "preact/hooks";
import { apiUrl, segment } from "./client";
import { visible } from "../parts/foreign";

const KEPT = 200_000; // characters: the newest

export interface Piece {
	stream: "stdout" | "stderr" | "lost";
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
	let over = all.reduce((n, p) => n + p.text.length, 0) - KEPT;
	while (over > 0 && all[0]) {
		const [first] = all;
		if (first.text.length <= over) all.shift();
		else all[0] = { ...first, text: first.text.slice(over) };
		over -= first.text.length;
	}
	return all;
}

// state: why nothing more comes.
export function useOutput(id: string): { pieces: readonly Piece[]; state: "open" | "ended" | "none" } {
	const [pieces, setPieces] = useState<Piece[]>([]);
	const [state, setState] = useState<"open" | "ended" | "none">("open");

	useEffect(() => {
		let source: EventSource | null = null;
		let offset: string | null = null;
		let done = false;

		const take = (stream: Piece["stream"]) => (message: MessageEvent<string>) => {
			offset = message.lastEventId || offset;
			const text = stream === "lost" ? "\n[older output was not kept]\n" : plain(textOf(message.data));
			setPieces((old) => append(old, { stream, text }));
		};
		const connect = () => {
			source = new EventSource(apiUrl(`/sandboxes/${segment(id)}/output`, { offset }));
			for (const stream of ["stdout", "stderr", "lost"] as const)
				source.addEventListener(stream, take(stream));
			source.addEventListener("end", () => {
				done = true;
				source?.close();
				setState("ended");
			});
			source.onerror = () => {
				if (source?.readyState !== EventSource.CLOSED) return;
				done = true;
				setState("none");
			};
		};
		const follow = () => {
			if (document.hidden || done) {
				source?.close();
				source = null;
			} else if (!source) {
				connect();
			}
		};
		setPieces([]);
		setState("open");
		follow();
		document.addEventListener("visibilitychange", follow);
		return () => {
			document.removeEventListener("visibilitychange", follow);
			source?.close();
		};
	}, [id]);

	return { pieces, state };
}
