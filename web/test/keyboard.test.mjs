// SPDX-License-Identifier: LGPL-2.1-or-later
// The page with the keyboard alone: everything is reached, the focus is seen, dialogs keep it and give it back.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { startBrowser, stopBrowser, visit } from "./browser.mjs";
import { usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

const ID = "24083cd4e153";
const CONTROLS = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary";

// Goes through the page by Tab. The controls that had the focus, and those of them whose focus is not seen.
async function walk(page) {
	await page.evaluate((selector) => {
		document.activeElement?.blur();
		[...document.querySelectorAll(selector)].forEach((e, i) => e.setAttribute("data-walk", i));
	}, CONTROLS);
	const reached = new Set();
	const unseen = [];
	for (let i = 0; i < 200; i++) {
		await page.keyboard.press("Tab");
		const [at, seen, html] = await page.evaluate(() => {
			const e = document.activeElement;
			const style = getComputedStyle(e);
			return [e.dataset.walk, style.outlineStyle !== "none" && style.outlineWidth !== "0px", e.outerHTML];
		});
		if (at === undefined) continue; // text that scrolls, or the page as a whole
		if (reached.has(at)) break; // around
		reached.add(at);
		if (!seen) unseen.push(html.slice(0, 100));
	}
	return { reached, unseen };
}

const VIEWS = [
	"#/sandboxes",
	`#/sandboxes/${ID}`,
	"#/refusals",
	"#/refusals?by=name&key=telemetry.example.org",
	"#/rules",
	"#/rules/shop",
	"#/reviews",
	"#/profiles",
	"#/explain",
];
for (const hash of VIEWS)
	test(`Tab reaches every control and shows where it is: ${hash}`, () =>
		visit(usualState(), {}, async ({ page, open }) => {
			await open(hash);
			await page.waitForSelector(hash === "#/explain" ? "form" : "table");
			await page.waitForTimeout(300); // until all parts are loaded
			const { reached, unseen } = await walk(page);
			const missed = await page.evaluate(
				(ids) =>
					[...document.querySelectorAll("[data-walk]")]
						.filter((e) => !ids.includes(e.dataset.walk))
						.map((e) => e.outerHTML.slice(0, 100)),
				[...reached],
			);
			assert.deepEqual(missed, []);
			assert.deepEqual(unseen, []);
		}));

test("the first Tab skips to the content", () =>
	visit(usualState(), {}, async ({ page, open }) => {
		await open("#/sandboxes");
		await page.keyboard.press("Tab");
		assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
		await page.keyboard.press("Enter");
		assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
		assert.match(page.url(), /#\/sandboxes$/);
	}));

test("a new view has the focus on its heading and a title", () =>
	visit(usualState(), {}, async ({ page, open }) => {
		await open("#/sandboxes");
		await page.getByRole("link", { name: "Review tasks" }).focus();
		await page.keyboard.press("Enter");
		await page.getByRole("heading", { name: "Review tasks" }).waitFor();
		await page.waitForFunction(() => document.activeElement.tagName === "H1"); // drawn, and then focused
		assert.equal(
			await page.evaluate(() => document.activeElement.outerHTML),
			`<h1 tabindex="-1">Review tasks</h1>`,
		);
		assert.equal(await page.title(), "Review tasks – sbx");
	}));

test("a dialog keeps the focus, Escape closes it, the focus goes back", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/sandboxes");
		await page.getByRole("button", { name: `Kill ${ID}` }).focus();
		await page.keyboard.press("Enter");
		await page.getByRole("dialog").waitFor();
		for (let i = 0; i < 8; i++) {
			await page.keyboard.press("Tab");
			const inside = await page.evaluate(
				() => document.activeElement === document.body || !!document.activeElement.closest("dialog"),
			);
			assert.ok(inside, "the focus left the dialog");
		}
		const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
		await page.keyboard.press("Escape");
		await page.getByRole("dialog").waitFor({ state: "detached" });
		assert.equal(await focused(), `Kill ${ID}`);
		await page.keyboard.press("Enter");
		await page.getByRole("button", { name: "Cancel" }).focus();
		await page.keyboard.press("Enter");
		await page.getByRole("dialog").waitFor({ state: "detached" });
		assert.equal(await focused(), `Kill ${ID}`);
		assert.equal(asked("DELETE", `/sandboxes/${ID}`).length, 0);
	}));

test("the switch by the space bar, a rule by typing", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/sandboxes");
		await page.getByRole("switch", { name: `Air gap of ${ID}` }).focus();
		await page.keyboard.press("Space");
		await page.getByText("cut 3 flows").waitFor();

		await open("#/rules/shop");
		await page.getByRole("button", { name: "Add a rule" }).focus();
		await page.keyboard.press("Enter");
		await page.getByRole("dialog").getByLabel("Pattern").focus();
		await page.keyboard.type("typed.example.org");
		await page.keyboard.press("Enter");
		await page.getByText(/Rule \d+ is added/).waitFor();
		assert.equal(asked("POST", "/workspaces/shop/sandbox/rules")[0].body.pattern, "typed.example.org");
	}));
