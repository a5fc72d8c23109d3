// SPDX-License-Identifier: LGPL-2.1-or-later
// A question before something that cannot be taken back.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "../api/hooks";
import { Dialog } from "./dialog";
import { ProblemNote } from "./note";

interface Props {
	button: string; // the button that asks
	label: string; // what assistive technology says of it
	title: string;
	children: ComponentChildren;
	confirm: string;
	run: () => Promise<void>;
}

export function Confirm({ button, label, title, children, confirm, run }: Props) {
	const [open, setOpen] = useState(false);
	const action = useAction();
	const submit = (event: Event) => {
		event.preventDefault();
		void action.start(async () => {
			await run();
			setOpen(false);
		});
	};
	return (
		<>
			<button type="button" class="danger" aria-label={label} onClick={() => setOpen(true)}>
				{button}
			</button>
			{open && (
				<Dialog title={title} onClose={() => setOpen(false)}>
					<form onSubmit={submit}>
						{children}
						<ProblemNote problem={action.problem} />
						<div class="buttons">
							<button type="submit" class="danger" disabled={action.busy}>
								{confirm}
							</button>
							<button type="button" onClick={() => setOpen(false)}>
								Cancel
							</button>
						</div>
					</form>
				</Dialog>
			)}
		</>
	);
}
