/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Names of modes and self-test probes, as profiles, receipts and messages write them. */

#include "base/probe.h"

#include <assert.h>

#include "base/cleanup.h"

static const char *const mode_names[] = {
	[SBX_MODE_OFFLINE] = "offline",
	[SBX_MODE_FETCH] = "fetch",
	[SBX_MODE_FULL] = "full",
};
static_assert(SBX_N_ELEMENTS(mode_names) == SBX_N_MODES, "a word per mode");

static const char *const probe_names[] = {
	[SBX_PROBE_DNS_REFUSED] = "dns_refused",
	[SBX_PROBE_DNS_ALLOWED] = "dns_allowed",
	[SBX_PROBE_CONNECT_REFUSED] = "connect_refused",
	[SBX_PROBE_CONNECT_NAME] = "connect_name",
	[SBX_PROBE_LOOPBACK] = "loopback",
	[SBX_PROBE_RAW_SOCKET] = "raw_socket",
	[SBX_PROBE_RULESET] = "ruleset",
	[SBX_PROBE_USERNS] = "userns",
	[SBX_PROBE_CAPS] = "caps",
	[SBX_PROBE_NO_NEW_PRIVS] = "no_new_privs",
	[SBX_PROBE_SECCOMP] = "seccomp",
	[SBX_PROBE_FDS] = "fds",
	[SBX_PROBE_PATH_ABSENT] = "path_absent",
	[SBX_PROBE_PATH_READONLY] = "path_readonly",
	[SBX_PROBE_MOUNTS] = "mounts",
	[SBX_PROBE_EXEC_REFUSED] = "exec_refused",
	[SBX_PROBE_TRUST] = "trust",
	[SBX_PROBE_SECRET] = "secret",
	[SBX_PROBE_SECRET_REFUSED] = "secret_refused",
	[SBX_PROBE_WATCH_EXECS] = "watch_execs",
};
static_assert(SBX_N_ELEMENTS(probe_names) == SBX_N_PROBE_KINDS, "a word per probe");

const char *sbx_mode_str(enum sbx_mode m)
{
	return (unsigned)m < SBX_N_MODES ? mode_names[m] : "unknown";
}

const char *sbx_probe_kind_str(enum sbx_probe_kind k)
{
	return (unsigned)k < SBX_N_PROBE_KINDS ? probe_names[k] : "unknown";
}
