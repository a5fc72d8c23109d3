// SPDX-License-Identifier: LGPL-2.1-or-later
// Text from a sandbox: control and direction characters are shown as what they are, so that a name cannot
// look like another one.
const DECEPTIVE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text: string): string {
	return text.replace(DECEPTIVE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function Foreign({ text, class: name = "" }: { text: string | null | undefined; class?: string }) {
	if (text === null || text === undefined || text === "") return <>–</>;
	return (
		<bdi class={`foreign ${name}`} title={visible(text)}>
			{visible(text)}
		</bdi>
	);
}
