// SPDX-License-Identifier: LGPL-2.1-or-later
import { useEffect, useState } from "preact/hooks";
import { apiUrl, post } from "../api/client";
import { onLiveState, type LiveState } from "../api/live";
import type { Session } from "../api/types";
import { href, VIEWS, type Route } from "./route";

const LIVE_TEXT: Record<LiveState, string> = {
	connecting: "connecting",
	open: "live",
	lost: "connection lost, trying again",
};

function Live() {
	const [state, setState] = useState<LiveState>("connecting");
	useEffect(() => onLiveState(setState), []);
	return (
		<span class={`live ${state}`} role="status">
			{LIVE_TEXT[state]}
		</span>
	);
}

export function Nav({ route, session, onLogout }: { route: Route; session: Session; onLogout: () => void }) {
	const logout = () => void post("/session/logout").then(onLogout, onLogout);
	return (
		<header class="bar">
			<a class="brand" href={href("sandboxes")} aria-label="sbx: sandboxes">
				<img src="./icon.svg" alt="" width="24" height="24" /> sbx
			</a>
			<nav aria-label="Views">
				<ul>
					{VIEWS.map(({ view, title }) => (
						<li key={view}>
							<a href={href(view)} aria-current={route.view === view ? "page" : undefined}>
								{title}
							</a>
						</li>
					))}
				</ul>
			</nav>
			<div class="who">
				<Live />
				<span>
					{session.name}, {session.role}
					{session.workspace ? ` of ${session.workspace}` : ""}
				</span>
				<span class="links">
					<a href={apiUrl("/openapi.json")}>API</a>
					<button type="button" class="quiet" onClick={logout}>
						Log out
					</button>
				</span>
			</div>
		</header>
	);
}
