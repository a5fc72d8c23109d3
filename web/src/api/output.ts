// SPDX-License-Identifier: LGPL-2.1-or-later
// stdout and stderr of a sandbox: as they come, or a part of the log from an offset on.
import { useEffect, useState } from "preact/hooks";
import { apiUrl, get, segment } from "./client";
import { asProblem, useLoad, type Loaded } from "./hooks";
import { visible } from "../parts/foreign";
import { bytes } from "../parts/format";

const KEPT = 200_000; // characters: the newest
const RETRY_MS = 5000;

export interface Piece {
	stream: "stdout" | "stderr" | "lost";
	text: string;
}

interface Chunk {
	text?: string;
	base64?: string; // bytes that are not UTF-8
}

// Colours and cursor movements of a terminal are left out, a carriage return is a new line; other control
// characters are shown.
const plain = (text: string) =>
	text
		.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "")
		.split(/\r*\n|\r/)
		.map((line) => visible(line.replace(/\t/g, "    ")))
		.join("\n");

const lostPiece = (n: number): Piece => ({ stream: "lost", text: `\n[${bytes(n)} were not kept]\n` });

// The pieces of a log, in its order. A character may begin in one and end in the next.
class Reader {
	private readonly decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

	read(stream: "stdout" | "stderr", { text, base64 }: Chunk): Piece {
		const raw =
			base64 === undefined
				? new TextEncoder().encode(text)
				: Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
		return { stream, text: plain(this.decoders[stream].decode(raw, { stream: true })) };
	}
}

function append(pieces: readonly Piece[], piece: Piece): Piece[] {
	const all = [...pieces];
	const last = all.at(-1);
	if (last?.stream === piece.stream) all[all.length - 1] = { ...last, text: last.text + piece.text };
	else all.push(piece);
	return all;
}

interface Shown {
	pieces: readonly Piece[];
	cut: boolean; // older pieces were dropped
}

function keepNewest({ pieces, cut }: Shown): Shown {
	let over = pieces.reduce((n, p) => n + p.text.length, 0) - KEPT;
	if (over <= 0) return { pieces, cut };
	const all = [...pieces];
	while (over > 0 && all[0]) {
		const [first] = all;
		if (first.text.length <= over) all.shift();
		else all[0] = { ...first, text: first.text.slice(over) };
		over -= first.text.length;
	}
	return { pieces: all, cut: true };
}

export interface Output extends Shown {
	state: "open" | "ended" | "none"; // none: the service has no output of it
	exitStatus: number | null;
	offset: number; // behind what is shown
}

const NOTHING: Output = { pieces: [], cut: false, state: "open", exitStatus: null, offset: 0 };

const path = (id: string) => `/sandboxes/${segment(id)}/output`;

// From the beginning on, as it comes; after the page was in the background, from where it was.
export function useOutput(id: string): Output {
	const [output, setOutput] = useState<Output>(NOTHING);

	useEffect(() => {
		const reader = new Reader();
		let source: EventSource | null = null;
		let retry: number | undefined;
		let offset: string | null = null;
		let done = false;

		const change = (how: (old: Output) => Output) =>
			setOutput((old) => ({ ...how(old), offset: Number(offset ?? 0) }));
		const add = (piece: Piece) =>
			change((old) => ({ ...old, ...keepNewest({ ...old, pieces: append(old.pieces, piece) }) }));
		const end = (more: Partial<Output>) => {
			done = true;
			source?.close();
			change((old) => ({ ...old, ...more }));
		};
		const on = (name: string, run: (data: Chunk & { bytes: number; exit_status: number | null }) => void) =>
			source?.addEventListener(name, (message: MessageEvent<string>) => {
				offset = message.lastEventId || offset;
				run(JSON.parse(message.data));
			});
		// An EventSource does not say why it ended: a page of the output does.
		const why = () => {
			retry = window.setTimeout(follow, RETRY_MS);
			get(path(id), { limit: 1 }).catch((error) => {
				if (asProblem(error).status === 404) end({ state: "none" });
			});
		};
		const connect = () => {
			source = new EventSource(apiUrl(path(id), { offset }));
			on("stdout", (data) => add(reader.read("stdout", data)));
			on("stderr", (data) => add(reader.read("stderr", data)));
			on("lost", (data) => add(lostPiece(data.bytes)));
			on("end", (data) => end({ state: "ended", exitStatus: data.exit_status }));
			source.onerror = () => {
				if (source?.readyState !== EventSource.CLOSED) return;
				source = null;
				why();
			};
		};
		const follow = () => {
			window.clearTimeout(retry);
			if (document.hidden || done) {
				source?.close();
				source = null;
			} else if (!source) {
				connect();
			}
		};
		setOutput(NOTHING);
		follow();
		document.addEventListener("visibilitychange", follow);
		return () => {
			done = true;
			document.removeEventListener("visibilitychange", follow);
			window.clearTimeout(retry);
			source?.close();
		};
	}, [id]);

	return output;
}

interface Page {
	items: (Chunk & { stream: "stdout" | "stderr" })[];
	next_offset: number;
	lost_bytes: number;
	ended: boolean;
	exit_status: number | null;
}

export interface Part {
	pieces: readonly Piece[];
	next: number;
	more: boolean; // there may be more behind it
}

// The part of the log from @offset on. null: none is wanted.
export function useOutputPart(id: string, offset: number | null): Loaded<Part | null> {
	return useLoad(async () => {
		if (offset === null) return null;
		const page = await get<Page>(path(id), { offset, limit: 1000 });
		const reader = new Reader();
		const lost = page.lost_bytes > 0 ? [lostPiece(page.lost_bytes)] : [];
		const pieces = page.items.reduce<Piece[]>((all, item) => append(all, reader.read(item.stream, item)), lost);
		return { pieces, next: page.next_offset, more: !page.ended };
	}, [id, offset]);
}
