// SPDX-License-Identifier: LGPL-2.1-or-later
// Each view as a person sees it: light, dark and at 360 px; axe finds nothing, nothing is wider than the
// window, hostile names are text. The screenshots are kept.
import { after, before, test } from "node:test";
import { DARK, NARROW, startBrowser, stopBrowser, Visit } from "./browser.mjs";
import { emptyState, usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

const VIEWS = [["sandboxes", "#/sandboxes", "text=24083cd4e153"]];

const LOOKS = { wide: {}, dark: DARK, narrow: NARROW };

for (const [look, options] of Object.entries(LOOKS))
	for (const [name, hash, wait] of VIEWS)
		test(`${name}, ${look}`, async () => {
			const visit = await Visit.start(usualState(), options);
			await visit.open(hash);
			await visit.page.waitForSelector(wait);
			await visit.axe(name);
			await visit.fits(name);
			await visit.shot(`${name}-${look}`);
			await visit.end();
		});

test("an empty installation says what to run", async () => {
	for (const [look, options] of Object.entries(LOOKS)) {
		const visit = await Visit.start(emptyState(), options);
		await visit.open();
		await visit.page.waitForSelector("text=sbx-run --profile none -- id");
		await visit.axe("empty");
		await visit.fits("empty");
		await visit.shot(`empty-${look}`);
		await visit.end();
	}
});

test("without a session the page says how to get a link", async () => {
	const visit = await Visit.start({ ...emptyState(), session: null });
	visit.expected.push(/401/);
	await visit.open();
	await visit.page.waitForSelector("text=sbxctl web");
	await visit.axe("login");
	await visit.shot("login");
	await visit.end();
});
