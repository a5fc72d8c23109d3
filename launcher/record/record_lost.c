/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of sandboxes that ended without their launcher. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "launcher/process/runtime_dir.h"
#include "launcher/record/record.h"
#include "launcher/record/record_internal.h"
#include "launcher/journal/state_change.h"
#include "launcher/rules/database.h"
#include "sys/process/proc.h"

/* Set the state `lost`, and tell the journal. 0; SBX_STORE_E_UNKNOWN: the row has a final state;
 * -errno. */
static int end_lost(struct sbx_store *store, const char *id, struct sbx_err *err)
{
	int e;
	struct sbx_store_end end = { .state = SBX_STATE_LOST, .exit_status = -1,
				     .usage = SBX_STORE_USAGE_UNKNOWN };

	end.ended_ms = (int64_t)sbx_clock_realtime_ms();
	e = sbx_store_sandbox_end(store, id, &end, err);
	if (e == 0)
		sbx_state_change_announce(
			&(struct sbx_state_change){ .id = id,
						    .state = end.state,
						    .exit_status = -1,
						    .why = "its launcher is dead" });
	return e;
}

int sbx_record_lost(const struct sbx_facts *f, const char *id, int busy_ms, struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	int e = sbx_database_open(f, err, &store);

	if (e == 0) {
		sbx_store_set_busy_ms(store, busy_ms);
		e = end_lost(store, id, err);
	}
	sbx_store_close(store);
	return e == SBX_STORE_E_UNKNOWN ? 0 : e > 0 ? -EUCLEAN : e;
}

struct dead_rows {
	const struct sbx_facts *facts;
	void (*tell)(const char *id, void *userdata);
	void *userdata;
	struct sbx_err *err;
	struct sbx_store *store;
	int64_t boot_ms;
};

/* A sandbox has its directory as long as its row has no final state: without a directory its run
 * is over. But the directory may be below another SBX_RUNTIME_DIR, so the launcher must be dead
 * as well. If another process has its pid by now, the row stays as it is. */
static int end_if_dead(const struct sbx_store_live *s, void *userdata)
{
	struct dead_rows *rows = userdata;
	bool alive = s->created_ms >= rows->boot_ms && (kill(s->pid, 0) == 0 || errno != ESRCH);
	int e;

	if (alive || sbx_runtime_dir_may_have(rows->facts->runtime_dir, s->id))
		return 0;
	e = end_lost(rows->store, s->id, rows->err);
	if (e == 0)
		rows->tell(s->id, rows->userdata);
	return e == SBX_STORE_E_UNKNOWN ? 0 : e;
}

int sbx_record_sweep(const struct sbx_facts *f, void (*tell)(const char *id, void *userdata),
		     void *userdata, struct sbx_err *err)
{
	struct dead_rows rows = { .facts = f, .tell = tell, .userdata = userdata, .err = err };
	struct timespec up = { 0 };
	char path[4096];
	int e;

	if (snprintf(path, sizeof(path), "%s/sbx.db", f->state_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0; /* do not make one */
	clock_gettime(CLOCK_BOOTTIME, &up);
	rows.boot_ms = (int64_t)sbx_clock_realtime_ms() - (int64_t)up.tv_sec * 1000;
	e = sbx_database_open(f, err, &rows.store);
	if (e == 0)
		e = sbx_store_live_each(rows.store, end_if_dead, &rows, err);
	sbx_store_close(rows.store);
	return e > 0 ? -EUCLEAN : e;
}
