/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_IPC_MESSAGES_H
#define SBX_IPC_MESSAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/event.h"
#include "base/hostname.h"
#include "base/limits.h"
#include "base/probe.h"
#include "base/sandbox_id.h"
#include "base/span.h"

/*
 * The messages between the programs of one sandbox. PURE: encode to and decode from bytes.
 *
 *   launcher -> broker   CONFIG, RELEASE (the self-test is over), PINNED or PINS_FAILED (in
 *                        answer), POLICY (with a sealed memfd, the new policy), FLOWS, STOP
 *                        PUBLISH (with a listener; the port inside)
 *   broker -> launcher   READY, RELEASE (in answer), EVENT..., PINS..., POLICY_DONE (in answer to
 *                        POLICY), FLOW_LIST... (in answer to FLOWS), STATS (in answer to STOP,
 *                        last)
 *   stage -> launcher    STAGE_UPPER (with the overlay's upper directory), STAGE_FILLS (with the
 *                        files of the trust store, to write), STAGE_READY (with the sandbox's
 *                        sockets), MOUNTS_CHECKED (in answer; with the sandbox's root
 *                        directory), STAGE_FAILED, RULESET_DONE (in answer to RULESET),
 *                        COMMAND_EXIT
 *   launcher -> stage    STAGE_CONFIG (the config is in shared memory,
 *                        launcher/stage/stage_config.h), CHECK_MOUNTS, SIGNAL, SIGNAL_ALL, PUBLISH,
 *                        WALL_TIME, RULESET (attach netns: the ruleset to put in the place of the
 *                        old one)
 *   init -> launcher     INIT_HELLO, VERDICTS, EXEC_FAILED (also on the channel of an EXEC)
 *   launcher -> init     PROGRAMS (where there is an allow list), PROBES, RELEASE
 *   launcher -> pid 1    EXEC (with the fds of enum sbx_exec_fd), EXEC_SIGNAL
 *   pid 1 -> launcher    EXEC_EXIT (one for each EXEC)
 *   broker -> factory    UDP_SOCKET, TCP_SOCKET (the stage, once it is ready, is the socket
 *                        factory)
 *   factory -> broker    UDP_SOCKET_MADE (with one fd), UDP_SOCKET_FAILED, and the same of TCP; in
 *                        the order asked
 *   launcher -> tls      TLS_CONFIG (with the fds of enum sbx_tls_fd), SECRET (in answer to
 *                        SECRET_STALE; with a sealed memfd, the value)
 *   tls -> launcher      TLS_READY (with a memfd, the authority's certificate as PEM; where the
 *                        rules ask for java a second one, the PKCS#12 store), SECRET_STALE
 *   broker -> tls        TLS_FLOW (with two fds: the client's connection, the server's; to the echo
 *                        of the self-test with the client's alone), TLS_CUT (end that flow now,
 *                        with a RST to both sides; one that is done already is passed over)
 *   tls -> broker        TLS_DONE (one for each TLS_FLOW, when its sockets are closed), EVENT
 *
 * A message is one packet: u8 version (SBX_MSG_VERSION), u8 type, u16 zero, then the fields in the
 * order of the struct, network byte order, strings as u16 length and bytes. A decoder refuses
 * another version, an unknown enum value, trailing bytes and anything over its limits with
 * -EBADMSG; the receiver ends the sender and the sandbox.
 */

#define SBX_MSG_VERSION 1
#define SBX_MSG_MAX 65536 /* bytes of one packet */

enum sbx_msg_type {
	SBX_MSG_NONE = 0,
	SBX_MSG_CONFIG,
	SBX_MSG_STOP,
	SBX_MSG_READY,
	SBX_MSG_EVENT,
	SBX_MSG_STATS,
	SBX_MSG_STAGE_READY,
	SBX_MSG_STAGE_FAILED,
	SBX_MSG_SIGNAL,
	SBX_MSG_COMMAND_EXIT,
	SBX_MSG_INIT_HELLO,
	SBX_MSG_PROBES,
	SBX_MSG_VERDICTS,
	SBX_MSG_RELEASE,
	SBX_MSG_EXEC_FAILED,
	SBX_MSG_UDP_SOCKET,
	SBX_MSG_UDP_SOCKET_MADE,
	SBX_MSG_UDP_SOCKET_FAILED,
	SBX_MSG_STAGE_CONFIG,
	SBX_MSG_STAGE_UPPER,
	SBX_MSG_PINS,
	SBX_MSG_PINNED,
	SBX_MSG_PINS_FAILED,
	SBX_MSG_PROGRAMS,
	SBX_MSG_TCP_SOCKET,
	SBX_MSG_TCP_SOCKET_MADE,
	SBX_MSG_TCP_SOCKET_FAILED,
	SBX_MSG_SIGNAL_ALL,
	SBX_MSG_CHECK_MOUNTS,
	SBX_MSG_MOUNTS_CHECKED,
	SBX_MSG_TLS_CONFIG,
	SBX_MSG_TLS_READY,
	SBX_MSG_TLS_FLOW,
	SBX_MSG_TLS_DONE,
	SBX_MSG_SECRET_STALE,
	SBX_MSG_SECRET,
	SBX_MSG_STAGE_FILLS,
	SBX_MSG_POLICY,
	SBX_MSG_POLICY_DONE,
	SBX_MSG_FLOWS,
	SBX_MSG_FLOW_LIST,
	SBX_MSG_TLS_CUT,
	SBX_MSG_RULESET,
	SBX_MSG_RULESET_DONE,
	SBX_MSG_EXEC,
	SBX_MSG_EXEC_SIGNAL,
	SBX_MSG_EXEC_EXIT,
	SBX_MSG_EXEC_LISTENER, /* with the listener of seccomp_execs.h */
	SBX_MSG_PUBLISH,
	SBX_MSG_WALL_TIME,
	SBX_N_MSG_TYPES,
};

/* The fds that come with CONFIG, in this order; a bit of sbx_msg_config.fd_mask for each says
 * whether it comes. */
enum sbx_broker_fd {
	SBX_BFD_POLICY = 0, /* memfd, sealed: the policy blob (policy/decide/policy.h) */
	SBX_BFD_HOSTS,      /* memfd, sealed: text of the host's /etc/hosts, at most 1 MiB */
	SBX_BFD_DNS_UDP4,   /* port 53: any address in the sandbox, or stub_addr; IP_PKTINFO on */
	SBX_BFD_DNS_UDP6,
	SBX_BFD_DNS_TCP4, /* listening */
	SBX_BFD_DNS_TCP6,
	/* listening, IP_TRANSPARENT: what tproxy redirects; getsockname() is the destination */
	SBX_BFD_TCP4,
	SBX_BFD_TCP6,
	SBX_BFD_UDP4, /* bound, IP_TRANSPARENT, IP_RECVORIGDSTADDR */
	SBX_BFD_UDP6,
	SBX_BFD_NFLOG,   /* nfnetlink_log socket, group bound in the sandbox's namespace */
	SBX_BFD_FACTORY, /* channel to the socket factory */
	/* attach cgroup: a UDP socket of the sandbox's cgroup (src/broker/io/nflog.c) */
	SBX_BFD_MARK,
	SBX_BFD_DIAG,	 /* attach cgroup: NETLINK_SOCK_DIAG, to ask which flows are open */
	SBX_BFD_TLS,	 /* channel to sbx-tls, where a host is terminated */
	SBX_BFD_PUBLISH, /* and SBX_PUBLISH_MAX - 1 more: listening on the host */
	SBX_N_BROKER_FDS = SBX_BFD_PUBLISH + SBX_PUBLISH_MAX,
};
_Static_assert(SBX_N_BROKER_FDS < 32, "a bit of fd_mask for each");

struct sbx_msg_config {
	char id[SBX_ID_LEN + 1];
	uint8_t mode; /* enum sbx_mode */
	/* 1: the resolvers are the profile's (dns.resolvers), and answer under an air gap too */
	uint8_t resolvers_listed;
	/* 1: forward DNS to the resolvers and hand out real answers (mode full; mode offline with
	 * dns.resolvers set). Floors are still refused. */
	uint8_t dns_real;
	uint32_t fd_mask; /* 1 << enum sbx_broker_fd */
	struct sbx_limits limits;
	uint32_t n_resolvers; /* of the host's resolv.conf, or the profile's dns.resolvers */
	struct sbx_resolver resolvers[SBX_RESOLVERS_MAX];
	/* upstream CONNECT proxy: name or address; "" none */
	char proxy_host[SBX_HOSTNAME_MAX + 1];
	uint16_t proxy_port;
	/* served by the broker itself: any TCP port answers "sbx " id "\n" and closes */
	char selftest_name[SBX_HOSTNAME_MAX + 1];
	/* 1, attach cgroup: DNS gives out real addresses, which PINS asks the kernel to let pass;
	 * no flow comes here */
	uint8_t resolved_pins;
	uint32_t repin_interval_s; /* with resolved_pins */
	/* with resolved_pins: the address of the stub, to which selftest_name resolves too */
	struct sbx_addr stub_addr;
	uint32_t n_publish;	   /* the number of SBX_BFD_PUBLISH fds */
	uint16_t publish[SBX_PUBLISH_MAX]; /* the port in the sandbox for each of them */
};

#define SBX_MSG_PINS_MAX 1024 /* of one message */

/* The broker's only argument, given with resolved pins: before CONFIG comes, the broker makes the
 * resolver's channels that they need. */
#define SBX_BROKER_FOLLOWS "follow"

struct sbx_msg_pin {
	struct sbx_addr addr;
	uint16_t port;
	uint8_t proto; /* enum sbx_proto, tcp or udp */
	uint8_t old;   /* 1: only open connections may use it */
	uint32_t timeout_ms; /* from now; 0: remove the pin */
};

/* Pin changes to carry out as one transaction. PINNED or PINS_FAILED answers with the serial.
 * Only one PINS is open at a time. */
struct sbx_msg_pins {
	uint32_t serial;
	uint32_t n_pins; /* from 1 */
	struct sbx_msg_pin v[SBX_MSG_PINS_MAX];
};

/* The fds that come with TLS_CONFIG, in this order. */
enum sbx_tls_fd {
	SBX_TFD_RULES = 0, /* memfd, sealed: http/rules.h */
	SBX_TFD_BUNDLE,	   /* memfd, sealed: the host's trust store and network.extra_ca, PEM */
	SBX_TFD_BROKER,	   /* channel to the broker */
	SBX_N_TLS_FDS,
};

#define SBX_TLS_ECHO	     UINT32_MAX /* an entry: the self-test's echo, which has no server */
/* an entry: none of the rules, but one with the name, and `rule` and `requests` of the message */
#define SBX_TLS_LIVE	     (UINT32_MAX - 1)
#define SBX_TLS_FIRST_MAX    60000 /* bytes that the broker may have read */
#define SBX_TLS_RULE_MAX     1024
#define SBX_TLS_REQUESTS_MAX 2048

/* A connection to a terminated host: judged and dialled by the broker, carried by sbx-tls. */
struct sbx_msg_tls_flow {
	uint32_t flow;	/* echoed in TLS_DONE */
	uint32_t entry; /* index in the rules' entries */
	uint8_t tls;	/* 1: the client began with a ClientHello; 0: plain HTTP */
	struct sbx_addr addr; /* as the sandbox dialled it, for events */
	uint16_t port;
	char name[SBX_HOSTNAME_MAX + 1]; /* the pinned name */
	struct sbx_span first; /* bytes that were read from the client; borrowed */
	/* SBX_TLS_LIVE: the live rule's text, and what it says of requests (http/rules.h);
	 * borrowed. Otherwise empty. */
	struct sbx_span rule, requests;
};

struct sbx_msg_tls_done {
	uint32_t flow;
	uint64_t bytes_out, bytes_in; /* from the sandbox, to it */
};

/* The answer to POLICY. Flows that the new policy does not allow are cut by then: nothing of them
 * leaves after this message. */
struct sbx_msg_policy_done {
	uint8_t ok;	     /* 0: the policy did not load, and the old one holds */
	uint64_t generation; /* of the policy that holds */
	uint32_t n_cut;
};

#define SBX_MSG_FLOWS_MAX 96 /* of one message */

/* An open flow. */
struct sbx_msg_flow {
	char name[SBX_HOSTNAME_MAX + 1]; /* "" none */
	struct sbx_addr addr; /* that was dialled; family 0: not yet, or by a proxy */
	uint16_t port;
	uint8_t proto; /* enum sbx_proto, tcp or udp */
	uint64_t bytes_out, bytes_in; /* from the sandbox, to it */
	uint64_t age_ms;
	char rule[SBX_RULE_MAX + 1]; /* the entry that allows it, as written; "" none */
};

/* The answer to FLOWS, in as many messages as it takes. */
struct sbx_msg_flow_list {
	uint8_t last; /* 1: no more come */
	uint32_t n_flows;
	struct sbx_msg_flow v[SBX_MSG_FLOWS_MAX];
};

#define SBX_MSG_NETS_MAX 256 /* SBX_NFT_CIDRS_MAX */

/* struct sbx_nft_input (sys/nft/nft.h), and the same limits. */
struct sbx_msg_ruleset {
	uint16_t tcp_port4, tcp_port6, udp_port4, udp_port6;
	uint8_t all_destinations, udp, dns, shut;
	uint16_t nflog_group;
	uint32_t n_nets;
	struct sbx_msg_net {
		struct sbx_addr addr;
		uint8_t prefix;
		uint16_t port_first, port_last;
		uint8_t proto; /* enum sbx_proto, tcp or udp */
	} v[SBX_MSG_NETS_MAX];
};

struct sbx_msg_ruleset_done {
	uint32_t error; /* errno; 0: the kernel has the ruleset, and it was read back */
	uint8_t taken;	/* with an error: 0: the kernel has the old ruleset; 1: it took the new */
	char detail[512]; /* for people: the cause and the remedy */
};

struct sbx_msg_stats {
	uint64_t flows, flows_denied, dns_queries, dns_refused, bytes_out, bytes_in, events_folded;
	uint64_t limits_hit; /* refusals for lack of room, all kinds */
	uint64_t published, published_failed; /* connections from outside; those that failed */
	uint64_t published_bytes_out, published_bytes_in; /* from the sandbox, to it */
};

struct sbx_msg_probes {
	uint32_t timeout_ms; /* for each probe */
	uint32_t n_probes;
	struct sbx_probe probes[SBX_PROBES_MAX];
};

#define SBX_PROGRAMS_MAX      1024
#define SBX_PROGRAMS_TEXT_MAX 40000 /* bytes of all paths, with a NUL each */

/* The only files that may execute. */
struct sbx_msg_program {
	uint64_t dev, ino; /* of the file that the launcher judged */
	uint32_t path;	   /* offset in text */
};

struct sbx_msg_programs {
	uint32_t n_programs; /* from 1 */
	/* absolute paths, one after the other in the order of v */
	char text[SBX_PROGRAMS_TEXT_MAX];
	struct sbx_msg_program v[SBX_PROGRAMS_MAX];
};

struct sbx_msg_verdict {
	uint8_t ok; /* 1: the probe saw exactly the expected result */
	uint32_t elapsed_us;
	char detail[256]; /* the observation, for people */
};

struct sbx_msg_verdicts {
	uint32_t n_verdicts; /* as many as there were probes */
	struct sbx_msg_verdict v[SBX_PROBES_MAX]; /* in the order of the probes */
};

struct sbx_msg_exec_failed {
	uint32_t error; /* errno of the exec; 0: it was not tried */
	uint8_t not_found; /* 1: status 127, 0: 126, or 125 if it was not tried */
	char why[256];	   /* for people: the reason that it was not tried */
};

/* The fds that come with EXEC, in this order. */
enum sbx_exec_fd {
	SBX_EFD_CHANNEL = 0, /* close-on-exec: EXEC_FAILED comes from it, or its end */
	SBX_EFD_STDIN,
	SBX_EFD_STDOUT,
	SBX_EFD_STDERR,
	SBX_N_EXEC_FDS,
};

#define SBX_EXEC_TEXT_MAX 60000 /* bytes of all words */

/* Another command for the sandbox. */
struct sbx_msg_exec {
	uint32_t number; /* of the launcher's choice, from 1: names it from here on */
	uint8_t tty;	 /* 1: standard input becomes the controlling terminal */
	uint32_t n_argv; /* from 1 */
	uint32_t n_env;	 /* variables to set, on top of the sandbox's */
	/* the directory, argv and the variables, each with its NUL; borrowed */
	struct sbx_span text;
};

struct sbx_msg_exec_signal {
	uint32_t number;
	uint32_t sig; /* for the command's process group */
};

struct sbx_msg_exec_exit {
	uint32_t number;
	uint32_t status; /* of wait(2) */
	uint32_t error;	 /* errno: there was no process at all; 0: there was */
};

struct sbx_msg_stage_failed {
	uint32_t error;    /* errno */
	char step[64];     /* "uid_map", "addresses", "ruleset", ... */
	char detail[512];  /* for people: the cause and the remedy */
};

struct sbx_msg_udp_socket {
	struct sbx_addr local; /* what the sandbox sent to: the socket's source */
	uint16_t local_port;
	struct sbx_addr peer; /* the sandbox's socket */
	uint16_t peer_port;
	uint32_t cookie; /* echoed in the answer */
};

/* A socket that connects to a published port, on the sandbox's loopback. */
struct sbx_msg_tcp_socket {
	uint8_t family; /* 4 or 6 */
	uint16_t port;
	uint32_t cookie; /* echoed in the answer */
};

/* The type of a packet; SBX_MSG_NONE: the packet has no known type. */
enum sbx_msg_type sbx_msg_type(struct sbx_span packet);

/*
 * Encoders return the bytes written, -EMSGSIZE (no room, or over SBX_MSG_MAX) or -EINVAL (a decoder
 * would refuse the struct). Decoders return 0, or -EBADMSG with *ret_m all zero. In lists (of
 * PROBES, PROGRAMS, VERDICTS, PINS, FLOW_LIST and RULESET) entries past the count stay
 * unchanged. In text for people (an event's name, rule and request; every step, detail, why) bytes
 * that sbx_text_unit() refuses are
 * replaced by '?', because the text comes from less trusted processes and ends in a terminal or the
 * database.
 */
#define SBX_MSG_DECLARE(name, type)                                       \
	ssize_t sbx_msg_encode_##name(const type *m, void *p, size_t n);  \
	int sbx_msg_decode_##name(struct sbx_span packet, type *ret_m)

SBX_MSG_DECLARE(config, struct sbx_msg_config);
SBX_MSG_DECLARE(event, struct sbx_event);
SBX_MSG_DECLARE(stats, struct sbx_msg_stats);
SBX_MSG_DECLARE(probes, struct sbx_msg_probes);
SBX_MSG_DECLARE(programs, struct sbx_msg_programs);
SBX_MSG_DECLARE(verdicts, struct sbx_msg_verdicts);
SBX_MSG_DECLARE(exec_failed, struct sbx_msg_exec_failed);
SBX_MSG_DECLARE(exec, struct sbx_msg_exec);
SBX_MSG_DECLARE(exec_signal, struct sbx_msg_exec_signal);
SBX_MSG_DECLARE(exec_exit, struct sbx_msg_exec_exit);
SBX_MSG_DECLARE(stage_failed, struct sbx_msg_stage_failed);
SBX_MSG_DECLARE(udp_socket, struct sbx_msg_udp_socket); /* its two answers are simple messages */
SBX_MSG_DECLARE(tcp_socket, struct sbx_msg_tcp_socket); /* the same */
SBX_MSG_DECLARE(tls_flow, struct sbx_msg_tls_flow);
SBX_MSG_DECLARE(tls_done, struct sbx_msg_tls_done);
SBX_MSG_DECLARE(policy_done, struct sbx_msg_policy_done);
SBX_MSG_DECLARE(flow_list, struct sbx_msg_flow_list);
SBX_MSG_DECLARE(ruleset, struct sbx_msg_ruleset);
SBX_MSG_DECLARE(ruleset_done, struct sbx_msg_ruleset_done);
SBX_MSG_DECLARE(pins, struct sbx_msg_pins);		/* as are these */

/* Messages with nothing but a type (STOP, READY, INIT_HELLO, RELEASE, POLICY, FLOWS) and with one
 * number
 * (STAGE_READY: the fds that come with it, as bits of enum sbx_broker_fd; STAGE_FILLS: the same, as
 * bits of enum sbx_mount_fill; SIGNAL, SIGNAL_ALL: the
 * signal; COMMAND_EXIT: a wait status; UDP_SOCKET_MADE/FAILED, TCP_SOCKET_MADE/FAILED: the cookie;
 * PINNED, PINS_FAILED: the serial; SECRET_STALE, SECRET: the index of the secret in the rules;
 * TLS_CUT: the flow; PUBLISH: a port of the sandbox; WALL_TIME: seconds from now to its end). */
ssize_t sbx_msg_encode_simple(enum sbx_msg_type type, uint32_t value, void *p, size_t n);
int sbx_msg_decode_simple(struct sbx_span packet, enum sbx_msg_type type, uint32_t *ret_value);

#endif
