/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a table (seccomp_command.c, seccomp_helpers.c) to a filter, by libseccomp.
 *
 * Only the native ABI is in a filter; every other one kills the process. The program is a binary
 * tree over the call numbers (SCMP_FLTATR_CTL_OPTIMIZE 2): a chain of comparisons costs four times
 * as much to install. A row libseccomp does not take as it is (seccomp_rule_add_exact) fails the
 * whole filter: there is no filter with holes.
 */
#include "sys/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp_table.h"

static const struct {
	const char *name;
	const struct sbx_seccomp_table *table;
} profiles[] = {
	[SBX_SECCOMP_COMMAND] = { "command", &sbx_seccomp_command_table },
	[SBX_SECCOMP_BROKER] = { "broker", &sbx_seccomp_broker_table },
	[SBX_SECCOMP_FACTORY] = { "factory", &sbx_seccomp_factory_table },
};
_Static_assert(SBX_N_ELEMENTS(profiles) == SBX_N_SECCOMP_PROFILES, "a table for each profile");

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int add_row(scmp_filter_ctx ctx, const struct sbx_seccomp_row *row)
{
	int last = row->nr_last ? row->nr_last : row->nr;

	for (int nr = row->nr; nr >= 0 && nr <= last; nr++) {
		int r = seccomp_rule_add_exact_array(ctx, row->action, nr, row->n_args, row->args);

		if (r < 0)
			return r;
	}
	return 0;
}

static int build(enum sbx_seccomp_profile which, scmp_filter_ctx *ret_ctx, struct sbx_err *err)
{
	const struct sbx_seccomp_table *table = profiles[which].table;
	SBX_CLEANUP(release) scmp_filter_ctx ctx = seccomp_init(table->default_action);
	int r;

	if (!ctx) {
		sbx_err_set(
			err,
			"cannot make the seccomp filter '%s': out of memory, or an architecture "
			"libseccomp does not know",
			profiles[which].name);
		return -ENOMEM;
	}
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_API_SYSRAWRC, 1);
	for (size_t i = 0; r == 0 && i < table->n_rows; i++) {
		r = add_row(ctx, &table->rows[i]);
		if (r < 0)
			sbx_err_set(err, "libseccomp refuses the row '%s' of the filter '%s': %s",
				    table->rows[i].text, profiles[which].name, strerror(-r));
	}
	if (r < 0) {
		sbx_err_set(err, "cannot make the seccomp filter '%s': %s", profiles[which].name,
			    strerror(-r));
		return r;
	}
	*ret_ctx = ctx;
	ctx = NULL;
	return 0;
}

int sbx_seccomp_install(enum sbx_seccomp_profile which, struct sbx_err *err)
{
	SBX_CLEANUP(release) scmp_filter_ctx ctx = NULL;
	int r = build(which, &ctx, err);

	if (r < 0)
		return r;
	r = seccomp_load(ctx);
	if (r < 0)
		sbx_err_set(err,
			    "cannot install the seccomp filter '%s' (the kernel needs "
			    "CONFIG_SECCOMP_FILTER): %s",
			    profiles[which].name, strerror(-r));
	return r;
}

int sbx_seccomp_write(enum sbx_seccomp_profile which, int fd, struct sbx_err *err)
{
	SBX_CLEANUP(release) scmp_filter_ctx ctx = NULL;
	int r = build(which, &ctx, err);

	if (r < 0)
		return r;
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		sbx_err_set(err, "cannot export the seccomp filter '%s': %s", profiles[which].name,
			    strerror(-r));
	return r;
}

const char *sbx_seccomp_row(enum sbx_seccomp_profile which, size_t i)
{
	const struct sbx_seccomp_table *table = profiles[which].table;

	return i < table->n_rows ? table->rows[i].text : NULL;
}
