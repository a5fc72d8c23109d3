// SPDX-License-Identifier: LGPL-2.1-or-later
import { ExplainView } from "../views/explain";
import { ProfilesView } from "../views/profiles";
import { RefusalsView } from "../views/refusals/view";
import { ReviewsView } from "../views/reviews";
import { RulesView } from "../views/rules/list";
import { SandboxView } from "../views/sandbox/view";
import { SandboxesView } from "../views/sandboxes/view";
import type { Route } from "./route";

// The keys: another sandbox, workspace or profile is another view, with nothing of the one before.
export function Content({ route }: { route: Route }) {
	switch (route.view) {
		case "sandboxes":
			if (route.argument !== null) return <SandboxView key={route.argument} id={route.argument} />;
			return <SandboxesView route={route} />;
		case "refusals":
			return <RefusalsView route={route} />;
		case "rules":
			return <RulesView key={route.argument} route={route} />;
		case "reviews":
			return <ReviewsView route={route} />;
		case "profiles":
			return <ProfilesView key={route.argument} name={route.argument} />;
		case "explain":
			return <ExplainView route={route} />;
	}
}
