// SPDX-License-Identifier: LGPL-2.1-or-later
// A table of the page. Where its columns have no room, each row becomes a card with the columns' heads above the
// values; the roles are written out because display: block takes them from a table's elements.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const COLUMN_PX = 76; // at least, on average

export interface Column<T> {
	head: string;
	cell: (row: T) => ComponentChildren;
	numeric?: boolean;
	title?: boolean; // names the row
	wide?: boolean; // takes the space that is left
}

interface Props<T> {
	caption: string;
	columns: Column<T>[];
	rows: readonly T[];
	keyOf: (row: T) => string | number;
	rowClass?: (row: T) => string;
	empty?: ComponentChildren;
}

function classOf<T>(column: Column<T>): string {
	return [column.numeric && "numeric", column.title && "title", column.wide && "wide"].filter(Boolean).join(" ");
}

export function Table<T>({ caption, columns, rows, keyOf, rowClass, empty }: Props<T>) {
	const box = useRef<HTMLDivElement>(null);
	const needed = useRef(columns.length * COLUMN_PX);
	const [cards, setCards] = useState(false);

	// Judged before the browser paints: after each change of the rows, and of the width.
	const judge = () => {
		const element = box.current!;
		const table = element.querySelector("table:not(.cards)");
		if (table && table.scrollWidth > element.clientWidth) needed.current = table.scrollWidth;
		setCards(element.clientWidth < needed.current);
	};
	useLayoutEffect(judge);
	useLayoutEffect(() => {
		const observer = new ResizeObserver(judge);
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);

	return (
		<div ref={box} class="box">
			{rows.length === 0 && empty !== undefined ? (
				<div class="empty">{empty}</div>
			) : (
				<table role="table" class={cards ? "cards" : ""}>
					<caption class="hidden">{caption}</caption>
					<thead role="rowgroup">
						<tr role="row">
							{columns.map((column) => (
								<th key={column.head} role="columnheader" scope="col" class={classOf(column)}>
									{column.head}
								</th>
							))}
						</tr>
					</thead>
					<tbody role="rowgroup">
						{rows.map((row) => (
							<tr key={keyOf(row)} role="row" class={rowClass?.(row) ?? ""}>
								{columns.map((column) =>
									column.title ? (
										<th key={column.head} role="rowheader" scope="row" class={classOf(column)}>
											{column.cell(row)}
										</th>
									) : (
										<td
											key={column.head}
											role="cell"
											class={classOf(column)}
											data-head={column.head}
										>
											{column.cell(row)}
										</td>
									),
								)}
							</tr>
						))}
					</tbody>
				</table>
			)}
		</div>
	);
}
