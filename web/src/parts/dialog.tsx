// SPDX-License-Identifier: LGPL-2.1-or-later
// A modal dialog. The browser keeps the focus inside and closes it with Escape; afterwards the focus
// goes back to where it was.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
	title: string;
	onClose: () => void;
	children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: Props) {
	const ref = useRef<HTMLDialogElement>(null);

	useEffect(() => {
		const before = document.activeElement;
		const dialog = ref.current!;
		dialog.showModal();
		return () => {
			dialog.close(); // as long as it is open, nothing outside takes the focus
			if (before instanceof HTMLElement && before.isConnected) before.focus();
			else document.querySelector<HTMLElement>("h1")?.focus();
		};
	}, []);

	// The browser would close it now and tell later, when it may be open again.
	const cancel = (event: Event) => {
		event.preventDefault();
		onClose();
	};

	return (
		<dialog ref={ref} aria-labelledby="dialog-title" onCancel={cancel} onClose={() => ref.current && onClose()}>
			<header>
				<h2 id="dialog-title">{title}</h2>
				<button type="button" class="quiet" aria-label="Close" onClick={onClose}>
					✕
				</button>
			</header>
			{children}
		</dialog>
	);
}
