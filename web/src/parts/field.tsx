// SPDX-License-Identifier: LGPL-2.1-or-later
// Fields of forms, with their labels around them.
import type { ComponentChildren } from "preact";

interface TextProps {
	label: string;
	value: string;
	onInput: (value: string) => void;
	type?: string;
	required?: boolean;
	placeholder?: string;
	list?: string;
	whole?: boolean;
	autofocus?: boolean;
	min?: number;
	max?: number;
}

export function TextField({ label, value, onInput, whole, ...rest }: TextProps) {
	return (
		<label class={whole ? "whole" : ""}>
			{label}
			<input
				{...rest}
				value={value}
				spellcheck={false}
				autocomplete="off"
				onInput={(event) => onInput(event.currentTarget.value)}
			/>
		</label>
	);
}

export function PortField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
	return <TextField label="Port" type="number" min={1} max={65535} value={value} onInput={onInput} required />;
}

export function ChoiceField({
	label,
	value,
	onChange,
	children,
}: {
	label: string;
	value: string;
	onChange: (value: string) => void;
	children: ComponentChildren;
}) {
	return (
		<label>
			{label}
			<select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
				{children}
			</select>
		</label>
	);
}

// The known workspaces as suggestions of a text field with list={id}.
export function Suggestions({ id, values }: { id: string; values: readonly string[] }) {
	return (
		<datalist id={id}>
			{values.map((value) => (
				<option key={value} value={value} />
			))}
		</datalist>
	);
}
