/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Privileges of a launcher that is not root.
 *
 * A service gets them as ambient capabilities (capabilities(7); AmbientCapabilities= in
 * systemd.exec(5)), which its administrator gave to this process and the programs it executes.
 * Capabilities of the program's file are refused, as a setuid bit is: every user who may execute
 * the file would have them, and could run sandboxes as any user. A launcher with some
 * capabilities of the table but not all is refused as well: the unit file has a mistake, and an
 * ordinary user's sandbox is not the one that its author meant.
 */
#include "launcher/process/privileges.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* README.md and docs/ARCHITECTURE.md have this table. */
const struct sbx_privilege sbx_privileges[] = {
	{ "CAP_SETUID", "the sandbox and the broker become other users; user namespaces map uids",
	  CAP_SETUID, false },
	{ "CAP_SETGID", "and groups; supplementary ones are dropped", CAP_SETGID, false },
	{ "CAP_SYS_ADMIN", "maps of the sandbox's user namespace; id-mapped mounts", CAP_SYS_ADMIN,
	  false },
	{ "CAP_KILL", "signals for, and the end of, processes of other users", CAP_KILL, false },
	{ "CAP_NET_ADMIN", "attach cgroup: the host's rules, as long as the sandbox runs",
	  CAP_NET_ADMIN, true },
	{ "CAP_NET_BIND_SERVICE", "attach cgroup: the stub's port 53", CAP_NET_BIND_SERVICE, true },
	{ "CAP_DAC_READ_SEARCH", "attach cgroup: cgroups by their id, which --gc asks for",
	  CAP_DAC_READ_SEARCH, true },
};
const size_t sbx_n_privileges = SBX_N_ELEMENTS(sbx_privileges);

static uint64_t mask_of(bool optional)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < sbx_n_privileges; i++)
		if (sbx_privileges[i].optional == optional)
			mask |= 1ull << sbx_privileges[i].cap;
	return mask;
}

uint64_t sbx_privileges_mask(void)
{
	return mask_of(false);
}

uint64_t sbx_privileges_attach_mask(void)
{
	return mask_of(true);
}

int sbx_privileges_judge(const struct sbx_caps *caps, bool *ret_privileged, struct sbx_err *err)
{
	uint64_t mask = sbx_privileges_mask(), have = caps->ambient & mask;
	char missing[128] = "";
	size_t n = 0;

	if (caps->permitted & ~caps->ambient) {
		sbx_err_set(err, "sbx-run has capabilities that are not ambient, as from its file "
				 "(setcap -r takes them "
				 "away): it needs none, or a service's AmbientCapabilities");
		return SBX_PRIVILEGES_E_UNUSABLE;
	}
	for (size_t i = 0; i < sbx_n_privileges; i++)
		if (mask & ~have & 1ull << sbx_privileges[i].cap && n < sizeof(missing))
			n += (size_t)snprintf(missing + n, sizeof(missing) - n, "%s%s",
					      n ? " " : "", sbx_privileges[i].name);
	if (have != 0 && have != mask) {
		sbx_err_set(err,
			    "of the capabilities of a privileged launcher %s is missing: give all "
			    "(AmbientCapabilities) or none",
			    missing);
		return SBX_PRIVILEGES_E_UNUSABLE;
	}
	*ret_privileged = have == mask;
	return 0;
}

int sbx_privileges_take(bool *ret_privileged, struct sbx_err *err)
{
	static bool taken; /* what is left is not ambient any more and must not be judged again */
	struct sbx_caps caps = { 0 };
	int r;

	*ret_privileged = taken;
	if (taken)
		return 0;
	r = sbx_caps_permitted(&caps.permitted);
	if (r == 0 && caps.permitted == 0) /* an ordinary user: one system call is enough */
		return 0;
	if (r == 0)
		r = sbx_caps_read(&caps);
	if (r == 0) {
		r = sbx_privileges_judge(&caps, ret_privileged, err);
		if (r > 0)
			return r;
	}
	if (r == 0)
		r = sbx_caps_keep(
			*ret_privileged ? (mask_of(false) | mask_of(true)) & caps.permitted : 0);
	if (r == 0)
		taken = *ret_privileged;
	if (r < 0)
		sbx_err_set(err, "cannot read or drop capabilities: %s", strerror(-r));
	return r;
}
