/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxd: the service. It is a client of what is there: the database, the control sockets of live
 * sandboxes, and sbx-run. It has no rights of its own and holds no sandbox's life.
 *
 * One process, one thread, one loop. Only this file prints errors, on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/stdio.h"
#include "daemon/http/server.h"
#include "daemon/hub/watch.h"
#include "daemon/main/alive.h"
#include "daemon/main/keep.h"
#include "daemon/main/listen.h"
#include "daemon/main/options.h"
#include "daemon/main/route_table.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/rows/recent.h"
#include "daemon/start/start.h"
#include "launcher/host/facts_gather.h"
#include "launcher/rules/database.h"
#include "sys/fs/file_text.h"
#include "sys/process/proc.h"
#include "sys/systemd/notify.h"

SBX_VERSION_MARK;

#define FAILED	    1
#define USAGE	    2
/* The longest wait for another writer at a time: nothing else happens meanwhile. Changes are tried
 * again (sbx_call_again()). */
#define DATABASE_MS 5
#define CACHE_KIB   4096 /* a list of refusals reads some MiB of counts, again and again */
#define PEM_MAX	    65536

#define FILES_MAX   8192 /* as the units say */

static int complain(const struct sbx_err *err, int status)
{
	char buf[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	fprintf(stderr, "sbxd: %s\n", sbx_err_format(err, buf, sizeof(buf)));
	return status;
}

/* At most so many lines about requests that failed, in so long; then one for the rest. */
#define FAILURES_MAX 10
#define FAILURES_S   60

static void on_failed(const char *line)
{
	static uint64_t since_us, n;
	uint64_t now_us = sbx_clock_monotonic_us();

	if (now_us - since_us > FAILURES_S * 1000000ull) {
		if (n > FAILURES_MAX)
			fprintf(stderr, "sbxd: and %llu failures more\n",
				(unsigned long long)(n - FAILURES_MAX));
		since_us = now_us;
		n = 0;
	}
	if (++n > FAILURES_MAX)
		return;
	fputs("sbxd: ", stderr);
	for (; *line; line++)
		fputc((unsigned char)*line < ' ' || *line == 0x7f ? '?' : *line, stderr);
	fputc('\n', stderr);
}

static int load_schemas(struct sbx_daemon *d, struct sbx_err *err)
{
	SBX_AUTO_FREE char *path = NULL;
	json_error_t e;

	if (asprintf(&path, "%s/api-schemas.json", d->facts.data_dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	d->schemas = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (d->schemas)
		return 0;
	sbx_err_set(err, "%s: %s", path, e.text);
	return -EINVAL;
}

/* The page's files; there may be none. */
static int find_page(struct sbx_daemon *d, const struct sbx_daemon_options *o)
{
	int n = o->web ? asprintf(&d->web_dir, "%s", o->web) :
			 asprintf(&d->web_dir, "%s/web", d->facts.data_dir);

	if (n < 0)
		d->web_dir = NULL;
	return n < 0 ? -ENOMEM : 0;
}

/* It has a connection of its own, so that it does not wait as long as a request. */
static int open_counter(struct sbx_daemon *d, struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	struct sbx_store_keep keep;
	struct sbx_err why = { 0 };
	int r = sbx_database_open(&d->facts, err, &store);

	if (r)
		return r;
	/* runs are refused then: the service goes on, and removes nothing */
	if (sbx_keep_read(&d->facts, &keep, &why) < 0)
		complain(&why, FAILED);
	return sbx_counter_new(d->base, store, &keep, &d->counter);
}

/* sbxctl of the same installation. */
static int find_sbxctl(struct sbx_daemon *d)
{
	char dir[4096];
	int r = sbx_proc_exe_dir(dir, sizeof(dir));

	if (r < 0)
		return r;
	if (asprintf(&d->sbxctl, "%s/sbxctl", dir) < 0)
		d->sbxctl = NULL;
	return d->sbxctl ? 0 : -ENOMEM;
}

static int open_parts(struct sbx_daemon *d, const struct sbx_daemon_options *o, struct sbx_err *err)
{
	int r = sbx_facts_gather_places(&d->facts, err);

	d->started_ms = (int64_t)sbx_clock_realtime_ms();
	r = r ? r : find_page(d, o);
	r = r ? r : find_sbxctl(d);
	r = r ? r : load_schemas(d, err);
	r = r ? r : sbx_database_open(&d->facts, err, &d->store);
	if (r)
		return r;
	sbx_store_set_busy_ms(d->store, DATABASE_MS);
	sbx_store_set_cache_kib(d->store, CACHE_KIB);
	d->base = event_base_new();
	r = d->base ? sbx_access_new(&(struct sbx_access_options){ .store = d->store,
								   .hosts = o->hosts,
								   .n_hosts = o->n_hosts },
				     err, &d->access) :
		      -ENOMEM;
	r = r ? r : sbx_children_new(d->base, &d->children);
	r = r ? r : sbx_sampler_new(d->base, d->facts.runtime_dir, &d->sampler);
	r = r ? r : sbx_tally_init(&d->tally, d->base, d->store);
	r = r ? r : sbx_audit_queue_new(d->base, d->store, &d->audit);
	r = r ? r : open_counter(d, err);
	return r ? r : sbx_watch_new(d->base, d->store, sbx_print_event_text, &d->watch);
}

static int open_starts(struct sbx_daemon *d, struct sbx_err *err)
{
	const char *start_socket = getenv("SBX_START_SOCKET");
	int r = sbx_dir_watches_new(d->base, &d->watches);
	const struct sbx_start_places places = {
		.facts = &d->facts,
		.base = d->base,
		.watches = d->watches,
		.start_socket = start_socket && start_socket[0] ? start_socket : NULL,
	};

	if (places.start_socket && start_socket[0] != '/') {
		sbx_err_set(err, "SBX_START_SOCKET is '%s': it must be an absolute path",
			    start_socket);
		return -EINVAL;
	}
	return r ? r : sbx_starts_new(&places, &d->starts);
}

static char *read_pem(const char *path, struct sbx_err *err)
{
	SBX_AUTO_FREE char *text = malloc(PEM_MAX);
	ssize_t n = text ? sbx_file_text_read(AT_FDCWD, path, text, PEM_MAX) : -ENOMEM;

	if (n > 0 && n < PEM_MAX - 1)
		return sbx_steal_ptr(&text);
	sbx_err_set(err, "%s: %s", path, n < 0 ? strerror((int)-n) : "it is empty or too large");
	return NULL;
}

/* PEM texts; NULL: no TLS. */
struct tls {
	char *certificate, *key;
};

static int read_tls(const struct sbx_daemon_options *o, struct tls *tls, struct sbx_err *err)
{
	tls->certificate = o->certificate ? read_pem(o->certificate, err) : NULL;
	tls->key = tls->certificate ? read_pem(o->key, err) : NULL;
	return o->certificate && !tls->key ? -EINVAL : 0;
}

static void tls_fini(struct tls *tls)
{
	free(tls->certificate);
	if (tls->key)
		explicit_bzero(tls->key, strlen(tls->key));
	free(tls->key);
}

static int listen_tcp(struct sbx_http *http, const struct sbx_daemon_options *o,
		      const struct tls *tls, struct sbx_err *err)
{
	for (size_t i = 0; i < o->n_listen; i++) {
		int fd = sbx_listen_tcp(o->listen[i], tls->key != NULL, err);
		int r = fd < 0 ? fd :
				 sbx_http_listen(http, SBX_LISTEN_TCP, fd, tls->certificate,
						 tls->key, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* A socket of systemd. */
static int listen_passed(struct sbx_http *http, int fd, const struct tls *tls, struct sbx_err *err)
{
	int r;

	if (sbx_listen_is_unix(fd))
		return sbx_http_listen(http, SBX_LISTEN_UNIX, fd, NULL, NULL, err);
	r = tls->key ? 0 : sbx_listen_judge(fd, err);
	return r ? r : sbx_http_listen(http, SBX_LISTEN_TCP, fd, tls->certificate, tls->key, err);
}

/* The service's own unix socket. Everybody may connect to root's: the peer's uid is judged. */
static int listen_unix(struct sbx_daemon *d, struct sbx_http *http,
		       const struct sbx_daemon_options *o, struct sbx_err *err)
{
	bool shared = d->facts.privileged;
	int n = o->socket ? asprintf(&d->socket, "%s", o->socket) :
			    asprintf(&d->socket, "%s/api.sock", d->facts.runtime_dir);
	int fd;

	if (n < 0) {
		d->socket = NULL;
		return -ENOMEM;
	}
	if (mkdir(d->facts.runtime_dir, shared ? 0711 : 0700) < 0 && errno != EEXIST) {
		sbx_err_set(err, "%s: %s", d->facts.runtime_dir, strerror(errno));
		return -errno;
	}
	fd = sbx_listen_unix(d->socket, shared ? 0666 : 0600, err);
	if (fd < 0) { /* the file there is another service's */
		free(d->socket);
		d->socket = NULL;
		return fd;
	}
	return sbx_http_listen(http, SBX_LISTEN_UNIX, fd, NULL, NULL, err);
}

static int listen_all(struct sbx_daemon *d, struct sbx_http *http,
		      const struct sbx_daemon_options *o, struct sbx_err *err)
{
	int n = sbx_listen_passed(), r = n == 0 ? listen_unix(d, http, o, err) : 0;
	struct tls tls = { 0 };

	r = r ? r : read_tls(o, &tls, err);
	for (int fd = SBX_LISTEN_PASSED; fd < SBX_LISTEN_PASSED + n && r == 0; fd++)
		r = listen_passed(http, fd, &tls, err);
	r = r ? r : listen_tcp(http, o, &tls, err);
	tls_fini(&tls);
	return r;
}

static void on_signal(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(userdata);
}

/* With the places to call: the socket's depends on the environment. */
static void say_ready(const struct sbx_daemon *d, const struct sbx_daemon_options *o)
{
	fprintf(stderr, "sbxd: ready%s%s", d->socket ? " at " : "", d->socket ? d->socket : "");
	for (size_t i = 0; i < o->n_listen; i++)
		fprintf(stderr, "%s%s", i || d->socket ? ", " : " at ", o->listen[i]);
	fputc('\n', stderr);
}

static int serve(struct sbx_daemon *d, const struct sbx_daemon_options *o, struct sbx_err *err)
{
	const struct sbx_http_options options = { .base = d->base,
						  .routes = d->routes,
						  .access = d->access,
						  .daemon = d,
						  .failed = on_failed };
	struct event *term = evsignal_new(d->base, SIGTERM, on_signal, d->base);
	struct event *interrupt = evsignal_new(d->base, SIGINT, on_signal, d->base);
	struct event *alive = NULL;
	struct sbx_http *http = NULL;
	int r = sbx_http_new(&options, &http);

	d->http = http;
	if (r == 0 &&
	    (!term || !interrupt || event_add(term, NULL) < 0 || event_add(interrupt, NULL) < 0))
		r = -ENOMEM;
	r = r ? r : listen_all(d, http, o, err);
	if (r == 0) {
		sbx_notify_send(getenv("NOTIFY_SOCKET"), "READY=1");
		if (o->foreground || !getenv("NOTIFY_SOCKET"))
			say_ready(d, o);
		alive = sbx_alive_start(d->base);
		event_base_dispatch(d->base);
		sbx_notify_send(getenv("NOTIFY_SOCKET"), "STOPPING=1");
	}
	d->http = sbx_http_free(http);
	if (alive)
		event_free(alive);
	if (term)
		event_free(term);
	if (interrupt)
		event_free(interrupt);
	return r;
}

static void daemon_fini(struct sbx_daemon *d)
{
	sbx_counter_free(d->counter);
	sbx_watch_free(d->watch);
	sbx_children_free(d->children);
	sbx_sampler_free(d->sampler);
	sbx_tally_fini(&d->tally);
	sbx_starts_free(d->starts);
	sbx_dir_watches_free(d->watches);
	sbx_access_free(d->access);
	sbx_audit_queue_free(d->audit);
	sbx_recent_fini(d->recent);
	sbx_store_close(d->store);
	free(d->sbxctl);
	json_decref(d->schemas);
	free(d->web_dir);
	if (d->socket)
		unlink(d->socket);
	free(d->socket);
	sbx_facts_fini(&d->facts);
	if (d->base)
		event_base_free(d->base);
}

/* A shell's usual 1024 are fewer than connections. */
static void allow_files(void)
{
	struct rlimit n;

	if (getrlimit(RLIMIT_NOFILE, &n) < 0 || n.rlim_cur >= FILES_MAX)
		return;
	n.rlim_cur = n.rlim_max < FILES_MAX ? n.rlim_max : FILES_MAX;
	setrlimit(RLIMIT_NOFILE, &n);
}

int main(int argc, char **argv)
{
	struct sbx_recent recent = { 0 };
	struct sbx_daemon d = { .routes = &sbx_routes, .recent = &recent };
	struct sbx_daemon_options o;
	struct sbx_err err = { 0 };
	int r;

	/* Tokens and variables of sandboxes are in memory: no process of the same user reads it,
	 * and there is no core. */
	prctl(PR_SET_DUMPABLE, 0);
	if (sbx_stdio_open() < 0)
		return FAILED;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = sbx_daemon_options_read(&o, argc, argv, &err);
	if (r != 0)
		return complain(&err, r == SBX_OPTION_E_USAGE ? USAGE : FAILED);
	if (o.help || o.version) {
		if (o.help)
			sbx_daemon_print_help();
		else
			printf("sbxd (sbx) " PACKAGE_VERSION "\n");
		return fflush(stdout) == 0 ? 0 : FAILED;
	}
	allow_files();
	r = open_parts(&d, &o, &err);
	r = r ? r : open_starts(&d, &err);
	r = r ? r : serve(&d, &o, &err);
	if (r && !err.msg[0])
		sbx_err_set(&err, "%s", r < 0 ? strerror(-r) : "it cannot start");
	daemon_fini(&d);
	sbx_daemon_options_fini(&o);
	return r ? complain(&err, FAILED) : 0;
}
