// SPDX-License-Identifier: LGPL-2.1-or-later
import { SandboxesView } from "../views/sandboxes/view";
import type { Route } from "./route";

export function Content({ route }: { route: Route }) {
	switch (route.view) {
		default:
			return <SandboxesView route={route} />;
	}
}
