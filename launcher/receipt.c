/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The receipt of a run: what was planned, what was proved, how it ended. */
#include "launcher/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/record.h"
#include "sys/proc.h"

static json_t *verdicts(const struct sbx_run *r)
{
	const struct sbx_msg_probes *p = r->plan->probes;
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_probes; i++) {
		const struct sbx_verdict_slot *v = &r->verdicts[i];
		char where[SBX_ADDR_STR_MAX] = "";

		if (p->probes[i].addr.family)
			sbx_addr_format(&p->probes[i].addr, where, sizeof(where));
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:i, s:s}", "probe",
					sbx_probe_kind_str(p->probes[i].kind), "address", where, "name",
					p->probes[i].name, "seen", v->seen, "ok", v->seen && v->ok,
					"elapsed_us", (int)v->elapsed_us, "detail", v->detail));
	}
	return list;
}

static json_t *step_times(const struct sbx_run *r)
{
	json_t *o = json_object();

	for (size_t i = 0; i < sbx_n_steps; i++)
		json_object_set_new(o, sbx_steps[i].name, json_integer(r->step_us[i]));
	return o;
}

static json_t *traffic(const struct sbx_msg_stats *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "flows", (json_int_t)s->flows, "flows_denied",
			 (json_int_t)s->flows_denied, "dns_queries", (json_int_t)s->dns_queries,
			 "dns_refused", (json_int_t)s->dns_refused, "bytes_out",
			 (json_int_t)s->bytes_out, "bytes_in", (json_int_t)s->bytes_in);
}

static json_t *build(const struct sbx_run *r)
{
	SBX_AUTO_FREE char *plan_text = sbx_plan_json(r->plan);
	json_t *o = plan_text ? json_loads(plan_text, 0, NULL) : NULL;
	struct utsname u = { 0 };

	if (!o)
		return NULL;
	uname(&u);
	json_object_set_new(o, "versions", json_pack("{s:s, s:s}", "sbx", PACKAGE_VERSION, "kernel",
						     u.release));
	json_object_set_new(o, "selftest", verdicts(r));
	json_object_set_new(o, "step_us", step_times(r));
	json_object_set_new(o, "traffic", traffic(&r->stats));
	json_object_set_new(o, "outcome",
			    json_pack("{s:s, s:i, s:s, s:b, s:I}", "state", sbx_record_state(r),
				      "exit_status", sbx_run_exit_status(r), "message", r->err.msg,
				      "released", r->released, "elapsed_us",
				      (json_int_t)(sbx_clock_monotonic_us() - r->started_us)));
	return o;
}

static int temporary_name(const char *path, char *buf, size_t n)
{
	return snprintf(buf, n, "%s.sbx-%ld", path, (long)getpid()) < (int)n ? 0 : -ENAMETOOLONG;
}

int sbx_receipt_check(const char *path, struct sbx_err *err)
{
	SBX_AUTO_FREE char *copy = strdup(path);
	struct stat st;

	if (!copy)
		return -ENOMEM;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		sbx_err_set(err, "the receipt %s is not a regular file", path);
		return -EINVAL;
	}
	if (access(dirname(copy), W_OK) < 0) {
		sbx_err_set(err, "cannot write the receipt %s: %s", path, strerror(errno));
		return -errno;
	}
	return 0;
}

static int write_file(const char *path, const char *text)
{
	SBX_AUTO_CLOSE int fd = -1;
	char temporary[4096];
	size_t n = strlen(text), done = 0;
	int e = temporary_name(path, temporary, sizeof(temporary));

	if (e < 0)
		return e;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (done < n) {
		ssize_t w = write(fd, text + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0) {
			e = -errno;
			break;
		}
		done += (size_t)w;
	}
	if (e == 0 && rename(temporary, path) < 0)
		e = -errno;
	if (e < 0)
		unlink(temporary);
	return e;
}

void sbx_receipt_write(struct sbx_run *r)
{
	const char *path = r->plan->options->receipt;
	SBX_AUTO_FREE char *text = NULL;
	json_t *o;
	int e;

	if (!path)
		return;
	o = build(r);
	text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	e = text ? write_file(path, text) : -ENOMEM;
	if (e < 0)
		fprintf(stderr, "sbx-run: cannot write the receipt %s: %s\n", path, strerror(-e));
}
