// SPDX-License-Identifier: LGPL-2.1-or-later
// The page in Chromium, over a service of its own. Every page fails its test on an error of its
// console, on a request to anywhere but its own service, and on a violation of its CSP, which the console tells.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { excess, launch, violations } from "./chromium.mjs";
import { startService } from "./mock/server.mjs";

const DIST = process.env.SBX_WEB_DIST ?? "../dist";
const SHOTS = process.env.SBX_WEB_SCREENSHOTS ?? "../screenshots";

let browser;

export async function startBrowser() {
	browser = await launch();
}

export const stopBrowser = () => browser.close();

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
