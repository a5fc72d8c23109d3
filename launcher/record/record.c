/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's row; record_events.c has its events. If the database cannot be opened at the
 * start, the run ends: a command that cannot be recorded is not released. If the database fails
 * later, that is reported once on stderr, and the sandbox goes on.
 */
#include "launcher/record/record.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/record/live_lists.h"
#include "launcher/record/record_internal.h"
#include "launcher/journal/state_change.h"
#include "launcher/rules/database.h"
#include "sys/process/proc.h"

/* To move the write-ahead log (WAL) into the database takes 2.5 ms: four flushes of a disk. A
 * short command would be delayed by that. So the WAL is moved while a longer command runs;
 * beside a short one only if the WAL has become long. */
#define TIDY_AFTER_US	100000
#define WAL_PAGES_WORTH 40
#define WAL_PAGES_LONG	128

/* A command line as a JSON array. Bytes that are not UTF-8 are escaped first. malloc'ed or NULL. */
static char *command_json(char *const *argv)
{
	json_t *list = json_array();
	char buf[4096];
	char *text;

	for (; argv && *argv; argv++)
		json_array_append_new(
			list, json_string(sbx_escape(*argv, strlen(*argv), buf, sizeof(buf))));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

static int insert_row(struct sbx_store *store, const struct sbx_options *o,
		      const struct sbx_facts *f, const char *id, const char *hash,
		      const struct sbx_live *live, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_live_lists_fini) struct sbx_live_lists lists = { 0 };
	SBX_AUTO_FREE char *command = command_json(o->argv);
	int r = sbx_live_lists_init(&lists, live);
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
		.air_gapped = live->air_gapped,
		.allow_json = lists.allow,
		.deny_json = lists.deny,
		.rules_json = lists.rules,
	};

	return command && r == 0 ? sbx_store_sandbox_begin(store, &row, err) : -ENOMEM;
}

/* @exit_status is negative before the end. */
static void announce(const struct sbx_recorder *r, enum sbx_store_state state, int exit_status,
		     const char *why)
{
	sbx_state_change_announce(&(struct sbx_state_change){ .id = r->id,
							      .state = state,
							      .options = r->options,
							      .exit_status = exit_status,
							      .why = why });
}

void sbx_record_set_wait(struct sbx_recorder *r)
{
	sbx_store_set_busy_ms(r->store, r->at_end && !r->failing_since_us ? SBX_STORE_BUSY_MS :
									    SBX_RECORD_BUSY_MS);
}

void sbx_record_name(struct sbx_recorder *r, const char *id, const struct sbx_options *o)
{
	r->id = id;
	r->options = o;
}

int sbx_record_prepare(struct sbx_recorder *r)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	return sbx_fold_new(sbx_limits_default.n_event_keys, SBX_FOLD_LAUNCHER_MS,
			    SBX_FOLD_EARLY_MS, seed, &r->fold);
}

int sbx_record_begin(struct sbx_recorder *r, const struct sbx_facts *f,
		     const struct sbx_policy *policy, const struct sbx_live *live,
		     struct sbx_err *err)
{
	char hash[65];
	int e = sbx_database_open(f, err, &r->store);

	if (e == 0) {
		sbx_policy_hash(policy, hash);
		e = insert_row(r->store, r->options, f, r->id, hash, live, err);
	}
	if (e == SBX_STORE_E_EXISTS)
		sbx_err_set(err, "a sandbox with id %s is recorded already (leave out --id)",
			    r->id);
	if (e == 0) {
		r->has_row = true;
		sbx_record_write(r); /* events that came before the row */
		announce(r, SBX_STATE_PREPARING, -1, NULL);
	}
	return e > 0 ? -EEXIST : e;
}

/* The verdicts, compactly: [["dns_refused", true, "blocked"], ...]. malloc'ed or NULL. */
static char *verdicts_json(const struct sbx_outcome_facts *o)
{
	json_t *list = json_array();
	char *text;

	for (uint32_t i = 0; i < o->verdicts->n_verdicts; i++)
		json_array_append_new(
			list, json_pack("[s, b, s]", sbx_probe_kind_str(o->probes->probes[i].kind),
					o->verdicts->v[i].ok, o->verdicts->v[i].detail));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

void sbx_record_released(struct sbx_recorder *r, bool may_tidy)
{
	r->released = true;
	r->released_ms = (int64_t)sbx_clock_realtime_ms();
	sbx_record_write(r);
	announce(r, SBX_STATE_RUNNING, -1, NULL);
	if (!may_tidy || !r->store)
		return;
	sbx_store_tidy(r->store, WAL_PAGES_LONG);
	r->tidy_at_us = sbx_clock_monotonic_us() + TIDY_AFTER_US;
}

void sbx_record_tidy(struct sbx_recorder *r)
{
	size_t n = 0;

	r->tidy_at_us = 0;
	if (!r->store)
		return;
	sbx_store_tidy(r->store, WAL_PAGES_WORTH);
	if (r->failing_since_us)
		return;
	sbx_record_set_wait(r);
	if (sbx_record_prune(r->store, r->system, NULL, &n) == 1)
		r->tidy_at_us = sbx_clock_monotonic_us() + TIDY_AFTER_US;
}

/* True: the row has its final state. */
static bool write_end(struct sbx_recorder *r, int64_t ended_ms, const struct sbx_outcome_facts *o)
{
	const struct sbx_cgroup_usage *usage = o->cgroup.usage;
	SBX_AUTO_FREE char *selftest = verdicts_json(o);
	struct sbx_err err = { 0 };
	struct sbx_store_end end = {
		.state = o->state,
		.ended_ms = ended_ms,
		.exit_status = o->exit_status,
		.selftest_json = selftest,
		.usage = {
			usage->cpu_us,
			usage->memory_peak_bytes,
			usage->cpu_pressure_us,
			usage->memory_pressure_us,
			usage->io_pressure_us,
		},
	};
	int e;

	sbx_record_set_wait(r);
	e = sbx_store_sandbox_end(r->store, r->id, &end, &err);
	if (e != 0)
		sbx_record_failed(r, e, &err);
	return e == 0 || e == SBX_STORE_E_UNKNOWN;
}

bool sbx_record_end(struct sbx_recorder *r, const struct sbx_outcome_facts *outcome)
{
	int64_t ended_ms = (int64_t)sbx_clock_realtime_ms();
	size_t n_pruned = 0;
	bool done;

	r->at_end = true;
	r->failing_since_us = 0;
	sbx_record_flush_all(r);
	done = !r->has_row || write_end(r, ended_ms, outcome);
	if (!done)
		fprintf(stderr,
			"sbx-run: the end of sandbox %s is not in the database: the next start, or "
			"--gc, puts it there as lost\n",
			r->id);
	sbx_event_entry_send_rest(&r->entries, r->id, r->options);
	announce(r, outcome->state, outcome->exit_status, outcome->why);
	sbx_record_forget_events(r);
	if (done && r->wrote) /* short runs may never come to tidy */
		sbx_record_prune(r->store, r->system, NULL, &n_pruned);
	r->has_row = false;
	r->store = sbx_store_close(r->store);
	r->fold = sbx_fold_free(r->fold);
	return done;
}

void sbx_record_refused(const struct sbx_options *o, const struct sbx_facts *f, const char *why)
{
	struct sbx_store *store = NULL;
	char id[SBX_ID_LEN + 1];
	struct sbx_store_end end = { .state = SBX_STATE_FAILED_POLICY, .exit_status = 125,
				     .usage = SBX_STORE_USAGE_UNKNOWN };
	const struct sbx_live none = { .air_gapped = o->air_gap };
	SBX_AUTO_FREE char *reason = NULL;
	json_t *o_reason = json_pack("{s:s}", "refused", why);

	reason = json_dumps(o_reason, JSON_COMPACT);
	json_decref(o_reason);
	sbx_random_id(id);
	end.ended_ms = (int64_t)sbx_clock_realtime_ms();
	end.receipt_json = reason;
	if (sbx_database_open(f, NULL, &store) == 0 &&
	    insert_row(store, o, f, id, NULL, &none, NULL) == 0)
		sbx_store_sandbox_end(store, id, &end, NULL);
	sbx_store_close(store);
	sbx_state_change_announce(&(struct sbx_state_change){ .id = id,
							      .state = end.state,
							      .options = o,
							      .exit_status = end.exit_status,
							      .why = why });
}
