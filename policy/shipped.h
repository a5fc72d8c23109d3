/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_SHIPPED_H
#define SBX_POLICY_SHIPPED_H

/*
 * The lists that hold without any configuration; all end with NULL. Each comment says how an
 * owner's file changes the list.
 */

/* Denied to every sandbox whatever a file says: entries as a deny list writes them. */
extern const char *const sbx_shipped_floors[];
/* Names in a path behind which credentials lie. system.yaml: `shipped: drop` leaves them out. */
extern const char *const sbx_shipped_blocked_segments[];
/* Commands that are for administering the host. system.yaml: `shipped: drop` leaves them out. */
extern const char *const sbx_shipped_commands_deny[];
/* Handed on in every profile, besides its environment.pass: nothing in it may hold a secret. */
extern const char *const sbx_shipped_env_pass[];
/* Patterns of device nodes that a sandbox may be granted. system.yaml: `devices` is instead of them. */
extern const char *const sbx_shipped_devices[];
/* The calls that a profile may ask for with seccomp.allow where system.yaml does not list them. */
extern const char *const sbx_shipped_seccomp_allow[];

#endif
