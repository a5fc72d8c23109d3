// SPDX-License-Identifier: LGPL-2.1-or-later
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/client";

// How a request failed, where it was made.
export function ProblemNote({ problem }: { problem: Problem | null }) {
	if (!problem) return null;
	return (
		<p class="note problem" role="alert">
			{problem.field ? <code>{problem.field}</code> : null}
			{problem.field ? ": " : null}
			{problem.message}
		</p>
	);
}

export function Loading({ what }: { what: string }) {
	return <p class="loading">Loading {what} …</p>;
}

export function Panel({
	title,
	children,
	aside,
}: {
	title: string;
	children: ComponentChildren;
	aside?: ComponentChildren;
}) {
	const id = `panel-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
	return (
		<section class="panel" aria-labelledby={id}>
			<header>
				<h2 id={id}>{title}</h2>
				{aside}
			</header>
			{children}
		</section>
	);
}
