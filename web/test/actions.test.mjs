// SPDX-License-Identifier: LGPL-2.1-or-later
// The page's actions: each asks the service for the right thing, and says what came of it.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { startBrowser, stopBrowser, visit } from "./browser.mjs";
import { event, HOSTILE_NAME, usualState } from "./mock/state.mjs";

before(startBrowser);
after(stopBrowser);

const ID = "24083cd4e153";

test("the air-gap switch says how many flows it cut, and opens again", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/sandboxes");
		const control = page.getByRole("switch", { name: `Air gap of ${ID}` });
		assert.equal(await control.getAttribute("aria-checked"), "false");
		await control.click();
		const row = page.getByRole("row").filter({ has: control });
		await row.getByRole("status").getByText("cut 3 flows").waitFor();
		assert.equal(await control.getAttribute("aria-checked"), "true");
		await control.click();
		await row.getByRole("status").getByText("opened").waitFor();
		assert.deepEqual(
			asked("PUT", `/sandboxes/${ID}/network`).map((r) => r.body),
			[{ air_gapped: true }, { air_gapped: false }],
		);
	}));

test("a sandbox is killed after a question", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/sandboxes");
		await page.getByRole("button", { name: `Kill ${ID}` }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
		assert.equal(asked("DELETE", `/sandboxes/${ID}`).length, 0);
		await page.getByRole("button", { name: `Kill ${ID}` }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Kill it" }).click();
		await page.getByRole("link", { name: ID, exact: true }).waitFor({ state: "detached" });
		assert.equal(asked("DELETE", `/sandboxes/${ID}`).length, 1);
	}));

test("the list shows what its rows use, and their refusals", () =>
	visit(usualState(), {}, async ({ page, open }) => {
		await open("#/sandboxes");
		const row = page.getByRole("row").filter({ hasText: ID });
		await row.getByText("178 MiB").waitFor();
		await row.getByRole("link", { name: `Refusals of ${ID}: 44` }).waitFor();
		await row.getByText(/^\d.* %$/).waitFor(); // after the second answer
	}));

test("a refusal leads to its events and to a rule, as a draft", () =>
	visit(usualState(), {}, async ({ page, open, asked, service, axe, shot }) => {
		await open("#/refusals");
		await page.getByRole("link", { name: "Events of telemetry.example.org" }).click();
		await page.getByText("Refusals of telemetry.example.org").waitFor();
		await page.getByRole("table", { name: "Refusals, newest first" }).getByText("GET /v1/collect").waitFor();
		assert.equal(asked("GET", "/events").at(-1).query.name, "telemetry.example.org");

		await page.getByRole("button", { name: "Allow … telemetry.example.org" }).click();
		const dialog = page.getByRole("dialog");
		await dialog.getByText("Refused", { exact: true }).waitFor();
		await dialog.getByText("Allowed", { exact: true }).waitFor();
		await dialog.getByText("the draft decides").waitFor();
		const [now, then] = asked("POST", "/explain").slice(-2).map((r) => r.body);
		assert.deepEqual([now.profile, now.workspace, now.rule], ["install", "shop", undefined]);
		assert.deepEqual([then.profile, then.rule.pattern], ["install", "telemetry.example.org:443"]);
		assert.equal(await dialog.getByLabel("Allow").inputValue(), "telemetry.example.org:443");
		assert.equal(await dialog.getByLabel("Workspace").inputValue(), "shop");
		assert.equal(asked("POST", "/workspaces/shop/sandbox/rules").length, 0);
		await axe("the draft");
		await shot("draft");
		await dialog.getByLabel("Note").fill("wanted");
		await dialog.getByRole("button", { name: "Add the rule" }).click();
		await dialog.getByText(/Rule \d+ is in force\. 1 sandbox followed, cut 0 flows\./).waitFor();
		const [request] = asked("POST", "/workspaces/shop/sandbox/rules");
		const { pattern, action, note } = request.body;
		assert.deepEqual([pattern, action, note], ["telemetry.example.org:443", "allow", "wanted"]);
		assert.ok(service.state.rules.some((r) => r.pattern === pattern));
	}));

test("counts that are not complete yet say so", () =>
	visit({ ...usualState(), uncounted: 120_000 }, {}, async ({ page, open, service }) => {
		await open("#/refusals");
		await page.getByText("120,000 older events are still being counted.").waitFor();
		service.state.uncounted = 0;
		await page.getByText("still being counted").waitFor({ state: "detached" });
	}));

test("what a floor refused has no rule", () =>
	visit(usualState(), {}, async ({ page, open }) => {
		await open("#/refusals?by=ip");
		const row = page.getByRole("row").filter({ hasText: "169.254.169.254" });
		await row.getByText("floor: no rule lifts it").waitFor();
		assert.equal(await row.getByRole("button").count(), 0);
		await row.getByRole("link", { name: "Explain 169.254.169.254" }).click();
		await page.getByRole("heading", { name: "Explain" }).waitFor();
		assert.equal(await page.getByLabel("Host or address").inputValue(), "169.254.169.254");
		assert.equal(await page.getByLabel("Port").inputValue(), "80");
	}));

test("events come as they happen, names as text", () =>
	visit(usualState(), {}, async ({ page, open, service }) => {
		await open(`#/sandboxes/${ID}`);
		await page.getByText("live", { exact: true }).first().waitFor();
		const table = page.getByRole("table", { name: "Events, newest first" });
		await table.waitFor();
		service.emit(
			event(60, { at: new Date().toISOString(), name: HOSTILE_NAME, request: "<script>hacked=1</script>" }),
		);
		await table.getByText(`${HOSTILE_NAME}:443`).waitFor();
		service.emit(event(61, { sandbox_id: "bad000000bad", name: "other.example.org" }));
		service.emit(event(62, { name: "last.example.org" }));
		await table.getByText("last.example.org").waitFor();
		assert.equal(await table.getByText("other.example.org").count(), 0);
	}));

test("a page in the background has no connection, and misses no event", () =>
	visit(usualState(), {}, async ({ page, open, service, asked }) => {
		await open(`#/sandboxes/${ID}`);
		await page.getByText("live", { exact: true }).first().waitFor();
		service.emit(event(70, { name: "first.example.org" }));
		await page.getByText("first.example.org:443").waitFor();
		const hide = (hidden) =>
			page.evaluate((hidden) => {
				Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
				document.dispatchEvent(new Event("visibilitychange"));
			}, hidden);
		await hide(true);
		while (service.followers.size > 0) await page.waitForTimeout(20);
		service.emit(event(71, { name: "second.example.org" }));
		await hide(false);
		await page.getByText("second.example.org:443").waitFor();
		assert.equal(
			asked("GET", "/events").some((r) => r.query.after === "70"),
			true,
		);
	}));

test("live lists: a refusal stays beside the field, a change says what it cut", () =>
	visit(usualState(), {}, async ({ page, open, asked, expected }) => {
		expected.push(/422/);
		await open(`#/sandboxes/${ID}`);
		const allow = page.getByLabel("Allow, one entry a line");
		await allow.fill("bad pattern");
		await page.getByRole("button", { name: "Put in force" }).click();
		await page.getByRole("alert").getByText("bad pattern: it has a space").waitFor();
		assert.equal(await allow.inputValue(), "bad pattern");
		await allow.fill("a.example.org\n b.example.org:22 \n");
		await page.getByRole("button", { name: "Put in force" }).click();
		await page.getByText("generation 2 is in force, cut 0 flows").waitFor();
		const last = asked("PUT", `/sandboxes/${ID}/network`).at(-1);
		assert.deepEqual(last.body.allow_out, ["a.example.org", "b.example.org:22"]);
	}));

test("rules are added, explained before, turned off and deleted", () =>
	visit(usualState(), {}, async ({ page, open, asked, expected, service, axe, shot }) => {
		expected.push(/422/);
		await open("#/rules/shop");
		await page.getByRole("button", { name: "Add a rule" }).click();
		const dialog = page.getByRole("dialog");
		await dialog.getByLabel("Pattern").fill("new example.org");
		await dialog.getByRole("button", { name: "Save" }).click();
		await dialog.getByRole("alert").getByText("a pattern has no space").waitFor();
		await dialog.getByLabel("Pattern").fill("*.new.example:8443");
		await dialog.getByLabel("Priority, lowest first").fill("10");
		// A key of Enter in the tester saves nothing.
		await dialog.getByLabel("Host or address").press("Enter");
		await dialog.getByText("Allowed", { exact: true }).waitFor();
		await dialog.getByText("Refused", { exact: true }).waitFor(); // as it is now
		assert.equal(asked("POST", "/workspaces/shop/sandbox/rules").length, 1);
		const bodies = asked("POST", "/explain").map((r) => r.body);
		assert.deepEqual(
			bodies.map((body) => [body.workspace, body.host, body.port, body.rule?.priority]).sort(),
			[
				["shop", "www.new.example", 8443, undefined],
				["shop", "www.new.example", 8443, 10],
			].sort(),
		);
		await axe("a rule");
		await shot("rule-dialog");
		await dialog.getByRole("button", { name: "Save" }).click();
		await page.getByText(/Rule \d+ is added\. 1 sandbox followed, cut 0 flows\./).waitFor();

		// By priority, below the floors.
		const patterns = page.getByRole("table", { name: "Rules", exact: true }).locator("tbody td.wide .code");
		await page.getByText("*.new.example:8443").waitFor();
		assert.deepEqual(await patterns.allTextContents(), [
			"*.new.example:8443",
			"api.example.org:443",
			"*.tracker.example",
			"old.example.org",
			"mirror.example",
		]);
		const floor = page
			.getByRole("table", { name: "Floors" })
			.getByRole("row")
			.filter({ hasText: "*.corp.example" });
		await floor.getByText("locked").waitFor();
		assert.equal(await floor.getByRole("button").count(), 0);

		await page.getByRole("button", { name: "Turn off rule 1", exact: true }).click();
		await page.getByText("Rule 1 is off.").waitFor();
		assert.equal(service.state.rules.find((r) => r.id === 1).enabled, false);
		await page.getByRole("button", { name: "Delete rule 2" }).click();
		await dialog.getByRole("button", { name: "Delete it" }).click();
		await page.getByText("Rule 2 is deleted.").waitFor();
		assert.equal(
			service.state.rules.some((r) => r.id === 2),
			false,
		);
	}));

test("a draft that a floor or another rule stands above is told so, and an old answer goes", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/rules/shop");
		await page.getByRole("button", { name: "Edit rule 1", exact: true }).click();
		const dialog = page.getByRole("dialog");
		await dialog.getByLabel("Pattern").fill("git.corp.example");
		await dialog.getByRole("button", { name: "Explain" }).click();
		await dialog.getByText("A floor: no rule lifts it.").waitFor();
		await dialog.getByText("the floor '*.corp.example' comes first").waitFor();
		assert.equal(asked("POST", "/explain").find((r) => r.body.rule).body.rule.id, 1);
		await dialog.getByLabel("Pattern").fill("x.tracker.example");
		assert.equal(await dialog.getByText("A floor: no rule lifts it.").count(), 0);
		await dialog.getByLabel("Priority, lowest first").fill("200");
		await dialog.getByRole("button", { name: "Explain" }).click();
		await dialog.getByText("the rule '*.tracker.example' comes first").waitFor();
	}));

test("the tester beside the rules explains a host", () =>
	visit(usualState(), {}, async ({ page, open, asked, axe, shot }) => {
		await open("#/rules/shop");
		await page.getByLabel("Host or address").fill("x.tracker.example");
		await page.getByRole("button", { name: "Explain" }).click();
		await page.getByText("rule *.tracker.example says deny").waitFor();
		await page.getByRole("table", { name: "Entries that match" }).getByText("decides").waitFor();
		await axe("the tester");
		await shot("tester");
		const { body } = asked("POST", "/explain").at(-1);
		assert.deepEqual(body, { workspace: "shop", protocol: "tcp", host: "x.tracker.example", port: 443 });
	}));

test("the default of a workspace", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/rules/shop");
		const field = page.getByLabel("Default");
		await page.waitForFunction((e) => e.value === "deny", await field.elementHandle());
		await field.selectOption("allow");
		await page.getByRole("button", { name: "Save" }).click();
		await page.getByText("The default is in force.").waitFor();
		const [request] = asked("PUT", "/workspaces/shop/sandbox/settings");
		assert.deepEqual(request.body, { network_default_action: "allow" });
	}));

test("a review task is closed with a note", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/reviews");
		await page.getByRole("button", { name: "Close … task 7" }).click();
		await page.getByRole("dialog").getByLabel("Note").fill("an attack");
		await page.getByRole("button", { name: "Close the task" }).click();
		await page.getByText("No task is open.").waitFor();
		assert.deepEqual(asked("POST", "/review-tasks/7")[0].body, { state: "closed", note: "an attack" });
	}));

test("explain asks about connections, paths and commands", () =>
	visit(usualState(), {}, async ({ page, open, asked }) => {
		await open("#/explain?profile=install");
		await page.getByLabel("Host or address").fill("example.org");
		await page.getByLabel("Method, of a request").fill("GET");
		await page.getByRole("button", { name: "Explain" }).click();
		await page.getByText("Refused", { exact: true }).waitFor();
		const { body } = asked("POST", "/explain")[0];
		assert.deepEqual(body, {
			profile: "install",
			protocol: "tcp",
			host: "example.org",
			port: 443,
			method: "GET",
		});
		await page.getByLabel("About").selectOption("mount");
		await page.getByLabel("Path", { exact: true }).fill("/etc/shadow");
		await page.getByRole("button", { name: "Explain" }).click();
		await page.getByText("mount /etc/shadow: nothing grants it").waitFor();
	}));

test("a viewer has no button that changes anything", () => {
	const state = usualState();
	state.session.role = "viewer";
	return visit(state, {}, async ({ page, open }) => {
		for (const hash of [
			"#/sandboxes",
			`#/sandboxes/${ID}`,
			"#/rules/shop",
			"#/rules",
			"#/refusals",
			"#/reviews",
		]) {
			await open(hash);
			await page.waitForSelector("table");
			await page.waitForTimeout(500); // until all parts are loaded
			const names = await page
				.getByRole("button")
				.evaluateAll((all) => all.map((e) => e.getAttribute("aria-label") ?? e.textContent.trim()));
			assert.deepEqual(
				names.filter((name) => !["Log out", "Explain", "Show"].includes(name)),
				[],
				hash,
			);
			for (const control of await page.getByRole("switch").all())
				assert.equal(await control.isDisabled(), true);
		}
	});
});

test("a session that is over shows how to get a link", () =>
	visit(usualState(), {}, async ({ page, open, service, expected }) => {
		expected.push(/401/);
		await open("#/sandboxes");
		await page.waitForSelector("table");
		service.state.session = null;
		await page.getByRole("heading", { name: "Your session is over" }).waitFor();
		await page.getByText("sbxctl web").waitFor();
	}));

test("a sandbox that is not there is a problem with its reason", () =>
	visit(usualState(), {}, async ({ page, open, expected }) => {
		expected.push(/404/);
		await open("#/sandboxes/000000000000");
		await page.getByRole("alert").getByText("there is no sandbox 000000000000").waitFor();
	}));
