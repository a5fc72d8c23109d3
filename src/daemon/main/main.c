/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxd: the service. It is a client of what is there: the database, the control sockets of live
 * sandboxes, and sbx-run. It has no rights of its own and holds no sandbox's life.
 *
 * One process, one thread, one loop. Only this file prints errors, on standard error.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/stdio.h"
#include "daemon/http/server.h"
#include "daemon/main/listen.h"
#include "daemon/main/options.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/resources.h"
#include "launcher/host/facts_gather.h"
#include "launcher/rules/database.h"
#include "sys/systemd/notify.h"

SBX_VERSION_MARK;

#define FAILED	     1
#define USAGE	     2
#define FIRST_PASSED 3
#define DATABASE_MS  250 /* the longest wait for another writer: nothing else happens meanwhile */
#define PEM_MAX	     65536

static int complain(const struct sbx_err *err, int status)
{
	char buf[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	fprintf(stderr, "sbxd: %s\n", sbx_err_format(err, buf, sizeof(buf)));
	return status;
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

static int open_parts(struct sbx_daemon *d, struct sbx_err *err)
{
	int r = sbx_facts_gather_places(&d->facts, err);

	r = r ? r : load_schemas(d, err);
	r = r ? r : sbx_database_open(&d->facts, err, &d->store);
	if (r)
		return r;
	sbx_store_set_busy_ms(d->store, DATABASE_MS);
	d->base = event_base_new();
	return d->base ? sbx_access_new(&d->access) : -ENOMEM;
}

static char *read_pem(const char *path, struct sbx_err *err)
{
	SBX_AUTO_FCLOSE FILE *f = fopen(path, "re");
	SBX_AUTO_FREE char *text = calloc(1, PEM_MAX);
	size_t n = f && text ? fread(text, 1, PEM_MAX, f) : 0;

	if (n > 0 && n < PEM_MAX)
		return sbx_steal_ptr(&text);
	sbx_err_set(err, "%s: %s", path, f ? "it is empty or too large" : strerror(errno));
	return NULL;
}

static int listen_tcp(struct sbx_http *http, const struct sbx_daemon_options *o,
		      struct sbx_err *err)
{
	SBX_AUTO_FREE char *certificate = o->certificate ? read_pem(o->certificate, err) : NULL;
	SBX_AUTO_FREE char *key = o->key ? read_pem(o->key, err) : NULL;

	if (o->certificate && (!certificate || !key))
		return -EINVAL;
	for (size_t i = 0; i < o->n_listen; i++) {
		int fd = sbx_listen_tcp(o->listen[i], certificate != NULL, err);
		int r = fd < 0 ? fd :
				 sbx_http_listen(http, SBX_LISTEN_TCP, fd, certificate, key, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Its own socket, unless systemd passed one. */
static int listen_all(struct sbx_daemon *d, struct sbx_http *http,
		      const struct sbx_daemon_options *o, struct sbx_err *err)
{
	int n = sbx_listen_passed(), r = 0, fd;
	char path[4096];

	for (fd = FIRST_PASSED; fd < FIRST_PASSED + n && r == 0; fd++)
		r = sbx_http_listen(http, sbx_listen_is_unix(fd) ? SBX_LISTEN_UNIX : SBX_LISTEN_TCP,
				    fd, NULL, NULL, err);
	if (r == 0 && n == 0) {
		if (o->socket)
			r = sbx_text_copy(path, sizeof(path), o->socket);
		else
			r = sbx_text_format(path, sizeof(path), "%s/api.sock",
					    d->facts.runtime_dir);
		if (r == 0 && mkdir(d->facts.runtime_dir, d->facts.privileged ? 0711 : 0700) < 0 &&
		    errno != EEXIST)
			r = -errno;
		fd = r ? r : sbx_listen_unix(path, 0600, err);
		r = fd < 0 ? fd : sbx_http_listen(http, SBX_LISTEN_UNIX, fd, NULL, NULL, err);
	}
	return r ? r : listen_tcp(http, o, err);
}

static void on_signal(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(userdata);
}

static int serve(struct sbx_daemon *d, const struct sbx_daemon_options *o, struct sbx_err *err)
{
	const struct sbx_http_options options = {
		.base = d->base, .routes = &sbx_routes, .access = d->access, .daemon = d
	};
	struct event *term = evsignal_new(d->base, SIGTERM, on_signal, d->base);
	struct event *interrupt = evsignal_new(d->base, SIGINT, on_signal, d->base);
	struct sbx_http *http = NULL;
	int r = sbx_http_new(&options, &http);

	if (r == 0 &&
	    (!term || !interrupt || event_add(term, NULL) < 0 || event_add(interrupt, NULL) < 0))
		r = -ENOMEM;
	r = r ? r : listen_all(d, http, o, err);
	if (r == 0) {
		sbx_notify_send(getenv("NOTIFY_SOCKET"), "READY=1");
		if (o->foreground)
			fprintf(stderr, "sbxd: ready\n");
		event_base_dispatch(d->base);
	}
	sbx_http_free(http);
	if (term)
		event_free(term);
	if (interrupt)
		event_free(interrupt);
	return r;
}

static void daemon_fini(struct sbx_daemon *d)
{
	sbx_access_free(d->access);
	sbx_store_close(d->store);
	json_decref(d->schemas);
	sbx_facts_fini(&d->facts);
	if (d->base)
		event_base_free(d->base);
}

int main(int argc, char **argv)
{
	struct sbx_daemon d = { 0 };
	struct sbx_daemon_options o;
	struct sbx_err err = { 0 };
	int r;

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
	r = open_parts(&d, &err);
	r = r ? r : serve(&d, &o, &err);
	if (r && !err.msg[0])
		sbx_err_set(&err, "%s", r < 0 ? strerror(-r) : "it cannot start");
	daemon_fini(&d);
	sbx_daemon_options_fini(&o);
	return r ? complain(&err, FAILED) : 0;
}
