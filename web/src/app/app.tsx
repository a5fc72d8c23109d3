// SPDX-License-Identifier: LGPL-2.1-or-later
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, onUnauthorized, type Problem } from "../api/client";
import { asProblem } from "../api/hooks";
import { startLive, stopLive } from "../api/live";
import type { Session } from "../api/types";
import { ProblemNote } from "../parts/note";
import { Content } from "./content";
import { Login } from "./login";
import { Nav } from "./nav";
import { useRoute, type Route } from "./route";
import { SessionContext } from "./session";

// A change of the view moves the focus to its heading, as a new page would; the first one leaves it.
function useHeading(route: Route): void {
	const first = useRef(true);
	useEffect(() => {
		const heading = document.querySelector<HTMLElement>("main h1");
		document.title = heading ? `${heading.textContent} – sbx` : "sbx";
		if (!first.current) heading?.focus();
		if (!first.current) window.scrollTo(0, 0);
		first.current = false;
	}, [route.view, route.argument]);
}

function Shell({ session, onLogout }: { session: Session; onLogout: () => void }) {
	const route = useRoute();
	useHeading(route);
	useEffect(() => {
		startLive();
		return stopLive;
	}, []);
	const skip = (event: Event) => {
		event.preventDefault(); // the hash is the page's own
		document.querySelector<HTMLElement>("main h1")?.focus();
	};
	return (
		<SessionContext.Provider value={session}>
			<a class="skip" href="#content" onClick={skip}>
				Skip to the content
			</a>
			<Nav route={route} session={session} onLogout={onLogout} />
			<main id="content">
				<Content route={route} />
			</main>
		</SessionContext.Provider>
	);
}

export function App() {
	const [session, setSession] = useState<Session | null>(null);
	const [problem, setProblem] = useState<Problem | null>(null);
	const [over, setOver] = useState(false);

	useEffect(() => {
		get<Session>("/session").then(setSession, (error) => setProblem(asProblem(error)));
	}, []);
	useEffect(() => onUnauthorized(() => setOver(true)), []);
	const goOn = useCallback((now: Session) => {
		setSession(now);
		setProblem(null);
		setOver(false);
	}, []);

	if (over) return <Login expired={session !== null} onSession={goOn} />;
	if (problem)
		return (
			<main class="alone">
				<h1>sbx</h1>
				<ProblemNote problem={problem} />
				<button type="button" onClick={() => location.reload()}>
					Try again
				</button>
			</main>
		);
	return session ? <Shell session={session} onLogout={() => setOver(true)} /> : null;
}
