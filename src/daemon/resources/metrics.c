/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GET /metrics, of the service and all it sees; GET /sandboxes/{id}/metrics, of one sandbox. No
 * label's value comes from a sandbox. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/api/exposition.h"
#include "daemon/http/stats.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "sys/process/proc_tree.h"

/* --- of the process --- */

static int64_t count_fds(void)
{
	SBX_AUTO_CLOSEDIR DIR *dir = opendir("/proc/self/fd");
	int64_t n = 0;

	while (dir && readdir(dir))
		n++;
	return n - 3; /* ".", ".." and its own */
}

static void put_gauge(struct sbx_exposition *x, const char *name, const char *help, double value)
{
	sbx_exposition_begin(x, name, "gauge", help);
	sbx_exposition_add(x, name, NULL, value);
}

static void put_process(struct sbx_exposition *x, const struct sbx_daemon *d)
{
	struct rlimit files = { 0 };
	struct rusage usage = { 0 };
	struct sbx_proc_tree tree = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	getrlimit(RLIMIT_NOFILE, &files);
	sbx_proc_self_read(&tree);
	sbx_exposition_begin(x, "process_cpu_seconds_total", "counter",
			     "Processor time of the service.");
	sbx_exposition_add(x, "process_cpu_seconds_total", NULL,
			   (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	put_gauge(x, "process_resident_memory_bytes", "Resident memory of the service.",
		  (double)tree.memory_bytes);
	put_gauge(x, "process_open_fds", "Open file descriptors.", (double)count_fds());
	put_gauge(x, "process_max_fds", "The most file descriptors that it may open.",
		  (double)files.rlim_cur);
	put_gauge(x, "process_start_time_seconds", "When the service began, since 1970.",
		  (double)d->started_ms / 1000);
}

/* --- of sandboxes --- */

static void put_sandboxes(struct sbx_exposition *x, const struct sbx_daemon *d)
{
	const struct sbx_tally *t = &d->tally;

	sbx_exposition_begin(x, "sbx_sandboxes", "gauge", "Sandboxes that have not ended.");
	for (int i = 0; i < SBX_N_TALLY_STATES; i++)
		sbx_exposition_count(
			x, "sbx_sandboxes",
			(struct sbx_label[]){
				{ "state", sbx_tally_state_str((enum sbx_tally_state)i) },
				{ NULL, NULL } },
			t->live[i]);
	sbx_exposition_begin(x, "sbx_events_total", "counter",
			     "Events of sandboxes since the service began.");
	for (int i = 0; i < SBX_N_ACTIONS; i++)
		sbx_exposition_count(
			x, "sbx_events_total",
			(struct sbx_label[]){ { "action", sbx_action_str((enum sbx_action)i) },
					      { NULL, NULL } },
			t->events[i]);
	sbx_exposition_begin(x, "sbx_denials_total", "counter",
			     "Refusals of sandboxes since the service began.");
	for (int i = 0; i < SBX_N_REASONS; i++)
		sbx_exposition_count(
			x, "sbx_denials_total",
			(struct sbx_label[]){ { "reason", sbx_reason_str((enum sbx_reason)i) },
					      { NULL, NULL } },
			t->denials[i]);
	sbx_exposition_begin(x, "sbx_flows_cut_total", "counter",
			     "Flows cut by changes of a sandbox's network through the service.");
	sbx_exposition_count(x, "sbx_flows_cut_total", NULL, d->n_cut);
}

/* --- of the server --- */

static const char *const classes[SBX_STATS_CLASSES] = { "1xx", "2xx", "3xx", "4xx", "5xx" };

struct named {
	const char *method, *path;
};

/* Requests without a row have an empty route. */
static struct named name_of(const struct sbx_http_stats *s, size_t i)
{
	if (i == s->routes->n)
		return (struct named){ "", "" };
	return (struct named){ sbx_method_str(s->routes->v[i].method), s->routes->v[i].path };
}

static void put_requests(struct sbx_exposition *x, const struct sbx_http_stats *s)
{
	sbx_exposition_begin(x, "sbx_http_requests_total", "counter",
			     "Requests that were answered.");
	for (size_t i = 0; i <= s->routes->n; i++) {
		struct named of = name_of(s, i);

		for (int k = 0; k < SBX_STATS_CLASSES; k++)
			if (s->v[i].by_class[k])
				sbx_exposition_count(x, "sbx_http_requests_total",
						     (struct sbx_label[]){ { "method", of.method },
									   { "route", of.path },
									   { "status", classes[k] },
									   { NULL, NULL } },
						     s->v[i].by_class[k]);
	}
}

static void put_histogram(struct sbx_exposition *x, const struct sbx_route_stats *r,
			  struct named of)
{
	const struct sbx_label labels[] = { { "method", of.method },
					    { "route", of.path },
					    { NULL, NULL } };
	char bound[16];
	uint64_t sum = 0;

	for (int i = 0; i <= SBX_STATS_BUCKETS; i++) {
		sum += r->buckets[i];
		if (i < SBX_STATS_BUCKETS)
			snprintf(bound, sizeof(bound), "%g", sbx_stats_bounds[i]);
		else
			snprintf(bound, sizeof(bound), "+Inf");
		sbx_exposition_count(
			x, "sbx_http_request_duration_seconds_bucket",
			(struct sbx_label[]){
				labels[0], labels[1], { "le", bound }, { NULL, NULL } },
			sum);
	}
	sbx_exposition_add(x, "sbx_http_request_duration_seconds_sum", labels, r->sum_s);
	sbx_exposition_count(x, "sbx_http_request_duration_seconds_count", labels, sum);
}

static void put_server(struct sbx_exposition *x, const struct sbx_http_stats *s)
{
	static const char *const listeners[] = { "unix", "tcp" };

	put_requests(x, s);
	sbx_exposition_begin(x, "sbx_http_request_duration_seconds", "histogram",
			     "From a request's head to its answer; of a stream, to its beginning.");
	for (size_t i = 0; i <= s->routes->n; i++)
		for (int k = 0; k <= SBX_STATS_BUCKETS; k++)
			if (s->v[i].buckets[k]) {
				put_histogram(x, &s->v[i], name_of(s, i));
				break;
			}
	sbx_exposition_begin(x, "sbx_http_connections", "gauge", "Open connections.");
	for (int i = 0; i < 2; i++)
		sbx_exposition_count(
			x, "sbx_http_connections",
			(struct sbx_label[]){ { "listener", listeners[i] }, { NULL, NULL } },
			s->n_connections[i]);
	put_gauge(x, "sbx_followers", "Open streams of events and output.", (double)s->n_streams);
}

void sbx_get_metrics(struct sbx_call *call)
{
	struct sbx_daemon *d = call->daemon;
	struct sbx_exposition x = { 0 };

	if (call->principal.workspace[0] || call->principal.own_only) {
		sbx_reply_problem(call, 403, "denied", NULL,
				  "these are figures of all sandboxes, and you see some of them");
		return;
	}
	sbx_tally_look(&d->tally);
	sbx_exposition_begin(&x, "sbx_build_info", "gauge", "Always 1; the version is a label.");
	sbx_exposition_count(&x, "sbx_build_info",
			     (struct sbx_label[]){ { "version", PACKAGE_VERSION }, { NULL, NULL } },
			     1);
	put_sandboxes(&x, d);
	put_server(&x, sbx_http_stats(d->http));
	put_process(&x, d);
	if (x.failed)
		sbx_reply_json(call, 200, NULL);
	else
		sbx_reply_text(call, 200, SBX_EXPOSITION_MEDIA, x.buf, x.n);
	sbx_exposition_fini(&x);
}

/* --- one sandbox --- */

struct asked {
	struct sbx_call *call;
	json_t *sandbox; /* owned; of the database */
};

/* The figures that the row has. */
static json_t *of_row(const json_t *sandbox)
{
	return json_pack("{s:O, s:n, s:O, s:n, s:n, s:n, s:n, s:n, s:n}", "cpu_us",
			 json_object_get(sandbox, "cpu_us"), "memory_bytes", "memory_peak_bytes",
			 json_object_get(sandbox, "memory_peak_bytes"), "pids", "disk_bytes",
			 "flows", "bytes_out", "bytes_in", "n_denied");
}

static void on_usage(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct asked a = *(struct asked *)userdata;

	free(userdata);
	if (result == 0)
		sbx_reply_json(a.call, 200, json_incref(json_object_get(answer, "usage")));
	else if (result == SBX_CONTROL_E_NONE || result == SBX_CONTROL_E_GONE)
		sbx_reply_json(a.call, 200, of_row(a.sandbox));
	else
		sbx_call_refused(a.call, result, answer, err);
	json_decref(a.sandbox);
}

void sbx_get_sandbox_metrics(struct sbx_call *call)
{
	json_t *sandbox = sbx_call_sandbox(call, call->found.params[0]);
	struct asked *a;

	if (!sandbox)
		return;
	a = json_is_true(json_object_get(sandbox, "live")) ? malloc(sizeof(*a)) : NULL;
	if (!a) {
		sbx_reply_json(call, 200, of_row(sandbox));
		json_decref(sandbox);
		return;
	}
	*a = (struct asked){ call, sandbox };
	sbx_call_ask(call, call->found.params[0], json_pack("{s:s}", "op", "usage"), on_usage, a);
}
