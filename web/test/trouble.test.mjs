// SPDX-License-Identifier: LGPL-2.1-or-later
// Trouble while the page is open: the service goes, the session, a sandbox; there is too much of something.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { startBrowser, stopBrowser, visit } from "./browser.mjs";
import { event, sandbox, usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

const ID = "24083cd4e153";
const isLive = (page) => page.getByRole("banner").getByText("live", { exact: true }).waitFor();

test("a service that starts again: the page goes on, and shows each event once", () =>
	visit(usualState(), {}, async ({ page, open, service, asked, expected }) => {
		expected.push(/ERR_/);
		await open(`#/sandboxes/${ID}`);
		await isLive(page);
		service.emit(event(70, { name: "before.example.org" }));
		await page.getByText("before.example.org:443").waitFor();
		service.cut();
		await page.getByText("connection lost, trying again").waitFor();
		service.state.events.push(event(71, { name: "between.example.org" }));
		await isLive(page);
		service.emit(event(72, { name: "after.example.org" }));
		await page.getByText("after.example.org:443").waitFor();
		for (const name of ["before", "between", "after"])
			assert.equal(await page.getByText(`${name}.example.org:443`).count(), 1, name);
		assert.ok(asked("GET", "/events").some((r) => r.lastEventId === "70"));
	}));

test("events that the service left out of the stream are read", () =>
	visit(usualState(), {}, async ({ page, open, service }) => {
		await open(`#/sandboxes/${ID}`);
		await isLive(page);
		await page.getByText("telemetry.example.org:443").first().waitFor();
		service.state.events.push(event(75, { name: "left-out.example.org" }));
		for (const response of service.followers) response.write('event: lost\nid: 75\ndata: {"count":1}\n\n');
		await page.getByText("left-out.example.org:443").waitFor();
	}));

for (const hash of ["#/sandboxes", "#/explain"])
	test(`a session that is over says how to get a link, and goes on with the next: ${hash}`, () =>
		visit(usualState(), {}, async ({ page, open, service, expected, axe }) => {
			expected.push(/401|ERR_/);
			await open(hash);
			await isLive(page);
			const { session } = service.state;
			service.state.session = null;
			service.cut();
			await page.getByRole("heading", { name: "Your session is over" }).waitFor();
			await page.getByText("sbxctl web").waitFor();
			await axe("a session that is over");
			service.state.session = session; // a link was opened in another tab
			await isLive(page);
			assert.ok(page.url().endsWith(hash), page.url());
		}));

for (const [status, detail] of [
	[503, "another program holds the database"],
	[429, "too many requests"],
])
	test(`${status} is told, what was there stays, and it goes by itself`, () =>
		visit(usualState(), {}, async ({ page, open, service, expected }) => {
			expected.push(new RegExp(status));
			await open("#/sandboxes");
			await page.getByRole("link", { name: ID, exact: true }).waitFor();
			service.fail = { status, detail };
			await page.getByRole("alert").getByText(detail).waitFor();
			assert.equal(await page.getByRole("link", { name: ID, exact: true }).count(), 1);
			await page.getByRole("switch", { name: `Air gap of ${ID}` }).click();
			await page.getByRole("row").filter({ hasText: ID }).getByRole("alert").getByText(detail).waitFor();
			service.fail = null;
			await page.getByText(detail).nth(1).waitFor({ state: "detached" });
			// A view that asks only once asks again.
			service.fail = { status, detail };
			await page.getByRole("link", { name: "Profiles" }).click();
			await page.getByRole("heading", { name: "Profiles" }).waitFor();
			await page.getByRole("alert").getByText(detail).waitFor();
			service.fail = null;
			await page.getByText("an AI agent").waitFor();
		}));

test("a sandbox that ends while it is looked at", () =>
	visit(usualState(), {}, async ({ page, open, service, shot }) => {
		await open(`#/sandboxes/${ID}`);
		await page.getByRole("switch", { name: `Air gap of ${ID}` }).waitFor();
		const one = service.state.sandboxes.find((s) => s.id === ID);
		const now = new Date().toISOString();
		Object.assign(one, { live: false, state: "killed", ended_at: now, exit_status: 137, usage: null });
		await page.getByText("This sandbox has ended.").waitFor();
		await page.getByText("exit status 137").waitFor();
		assert.equal(await page.getByRole("switch").count(), 0);
		assert.equal(await page.getByRole("button", { name: /^Kill/ }).count(), 0);
		assert.equal(await page.getByRole("alert").count(), 0);
		await shot("sandbox-ended");
	}));

// Milliseconds that the page was not free, the longest and in all, while run() ran.
async function blocked(page, run) {
	await page.evaluate(() => {
		window.tasks = [];
		window.observer = new PerformanceObserver((list) =>
			window.tasks.push(...list.getEntries().map((entry) => entry.duration)),
		);
		window.observer.observe({ entryTypes: ["longtask"] });
	});
	await run();
	const tasks = await page.evaluate(() => window.tasks);
	return { longest: Math.max(0, ...tasks), all: tasks.reduce((a, b) => a + b, 0) };
}

test("1,000 sandboxes: pages of 100, at once", () => {
	const state = usualState();
	state.sandboxes = Array.from({ length: 1000 }, (_, i) => sandbox(i.toString(16).padStart(12, "0")));
	return visit(state, {}, async ({ page, open, shot }) => {
		await open("#/explain");
		const begun = Date.now();
		await page.getByRole("link", { name: "Sandboxes", exact: true }).click();
		await page.getByRole("link", { name: "000000000063", exact: true }).waitFor();
		const shown = Date.now() - begun;
		const { longest } = await blocked(page, () => page.waitForTimeout(6000)); // three answers
		console.log(`1,000 sandboxes: shown in ${shown} ms, longest task ${Math.round(longest)} ms`);
		assert.ok(shown < 3000, `${shown} ms`);
		assert.ok(longest < 500, `${longest} ms`);
		assert.equal(await page.getByRole("switch").count(), 100);
		await page.getByRole("button", { name: "Next page" }).click();
		await page.getByRole("link", { name: "000000000064", exact: true }).waitFor();
		assert.equal(await page.getByRole("switch").count(), 100);
		await shot("sandboxes-1000");
	});
});

test("1,000 events a second: a bounded number of rows, and the page answers", () =>
	visit(usualState(), {}, async ({ page, open, service }) => {
		await open(`#/sandboxes/${ID}`);
		await isLive(page);
		await page.getByText("telemetry.example.org:443").first().waitFor();
		let id = 1000;
		const timer = setInterval(() => {
			for (let i = 0; i < 50; i++)
				service.emit(event(++id, { name: `n${id}.example.org`, at: new Date().toISOString() }));
		}, 50);
		const { longest, all } = await blocked(page, async () => {
			await page.waitForTimeout(3000);
			await page.getByRole("button", { name: /^Show \d+ more$/ }).click();
			await page.waitForTimeout(2000);
		});
		const begun = Date.now();
		await page.getByLabel("Allow, one entry a line").fill("typed.example.org");
		const typed = Date.now() - begun;
		clearInterval(timer);
		await page.getByText(`n${id}.example.org:443`).waitFor();
		console.log(`5,000 events: ${Math.round(longest)} ms, ${Math.round(all)} ms in all; typed in ${typed} ms`);
		assert.equal(await page.getByRole("table", { name: "Events, newest first" }).locator("tbody tr").count(), 200);
		assert.ok(longest < 500, `${longest} ms`);
		assert.ok(typed < 1000, `${typed} ms`);
	}));
