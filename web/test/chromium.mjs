// SPDX-License-Identifier: LGPL-2.1-or-later
// Debian's Chromium, and how a page in it looks.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export function launch() {
	const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
	return chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: [...args, "--disable-gpu", "--disable-dev-shm-usage"],
	});
}

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
