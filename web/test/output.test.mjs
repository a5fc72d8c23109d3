// SPDX-License-Identifier: LGPL-2.1-or-later
// The output of a sandbox: as it comes, from an offset, with what was lost, as text.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { startBrowser, stopBrowser, visit } from "./browser.mjs";
import { usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

const ID = "24083cd4e153";

function withOutput(...frames) {
	return { ...usualState(), output: frames };
}

test("lost output, split characters and carriage returns are told from text", () =>
	visit(
		withOutput(
			{ event: "lost", bytes: 3_145_728 },
			{ event: "stdout", text: "10 %\r20 %\r\nna" },
			{ event: "stdout", base64: Buffer.from([0xc3]).toString("base64") },
			{ event: "stdout", base64: Buffer.from([0xaf]).toString("base64") },
			{ event: "stderr", text: "\u001b[31m<b>red</b>\u001b[0m \u0007\n" },
		),
		{},
		async ({ page, open, shot }) => {
			await open(`#/sandboxes/${ID}`);
			const box = page.locator("pre.output");
			await box.getByText("[3.0 MiB were not kept]").waitFor();
			await box.getByText("<b>red</b>").waitFor();
			const text = await box.textContent();
			assert.equal(text, "\n[3.0 MiB were not kept]\n10 %\n20 %\nnaï<b>red</b> \\u0007\n");
			await shot("output");
		},
	));

test("from any offset, a part at a time, and back", () =>
	visit(
		withOutput({ event: "stdout", text: "first\n" }, { event: "stdout", text: "second\n" }),
		{},
		async ({ page, open, asked, service }) => {
			await open(`#/sandboxes/${ID}`);
			const box = page.locator("pre.output");
			await box.getByText("second").waitFor();
			await page.getByText("Up to offset 13.").waitFor();
			await page.getByLabel("From offset").fill("6");
			await page.getByRole("button", { name: "Show", exact: true }).click();
			await page.getByText("Offsets 6 to 13.").waitFor();
			assert.equal(await box.textContent(), "second\n");
			assert.equal(asked("GET", `/sandboxes/${ID}/output`).at(-1).query.offset, "6");
			service.state.output.push({ event: "stdout", text: "third\n" });
			await page.getByRole("button", { name: "Next part" }).click();
			await page.getByText("Offsets 13 to 19.").waitFor();
			assert.equal(await box.textContent(), "third\n");
			await page.getByRole("button", { name: "Newest, as it comes" }).click();
			await box.getByText("first").waitFor();
		},
	));

test("a connection that breaks shows nothing twice; a busy service is asked again", () =>
	visit(
		withOutput({ event: "stdout", text: "first\n" }),
		{},
		async ({ page, open, service, asked, expected }) => {
			expected.push(/ERR_|503/);
			await open(`#/sandboxes/${ID}`);
			const box = page.locator("pre.output");
			await box.getByText("first").waitFor();
			service.cut();
			service.state.output.push({ event: "stdout", text: "second\n" });
			await box.getByText("second").waitFor();
			assert.equal(await box.textContent(), "first\nsecond\n");
			assert.ok(asked("GET", `/sandboxes/${ID}/output`).some((r) => r.lastEventId === "6"));

			service.fail = { status: 503, detail: "too many" };
			service.cut();
			await page.getByText("too many").first().waitFor();
			await page.waitForTimeout(4000); // until the browser has asked again, and given up
			service.state.output.push({ event: "stdout", text: "third\n" });
			service.fail = null;
			await box.getByText("third").waitFor();
			assert.equal(await box.textContent(), "first\nsecond\nthird\n");
		},
	));

test("much output: the newest is shown, and that older is not", () =>
	visit(
		withOutput(...Array.from({ length: 40 }, (_, i) => ({ event: "stdout", text: `${i} `.repeat(4000) }))),
		{},
		async ({ page, open }) => {
			await open(`#/sandboxes/${ID}`);
			await page.getByText("Older output is not shown").waitFor();
			const text = await page.locator("pre.output").textContent();
			assert.ok(text.length <= 200_000 && text.endsWith("39 "), String(text.length));
		},
	));

test("no output is no error", () =>
	visit({ ...usualState(), output: null }, {}, async ({ page, open, expected }) => {
		expected.push(/404/);
		await open(`#/sandboxes/${ID}`);
		await page.getByText("There is no output to show").waitFor();
	}));
