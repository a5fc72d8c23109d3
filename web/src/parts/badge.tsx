// SPDX-License-Identifier: LGPL-2.1-or-later
// One word with a colour; the word says all of it.
const TONES: Record<string, string> = {
	running: "good",
	allow: "good",
	open: "warn",
	preparing: "warn",
	frozen: "warn",
	ending: "warn",
	notice: "warn",
	deny: "bad",
	panic: "bad",
	lost: "bad",
	killed: "bad",
	timed_out: "bad",
	oom_killed: "bad",
	failed_policy: "bad",
	failed_safety_setup: "bad",
};

export function Badge({ word }: { word: string }) {
	return <span class={`badge ${TONES[word] ?? "plain"}`}>{word.replaceAll("_", " ")}</span>;
}

export function Lock({ label }: { label: string }) {
	return (
		<span class="lock">
			<svg viewBox="0 0 16 16" aria-hidden="true">
				<path d="M4 7V5a4 4 0 0 1 8 0v2h1v8H3V7zm2 0h4V5a2 2 0 0 0-4 0z" />
			</svg>
			{label}
		</span>
	);
}
