// SPDX-License-Identifier: LGPL-2.1-or-later
// An installation in which nothing has run yet says how to begin.
import { apiUrl } from "../../api/client";
import { href } from "../../app/route";
import { Panel } from "../../parts/note";

export function FirstRun() {
	const request = `curl -X POST ${apiUrl("/sandboxes")} \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"profile": "none", "command": ["sleep", "60"]}'`;
	return (
		<Panel title="Nothing has run here yet">
			<p>Run a command in a sandbox, on this host:</p>
			<pre tabIndex={0}>
				<code>sbx-run --profile none -- id</code>
			</pre>
			<p>
				Or ask this service for one; <code>sbxctl token add NAME --role operator</code> prints a token:
			</p>
			<pre tabIndex={0}>
				<code>{request}</code>
			</pre>
			<p>
				A sandbox appears here as soon as it runs. <a href={href("profiles")}>Profiles</a> says what each
				profile allows.
			</p>
		</Panel>
	);
}
