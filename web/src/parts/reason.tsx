// SPDX-License-Identifier: LGPL-2.1-or-later
// Why the policy decided as it did: in words, the service's word for it, and the entry. The words for faults of a
// connection say it themselves.
import { Lock } from "./badge";
import { Foreign } from "./foreign";

const TEXTS: Record<string, string> = {
	air_gap: "the sandbox is air-gapped or offline",
	list_allow: "the profile allows it",
	list_deny: "the profile denies it",
	rule_allow: "a rule allows it",
	rule_deny: "a rule denies it",
	live_allow: "the live list allows it",
	live_deny: "the live list denies it",
	default_allow: "no entry denies it",
	default_deny: "no entry allows it",
	port: "allowed, but not on this port or protocol",
	literal_address: "an address that no allowed name gave",
};

// The refusals that a rule can turn.
const BY_POLICY = ["list_deny", "rule_deny", "live_deny", "default_deny", "port", "literal_address", "address_denied"];

export const isForRules = (reason: string | null) => reason !== null && BY_POLICY.includes(reason);

export function Reason({ reason, rule }: { reason: string | null; rule: string | null }) {
	if (!reason) return <>–</>;
	const word = reason.replaceAll("_", " ");
	const text = TEXTS[reason];
	return (
		<>
			{reason === "floor" ? <Lock label="floor: no rule lifts it" /> : (text ?? word)}
			{text ? <small class="below">{word}</small> : null}
			{rule ? <Foreign text={rule} class="code below" /> : null}
		</>
	);
}
