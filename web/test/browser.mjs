// SPDX-License-Identifier: LGPL-2.1-or-later
// Debian's Chromium for the tests, and the page in it. Every page fails its test on an error of its
// console, on a request to anywhere but its own service, and on a violation of its CSP, which the console tells.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { startService } from "./mock/server.mjs";

const DIST = process.env.SBX_WEB_DIST ?? "../dist";
const SHOTS = process.env.SBX_WEB_SCREENSHOTS ?? "../screenshots";
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let browser;

export function launch() {
	const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
	return chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: [...args, "--disable-gpu", "--disable-dev-shm-usage"],
	});
}

export async function startBrowser() {
	browser = await launch();
}

export const stopBrowser = () => browser.close();

// Violations that axe finds. axe is evaluated by the debugger: the page's CSP takes no script of ours.
export async function violations(page) {
	await page.evaluate(readFileSync(AXE, "utf8"));
	return page.evaluate(async () => {
		const { violations } = await window.axe.run(document);
		return violations.map(
			(v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`,
		);
	});
}

// Pixels by which a part of the page is wider than the window.
export const excess = (page) =>
	page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

// A service with the state, and a browser's context that is closed with it. options: of Playwright's context.
export async function visit(state, options, run) {
	const visit = await Visit.start(state, options);
	try {
		await run(visit);
		await visit.check();
	} finally {
		await visit.context.close();
		await visit.service.stop();
	}
}

class Visit {
	static async start(state, options) {
		const visit = new Visit();
		visit.service = await startService(state, DIST);
		visit.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
		visit.page = await visit.context.newPage();
		visit.page.setDefaultTimeout(15000);
		visit.trouble = [];
		visit.expected = []; // messages of the console that belong to the test
		visit.page.on("console", (m) => ["error", "warning"].includes(m.type()) && visit.trouble.push(m.text()));
		visit.page.on("pageerror", (error) => visit.trouble.push(String(error)));
		visit.page.on("request", (r) => {
			if (!r.url().startsWith(visit.service.url)) visit.trouble.push(`a request to ${r.url()}`);
		});
		return visit;
	}

	open = async (hash = "") => {
		await this.page.goto("about:blank");
		await this.page.goto(`${this.service.url}/ui/${hash}`);
		await this.page.waitForSelector("h1");
	};

	async check() {
		const hacked = await this.page.evaluate(() => "hacked" in window);
		assert.equal(hacked, false, "a name was taken for markup");
		const trouble = this.trouble.filter((text) => !this.expected.some((pattern) => pattern.test(text)));
		assert.deepEqual(trouble, []);
		assert.deepEqual(this.service.refused, []);
	}

	shot = async (name) => {
		mkdirSync(SHOTS, { recursive: true });
		await this.page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
	};

	axe = async (name) => assert.deepEqual(await violations(this.page), [], `axe, ${name}`);
	fits = async (name) => assert.equal(await excess(this.page), 0, `${name}: it is wider than the window`);

	asked = (method, path) => this.service.log.filter((r) => r.method === method && r.path === path);
}

export const NARROW = { viewport: { width: 360, height: 740 } };
export const DARK = { colorScheme: "dark" };
