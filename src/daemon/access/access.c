/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who calls.
 *
 * On the unix socket the kernel names the user. The processes of a rootless sandbox have that user
 * too, so the peer must also be in our namespaces, as at a control socket (control/peer.c).
 * A reverse proxy would lend its own rights to all its callers: it has to connect by TCP.
 *
 * On TCP a request has a token, or the cookie of a session. A page of another site can make
 * a browser send requests here, also by a name that it points at this address (DNS rebinding).
 * Such a request has another Host, or another Origin, or none where there should be one. Cookies do
 * not tell ports apart, so Sec-Fetch-Site must not be that of a page on another port either; and
 * a server at another port, of another user, gets them: so a session is the user's who opened it,
 * where the browser is on this host (sessions.h).
 *
 * Tokens are read from the database for each request, so a removed one is refused at once. Wrong
 * credentials are limited by address, but never the right ones: programs that share an address
 * with a wrong one are not locked out.
 */
#include "daemon/access/access.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/access/headers.h"
#include "daemon/access/rates.h"
#include "store/secret_text.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

/* Cookies have no ports, so the name has it: two services of a host do not end each other's
 * sessions. */
#define COOKIE_MAX 24

static void name_cookie(const struct sbx_browser *b, char out[COOKIE_MAX])
{
	sbx_text_fit(out, COOKIE_MAX, "sbx_session_%u", b->port);
}

struct address {
	struct sbx_addr addr;
	uint16_t port;
	bool is_tls;
};

struct sbx_access {
	struct sbx_store *store; /* borrowed */
	uid_t uid;		 /* the service's own */
	struct sbx_sessions *sessions;
	struct sbx_rates *rates; /* of requests */
	struct sbx_rates *wrong; /* of wrong credentials */
	struct address addresses[SBX_ACCESS_ADDRESSES_MAX];
	size_t n_addresses;
	size_t n_hosts;
	struct sbx_authority hosts[]; /* further names of the service */
};

static const struct sbx_rate_limit limit = { SBX_ACCESS_PER_S, SBX_ACCESS_BURST };
static const struct sbx_rate_limit wrong_limit = { SBX_ACCESS_WRONG_PER_S, SBX_ACCESS_WRONG_BURST };

static uint64_t now_ms(void)
{
	return sbx_clock_monotonic_us() / 1000;
}

int sbx_access_new(const struct sbx_access_options *options, struct sbx_err *err,
		   struct sbx_access **ret_access)
{
	struct sbx_access *a = calloc(1, sizeof(*a) + options->n_hosts * sizeof(a->hosts[0]));

	if (!a)
		return -ENOMEM;
	a->store = options->store;
	a->uid = getuid();
	for (; a->n_hosts < options->n_hosts; a->n_hosts++) {
		const char *name = options->hosts[a->n_hosts];

		if (sbx_authority_parse(name, &a->hosts[a->n_hosts]) == 0)
			continue;
		sbx_err_set(err, "--host %s: it is no name of a host", name);
		sbx_access_free(a);
		return -EINVAL;
	}
	if (sbx_sessions_new(&a->sessions) < 0 ||
	    sbx_rates_new(SBX_ACCESS_CALLERS, &a->rates) < 0 ||
	    sbx_rates_new(SBX_ACCESS_CALLERS, &a->wrong) < 0) {
		sbx_access_free(a);
		return -ENOMEM;
	}
	*ret_access = a;
	return 0;
}

struct sbx_access *sbx_access_free(struct sbx_access *a)
{
	if (!a)
		return NULL;
	sbx_sessions_free(a->sessions);
	sbx_rates_free(a->rates);
	sbx_rates_free(a->wrong);
	free(a);
	return NULL;
}

void sbx_access_listens(struct sbx_access *a, const struct sbx_addr *addr, uint16_t port,
			bool is_tls)
{
	if (a->n_addresses < SBX_ACCESS_ADDRESSES_MAX)
		a->addresses[a->n_addresses++] = (struct address){ *addr, port, is_tls };
}

bool sbx_access_is_own(const struct sbx_access *a, uid_t uid)
{
	return uid == 0 || uid == a->uid;
}

__attribute__((format(printf, 4, 5))) static int refuse(struct sbx_access_refusal *ret, int status,
							const char *code, const char *fmt, ...)
{
	va_list ap;

	*ret = (struct sbx_access_refusal){ .status = status, .code = code };
	va_start(ap, fmt);
	sbx_err_vset(&ret->err, fmt, ap);
	va_end(ap);
	return SBX_ACCESS_E_REFUSED;
}

static int too_often(struct sbx_access_refusal *ret, uint32_t wait_ms, const char *what)
{
	refuse(ret, 429, "too_many", "%s: try again in %u s", what, wait_ms / 1000 + 1);
	ret->retry_s = wait_ms / 1000 + 1;
	return SBX_ACCESS_E_REFUSED;
}

/* --- rates --- */

/* The caller without credentials. An owner of IPv6 addresses has 2^64 of them. */
static void name_address(const struct sbx_caller *c, char *out, size_t n_out)
{
	struct sbx_addr net;

	if (c->kind == SBX_LISTEN_UNIX || c->browser.uid != SBX_UID_UNKNOWN) {
		sbx_text_fit(out, n_out, c->kind == SBX_LISTEN_UNIX ? "uid %u" : "tcp uid %u",
			     (unsigned)c->browser.uid);
		return;
	}
	net = *c->address;
	if (net.family == 6)
		memset(net.b + 8, 0, 8);
	sbx_addr_format(&net, out, n_out);
}

static int take(struct sbx_access *a, const char *key, struct sbx_access_refusal *ret)
{
	uint32_t wait = sbx_rates_take(a->rates, key, &limit, now_ms());

	return wait ? too_often(ret, wait, "too many requests") : 0;
}

static int take_address(struct sbx_access *a, const struct sbx_caller *c,
			struct sbx_access_refusal *ret)
{
	char key[SBX_ADDR_STR_MAX];

	if (c->kind == SBX_LISTEN_UNIX && sbx_access_is_own(a, c->browser.uid))
		return 0;
	name_address(c, key, sizeof(key));
	return take(a, key, ret);
}

/* Wrong credentials: refuses with @ret as it is, or with 429. */
static int refuse_wrong(struct sbx_access *a, const struct sbx_caller *c,
			struct sbx_access_refusal *ret)
{
	char key[SBX_ADDR_STR_MAX];
	uint32_t wait;

	name_address(c, key, sizeof(key));
	wait = sbx_rates_take(a->wrong, key, &wrong_limit, now_ms());
	return wait ? too_often(ret, wait, "too many wrong credentials") : SBX_ACCESS_E_REFUSED;
}

/* --- Host and Origin --- */

static bool is_extra_host(const struct sbx_access *a, const struct sbx_authority *host)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		if ((!a->hosts[i].port || a->hosts[i].port == host->port) &&
		    strcmp(a->hosts[i].name, host->name) == 0)
			return true;
	return false;
}

/* Only a name can be pointed somewhere else by its owner, never an address. */
static bool is_our_host(const struct sbx_access *a, const struct sbx_caller *c,
			const struct sbx_authority *host)
{
	if (is_extra_host(a, host) || strcmp(host->name, "localhost") == 0)
		return true;
	if (!host->addr.family)
		return false;
	if (sbx_addr_class(&host->addr) == SBX_ADDR_LOOPBACK)
		return true;
	return sbx_addr_equal(&host->addr, c->at) &&
	       sbx_authority_port(host, c->browser.is_tls) == c->browser.port;
}

static int judge_origin(const struct sbx_access *a, const struct sbx_caller *c,
			const struct sbx_authority *host, struct sbx_access_refusal *ret)
{
	struct sbx_origin origin;

	if (!c->origin)
		return 0;
	/* behind a proxy TLS ends before us */
	if (sbx_origin_parse(c->origin, &origin) == 0 && sbx_origin_is_at(&origin, host) &&
	    (origin.is_https == c->browser.is_tls || (origin.is_https && is_extra_host(a, host))))
		return 0;
	return refuse(ret, 403, "origin",
		      "the request comes from a page of %s, which is not this service (Host: %s)",
		      c->origin, c->host);
}

static int admit_tcp(const struct sbx_access *a, const struct sbx_caller *c,
		     struct sbx_access_refusal *ret)
{
	struct sbx_authority host;

	if (!c->host || sbx_authority_parse(c->host, &host) < 0 || !is_our_host(a, c, &host))
		return refuse(ret, 403, "host",
			      "Host: %s is no name of this service; sbxd --host NAME adds one",
			      c->host ? c->host : "(none)");
	return judge_origin(a, c, &host, ret);
}

int sbx_access_admit(struct sbx_access *a, const struct sbx_caller *c,
		     struct sbx_access_refusal *ret)
{
	if (c->is_doubled)
		return refuse(ret, 400, "invalid",
			      "Host, Origin, Authorization and Cookie may be there once");
	if (c->kind == SBX_LISTEN_TCP)
		return admit_tcp(a, c, ret);
	if (c->foreign)
		return refuse(ret, 403, "peer", "%s", c->foreign);
	if (c->origin || c->is_proxied)
		return refuse(ret, 403, "proxied",
			      "this socket knows its callers by their process, so all callers of "
			      "a proxy would have its rights: let it connect to an address of sbxd "
			      "--listen");
	return 0;
}

/* --- credentials --- */

/* root and the service's own user may all; others have their own sandboxes. */
static void by_peer(const struct sbx_access *a, uid_t uid, struct sbx_principal *p)
{
	bool all = sbx_access_is_own(a, uid);

	*p = (struct sbx_principal){ .role = all ? SBX_ROLE_ADMIN : SBX_ROLE_OPERATOR,
				     .own_only = !all,
				     .is_own = all,
				     .uid = uid };
	sbx_text_fit(p->name, sizeof(p->name), "uid %u", (unsigned)uid);
}

struct found {
	uint64_t now_ms;      /* CLOCK_REALTIME */
	bool expired, unused; /* unused: for a minute */
	char name[SBX_STORE_SERVICE_TEXT_MAX + 1];
	struct sbx_principal principal;
};

static int take_token(const struct sbx_store_token *t, void *userdata)
{
	struct found *f = userdata;
	struct sbx_principal *p = &f->principal;
	int role = sbx_role_parse(t->role);

	f->expired = t->expires_ms && f->now_ms >= (uint64_t)t->expires_ms;
	f->unused = f->now_ms >= (uint64_t)t->last_used_ms + SBX_STORE_TOKEN_USE_MS;
	if (role < 0 || sbx_text_copy(f->name, sizeof(f->name), t->name) < 0)
		return 0;
	*p = (struct sbx_principal){ .role = (enum sbx_role)role };
	sbx_text_cut(p->name, sizeof(p->name), "token %s", t->name);
	/* a part of a workspace's name would be another workspace */
	if (sbx_text_copy(p->workspace, sizeof(p->workspace), t->workspace ? t->workspace : "") < 0)
		p->role = SBX_ROLE_NONE;
	sbx_text_fit(p->token, sizeof(p->token), "%s", t->hash);
	return 0;
}

/* 0, SBX_STORE_E_UNKNOWN or -errno. */
static int find_token(struct sbx_access *a, const char *hash, struct found *f, struct sbx_err *err)
{
	*f = (struct found){ .now_ms = sbx_clock_realtime_ms() };
	return sbx_store_token_find(a->store, hash, take_token, f, err);
}

static int store_failed(struct sbx_access_refusal *ret, const struct sbx_err *cause)
{
	return refuse(ret, 503, "database", "tokens cannot be read now: %s", cause->msg);
}

static int by_token(struct sbx_access *a, const struct sbx_caller *c, struct sbx_principal *p,
		    struct sbx_access_refusal *ret)
{
	char hash[SBX_SECRET_HASH_MAX];
	struct sbx_err err = { 0 };
	const char *token;
	struct found f;
	int r = SBX_STORE_E_UNKNOWN;

	if (sbx_bearer_parse(c->authorization, &token) < 0) {
		refuse(ret, 401, "token", "the header must be Authorization: Bearer TOKEN");
		return refuse_wrong(a, c, ret);
	}
	if (sbx_api_token_is_valid(token)) {
		sbx_secret_hash(token, hash);
		r = find_token(a, hash, &f, &err);
	}
	if (r < 0)
		return store_failed(ret, &err);
	if (r != 0 || f.principal.role == SBX_ROLE_NONE || f.expired) {
		if (r == 0 && f.expired)
			refuse(ret, 401, "expired", "the token has expired");
		else
			refuse(ret, 401, "token", "there is no such token, or it was removed");
		return refuse_wrong(a, c, ret);
	}
	if (f.unused) /* a database that is locked is asked again with the next request */
		sbx_store_token_used(a->store, f.name, (int64_t)f.now_ms, NULL);
	*p = f.principal;
	return 0;
}

bool sbx_access_holds(struct sbx_access *a, const struct sbx_principal *p)
{
	struct found f;

	if (p->session[0] && !sbx_session_holds(a->sessions, p->session, now_ms()))
		return false;
	if (!p->token[0])
		return true;
	switch (find_token(a, p->token, &f, NULL)) {
	case 0:
		return !f.expired && f.principal.role >= p->role &&
		       strcmp(f.principal.workspace, p->workspace) == 0;
	case SBX_STORE_E_UNKNOWN:
		return false;
	default: /* the database is locked: it will be asked again */
		return true;
	}
}

/* A cookie comes with requests that other sites make the browser send. */
static int judge_cookie_use(const struct sbx_caller *c, struct sbx_access_refusal *ret)
{
	const char *site = c->browser.fetch_site;

	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return refuse(ret, 403, "origin", "a page of another origin sent the request");
	if (c->method == SBX_GET || c->origin || (site && strcmp(site, "same-origin") == 0))
		return 0;
	return refuse(ret, 403, "origin",
		      "a change with a cookie needs Origin, or Sec-Fetch-Site: same-origin");
}

/* Without a session that holds the caller is nobody, which is no error: the page says so. */
static int by_cookie(struct sbx_access *a, const struct sbx_caller *c, struct sbx_principal *p,
		     struct sbx_access_refusal *ret)
{
	char name[COOKIE_MAX], cookie[SBX_SESSION_SECRET_MAX];
	struct sbx_principal found;
	int r;

	name_cookie(&c->browser, name);
	if (sbx_cookie_find(c->cookie, name, cookie, sizeof(cookie)) != 0)
		return 0;
	r = sbx_session_find(a->sessions, cookie, c->browser.uid, now_ms(), &found);
	if (r != 0) {
		if (take_address(a, c, ret) != 0)
			return SBX_ACCESS_E_REFUSED;
		return refuse(ret, 401, "session",
			      r == SBX_SESSION_E_OTHER ?
				      "the session was opened by another user of this machine" :
				      "the session has ended: sbxctl web makes another");
	}
	if (!sbx_access_holds(a, &found)) {
		sbx_session_end(a->sessions, found.session);
		return refuse(ret, 401, "session",
			      "the token that the session belongs to was removed, or has expired");
	}
	if (judge_cookie_use(c, ret) != 0)
		return SBX_ACCESS_E_REFUSED;
	*p = found;
	return 0;
}

int sbx_access_identify(struct sbx_access *a, const struct sbx_caller *c, bool is_public,
			struct sbx_principal *ret_principal, struct sbx_access_refusal *ret)
{
	struct sbx_principal *p = ret_principal;
	char key[SBX_RATE_KEY_MAX];
	int r = 0;

	*p = (struct sbx_principal){ .role = SBX_ROLE_NONE };
	if (!is_public && c->authorization)
		r = by_token(a, c, p, ret);
	else if (!is_public && c->kind == SBX_LISTEN_UNIX)
		by_peer(a, c->browser.uid, p);
	else if (!is_public && c->cookie)
		r = by_cookie(a, c, p, ret);
	if (r != 0)
		return r;
	if (!p->token[0] && !p->session[0])
		return take_address(a, c, ret);
	sbx_text_cut(key, sizeof(key), "%s", p->session[0] ? p->session : p->token);
	return take(a, key, ret);
}

/* --- links and sessions --- */

/* The address of links: one that this machine reaches. */
static void print_address(const struct address *at, char *out, size_t n_out)
{
	char text[SBX_ADDR_STR_MAX];
	struct sbx_addr addr = at->addr;
	static const struct sbx_addr any = { 0 };

	if (memcmp(addr.b, any.b, sizeof(any.b)) == 0)
		sbx_addr_parse(addr.family == 6 ? "::1" : "127.0.0.1", &addr);
	sbx_addr_format(&addr, text, sizeof(text));
	sbx_text_fit(out, n_out, addr.family == 6 ? "%s://[%s]:%u" : "%s://%s:%u",
		     at->is_tls ? "https" : "http", text, at->port);
}

int sbx_access_link(struct sbx_access *a, const struct sbx_principal *p,
		    char ret_url[SBX_ACCESS_LINK_MAX])
{
	char code[SBX_SESSION_SECRET_MAX], base[SBX_ADDR_STR_MAX + 24];
	int r;

	if (a->n_addresses == 0)
		return SBX_ACCESS_E_NOWHERE;
	r = sbx_session_link(a->sessions, p, now_ms(), code);
	if (r < 0)
		return r;
	print_address(&a->addresses[0], base, sizeof(base));
	sbx_text_fit(ret_url, SBX_ACCESS_LINK_MAX, "%s/login?code=%s", base, code);
	return 0;
}

/* The link of somebody else, which a page of theirs leads the browser to, would make its user work
 * in their session. */
static bool leads_from_elsewhere(const struct sbx_browser *b)
{
	return b->fetch_site && strcmp(b->fetch_site, "none") != 0 &&
	       strcmp(b->fetch_site, "same-origin") != 0;
}

int sbx_access_login(struct sbx_access *a, const char *code, const struct sbx_browser *b,
		     char ret_header[SBX_ACCESS_COOKIE_MAX], struct sbx_access_refusal *ret)
{
	char name[COOKIE_MAX], cookie[SBX_SESSION_SECRET_MAX];
	int r;

	if (leads_from_elsewhere(b))
		return refuse(ret, 403, "origin",
			      "a page of another origin leads here: copy the link of sbxctl web "
			      "into the browser's address bar");
	r = sbx_session_begin(a->sessions, code, b->uid, now_ms(), cookie);
	if (r < 0)
		return refuse(ret, 503, "failed", "%s", strerror(-r));
	if (r != 0)
		return refuse(ret, 403, "link",
			      "the link was used already, or is older than %d s: sbxctl web makes "
			      "another",
			      SBX_LINK_S);
	name_cookie(b, name);
	sbx_text_fit(ret_header, SBX_ACCESS_COOKIE_MAX,
		     "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", name, cookie,
		     SBX_SESSION_S, b->is_tls ? "; Secure" : "");
	return 0;
}

void sbx_access_logout(struct sbx_access *a, const struct sbx_principal *p,
		       const struct sbx_browser *b, char ret_header[SBX_ACCESS_COOKIE_MAX])
{
	char name[COOKIE_MAX];

	if (p->session[0])
		sbx_session_end(a->sessions, p->session);
	name_cookie(b, name);
	sbx_text_fit(ret_header, SBX_ACCESS_COOKIE_MAX,
		     "%s=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict", name);
}
