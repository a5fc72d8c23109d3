// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the page is: #/VIEW/ARGUMENT?NAME=VALUE. A view that is not known is the first one.
import { useEffect, useState } from "preact/hooks";
import { segment, type Query } from "../api/client";

export type View = "sandboxes" | "refusals" | "rules" | "reviews" | "profiles" | "explain";

export const VIEWS: { view: View; title: string }[] = [
	{ view: "sandboxes", title: "Sandboxes" },
	{ view: "refusals", title: "Refusals" },
	{ view: "rules", title: "Rules" },
	{ view: "reviews", title: "Review tasks" },
	{ view: "profiles", title: "Profiles" },
	{ view: "explain", title: "Explain" },
];

export interface Route {
	view: View;
	argument: string | null;
	query: URLSearchParams;
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

export function parseRoute(hash: string): Route {
	const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
	const [name = "", argument = ""] = path.split("/", 2);
	const known = VIEWS.find(({ view }) => view === name);
	return {
		view: known ? known.view : "sandboxes",
		argument: known && argument ? decode(argument) : null,
		query: new URLSearchParams(search),
	};
}

export function href(view: View, argument?: string | null, query: Query = {}): string {
	const search = new URLSearchParams();
	for (const [name, value] of Object.entries(query))
		if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
	const text = search.toString();
	return `#/${view}${argument ? `/${segment(argument)}` : ""}${text ? `?${text}` : ""}`;
}

export function useRoute(): Route {
	const [route, setRoute] = useState(() => parseRoute(location.hash));
	useEffect(() => {
		const run = () => setRoute(parseRoute(location.hash));
		addEventListener("hashchange", run);
		return () => removeEventListener("hashchange", run);
	}, []);
	return route;
}

// Changes the query of the present view without a new entry in the history.
export function replaceQuery(route: Route, query: Query): void {
	location.replace(href(route.view, route.argument, { ...Object.fromEntries(route.query), ...query }));
}
