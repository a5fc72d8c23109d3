// SPDX-License-Identifier: LGPL-2.1-or-later
// Shown when the service does not know the caller. When a link was opened in another tab, this page goes on.
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import type { Session } from "../api/types";

const ASK_MS = 3000;

export function Login({ expired, onSession }: { expired: boolean; onSession: (session: Session) => void }) {
	useEffect(() => {
		if (expired) document.querySelector<HTMLElement>("h1")?.focus();
		const ask = () => {
			if (!document.hidden) get<Session>("/session").then(onSession, () => undefined);
		};
		const timer = window.setInterval(ask, ASK_MS);
		document.addEventListener("visibilitychange", ask);
		return () => {
			window.clearInterval(timer);
			document.removeEventListener("visibilitychange", ask);
		};
	}, [expired, onSession]);
	return (
		<main class="alone" id="content">
			<h1 tabIndex={-1}>{expired ? "Your session is over" : "You are not logged in"}</h1>
			{expired ? <p>A session ends after 12 hours, with its token, and when the service starts again.</p> : null}
			<p>On the host of this service, run:</p>
			<pre tabIndex={0}>
				<code>sbxctl web</code>
			</pre>
			<p>It prints a link that works once, within a minute. Open it in this browser: this page then goes on.</p>
		</main>
	);
}
