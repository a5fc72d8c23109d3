// SPDX-License-Identifier: LGPL-2.1-or-later
// Rules: of a workspace, or of the host where the workspace is null.
import { get, patch, post, remove, segment } from "./client";
import type { Explained, List, Rule, RuleDraft, Workspace } from "./types";

const base = (workspace: string | null) =>
	workspace === null ? "/sandbox/system-rules" : `/workspaces/${segment(workspace)}/sandbox/rules`;

// All of them: a list in order of priority needs every page.
export async function allRules(workspace: string | null): Promise<Rule[]> {
	const rules: Rule[] = [];
	let cursor: string | null = null;
	do {
		const page: List<Rule> = await get<List<Rule>>(base(workspace), { limit: 1000, cursor });
		rules.push(...page.items);
		cursor = page.next_cursor;
	} while (cursor);
	return rules;
}

export const addRule = (workspace: string | null, draft: RuleDraft) =>
	post<Rule>(base(workspace), draft);
export const changeRule = (rule: Rule, change: Partial<Rule>) =>
	patch<Rule>(`${base(rule.workspace)}/${rule.id}`, change);
export const removeRule = (rule: Rule) => remove(`${base(rule.workspace)}/${rule.id}`);

export const workspaces = async () => (await get<List<Workspace>>("/workspaces", { limit: 1000 })).items;

export interface Question {
	profile?: string | undefined;
	workspace?: string | undefined;
	id?: string | undefined;
	protocol?: string;
	host?: string;
	port?: number;
	method?: string | undefined;
	path?: string | undefined;
	mount?: string;
	command?: string;
	// A draft, judged as if it were saved; id: of the rule whose place it takes.
	rule?: (RuleDraft & { id?: number | undefined }) | undefined;
}

export const explain = (question: Question) => post<Explained>("/explain", question);
