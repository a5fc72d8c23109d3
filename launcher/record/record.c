/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's row; record_events.c has its events. A database that cannot be opened at the start stops the run:
 * nothing that cannot be recorded is released. One that fails later is said once on stderr; the sandbox goes on, its
 * refusals stand.
 */
#include "launcher/record/record.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/cleanup/runtime.h"
#include "launcher/run/announce.h"
#include "launcher/record/record_internal.h"
#include "sys/process/proc.h"

/* Moving the WAL into the database is 2.5 ms, four flushes of a disk. A command as short as that would be waited
 * for, so it is done beside one that is not, and beside a short one only where no other came for long. */
#define TIDY_AFTER_US	100000
#define WAL_PAGES_WORTH 40
#define WAL_PAGES_LONG	128

int sbx_record_open_store(const struct sbx_facts *f, struct sbx_err *err, struct sbx_store **ret_store)
{
	char migrations[4096];

	if (snprintf(migrations, sizeof(migrations), "%s/migrations", f->data_dir) >=
	    (int)sizeof(migrations))
		return -ENAMETOOLONG;
	return sbx_store_open(f->state_dir, migrations, err, ret_store);
}

/* A command line as a JSON array; bytes that are not UTF-8 are escaped first. malloc'ed or NULL. */
static char *command_json(char *const *argv)
{
	json_t *list = json_array();
	char buf[4096];
	char *text;

	for (; argv && *argv; argv++)
		json_array_append_new(list,
				      json_string(sbx_escape(*argv, strlen(*argv), buf, sizeof(buf))));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

static int insert_row(struct sbx_store *store, const struct sbx_options *o, const struct sbx_facts *f,
		      const char *id, const char *hash, struct sbx_err *err)
{
	SBX_AUTO_FREE char *command = command_json(o->argv);
	struct sbx_store_sandbox row = {
		.id = id,
		.analysis_id = o->analysis_id,
		.workspace = o->workspace,
		.profile = o->profile,
		.policy_hash = hash,
		.command_json = command,
		.pid = getpid(),
		.uid = f->uid,
		.created_ms = (int64_t)sbx_clock_realtime_ms(),
	};

	return command ? sbx_store_sandbox_begin(store, &row, err) : -ENOMEM;
}

/* @exit_status is negative before the end. */
static void announce(const struct sbx_run *r, enum sbx_store_state state, int exit_status)
{
	sbx_announce_state(&(struct sbx_state_change){ .id = r->plan->id, .state = state, .options = r->options,
						       .exit_status = exit_status, .why = r->err.msg });
}

void sbx_record_set_wait(struct sbx_run *r)
{
	sbx_store_set_busy_ms(r->store, r->at_end && !r->failing_since_us ? SBX_STORE_BUSY_MS : SBX_RECORD_BUSY_MS);
}

int sbx_record_prepare(struct sbx_run *r)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	return sbx_fold_new(sbx_limits_default.n_event_keys, seed, &r->fold);
}

int sbx_record_begin(struct sbx_run *r)
{
	char hash[65];
	int e;

	e = sbx_record_open_store(r->plan->facts, &r->err, &r->store);
	if (e == 0) {
		sbx_policy_hash(r->plan->policy, hash);
		e = insert_row(r->store, r->plan->options, r->plan->facts, r->plan->id, hash, &r->err);
	}
	if (e == SBX_STORE_E_EXISTS)
		sbx_err_set(&r->err, "a sandbox with id %s is recorded already (leave out --id)",
			    r->plan->id);
	if (e == 0) {
		r->row = true;
		sbx_record_write(r); /* what came before the row */
		announce(r, SBX_STATE_PREPARING, -1);
	}
	return e > 0 ? -EEXIST : e;
}

/* The verdicts, compactly: [["dns_refused", true, "blocked"], ...]. malloc'ed or NULL. */
static char *verdicts_json(const struct sbx_run *r)
{
	json_t *list = json_array();
	char *text;

	for (uint32_t i = 0; i < r->verdicts.n_verdicts; i++)
		json_array_append_new(
			list, json_pack("[s, b, s]",
					sbx_probe_kind_str(r->plan->probes->probes[i].kind),
					r->verdicts.v[i].ok, r->verdicts.v[i].detail));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

void sbx_record_released(struct sbx_run *r)
{
	r->released_ms = (int64_t)sbx_clock_realtime_ms();
	sbx_record_write(r);
	announce(r, SBX_STATE_RUNNING, -1);
	if (r->plan->attach.on || !r->store)
		return; /* the command may be waiting for its pins */
	sbx_store_tidy(r->store, WAL_PAGES_LONG);
	r->tidy_at_us = sbx_clock_monotonic_us() + TIDY_AFTER_US;
}

void sbx_record_tidy(struct sbx_run *r)
{
	r->tidy_at_us = 0;
	if (r->store)
		sbx_store_tidy(r->store, WAL_PAGES_WORTH);
}

static enum sbx_store_state final_state(const struct sbx_run *r)
{
	if (r->interrupted && !r->released)
		return SBX_STATE_KILLED;
	switch (r->outcome) {
	case SBX_OUTCOME_DONE:
		return SBX_STATE_DONE;
	case SBX_OUTCOME_TIMED_OUT:
		return SBX_STATE_TIMED_OUT;
	case SBX_OUTCOME_OOM_KILLED:
		return SBX_STATE_OOM_KILLED;
	case SBX_OUTCOME_LOST:
		return SBX_STATE_KILLED;
	default:
		return SBX_STATE_FAILED_SAFETY_SETUP;
	}
}

const char *sbx_record_state(const struct sbx_run *r)
{
	return sbx_store_state_str(final_state(r));
}

/* Did it work? */
static bool write_end(struct sbx_run *r, int64_t ended_ms, int exit_status)
{
	SBX_AUTO_FREE char *selftest = verdicts_json(r);
	struct sbx_err err = { 0 };
	struct sbx_store_end end = {
		.state = final_state(r),
		.ended_ms = ended_ms,
		.exit_status = exit_status,
		.selftest_json = selftest,
		.usage = {
			r->cgroup.usage.cpu_us,
			r->cgroup.usage.memory_peak_bytes,
			r->cgroup.usage.cpu_pressure_us,
			r->cgroup.usage.memory_pressure_us,
			r->cgroup.usage.io_pressure_us,
		},
	};
	int e;

	sbx_record_set_wait(r);
	e = sbx_store_sandbox_end(r->store, r->plan->id, &end, &err);
	if (e != 0)
		sbx_record_failed(r, e, &err);
	return e == 0 || e == SBX_STORE_E_UNKNOWN;
}

void sbx_record_end(struct sbx_run *r, int exit_status)
{
	int64_t ended_ms = (int64_t)sbx_clock_realtime_ms();

	r->at_end = true;
	r->failing_since_us = 0;
	sbx_record_flush_all(r);
	if (r->row && !write_end(r, ended_ms, exit_status)) {
		fprintf(stderr, "sbx-run: the end of sandbox %s is not in the database: the next start, or --gc, puts "
			"it there as lost\n", r->plan->id);
		r->swept_later = true;
	}
	announce(r, final_state(r), exit_status);
	sbx_record_forget_events(r);
	r->row = false;
	r->store = sbx_store_close(r->store);
	r->fold = sbx_fold_free(r->fold);
}

void sbx_record_refused(const struct sbx_options *o, const struct sbx_facts *f, const char *why)
{
	struct sbx_store *store = NULL;
	char id[SBX_ID_LEN + 1];
	struct sbx_store_end end = { .state = SBX_STATE_FAILED_POLICY, .exit_status = 125,
				     .usage = SBX_STORE_USAGE_UNKNOWN };
	SBX_AUTO_FREE char *reason = NULL;
	json_t *o_reason = json_pack("{s:s}", "refused", why);

	reason = json_dumps(o_reason, JSON_COMPACT);
	json_decref(o_reason);
	sbx_random_id(id);
	end.ended_ms = (int64_t)sbx_clock_realtime_ms();
	end.receipt_json = reason;
	if (sbx_record_open_store(f, NULL, &store) == 0 && insert_row(store, o, f, id, NULL, NULL) == 0)
		sbx_store_sandbox_end(store, id, &end, NULL);
	sbx_store_close(store);
	sbx_announce_state(&(struct sbx_state_change){ .id = id, .state = end.state, .options = o,
						       .exit_status = end.exit_status, .why = why });
}

/* `lost`, and the journal hears of it. 0; SBX_STORE_E_UNKNOWN: it has ended before; -errno. */
static int end_lost(struct sbx_store *store, const char *id, struct sbx_err *err)
{
	int e;
	struct sbx_store_end end = { .state = SBX_STATE_LOST, .exit_status = -1,
				     .usage = SBX_STORE_USAGE_UNKNOWN };

	end.ended_ms = (int64_t)sbx_clock_realtime_ms();
	e = sbx_store_sandbox_end(store, id, &end, err);
	if (e == 0)
		sbx_announce_state(&(struct sbx_state_change){ .id = id, .state = end.state, .exit_status = -1,
							       .why = "its launcher is dead" });
	return e;
}

int sbx_record_lost(const struct sbx_facts *f, const char *id, int busy_ms, struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	int e = sbx_record_open_store(f, err, &store);

	if (e == 0) {
		sbx_store_set_busy_ms(store, busy_ms);
		e = end_lost(store, id, err);
	}
	sbx_store_close(store);
	return e == SBX_STORE_E_UNKNOWN ? 0 : e > 0 ? -EUCLEAN : e;
}

struct gc_rows {
	struct sbx_gc *gc;
	struct sbx_err *err;
	struct sbx_store *store;
	int64_t boot_ms;
};

/* Without a directory it is over: that is there as long as the row has no final state. Unless it is in another
 * runtime directory, so the launcher must be dead, too; where its pid is somebody else's by now, the row waits. */
static int end_if_dead(const struct sbx_store_live *s, void *userdata)
{
	struct gc_rows *rows = userdata;
	bool alive = s->created_ms >= rows->boot_ms && (kill(s->pid, 0) == 0 || errno != ESRCH);

	int e;

	if (alive || sbx_runtime_exists(rows->gc->facts, s->id))
		return 0;
	e = end_lost(rows->store, s->id, rows->err);
	if (e == 0)
		sbx_gc_say(rows->gc, "sandbox %s is recorded as lost", s->id);
	return e == SBX_STORE_E_UNKNOWN ? 0 : e;
}

int sbx_record_gc(struct sbx_gc *gc, struct sbx_err *err)
{
	struct gc_rows rows = { .gc = gc, .err = err };
	struct timespec up = { 0 };
	char path[4096];
	int e;

	if (snprintf(path, sizeof(path), "%s/sbx.db", gc->facts->state_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0; /* and none is made for it */
	clock_gettime(CLOCK_BOOTTIME, &up);
	rows.boot_ms = (int64_t)sbx_clock_realtime_ms() - (int64_t)up.tv_sec * 1000;
	e = sbx_record_open_store(gc->facts, err, &rows.store);
	if (e == 0)
		e = sbx_store_live_each(rows.store, end_if_dead, &rows, err);
	sbx_store_close(rows.store);
	return e > 0 ? -EUCLEAN : e;
}
