/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-tls as the launcher sees it: started with its rules in a sealed memfd. It makes an authority
 * for this sandbox alone and answers with its certificate.
 *
 * The rules hold the secrets. They are encoded in memory for secrets, copied to the memfd, and
 * wiped; the memfd is sbx-tls's alone once it is sent.
 *
 * What sbx-tls sends is untrusted: it parses bytes of the sandbox and of servers. Here only its
 * first message counts, which it sends before any flow, and its size and form are checked.
 */
#include "launcher/resources/tls_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "http/rules.h"
#include "ipc/channel.h"
#include "launcher/resources/program.h"
#include "policy/profile/net_entry.h"
#include "sys/process/proc.h"
#include "sys/process/secret_memory.h"

#define AUTHORITY_MAX 16384
#define JAVA_MAX      (4u << 20)
#define BEGIN	      "-----BEGIN CERTIFICATE-----"

void sbx_tls_process_init(struct sbx_tls_process *t)
{
	*t = (struct sbx_tls_process){ .fd = -1, .broker_fd = -1, .ready_fds = { -1, -1 } };
}

void sbx_tls_process_fini(struct sbx_tls_process *t)
{
	sbx_program_end(&t->pid, &t->fd);
	t->broker_fd = sbx_fd_close(t->broker_fd);
	for (size_t i = 0; i < SBX_N_TLS_READY_FDS; i++)
		t->ready_fds[i] = sbx_fd_close(t->ready_fds[i]);
}

/* --- the rules --- */

_Static_assert(SBX_ACCESS_READ_ONLY == (int)SBX_HTTP_ACCESS_READ_ONLY &&
		       SBX_ACCESS_LISTED == (int)SBX_HTTP_ACCESS_LISTED &&
		       SBX_SECRET_HEADER == (int)SBX_HTTP_INJECT_HEADER &&
		       SBX_SECRET_AWS_SIGV4 == (int)SBX_HTTP_INJECT_AWS_SIGV4 &&
		       SBX_SECRET_IN_HEADER == (int)SBX_HTTP_IN_HEADER &&
		       SBX_SECRET_IN_QUERY == (int)SBX_HTTP_IN_QUERY &&
		       SBX_SECRET_IN_BODY == (int)SBX_HTTP_IN_BODY,
	       "a profile and the rules number alike");
_Static_assert(SBX_PLACEHOLDER_MAX == SBX_HTTP_PLACEHOLDER_MAX &&
		       SBX_PLACEHOLDER_RANDOM_MIN >= SBX_HTTP_PLACEHOLDER_MIN &&
		       SBX_SECRETS_MAX + 2 == SBX_HTTP_SECRETS_MAX,
	       "what the launcher makes fits the rules");

static struct sbx_span span_of(const char *s)
{
	return s ? sbx_span_str(s) : sbx_span(NULL, 0);
}

/* The rules and the texts that they borrow. */
struct rules {
	struct sbx_http_rules r;
	size_t n_texts;
	char *texts[2 * SBX_HTTP_ENTRIES_MAX + SBX_HTTP_SECRETS_MAX * SBX_HTTP_LIST_MAX];
	size_t n_spans; /* of all lists, in one block */
	struct sbx_span *spans;
};

static void rules_free(struct rules *rules)
{
	for (size_t i = 0; i < rules->n_texts; i++)
		free(rules->texts[i]);
	free(rules->r.entries);
	free(rules->r.secrets);
	free(rules->r.live);
	free(rules->spans);
	free(rules);
}
SBX_DEFINE_CLEANUP(struct rules, rules_free);

/* The name as sbx-tls has it, with "*." of a wildcard. An empty span: no memory. */
static struct sbx_span host_of(struct rules *rules, const struct sbx_net_entry *e)
{
	char target[SBX_HOSTNAME_MAX + 3], *text;

	if (rules->n_texts == SBX_N_ELEMENTS(rules->texts))
		return span_of(NULL);
	text = strdup(sbx_net_entry_target(e, target, sizeof(target)));
	if (text)
		rules->texts[rules->n_texts++] = text;
	return span_of(text);
}

static struct sbx_http_list list_of(struct rules *rules, const struct sbx_str_list *l)
{
	struct sbx_http_list list = { .n = l->n, .v = rules->spans + rules->n_spans };

	for (size_t i = 0; i < l->n; i++)
		rules->spans[rules->n_spans++] = span_of(l->v[i]);
	return list;
}

static struct sbx_http_list hosts_of(struct rules *rules, const struct sbx_net_list *l)
{
	struct sbx_http_list list = { .n = l->n, .v = rules->spans + rules->n_spans };

	for (size_t i = 0; i < l->n; i++)
		rules->spans[rules->n_spans++] = host_of(rules, &l->v[i]);
	return list;
}

static void fill_entry(struct rules *rules, const struct sbx_net_entry *e,
		       const struct sbx_secret_mtls *mtls, struct sbx_http_entry *ret)
{
	*ret = (struct sbx_http_entry){
		.text = span_of(e->text),
		.host = host_of(rules, e),
		.access = (uint8_t)e->access,
		.websocket = e->websocket,
		.max_request_bytes = e->max_request_bytes,
		.methods = list_of(rules, &e->methods),
		.paths = list_of(rules, &e->paths),
		.headers = list_of(rules, &e->headers),
		.cert = mtls->cert,
		.key = mtls->key,
	};
}

static void fill_secret(struct rules *rules, const struct sbx_secret *s, struct sbx_span value,
			const char *placeholder, struct sbx_http_secret *ret)
{
	*ret = (struct sbx_http_secret){
		.name = span_of(s->name),
		.placeholder = span_of(placeholder),
		.value = value,
		.hosts = hosts_of(rules, &s->hosts),
		.inject = (uint8_t)s->inject,
		.in = (uint8_t)s->in,
		.override = !s->keep_present,
		.detect = s->detect,
		.header = span_of(s->header),
		.template_text = span_of(s->template_text),
		.methods = list_of(rules, &s->methods),
		.paths = list_of(rules, &s->paths),
	};
}

/* A secret of the self-test, of the host @host. */
static void fill_selftest(struct rules *rules, const struct sbx_selftest_secret *t,
			  const char *host, struct sbx_http_secret *ret)
{
	struct sbx_span *span = &rules->spans[rules->n_spans++];

	*span = span_of(host);
	*ret = (struct sbx_http_secret){
		.name = span_of("SBX_SELFTEST"),
		.placeholder = span_of(t->placeholder),
		.value = span_of(t->value),
		.hosts = { .n = 1, .v = span },
		.inject = SBX_HTTP_INJECT_PLACEHOLDER,
		.in = SBX_HTTP_IN_HEADER,
	};
}

static size_t count_spans(const struct sbx_plan *p)
{
	size_t n = 1 + 2; /* two of the self-test */

	for (size_t i = 0; i < p->tls.n_entries; i++)
		n += p->tls.entries[i]->methods.n + p->tls.entries[i]->paths.n +
		     p->tls.entries[i]->headers.n;
	for (size_t i = 0; i < p->profile->n_secrets; i++)
		n += p->profile->secrets[i].hosts.n + p->profile->secrets[i].methods.n +
		     p->profile->secrets[i].paths.n;
	return n;
}

/* The names whose requests live rules speak of at the start: the authority is for them, too. */
static int fill_live(struct rules *rules, const struct sbx_live_rules *live)
{
	struct sbx_http_rules *r = &rules->r;

	r->live = calloc(live->n + 1, sizeof(*r->live));
	if (!r->live)
		return -ENOMEM;
	for (size_t i = 0; i < live->n; i++) {
		if (!live->v[i].requests)
			continue;
		r->live[r->n_live] = host_of(rules, &live->v[i].entry);
		if (!r->live[r->n_live++].n)
			return -ENOMEM;
	}
	return 0;
}

static int fill_rules(struct rules *rules, const struct sbx_plan *p,
		      const struct sbx_secrets *secrets)
{
	const struct sbx_limits *limits = &sbx_limits_default;
	struct sbx_http_rules *r = &rules->r;

	if (secrets->n != p->profile->n_secrets || secrets->n_mtls != p->tls.n_entries ||
	    p->tls.n_entries > SBX_HTTP_ENTRIES_MAX)
		return -EINVAL;
	sbx_text_fit(r->id, sizeof(r->id), "%s", p->id);
	r->n_leaves = limits->n_leaves;
	r->n_flows = limits->n_flows;
	r->head_bytes = limits->http_head_bytes;
	r->handshake_timeout_ms = limits->handshake_timeout_ms;
	r->idle_timeout_ms = limits->idle_timeout_ms;
	r->java = p->tls.java;
	r->n_entries = p->tls.n_entries;
	r->n_secrets = secrets->n + 2;
	r->entries = calloc(r->n_entries + 1, sizeof(*r->entries));
	r->secrets = calloc(r->n_secrets + 1, sizeof(*r->secrets));
	rules->spans = calloc(count_spans(p), sizeof(*rules->spans));
	if (!r->entries || !r->secrets || !rules->spans)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_entries; i++)
		fill_entry(rules, p->tls.entries[i], &secrets->mtls[i], &r->entries[i]);
	for (size_t i = 0; i < secrets->n; i++)
		fill_secret(rules, &p->profile->secrets[i], secrets->values[i],
			    secrets->placeholders[i], &r->secrets[i]);
	fill_selftest(rules, &secrets->selftest[0], SBX_SELFTEST_NAME, &r->secrets[secrets->n]);
	fill_selftest(rules, &secrets->selftest[1], "other." SBX_SELFTEST_NAME,
		      &r->secrets[secrets->n + 1]);
	return fill_live(rules, &p->live.rules);
}

/* A sealed memfd with the rules. fd or -errno. */
static int make_rules(const struct sbx_plan *p, const struct sbx_secrets *secrets,
		      struct sbx_err *err)
{
	SBX_CLEANUP(rules_freep) struct rules *rules = calloc(1, sizeof(*rules));
	ssize_t n, fd;
	void *bytes;
	int r = rules ? fill_rules(rules, p, secrets) : -ENOMEM;

	n = r < 0 ? r : sbx_http_rules_encode(&rules->r, NULL, 0);
	if (r == 0 && n == -EINVAL)
		sbx_err_set(err, "the rules of terminated hosts are not fit for use: %s",
			    sbx_http_rules_check(&rules->r));
	if (n < 0)
		return (int)n;
	bytes = sbx_secret_memory_new((size_t)n);
	if (!bytes)
		return -errno;
	fd = sbx_http_rules_encode(&rules->r, bytes, (size_t)n);
	if (fd >= 0)
		fd = sbx_memfd_new("sbx-rules", bytes, (size_t)fd);
	sbx_secret_memory_free(bytes, (size_t)n, (size_t)n);
	return (int)fd;
}

/* --- starting --- */

static int configure(struct sbx_tls_process *t, const struct sbx_plan *p,
		     const struct sbx_secrets *secrets, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int rules = make_rules(p, secrets, err), bundle = -1, theirs = -1;
	uint8_t packet[16];
	ssize_t n;
	int e;

	if (rules < 0) {
		sbx_err_set(err, "cannot write the rules of terminated hosts: %s",
			    strerror(-rules));
		return rules;
	}
	bundle = sbx_memfd_new("sbx-trust", p->tls.n_trust ? p->tls.trust : "\n",
			       p->tls.n_trust ? p->tls.n_trust : 1);
	e = bundle < 0 ? bundle : sbx_channel_pair(&t->broker_fd, &theirs);
	if (e < 0)
		return e;
	n = sbx_msg_encode_simple(SBX_MSG_TLS_CONFIG, 0, packet, sizeof(packet));
	if (n < 0)
		return (int)n;
	/* in the order of enum sbx_tls_fd */
	return sbx_program_configure(t->fd, "sbx-tls", packet, (size_t)n,
				     (const int[]){ rules, bundle, theirs }, SBX_N_TLS_FDS, err);
}

int sbx_tls_process_start(struct sbx_tls_process *t, const struct sbx_plan *p,
			  const struct sbx_secrets *secrets, int cgroup_fd, struct sbx_err *err)
{
	int e = sbx_program_start(p->facts, "sbx-tls", NULL, cgroup_fd, &t->pid, &t->fd, err);

	return e < 0 ? e : configure(t, p, secrets, err);
}

/* --- its answers --- */

/* Reads all of @fd, which must be a sealed memfd: another file could block the launcher. 0;
 * -EBADMSG; -ENOMEM; -errno. */
static int read_memfd(int fd, size_t n_max, char **ret_bytes, size_t *ret_n)
{
	void *bytes = NULL;
	int e = sbx_memfd_is_sealed(fd) ? sbx_memfd_load(fd, n_max, &bytes, ret_n) : -EBADMSG;

	*ret_bytes = bytes;
	return e == -EFBIG || (e == 0 && *ret_n == 0) ? -EBADMSG : e;
}

static int read_authority(int fd, struct sbx_setup *s)
{
	SBX_AUTO_FREE char *pem = NULL;
	size_t n = 0;
	int e = read_memfd(fd, AUTHORITY_MAX, &pem, &n);

	if (e < 0)
		return e;
	if (strncmp(pem, BEGIN, strlen(BEGIN)) != 0 || memchr(pem, '\0', n))
		return -EBADMSG;
	return sbx_setup_trust(s, sbx_span(pem, n));
}

static int read_java(int fd, struct sbx_setup *s)
{
	const char der_sequence = 0x30;
	int e = read_memfd(fd, JAVA_MAX, &s->java, &s->n_java);

	return e == 0 && s->java[0] != der_sequence ? -EBADMSG : e;
}

int sbx_tls_process_read_ready(struct sbx_tls_process *t, const struct sbx_plan *p,
			       struct sbx_setup *s, struct sbx_err *err)
{
	int e = read_authority(t->ready_fds[SBX_TRFD_AUTHORITY], s);

	if (e == 0 && p->tls.java)
		e = read_java(t->ready_fds[SBX_TRFD_JAVA], s);
	for (size_t i = 0; i < SBX_N_TLS_READY_FDS; i++)
		t->ready_fds[i] = sbx_fd_close(t->ready_fds[i]);
	if (e == -EBADMSG)
		sbx_err_set(err, "sbx-tls broke its protocol: it sent no certificate");
	else if (e < 0)
		sbx_err_set(err, "cannot read the authority of sbx-tls: %s", strerror(-e));
	return e;
}

void sbx_tls_process_send_secret(const struct sbx_tls_process *t, uint32_t i, int fd)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_SECRET, i, packet, sizeof(packet));

	if (n > 0 && t->fd >= 0)
		sbx_channel_send(t->fd, packet, (size_t)n, &fd, 1);
}
