/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_TCP_TCP_FLOW_H
#define SBX_BROKER_TCP_TCP_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/dns/resolve.h"
#include "broker/io/context.h"
#include "broker/io/factory.h"

/*
 * One TCP connection of the sandbox with its connection outside, or one from outside to a published
 * port. The list of all flows (tcp_flow.c) owns a flow. A bool function that takes a flow returns
 * false if the flow is refused or gone: the caller then must not touch the flow again.
 *
 * A flow that is refused before RELAYING goes to LINGERING if tcp_refuse.c can explain the refusal
 * to the client. Otherwise it is gone, with a RST.
 *
 *   OPENING    entered by accept. The first bytes are being checked and the name is being
 *              resolved, side by side; nothing is dialled before both are done.
 *              -> DIALLING: both good. LINGERING: the self-test's flow. Refused: not good,
 *              timeout. Gone: RST, or the client's end before its first byte
 *   DIALLING   connects are under way, one per address, 250 ms apart (tcp_dial.c).
 *              -> RELAYING, PROXYING. Refused: no address answered
 *   PROXYING   connected to the upstream proxy: CONNECT is sent, the answer awaited (tcp_proxy.c).
 *              -> RELAYING. Refused: by the proxy
 *   HANDING    connected, in the place of RELAYING, to a host that is terminated: sbx-tls gets both
 *              sockets in the next round, or when its channel has room (tcp_terminate.c). -> gone
 *   ENTERING   entered by accept at a published port (tcp_publish.c). The factory is asked for a
 *              socket inside, which connects to the sandbox's loopback.
 *              -> RELAYING. Gone: no server listens inside, timeout
 *   RELAYING   bytes flow both ways (tcp_relay.c).
 *              -> DRAINING. SENDING: both ends done. Gone: RST, idle (but not a published port's
 *              flow)
 *   DRAINING   a later HTTP request was refused: our side to the server is shut, its answers to
 *              earlier requests are carried.
 *              -> LINGERING: the server is done. Gone: too slow
 *   LINGERING  the refusal is written and our side shut. Bytes that the client still sends are
 *              thrown away until it closes: closing with unread bytes would send a RST that can
 *              overtake the refusal. -> gone
 *   SENDING    the sandbox's side is closed, and the kernel still has bytes for the other, who has
 *              ended and does not take them. They wait for an owner who can still be told to cut.
 *              -> gone: nothing is queued, RST, idle
 */
enum sbx_tcp_state {
	SBX_TCP_OPENING = 0,
	SBX_TCP_DIALLING,
	SBX_TCP_PROXYING,
	SBX_TCP_HANDING,
	SBX_TCP_ENTERING,
	SBX_TCP_RELAYING,
	SBX_TCP_DRAINING,
	SBX_TCP_LINGERING,
	SBX_TCP_SENDING,
};

struct sbx_tcp_flow;
struct sbx_tcp_handed; /* tcp_terminate.c */

/* One socket of a flow. Its events are edge-triggered: `readable` and `writable` stay set until a
 * call says EAGAIN. A reset sets both. */
struct sbx_tcp_side {
	int fd; /* -1: not there (any more) */
	bool readable, writable;
	struct event ev;
};

struct sbx_pipe {
	int r, w;
	struct sbx_pipe *next; /* in the pool */
};

/* One direction. Bytes are in flight in at most one of `pipe` and `spill`. */
struct sbx_tcp_dir {
	struct sbx_tcp_side *src, *dst;
	struct sbx_pipe *pipe; /* held only while bytes are in it */
	size_t n_pipe;
	uint8_t *spill; /* judged bytes that dst had no room for; heap */
	size_t spill_at, n_spill;
	struct sbx_http_gate *gate; /* client to server, where requests are judged; NULL: opaque */
	struct sbx_tls_gate *tls;   /* the same, while another ClientHello may come */
	uint64_t n_bytes;
	bool bulk; /* the last read filled the buffer: splice */
	bool eof;  /* src is at its end */
	bool stop; /* nothing more is read from src */
	bool done; /* dst was shut */
};

struct sbx_tcp_flow {
	struct sbx_context *ctx;
	struct sbx_tcp *t;
	struct sbx_tcp_flow *prev, *next; /* all flows */
	struct sbx_tcp_flow *again_prev,
		*again_next; /* flows with more to do than one turn allows */
	bool again;
	uint8_t state; /* enum sbx_tcp_state */
	bool check_pending;
	struct sbx_tcp_side in;	 /* the sandbox's */
	struct sbx_tcp_side out; /* outside */
	struct sbx_tcp_dir up, down;
	struct sbx_flow_target target;
	char *lease_name; /* target.name's copy when it came from a lease */
	struct sbx_timeout timeout;
	struct sbx_resolve_waiter waiter;
	struct sbx_tcp_check *check; /* tcp_check.c */
	struct sbx_tcp_dial *dial;   /* tcp_dial.c */
	struct sbx_tcp_proxy *proxy; /* tcp_proxy.c */
	uint8_t *first; /* a terminated host's: the bytes read from the client; heap */
	size_t n_first;
	struct sbx_addr reached;     /* the address that was dialled */
	uint64_t began_ms;	     /* accepted */
	bool carried; /* bytes pass: the flow is an event at its end */
	/* tcp_again.c */
	char **named; /* servers that it named, where they need not be the pinned name; heap */
	uint8_t n_named;
	bool named_more; /* there was no room for another */
	bool cut;	 /* the new policy does not allow it, for cut_verdict */
	struct sbx_verdict cut_verdict;
	uint16_t inside; /* a published port's flow, which has no target: the port inside; else 0 */
	uint8_t family;	 /* ENTERING: of the loopback address that is tried */
	uint32_t cookie; /* ENTERING: of the request to the factory; 0: answered */
};

struct sbx_tcp_listener {
	struct sbx_tcp *t;
	struct event ev; /* not initialised: no listener */
	uint16_t inside; /* a published port's: the port inside; else 0 */
};

/* All flows and their listeners. */
struct sbx_tcp {
	struct sbx_context *ctx;
	struct sbx_resolve *resolve; /* borrowed */
	struct sbx_factory *factory; /* borrowed, or NULL */
	struct sbx_tcp_flow *first;
	size_t n_flows;	    /* of the sandbox */
	size_t n_published; /* from outside */
	/* tcp_terminate.c */
	struct sbx_tcp_handed *handed; /* flows that sbx-tls carries */
	size_t n_handed;
	size_t n_cutting; /* those that it was, or is to be, told to cut */
	uint32_t next_handed;
	void (*on_cut)(void *userdata); /* n_cutting became 0 */
	void *cut_userdata;
	struct event ev_hand, ev_tls; /* there is room in the channel; a message of sbx-tls */
	size_t n_asked;	    /* requests under way with the factory */
	bool publish_waits; /* connections to published ports wait for the factory's answers */
	struct event ev_again;
	struct sbx_tcp_flow *again_first, *again_last; /* in the order of sbx_tcp_again() */
	/* tcp_relay.c: empty pipes, kept for the next user */
	struct sbx_pipe *pipes;
	size_t n_pipes;
	size_t n_pipes_open; /* those in use too */
	/* tcp_listen.c */
	struct sbx_tcp_listener listeners[2 + SBX_PUBLISH_MAX]; /* v4, v6, published */
	struct event ev_resume;					/* accept again */
	int listen_fd; /* any listener, for the spare fd to copy; -1: none */
	int spare_fd;
};

/* --- tcp_flow.c --- */
/* Borrows @resolve and @factory. *ret_tcp is half made after an error, and to be freed all the
 * same. 0 or -errno. */
int sbx_tcp_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_factory *factory,
		struct sbx_tcp **ret_tcp);
void sbx_tcp_free(struct sbx_tcp *t);
/* Makes a flow that owns the accepted connection @fd. NULL: out of memory. */
struct sbx_tcp_flow *sbx_tcp_flow_new(struct sbx_tcp *t, int fd,
				      const struct sbx_flow_target *target);
/* The same for a connection to a published port, ENTERING. */
struct sbx_tcp_flow *sbx_tcp_flow_new_inward(struct sbx_tcp *t, int fd, uint16_t inside);
/* Adds the bytes that open flows carried to the stats. */
void sbx_tcp_count(struct sbx_tcp *t);
/* Ends the flow: FIN on both sides that are open. Accepts NULL. */
void sbx_tcp_close(struct sbx_tcp_flow *f);
/* Ends the flow as sbx_tcp_close(), but stays until the kernel has sent what is queued outside. */
void sbx_tcp_finish(struct sbx_tcp_flow *f);
/* Does the kernel have bytes of @fd that its peer did not take? */
bool sbx_tcp_has_queued(int fd);
/* Ends the flow with RST on both sides. */
void sbx_tcp_abort(struct sbx_tcp_flow *f);
/* Records the flow, if bytes passed; once. */
void sbx_tcp_tell(struct sbx_tcp_flow *f);
/* Makes a later close of @fd send a RST. */
void sbx_tcp_set_reset(int fd);
/* Registers a side's fd with the loop, once for its life. 0 or -ENOMEM. */
int sbx_tcp_watch(struct sbx_tcp_flow *f, struct sbx_tcp_side *s);
/* Gives the flow another turn in the loop's next round. */
void sbx_tcp_again(struct sbx_tcp_flow *f);

/* --- tcp_again.c --- */
/* The flow, which may name any server, named @name (copied). */
void sbx_tcp_note_server(struct sbx_tcp_flow *f, const char *name);
/* A policy was changed. First judges every flow by @next, while ctx->core has the old policy. */
void sbx_tcp_judge_again(struct sbx_tcp *t, const struct sbx_core *next);
/* Then, when ctx->core has the new one, cuts the flows that it does not allow: with a RST to both
 * sides, and an event. Returns their number. t->n_cutting of them are with sbx-tls. */
size_t sbx_tcp_cut(struct sbx_tcp *t);
/* Calls @fn for each open flow of the sandbox. */
typedef void (*sbx_flow_fn)(void *userdata, const struct sbx_msg_flow *flow);
void sbx_tcp_list(struct sbx_tcp *t, sbx_flow_fn fn, void *userdata);
/* STOP came: records all flows that are open. */
void sbx_tcp_tell_all(struct sbx_tcp *t);

/* --- tcp_listen.c --- */
int sbx_tcp_listen(struct sbx_tcp *t); /* 0 or -errno */
void sbx_tcp_unlisten(struct sbx_tcp *t);
/* Publishes another port: the listener @fd_take leads to @inside. 0; -EINVAL: there are as many as
 * there may be; -errno. */
int sbx_tcp_publish_add_consume(struct sbx_tcp *t, uint16_t inside, int fd_take);
/* The factory can be asked again: accepts connections to published ports. */
void sbx_tcp_publish_resume(struct sbx_tcp *t);

/* --- tcp_publish.c --- */
/* Takes over @fd, an accepted connection to a published port. */
void sbx_tcp_publish_take_consume(struct sbx_tcp *t, uint16_t inside, int fd);
/* Resets the connection @fd to a published port: there is no room. */
void sbx_tcp_publish_turn_away_consume(struct sbx_tcp *t, int fd);
bool sbx_tcp_publish_has_room(const struct sbx_tcp *t);
void sbx_tcp_publish_made(void *tcp, uint32_t cookie, int fd_take); /* a sbx_factory_fn */
void sbx_tcp_publish_event(struct sbx_tcp_flow *f, short what);	    /* of f->in, while ENTERING */
/* Has every flow passed on all bytes of the server inside, and its end? */
bool sbx_tcp_publish_is_drained(const struct sbx_tcp *t);
/* Resets the client and ends the flow. */
void sbx_tcp_publish_fail(struct sbx_tcp_flow *f);

/* --- tcp_open.c --- */
bool sbx_tcp_open(struct sbx_tcp_flow *f);
/* The check is passed: resolves (from the cache, as a rule) and dials. */
bool sbx_tcp_checked(struct sbx_tcp_flow *f);
bool sbx_tcp_uses_proxy(const struct sbx_context *ctx);

/* --- tcp_check.c --- */
/* Begins to check the first bytes. 0 (check_pending is set) or -ENOMEM. */
int sbx_tcp_check_start(struct sbx_tcp_flow *f);
bool sbx_tcp_check_event(struct sbx_tcp_flow *f);
void sbx_tcp_check_free(struct sbx_tcp_check *c);

/* --- tcp_refuse.c --- */
/* Records the refusal (of @addr; NULL: of the address that the sandbox dialled) and ends the flow;
 * first explains it to the client in the client's protocol, if possible. Always returns false. */
bool sbx_tcp_refuse(struct sbx_tcp_flow *f, const struct sbx_verdict *v,
		    const struct sbx_addr *addr);
bool sbx_tcp_refuse_reason(struct sbx_tcp_flow *f, enum sbx_reason reason);
/* All answers to earlier requests are written: tells the reason and lingers. Always returns
 * false. */
bool sbx_tcp_refuse_drained(struct sbx_tcp_flow *f, const struct sbx_verdict *v);
void sbx_tcp_linger_event(struct sbx_tcp_flow *f);

/* --- tcp_dial.c --- */
bool sbx_tcp_dial_start(struct sbx_tcp_flow *f, const struct sbx_candidates *c, uint16_t port);
bool sbx_tcp_dial_event(struct sbx_tcp_flow *f, short what); /* of f->out */
/* Judges the addresses by @next, a new policy, and begins again if some may not be dialled any
 * more. DENY: none may; else the flow may be gone. */
struct sbx_verdict sbx_tcp_dial_again(struct sbx_tcp_flow *f, const struct sbx_core *next);
void sbx_tcp_dial_free(struct sbx_tcp_dial *d);
void sbx_tcp_dial_stagger(struct sbx_timeout *t);

/* --- tcp_proxy.c --- */
bool sbx_tcp_proxy_start(struct sbx_tcp_flow *f); /* f->out is connected to the proxy */
bool sbx_tcp_proxy_event(struct sbx_tcp_flow *f);
void sbx_tcp_proxy_free(struct sbx_tcp_proxy *p);

/* --- tcp_terminate.c --- */
/* The flow is connected to a host that is terminated: sbx-tls carries it. Always returns false. */
bool sbx_tcp_terminate_start(struct sbx_tcp_flow *f);
/* The flow's turn in HANDING: hands it over, or waits for room. */
void sbx_tcp_terminate_event(struct sbx_tcp_flow *f);
/* Reads what sbx-tls has sent so far. */
void sbx_tcp_terminate_drain(struct sbx_tcp *t);
/* Those of tcp_again.c, for flows that sbx-tls carries. */
void sbx_tcp_handed_judge_again(struct sbx_tcp *t, const struct sbx_core *next);
size_t sbx_tcp_handed_cut(struct sbx_tcp *t);
void sbx_tcp_handed_list(struct sbx_tcp *t, sbx_flow_fn fn, void *userdata);
void sbx_tcp_handed_tell_all(struct sbx_tcp *t);
int sbx_tcp_terminate_init(struct sbx_tcp *t); /* 0 or -errno */
void sbx_tcp_terminate_fini(struct sbx_tcp *t);

/* --- tcp_relay.c --- */
bool sbx_tcp_relay_start(struct sbx_tcp_flow *f);
bool sbx_tcp_relay_event(struct sbx_tcp_flow *f);
/* Queues @p (heap, @n bytes from @at on; taken over), to be written before anything that is
 * read. */
void sbx_tcp_relay_preload(struct sbx_tcp_dir *d, uint8_t *p, size_t at, size_t n);
void sbx_tcp_dir_fini(struct sbx_tcp *t, struct sbx_tcp_dir *d);
void sbx_tcp_pipes_free(struct sbx_tcp *t);

enum sbx_pump {
	SBX_PUMP_WAIT = 0, /* until a side is ready */
	SBX_PUMP_ON,	   /* bytes moved: there may be more */
	SBX_PUMP_RESET,	   /* a side was reset or failed */
};
/* Writes @n bytes of @p to d->dst, and keeps the rest in the spill. */
enum sbx_pump sbx_tcp_put(struct sbx_tcp_dir *d, const uint8_t *p, size_t n);
/* Splices at most @max bytes once from d->src, and on to d->dst. *ret_n: bytes taken from src. */
enum sbx_pump sbx_tcp_splice(struct sbx_tcp *t, struct sbx_tcp_dir *d, size_t max, size_t *ret_n);
/* Receives from a side. *ret_n 0 with SBX_PUMP_ON: end of file. */
enum sbx_pump sbx_tcp_recv(struct sbx_tcp_side *s, void *p, size_t n, size_t *ret_n);

/* --- tcp_http.c --- */
/* Takes over the bytes already read (heap; @n of @p). @judge has seen them; @at of them are
 * good. */
struct sbx_http_gate *sbx_http_gate_new(const struct sbx_http_judge *judge, uint8_t *p, size_t n,
					size_t at);
/* The rule of its refusal, if there is one, is of a policy that is gone. */
void sbx_http_gate_forget_rule(struct sbx_http_gate *g);
void sbx_http_gate_free(struct sbx_http_gate *g);
/* One turn of the up direction. A refused request makes the flow DRAINING and sets d->stop. */
enum sbx_pump sbx_http_gate_pump(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d);
/* The server is done: tells the client why its last request was refused. Always returns false. */
bool sbx_http_gate_refuse(struct sbx_tcp_flow *f);

/* --- tcp_tls.c --- */

/* For a flow that began with @first. Copies the @n bytes at @p, which came behind it. NULL: no
 * memory. */
struct sbx_tls_gate *sbx_tls_gate_new(const struct sbx_tls_hello *first, size_t limit_bytes,
				      const uint8_t *p, size_t n);
void sbx_tls_gate_free(struct sbx_tls_gate *g);

/* One turn of the up direction. Frees the gate, and sets d->tls to NULL, when nothing is left to
 * judge. */
enum sbx_pump sbx_tls_gate_pump(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d);

#endif
