// SPDX-License-Identifier: LGPL-2.1-or-later
// node driver.mjs SCREENSHOTS: the page in Chromium for tests in another language (tests/system/page.py). A line of
// standard input is a JSON array, [COMMAND, ARGUMENT...]; the answer is a line {"ok": value} or {"error": text}.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { excess, launch, violations } from "./chromium.mjs";

const SECONDS = 20;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
page.setDefaultTimeout(SECONDS * 1000);
const trouble = [];
page.on("console", (m) => m.type() === "error" && trouble.push(m.text()));
page.on("pageerror", (error) => trouble.push(String(error)));

// In the dialog, where one is open. The accessible name is the whole one.
const scope = async () => ((await page.locator("dialog").count()) > 0 ? page.locator("dialog") : page);
const control = async (role, name) => (await scope()).getByRole(role, { name, exact: true });
const field = async (label) => (await scope()).getByLabel(label, { exact: true });

// The link, in another tab for a moment.
async function tab(url) {
	const other = await context.newPage();
	await other.goto(url);
	await other.close();
}

async function look(width, colorScheme) {
	await page.setViewportSize({ width, height: 800 });
	await page.emulateMedia({ colorScheme });
}

const ANSWERS = ["state", "text", "script", "trouble", "count", "named", "value", "axe", "excess", "focused"];

const commands = {
	tab,
	look,
	axe: () => violations(page),
	excess: () => excess(page),
	press: (key) => page.keyboard.press(key),
	type: (text) => page.keyboard.type(text),
	focused: () => page.evaluate(() => document.activeElement.ariaLabel ?? document.activeElement.textContent),
	named: async (role, name) => (await control(role, name)).count(),
	settle: async () => {
		await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".loading"));
		await page.waitForTimeout(300);
	},
	count: (text) => page.getByText(text).count(),
	open: (url) => page.goto(url),
	view: (hash) => page.goto(page.url().split("#")[0] + hash),
	click: async (role, name) => (await control(role, name)).click(),
	fill: async (label, text) => (await field(label)).fill(text),
	value: async (label) => (await field(label)).inputValue(),
	see: (text) => page.getByText(text).first().waitFor(),
	gone: (text) => page.getByText(text).first().waitFor({ state: "detached" }),
	state: async (role, name, attribute) => (await control(role, name)).getAttribute(attribute),
	text: () => page.locator("main").innerText(),
	script: (text) => page.evaluate(text),
	trouble: () => trouble,
	shot: (name) => page.screenshot({ path: join(process.argv[2], `${name}.png`), fullPage: true }),
};

for await (const line of createInterface({ input: process.stdin })) {
	const [command, ...rest] = JSON.parse(line);
	let answer;
	try {
		const value = await commands[command](...rest);
		answer = { ok: ANSWERS.includes(command) ? (value ?? null) : null };
	} catch (error) {
		answer = { error: String(error) };
	}
	process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();
