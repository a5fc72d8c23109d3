/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_LISTS_SHIPPED_H
#define SBX_POLICY_LISTS_SHIPPED_H

/*
 * The lists that hold without any configuration; all end with NULL. Each comment says how
 * system.yaml changes the list.
 */

/* Denied to every sandbox whatever a file says: entries in the form of a deny list. */
extern const char *const sbx_shipped_floors[];
/* Names of files and directories that hold credentials. `shipped: drop` in system.yaml drops
 * them. */
extern const char *const sbx_shipped_blocked_segments[];
/* Commands for administering the host. `shipped: drop` in system.yaml drops them. */
extern const char *const sbx_shipped_commands_deny[];
/* Variables that are passed in every profile, besides its environment.pass: none may hold a
 * secret. */
extern const char *const sbx_shipped_env_pass[];
/* Patterns of device nodes that a sandbox may be granted. `devices` in system.yaml replaces
 * them. */
extern const char *const sbx_shipped_devices[];
/* The groups of system calls that a profile may ask for with seccomp.allow, unless system.yaml
 * lists others. */
extern const char *const sbx_shipped_seccomp_allow[];

#endif
