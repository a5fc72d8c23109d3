// SPDX-License-Identifier: LGPL-2.1-or-later
// Each view as a person sees it: light, dark and at 360 px; axe finds nothing, nothing is wider than the
// window, hostile names are text. The screenshots are kept.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { DARK, NARROW, startBrowser, stopBrowser, visit } from "./browser.mjs";
import { emptyState, usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

// The view, where it is, a text that is there when it is loaded, and how long its plots are given.
const VIEWS = [
	["sandboxes", "#/sandboxes", "text=24083cd4e153", 3500],
	["sandbox", "#/sandboxes/24083cd4e153", "text=reset by the broker", 4000],
	["sandbox-hostile", "#/sandboxes/bad000000bad", "text=</td><script>"],
	["refusals", "#/refusals", "text=Over time"],
	["refusals-events", "#/refusals?by=name&key=telemetry.example.org", "text=Refusals of"],
	["rules", "#/rules", "text=*.corp.example"],
	["rules-workspace", "#/rules/shop", "text=*.tracker.example"],
	["reviews", "#/reviews?state=all", "text=a mirror was moved"],
	["profiles", "#/profiles", "text=an AI agent"],
	["profile", "#/profiles/install", "text=mode: fetch"],
	["explain", "#/explain", "text=Nothing is connected to"],
];

const LOOKS = { wide: {}, middle: { viewport: { width: 900, height: 700 } }, dark: DARK, narrow: NARROW };

for (const [look, options] of Object.entries(LOOKS))
	for (const [name, hash, wait, ms = 0] of VIEWS)
		test(`${name}, ${look}`, () =>
			visit(usualState(), options, async (visit) => {
				await visit.open(hash);
				await visit.page.waitForSelector(wait);
				await visit.page.waitForTimeout(ms);
				if (look !== "middle") await visit.axe(name);
				await visit.fits(name);
				if (look === "wide" && ["sandboxes", "refusals"].includes(name))
					assert.equal(await visit.page.locator("table.cards").count(), 0, "a table has room");
				await visit.shot(`${name}-${look}`);
			}));

for (const [look, options] of Object.entries(LOOKS))
	test(`the dialogs, ${look}`, () =>
		visit(usualState(), options, async (visit) => {
			const { page } = visit;
			await visit.open("#/rules/shop");
			await page.getByRole("button", { name: "Edit rule 1", exact: true }).click();
			await page.getByRole("dialog").getByRole("button", { name: "Explain" }).click();
			await page.waitForSelector("text=the draft decides");
			await visit.axe("rule dialog");
			await visit.fits("rule dialog");
			await visit.shot(`dialog-rule-${look}`);
			await visit.open("#/refusals");
			await page.getByRole("button", { name: "Allow … telemetry.example.org" }).click();
			await page.waitForSelector("text=the draft decides");
			await visit.axe("draft");
			await visit.fits("draft");
			await visit.shot(`dialog-draft-${look}`);
		}));

for (const [look, options] of Object.entries(LOOKS))
	test(`an empty installation says what to run, ${look}`, () =>
		visit(emptyState(), options, async (visit) => {
			await visit.open();
			await visit.page.waitForSelector("text=sbx-run --profile none -- id");
			await visit.axe("empty");
			await visit.fits("empty");
			await visit.shot(`empty-${look}`);
		}));

test("without a session the page says how to get a link", () =>
	visit({ ...emptyState(), session: null }, {}, async (visit) => {
		visit.expected.push(/401/);
		await visit.open();
		await visit.page.waitForSelector("text=sbxctl web");
		await visit.axe("login");
		await visit.shot("login");
	}));
