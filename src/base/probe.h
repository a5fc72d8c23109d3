/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_PROBE_H
#define SBX_BASE_PROBE_H

#include <stdint.h>

#include "base/addr.h"

/* Words that the policy, the launcher, init and the broker share. */

enum sbx_mode { SBX_MODE_OFFLINE = 0, SBX_MODE_FETCH, SBX_MODE_FULL, SBX_N_MODES };
const char *sbx_mode_str(enum sbx_mode m); /* "offline", "fetch", "full" */

#define SBX_RESOLVERS_MAX 8

struct sbx_resolver {
	struct sbx_addr addr;
	uint16_t port;
};

/* --- self-test probes (init runs them, in order) --- */
enum sbx_probe_kind {
	SBX_PROBE_DNS_REFUSED = 0, /* name: must not resolve (A and AAAA) */
	/* name: must resolve, A and AAAA, to a synthetic address; with addr: A only, to any */
	SBX_PROBE_DNS_ALLOWED,
	SBX_PROBE_CONNECT_REFUSED, /* addr, port, proto tcp|udp: must be refused at once */
	SBX_PROBE_CONNECT_NAME,    /* name, port: must resolve, connect and answer `expect` */
	/* a TCP listener on 127.0.0.1 and ::1 must be reachable from itself */
	SBX_PROBE_LOOPBACK,
	SBX_PROBE_RAW_SOCKET,      /* AF_INET/AF_INET6 SOCK_RAW and AF_PACKET must fail */
	/* NETLINK_NETFILTER cannot be opened, or the ruleset can be neither read nor changed */
	SBX_PROBE_RULESET,
	SBX_PROBE_USERNS,          /* no new user namespace, by clone or unshare */
	SBX_PROBE_CAPS,            /* every capability set empty, bounding included */
	SBX_PROBE_NO_NEW_PRIVS,
	SBX_PROBE_SECCOMP,         /* mode 2, and a forbidden call fails */
	SBX_PROBE_FDS,             /* nothing open but 0-2 and our own */
	SBX_PROBE_PATH_ABSENT,     /* path (in name): must not exist or not be readable */
	SBX_PROBE_PATH_READONLY,   /* path (in name): must not be writable */
	/* no mount of the view can be removed: from inside, nor (locked) by the stage */
	SBX_PROBE_MOUNTS,
	/* exec of a memfd and of path (in name; an executable file of no known format) must be
	 * refused with EACCES */
	SBX_PROBE_EXEC_REFUSED,
	SBX_PROBE_TRUST, /* the file (in name) ends with `expect`, and is not writable */
	/* Terminated hosts; name, port: of the echo. With the placeholder `expect` in a header: the
	 * echo must see the value, and its answer must have the placeholder again. */
	SBX_PROBE_SECRET,
	/* the same, with the placeholder of another host: must be refused */
	SBX_PROBE_SECRET_REFUSED,
	SBX_PROBE_WATCH_EXECS, /* --learn: the launcher gets to see each exec */
	SBX_N_PROBE_KINDS,
};

/* The port of the self-test's name where sbx-tls answers, until the command is released. */
#define SBX_ECHO_PORT 80
/* The request's and the response's header with the placeholder. */
#define SBX_ECHO_HEADER "X-Sbx-Probe"

#define SBX_PROBES_MAX 64
#define SBX_PROBE_NAME_MAX 1024
#define SBX_PROBE_EXPECT_MAX 64

struct sbx_probe {
	uint8_t kind;  /* enum sbx_probe_kind */
	uint8_t proto; /* enum sbx_proto, tcp or udp */
	uint16_t port;
	/* CONNECT_REFUSED: the destination. Probes that ask for a name: the resolver; family 0:
	 * the sandbox's own */
	struct sbx_addr addr;
	char name[SBX_PROBE_NAME_MAX]; /* host name or path */
	char expect[SBX_PROBE_EXPECT_MAX];
};

const char *sbx_probe_kind_str(enum sbx_probe_kind k); /* "dns_refused", ... */

#endif
