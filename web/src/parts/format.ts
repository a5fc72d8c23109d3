// SPDX-License-Identifier: LGPL-2.1-or-later
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n: number | null | undefined): string {
	if (n === null || n === undefined) return "–";
	let i = 0;
	while (n >= 1024 && i < UNITS.length - 1) {
		n /= 1024;
		i++;
	}
	return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${UNITS[i]}`;
}

export function count(n: number | null | undefined): string {
	return n === null || n === undefined ? "–" : n.toLocaleString("en");
}

export function percent(fraction: number | null | undefined): string {
	if (fraction === null || fraction === undefined) return "–";
	return `${(fraction * 100).toFixed(fraction < 0.0995 ? 1 : 0)} %`;
}

// The two largest units: 3 d 4 h, 5 min 10 s.
export function span(seconds: number): string {
	const s = Math.max(0, Math.round(seconds));
	const parts: [number, string][] = [
		[Math.floor(s / 86400), "d"],
		[Math.floor(s / 3600) % 24, "h"],
		[Math.floor(s / 60) % 60, "min"],
		[s % 60, "s"],
	];
	const first = parts.findIndex(([n]) => n > 0);
	if (first < 0) return "0 s";
	return parts
		.slice(first, first + 2)
		.filter(([n]) => n > 0)
		.map(([n, unit]) => `${n} ${unit}`)
		.join(" ");
}

export function secondsSince(at: string | null | undefined, now = Date.now()): number | null {
	const ms = at ? Date.parse(at) : NaN;
	return Number.isNaN(ms) ? null : (now - ms) / 1000;
}

export function plural(n: number, one: string, many = one + "s"): string {
	return `${count(n)} ${n === 1 ? one : many}`;
}

// As a person would type it in a shell; nothing is run from it.
export function commandLine(command: readonly string[] | null): string {
	return (command ?? [])
		.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
		.join(" ");
}

export function destination(host: string | null, port: number | null | undefined): string {
	if (!host) return port ? `port ${port}` : "–";
	if (!port) return host;
	return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
