/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The filters' tables as text, to be shown. Apart from seccomp.c, so that a program that only
 * installs a filter (the broker) does not have the rows, whose 200 pointers would be relocated at
 * each start.
 */
#include "base/cleanup.h"
#include "sys/seccomp/seccomp.h"
#include "sys/seccomp/seccomp_table.h"

static const struct sbx_seccomp_table *const tables[] = {
	[SBX_SECCOMP_COMMAND] = &sbx_seccomp_command_table,
	[SBX_SECCOMP_BROKER] = &sbx_seccomp_broker_table,
	[SBX_SECCOMP_FACTORY] = &sbx_seccomp_factory_table,
	[SBX_SECCOMP_FACTORY_TCP] = &sbx_seccomp_factory_tcp_table,
	[SBX_SECCOMP_TLS] = &sbx_seccomp_tls_table,
};
_Static_assert(SBX_N_ELEMENTS(tables) == SBX_N_SECCOMP_PROFILES, "a table for each profile");

const char *sbx_seccomp_row(enum sbx_seccomp_profile which, size_t i, uint32_t *ret_lifts)
{
	const struct sbx_seccomp_table *table = tables[which];

	if (i >= table->n_rows)
		return NULL;
	if (ret_lifts)
		*ret_lifts = table->rows[i].lifts;
	return table->rows[i].text;
}
