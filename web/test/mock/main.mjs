// SPDX-License-Identifier: LGPL-2.1-or-later
// node main.mjs DIST [PORT]: the service of the tests, to look at the page by hand.
import { startService } from "./server.mjs";
import { event, usualState } from "./state.mjs";

const [dist = "../../dist", port = "8080"] = process.argv.slice(2);
const service = await startService(usualState(), dist, Number(port));
console.log(`${service.url}/ui/`);
setInterval(() => service.emit(event(service.state.events.length + 1, { at: new Date().toISOString() })), 3000);
