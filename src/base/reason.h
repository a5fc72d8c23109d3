/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_REASON_H
#define SBX_BASE_REASON_H

#include <stdbool.h>

/*
 * The vocabulary of verdicts and events: one word per cause, the same in the policy library, the
 * broker, the database and the documents. Deny is value 0, so every default and error denies.
 */

enum sbx_action { SBX_DENY = 0, SBX_ALLOW = 1, SBX_PANIC = 2, SBX_NOTICE = 3, SBX_N_ACTIONS };
enum sbx_proto {
	SBX_PROTO_TCP = 0,
	SBX_PROTO_UDP,
	SBX_PROTO_DNS,
	SBX_PROTO_ICMP,
	SBX_PROTO_OTHER,
	SBX_N_PROTOS
};
/* The check at the start of a flow, before it is carried. */
enum sbx_check { SBX_CHECK_NONE = 0, SBX_CHECK_TLS, SBX_CHECK_HTTP, SBX_N_CHECKS };

#define SBX_REASONS(X) \
	X(UNKNOWN, "unknown", "no reason was recorded") \
	X(FLOOR, "floor", "a floor that nothing lifts") \
	X(AIR_GAP, "air_gap", "the sandbox is air-gapped or offline") \
	X(LIST_ALLOW, "list_allow", "an allow entry matches") \
	X(LIST_DENY, "list_deny", "a deny entry matches") \
	X(DEFAULT_DENY, "default_deny", "no entry matches and the default is deny") \
	X(DEFAULT_ALLOW, "default_allow", "no deny entry matches and the default is allow") \
	X(PORT, "port", "the name is allowed, but not on this port or protocol") \
	X(LITERAL_ADDRESS, "literal_address", "an address was dialled that no allowed name gave") \
	X(NO_PIN, "no_pin", "a synthetic address that no name is pinned to") \
	X(DNS_MALFORMED, "dns_malformed", "a DNS message that does not parse") \
	X(PINS_EXHAUSTED, "pins_exhausted", "every synthetic address is in use") \
	X(TLS_MALFORMED, "tls_malformed", "the first bytes are not a TLS ClientHello") \
	X(SNI_ABSENT, "sni_absent", "the ClientHello names no server") \
	X(SNI_DUPLICATE, "sni_duplicate", "the ClientHello names a server twice") \
	X(SNI_MISMATCH, "sni_mismatch", "the ClientHello names another server than was looked up") \
	X(ECH, "ech", "the ClientHello hides the server's name (Encrypted Client Hello)") \
	X(HTTP_MALFORMED, "http_malformed", "the request is not well-formed HTTP/1") \
	X(HOST_ABSENT, "host_absent", "the request has no Host") \
	X(HOST_DUPLICATE, "host_duplicate", "the request has more than one Host") \
	X(HOST_MISMATCH, "host_mismatch", "the request is for another host than was looked up") \
	X(HTTP_UPGRADE, "http_upgrade", \
	  "the request asks to leave HTTP/1 (upgrade, h2c, CONNECT)") \
	X(HANDSHAKE_TIMEOUT, "handshake_timeout", "the first bytes did not come in time") \
	X(OVERSIZED, "oversized", "the first bytes are longer than the limit") \
	X(RESOLVE_FAILED, "resolve_failed", "the name did not resolve outside") \
	X(ADDRESS_CLASS, "address_class", "the name resolves to addresses that are never dialled") \
	X(ADDRESS_DENIED, "address_denied", \
	  "the name resolves to addresses that a cidr entry denies") \
	X(CONNECT_FAILED, "connect_failed", "the server could not be reached") \
	X(PROXY_FAILED, "proxy_failed", "the upstream proxy did not connect") \
	X(PROXY_ADDRESS, "proxy_address", \
	  "the upstream proxy is at an address that the system policy does not admit") \
	X(FLOW_LIMIT, "flow_limit", "too many flows at once") \
	X(RESOURCE, "resource", "out of memory or file descriptors") \
	X(SELFTEST, "selftest", "a probe of the self-test failed") \
	X(FIREWALL, "firewall", "the packet filter refused it") \
	X(OVERFLOW, "overflow", "too many different refusals in a second to list each") \
	X(BROKER_LOST, "broker_lost", "the broker ended before the sandbox") \
	X(PROTOCOL, "protocol", "a helper process broke its protocol") \
	X(RULES_CHANGED, "rules_changed", "the host's firewall was changed under the sandbox") \
	X(BLOCKED_NAME, "blocked_name", \
	  "a name that sandboxes do not see appeared in a writable grant") \
	X(NEW_PROTECTED, "new_protected", "a protected path was made in a writable grant") \
	X(UNTRUSTED, "untrusted", "a file that tools of the host would execute was moved aside") \
	X(STUCK, "stuck", "a file that tools of the host would execute could not be moved aside") \
	X(UNSEARCHED, "unsearched", "a writable grant was not searched to its end for such files") \
	X(PLANTED, "planted", \
	  "a file that tools of the host would execute was made again and again") \
	X(ACCESS_METHOD, "access_method", \
	  "the entry's access does not admit the request's method") \
	X(ACCESS_PATH, "access_path", "the entry's access does not admit the request's path") \
	X(PATH_AMBIGUOUS, "path_ambiguous", \
	  "servers read the request's path in more than one way") \
	X(REQUEST_BODY, "request_body", "the entry's access admits no request body") \
	X(REQUEST_SIZE, "request_size", "the request's body is longer than max_request_bytes") \
	X(SECRET_MISDIRECTED, "secret-misdirected", \
	  "a secret's placeholder was on its way to a place that is not the secret's") \
	X(SECRET_DETECTED, "secret-detected", "a request had the real value of a secret in it") \
	X(UPSTREAM_CERTIFICATE, "upstream_certificate", "the server's certificate is not trusted") \
	X(UPSTREAM_FAILED, "upstream_failed", "the server broke the connection or its protocol") \
	X(NOT_TERMINATED, "not_terminated", \
	  "a host that must be terminated was reached in another way") \
	X(RULE_ALLOW, "rule_allow", "a rule of the workspace allows it") \
	X(RULE_DENY, "rule_deny", "a rule of the workspace or the host denies it") \
	X(LIVE_ALLOW, "live_allow", "an entry that was allowed while the sandbox runs matches") \
	X(LIVE_DENY, "live_deny", "an entry that was denied while the sandbox runs matches") \
	X(POLICY_CHANGED, "policy_changed", "the policy of the running sandbox was changed") \
	X(POLICY_REFUSED, "policy_refused", \
	  "a change of the running sandbox's policy was not valid: the old one holds") \
	X(BREAKER, "breaker", "too many refusals: the sandbox was cut off")

enum sbx_reason {
#define X(id, word, help) SBX_REASON_##id,
	SBX_REASONS(X)
#undef X
	SBX_N_REASONS
};

const char *sbx_action_str(enum sbx_action a);   /* "deny", "allow", "panic", "notice" */
const char *sbx_proto_str(enum sbx_proto p);     /* "tcp", ... */
const char *sbx_check_str(enum sbx_check c);     /* "none", "tls", "http" */
const char *sbx_reason_str(enum sbx_reason r);   /* the word */
const char *sbx_reason_help(enum sbx_reason r);  /* the sentence */
/* The reason that has this word. SBX_REASON_UNKNOWN: none has it, or @word is NULL. */
enum sbx_reason sbx_reason_find(const char *word);
/* Nothing was refused: a server or the network outside failed, or this host lacks a resource. */
bool sbx_reason_is_failure(enum sbx_reason r);

#endif
