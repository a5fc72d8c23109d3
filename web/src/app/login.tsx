// SPDX-License-Identifier: LGPL-2.1-or-later
// Shown when the service does not know the caller.
export function Login({ expired }: { expired: boolean }) {
	return (
		<main class="alone" id="content">
			<h1 tabIndex={-1}>{expired ? "Your session is over" : "You are not logged in"}</h1>
			<p>On the host of this service, run:</p>
			<pre>
				<code>sbxctl web</code>
			</pre>
			<p>It prints a link that works once. Open the link in this browser.</p>
		</main>
	);
}
