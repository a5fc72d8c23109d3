/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-tls: ends TLS for the hosts of a sandbox that need it, judges their HTTP, and holds the
 * secrets. It exists only in sandboxes that have such a host.
 *
 * sbx-run starts it with fds 0 to 2 (/dev/null twice, stderr) and its channel as fd 3. TLS_CONFIG
 * brings the rules with the secrets, the trust store's text and a channel to the broker. TLS_READY
 * answers with the certificate of the authority that was made for this sandbox.
 *
 * It holds secrets, so it can do little else: no file, no program, no socket of its own (seccomp).
 * Every connection, to both sides, is made by the broker, which judged it and holds no secret.
 *
 * One thread, one event loop. The rooms; each includes only those above it:
 *
 *   cert  authority (keys, certificates), host_cache (leaves, sessions)
 *   conn  context (what all parts share), contexts (settings of TLS), side (one socket), conn (a
 *         connection's states), refusal (the text of refused requests)
 *   http1 http1 (turns), http1_request, http1_forward, http1_reply, body
 *   http2 http2 (sessions), http2_stream, http2_request, http2_reply
 *   main  this file; control (messages)
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/version.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "sys/process/proc.h"
#include "sys/process/secret_memory.h"
#include "sys/seccomp/seccomp.h"
#include "tls/cert/own_certificate.h"
#include "tls/conn/conn.h"
#include "tls/conn/context.h"
#include "tls/conn/contexts.h"
#include "tls/http1/http1.h"
#include "tls/http2/http2.h"
#include "tls/main/control.h"

SBX_VERSION_MARK;

#define CHANNEL_FD  3
#define RULES_MAX   (32u << 20)
#define BUNDLE_MAX  (16u << 20)
#define KEYS_LOCKED 65536 /* bytes of OpenSSL's locked heap */

struct sbx_tls {
	struct sbx_tls_context ctx;
	struct sbx_tls_control control;
	int fds[SBX_N_TLS_FDS];
	void *rules; /* locked */
	size_t n_rules;
	void *bundle;
};

static int fail(const char *what, int r)
{
	fprintf(stderr, "sbx-tls: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	return -1;
}

/* Clears the environment, closes all fds but 0-3, forbids dumps, and has the kernel kill us when
 * the launcher ends. */
static int harden(void)
{
	const struct rlimit no_core = { 0, 0 };
	struct rlimit n_files;

	clearenv();
	signal(SIGPIPE, SIG_IGN);
	if (close_range(CHANNEL_FD + 1, ~0u, 0) < 0)
		return fail("cannot close inherited files", -errno);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return fail("cannot set process flags", -errno);
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return fail("cannot forbid core dumps", -errno);
	if (getrlimit(RLIMIT_NOFILE, &n_files) < 0)
		return fail("cannot read the limit of open files", -errno);
	n_files.rlim_cur = n_files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &n_files);
	return 0;
}

/* OpenSSL without its configuration file, its error texts loaded, its keys in locked memory. */
static int begin_openssl(void)
{
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				     OPENSSL_INIT_NO_ATEXIT,
			     NULL) != 1)
		return fail("cannot start OpenSSL", -EIO);
	CRYPTO_secure_malloc_init(KEYS_LOCKED, 32); /* without it: the ordinary heap, not dumped */
	return 0;
}

/* --- TLS_CONFIG --- */

static int receive_config(struct sbx_tls *t)
{
	uint8_t packet[64];
	size_t n, n_fds;
	int r = sbx_channel_recv(CHANNEL_FD, packet, sizeof(packet), &n, t->fds, SBX_N_TLS_FDS,
				 &n_fds, NULL);

	if (r == SBX_CHANNEL_E_CLOSED)
		return -1; /* the launcher gave up the setup: nothing to report */
	if (r != 0)
		return fail("no configuration", r);
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_TLS_CONFIG, NULL) < 0 ||
	    n_fds != SBX_N_TLS_FDS)
		return fail("malformed configuration", -EBADMSG);
	return 0;
}

/* The rules with the values, in memory for secrets. */
static int read_rules(struct sbx_tls *t)
{
	SBX_AUTO_CLOSE int fd = t->fds[SBX_TFD_RULES];
	int r = sbx_memfd_size(fd, RULES_MAX, &t->n_rules);

	if (r == 0 && t->n_rules == 0)
		r = -EBADMSG;
	if (r < 0)
		return r;
	t->rules = sbx_secret_memory_new(t->n_rules);
	if (!t->rules)
		return -errno;
	r = sbx_memfd_read(fd, t->rules, t->n_rules);
	return r < 0 ? r : sbx_http_rules_decode(sbx_span(t->rules, t->n_rules), &t->ctx.rules);
}

static int read_bundle(struct sbx_tls *t)
{
	SBX_AUTO_CLOSE int fd = t->fds[SBX_TFD_BUNDLE];
	size_t n = 0;
	int r = sbx_memfd_load(fd, BUNDLE_MAX, &t->bundle, &n);

	t->ctx.bundle = sbx_span(t->bundle, n);
	return r;
}

static int read_config(struct sbx_tls *t)
{
	int r = read_rules(t);

	if (r < 0)
		return fail("the rules do not load", r);
	r = read_bundle(t);
	if (r < 0)
		return fail("the trust store does not load", r);
	t->ctx.broker_fd = t->fds[SBX_TFD_BROKER];
	t->ctx.launcher_fd = CHANNEL_FD;
	return 0;
}

/* --- setup --- */

/* The authority alone: the launcher waits for its certificate. */
static int make_authority(struct sbx_tls *t)
{
	return sbx_authority_init(&t->ctx.authority, &t->ctx.rules) < 0 ?
		       fail("cannot make an authority", -EIO) :
		       0;
}

/* A client certificate that no connection can use is told now, not with each request. */
static int check_own_certificates(const struct sbx_tls *t)
{
	for (size_t i = 0; i < t->ctx.rules.n_entries; i++) {
		const struct sbx_http_entry *e = &t->ctx.rules.entries[i];
		const char *why = e->cert.n ? sbx_own_certificate_judge(e) : NULL;

		if (!why)
			continue;
		fprintf(stderr, "sbx-tls: mtls of '%.*s': %s\n", (int)e->text.n,
			(const char *)e->text.p, why);
		return -1;
	}
	return 0;
}

static int make_rest(struct sbx_tls *t)
{
	struct sbx_tls_context *ctx = &t->ctx;

	ctx->http1 = &sbx_http1;
	ctx->http2 = &sbx_http2;
	ctx->base = event_base_new();
	if (!ctx->base)
		return fail("event loop", -ENOMEM);
	if (sbx_host_cache_init(&ctx->hosts, &ctx->authority, ctx->rules.n_leaves) < 0)
		return fail("certificates", -ENOMEM);
	ctx->server = sbx_contexts_server(sbx_conn_on_hello, sbx_conn_on_alpn);
	ctx->client = sbx_contexts_client(sbx_conn_on_session);
	if (!ctx->server || !ctx->client)
		return fail("cannot make TLS contexts", -EIO);
	return 0;
}

static int confine(void)
{
	struct sbx_err err = { 0 };
	int r = sbx_caps_keep(0);

	if (r < 0)
		return fail("cannot drop capabilities", r);
	r = sbx_seccomp_install(SBX_SECCOMP_TLS, &err);
	if (r < 0) {
		fprintf(stderr, "sbx-tls: %s\n", err.msg[0] ? err.msg : strerror(-r));
		return -1;
	}
	return 0;
}

/* TLS_READY, with the authority's certificate and Java's store as memfds. */
static int say_ready(struct sbx_tls *t)
{
	SBX_AUTO_CLOSE int pem_fd = -1, java_fd = -1;
	SBX_AUTO_FREE char *pem = NULL;
	SBX_AUTO_FREE uint8_t *java = NULL;
	uint8_t packet[16];
	size_t n_pem, n_java;
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_TLS_READY, 0, packet, sizeof(packet));
	int fds[2];

	if (n < 0 || sbx_authority_pem(&t->ctx.authority, &pem, &n_pem) < 0)
		return fail("cannot write the authority's certificate", -EIO);
	pem_fd = sbx_memfd_new("sbx-authority", pem, n_pem);
	if (t->ctx.rules.java) {
		if (sbx_authority_java_store(&t->ctx.authority, t->ctx.bundle, &java, &n_java) < 0)
			return fail("cannot make Java's trust store", -EIO);
		java_fd = sbx_memfd_new("sbx-java", java, n_java);
	}
	if (pem_fd < 0 || (t->ctx.rules.java && java_fd < 0))
		return fail("cannot make a memfd", pem_fd < 0 ? pem_fd : java_fd);
	fds[0] = pem_fd;
	fds[1] = java_fd;
	if (sbx_channel_send(CHANNEL_FD, packet, (size_t)n, fds, t->ctx.rules.java ? 2 : 1) != 0)
		return -1;
	return 0;
}

static void fini(struct sbx_tls *t)
{
	while (t->ctx.first)
		sbx_conn_free(t->ctx.first);
	sbx_tls_control_fini(&t->control);
	sbx_host_cache_fini(&t->ctx.hosts);
	sbx_authority_fini(&t->ctx.authority);
	SSL_CTX_free(t->ctx.server);
	SSL_CTX_free(t->ctx.client);
	sbx_http_rules_fini(&t->ctx.rules);
	explicit_bzero(t->rules, t->n_rules);
	event_base_free(t->ctx.base);
}

int main(void)
{
	static struct sbx_tls t;

	if (harden() < 0 || begin_openssl() < 0 || receive_config(&t) < 0 || read_config(&t) < 0 ||
	    check_own_certificates(&t) < 0 || make_authority(&t) < 0 || say_ready(&t) < 0 ||
	    make_rest(&t) < 0 || confine() < 0)
		return 1;
	t.control.ctx = &t.ctx;
	if (sbx_tls_control_init(&t.control) < 0)
		return fail("control channels", -ENOMEM) < 0;
	event_base_dispatch(t.ctx.base);
	fini(&t);
	return t.ctx.exit_status;
}
