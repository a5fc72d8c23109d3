/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checks of `sbxctl doctor`. Each looks at its own facts and says what was seen and what to do.
 *
 * One missing thing is named once: where a namespace cannot be made, the checks that need it are
 * `unknown`, and the check of user namespaces has the cause. A check says `problem` only where
 * sandboxes do not start. PURE.
 */
#include "ctl/doctor/doctor.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "store/store.h"
#include "sys/seccomp/landlock.h"

#define KERNEL_MAJOR   5 /* mount_setattr(2): id-mapped mounts, recursive attributes */
#define KERNEL_MINOR   12
#define BWRAP_MAJOR    0 /* --disable-userns */
#define BWRAP_MINOR    8
#define INSTANCES_MIN  128	  /* the kernel's default */
#define INSTANCES_GOOD 4096	  /* twice what sbx-sandbox.socket lets live at once */
#define LOCKED_MIN     (1u << 20) /* bytes: the secrets of a sandbox, in three processes */

const char *sbx_doctor_state_str(enum sbx_doctor_state s)
{
	static const char *const names[] = { "ok", "unknown", "warning", "problem" };

	static_assert(SBX_N_ELEMENTS(names) == SBX_N_DOCTOR_STATES, "a word per state");
	return (unsigned)s < SBX_N_DOCTOR_STATES ? names[s] : "?";
}

/* --- one check --- */

#define SEEN(c, ...)   sbx_text_cut((c)->seen, sizeof((c)->seen), __VA_ARGS__)
#define REMEDY(c, ...) sbx_text_cut((c)->remedy, sizeof((c)->remedy), __VA_ARGS__)

/* Is "6.1.0-22-amd64" or "0.8.0" at least @major.@minor? False for a text that begins otherwise. */
static bool at_least(const char *version, unsigned long major, unsigned long minor)
{
	char *end;
	unsigned long a = strtoul(version, &end, 10), b;

	if (end == version || *end != '.')
		return false;
	b = strtoul(end + 1, NULL, 10);
	return a > major || (a == major && b >= minor);
}

static void judge_kernel(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	SEEN(c, "Linux %s", f->kernel);
	if (!at_least(f->kernel, KERNEL_MAJOR, KERNEL_MINOR)) {
		c->state = SBX_DOCTOR_PROBLEM;
		REMEDY(c, "sbx needs Linux %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
	} else if (f->openat2.error) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "Linux %s; %s", f->kernel, f->openat2.why);
		REMEDY(c, "run sbx outside of the container, or let the container's filter pass "
			  "openat2");
	}
}

/* A setting that stands in the way, even if the try went well: it may be of another namespace. */
static int setting_error(const struct sbx_userns_facts *u)
{
	if (u->max_user_namespaces == 0 || u->none_of)
		return ENOSPC;
	return u->unprivileged_userns_clone == 0 ? EPERM : 0;
}

/* "seen; as root: remedy", as sbx_userns_explain() writes it, in two. */
static void split(struct sbx_doctor_check *c, const char *text)
{
	const char *at = strstr(text, "; ");

	SEEN(c, "%.*s", at ? (int)(at - text) : (int)strlen(text), text);
	REMEDY(c, "%s", at ? at + 2 : "");
}

static void judge_userns(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	int error = f->namespaces.error ? f->namespaces.error : setting_error(&f->userns);
	char why[768];

	if (error) {
		c->state = SBX_DOCTOR_PROBLEM;
		split(c, f->namespaces.why[0] ?
				 f->namespaces.why :
				 sbx_userns_explain(error, &f->userns, why, sizeof(why)));
	} else if (f->netns.error) {
		c->state = SBX_DOCTOR_PROBLEM;
		split(c, f->netns.why);
	} else {
		SEEN(c,
		     "user, pid, mount and network namespaces can be made "
		     "(user.max_user_namespaces is %lld)",
		     f->userns.max_user_namespaces);
	}
}

static void judge_proc(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->proc.tried) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not tried: there is no namespace to mount it in");
	} else if (f->proc.error) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "a fresh /proc cannot be mounted: %s", f->proc.why);
		REMEDY(c, "let the container show all of /proc (systempaths=unconfined, or "
			  "--privileged)");
	} else {
		SEEN(c, "a fresh /proc can be mounted");
	}
}

static void judge_apparmor(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	static const char *const words[] = { "not in this kernel", "turned off", "on" };
	long long restricts = f->userns.apparmor_restrict_unprivileged_userns;

	SEEN(c, "AppArmor is %s%s%s%s", words[f->apparmor],
	     f->apparmor_label[0] ? "; this process is '" : "", f->apparmor_label,
	     f->apparmor_label[0] ? "'" : "");
	if (f->apparmor != SBX_APPARMOR_ON || restricts != 1)
		return;
	/* The restriction is a problem where it bites, and the check of namespaces says so. */
	SEEN(c, "AppArmor restricts user namespaces "
		"(kernel.apparmor_restrict_unprivileged_userns is 1)");
	c->state =
		f->namespaces.error || f->bwrap_run.error ? SBX_DOCTOR_PROBLEM : SBX_DOCTOR_WARNING;
	REMEDY(c, "as root: load an AppArmor profile with 'userns,' for sbx-run and bwrap, or "
		  "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
}

static void judge_network(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->network.tried) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not tried: there is no network namespace to try it in");
	} else if (f->network.error) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "%s", f->network.why);
		REMEDY(c, "as root: modprobe nf_tables nft_tproxy nft_reject_inet nft_log "
			  "nfnetlink_log, or a kernel that has them");
	} else {
		SEEN(c, "a sandbox's addresses, listeners, ruleset (tproxy, reject, log) and NFLOG "
			"work");
	}
}

static void judge_attach(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->attach.tried) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not tried: %s",
		     f->network.error ? "without the sandbox's own ruleset" :
					"there is no network namespace");
	} else if (f->attach.error) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "no rules by cgroup (network.attach: cgroup): %s", f->attach.why);
		REMEDY(c, "use attach netns, or as root: modprobe nft_socket");
	} else {
		SEEN(c, "rules by cgroup (socket cgroupv2) work%s",
		     f->root ? "" : "; network.attach: cgroup is for root");
	}
}

/* --- control groups --- */

static void list_missing(uint32_t controllers, char *buf, size_t n_buf)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < SBX_N_CGROUP_CONTROLLERS; i++) {
		const char *name = sbx_cgroup_controller_str((enum sbx_cgroup_controller)i);

		if (controllers & SBX_CGROUP_BIT(i) || n >= n_buf)
			continue;
		sbx_text_cut(buf + n, n_buf - n, "%s%s", n ? ", " : "", name);
		n = strlen(buf);
	}
}

static void judge_cgroup(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	char missing[128];

	list_missing(f->place.controllers, missing, sizeof(missing));
	if (!f->cgroup.mount[0]) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "cgroup v2 is not mounted: limits.memory, cpus and pids are not enforced");
		REMEDY(c, "mount it at /sys/fs/cgroup (systemd: boot with "
			  "systemd.unified_cgroup_hierarchy=1; a container: --cgroupns=private)");
	} else if (f->place.source == SBX_CGROUP_NONE && f->scope) {
		SEEN(c, "cgroup v2 at %s; systemd gives each sandbox a scope", f->cgroup.mount);
	} else if (f->place.source == SBX_CGROUP_NONE) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c,
		     "cgroup v2 at %s gives this user no place with controllers: "
		     "limits.memory, cpus and pids are not enforced",
		     f->cgroup.mount);
		REMEDY(c, "run below a unit with Delegate=yes or in a session of systemd; a hybrid "
			  "machine: boot with systemd.unified_cgroup_hierarchy=1");
	} else if (missing[0]) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "%s (%s) lacks the controllers %s", f->place.path,
		     sbx_cgroup_source_str(f->place.source), missing);
		REMEDY(c, "%s",
		       f->place.source == SBX_CGROUP_DIRECT ?
			       "a machine with cgroup v1 beside it: boot with "
			       "systemd.unified_cgroup_hierarchy=1" :
			       "delegate them: Delegate=cpu memory pids io in the unit (for users: "
			       "of user@.service)");
	} else {
		SEEN(c, "%s (%s) has all controllers", f->place.path,
		     sbx_cgroup_source_str(f->place.source));
	}
}

/* --- bwrap and the kernel's filters --- */

static void judge_bwrap(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	const struct sbx_doctor_bwrap *b = &f->bwrap;

	if (!b->path[0]) {
		c->state = SBX_DOCTOR_PROBLEM;
		split(c, b->why);
		REMEDY(c, "apt-get install bubblewrap");
		return;
	}
	SEEN(c, "%s, version %s%s%s", b->path, b->version[0] ? b->version : "unknown",
	     b->set_id ? ", setuid (sbx does not need it)" : "",
	     f->bwrap_run.tried && !f->bwrap_run.error ? "; it works as sandboxes use it" : "");
	c->state = SBX_DOCTOR_PROBLEM;
	if (b->missing[0]) {
		SEEN(c, "%s, version %s, has no %s", b->path, b->version, b->missing);
		REMEDY(c, "install bubblewrap %d.%d or later", BWRAP_MAJOR, BWRAP_MINOR);
	} else if (!at_least(b->version, BWRAP_MAJOR, BWRAP_MINOR)) {
		REMEDY(c, "install bubblewrap %d.%d or later", BWRAP_MAJOR, BWRAP_MINOR);
	} else if (f->bwrap_run.error) {
		SEEN(c, "%s %s fails as sandboxes use it: %s", b->path, b->version,
		     f->bwrap_run.why);
		REMEDY(c, "what it says; under AppArmor it needs a profile with 'userns,'");
	} else {
		c->state = SBX_DOCTOR_OK;
	}
}

static void judge_landlock(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (f->landlock_abi < 2) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "Landlock ABI %d: %s", f->landlock_abi,
		     f->landlock_abi == 0 ?
			     "there is none, and a commands.allow list cannot be held" :
			     "with a commands.allow list files cannot be renamed "
			     "across directories");
		REMEDY(c, "Linux 5.19 or later with 'landlock' in lsm= (a container's filter may "
			  "hide it)");
	} else if (f->landlock_abi < SBX_LANDLOCK_ABI_SCOPES) {
		SEEN(c, "Landlock ABI %d", f->landlock_abi);
		REMEDY(c, "with Linux 6.12 signals and abstract unix sockets are held by it, too");
	} else {
		SEEN(c, "Landlock ABI %d", f->landlock_abi);
	}
}

static void judge_seccomp(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->seccomp_error) {
		SEEN(c, "filters with all the actions that sbx uses");
		return;
	}
	c->state = SBX_DOCTOR_PROBLEM;
	SEEN(c, "seccomp filters cannot be used (error %d)", f->seccomp_error);
	REMEDY(c, "a kernel with CONFIG_SECCOMP_FILTER, in a container that lets seccomp(2) pass");
}

static void judge_trust(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (f->trust_store[0]) {
		SEEN(c, "%s", f->trust_store);
		return;
	}
	c->state = SBX_DOCTOR_WARNING;
	SEEN(c,
	     "no trust store (%s): terminated hosts cannot be reached, and TLS clients inside "
	     "know no authority",
	     f->trust_looked);
	REMEDY(c, "apt-get install ca-certificates");
}

/* --- directories and files of sbx --- */

static void judge_dir(const char *variable, const struct sbx_doctor_facts *f,
		      const struct sbx_doctor_dir *d, struct sbx_doctor_check *c)
{
	if (!d->path[0]) {
		/* Without openat2 nothing is known of paths: the kernel's check says so. */
		c->state = f->openat2.error ? SBX_DOCTOR_UNKNOWN : SBX_DOCTOR_PROBLEM;
		SEEN(c, "%s",
		     f->openat2.error ? "not known" :
		     f->places_why[0] ? f->places_why :
					"it cannot be told");
		if (!f->openat2.error)
			REMEDY(c, "set %s to a directory of this user", variable);
	} else if (d->error) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "%s", d->why);
		REMEDY(c, "make it writable for this user alone, or set %s to a directory that is",
		       variable);
	} else {
		SEEN(c, "%s%s", d->path, d->exists ? "" : " (the first run makes it)");
	}
}

static void judge_state(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	judge_dir("SBX_STATE_DIR", f, &f->state, c);
}

static void judge_runtime(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	judge_dir("SBX_RUNTIME_DIR", f, &f->runtime, c);
}

static void judge_database(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	const struct sbx_doctor_database *d = &f->database;

	if (f->state.error || !f->state.path[0]) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not looked at: it is in the state directory");
		return;
	}
	if (!d->exists && !d->error) {
		SEEN(c, "none yet (the first run makes it)");
		return;
	}
	SEEN(c, "version %lld, whole", (long long)d->version);
	if (d->error) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "%s", d->why);
		REMEDY(c, "move it away (the next run makes a new one), or put a backup in its "
			  "place");
	} else if (d->version > SBX_STORE_VERSION) {
		c->state = SBX_DOCTOR_PROBLEM;
		SEEN(c, "version %lld, and this sbx knows versions up to %d", (long long)d->version,
		     SBX_STORE_VERSION);
		REMEDY(c, "install the newer sbx that made it, or set SBX_STATE_DIR");
	} else if (d->others_read) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "version %lld; other users may read or write it", (long long)d->version);
		REMEDY(c, "chmod 0600 %s/sbx.db*", f->state.path);
	} else if (d->version < SBX_STORE_VERSION) {
		SEEN(c, "version %lld, whole; the next run brings it to version %d",
		     (long long)d->version, SBX_STORE_VERSION);
	}
}

static void judge_programs(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->libexec_dir[0]) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not looked at: their directory cannot be told");
		return;
	}
	SEEN(c, "all of them, helpers in %s, version " PACKAGE_VERSION, f->libexec_dir);
	for (size_t i = 0; i < f->n_programs; i++) {
		const struct sbx_doctor_program *p = &f->programs[i];

		if (p->error && p->optional)
			continue;
		if (!p->error && strcmp(p->version, PACKAGE_VERSION) == 0)
			continue;
		c->state = SBX_DOCTOR_PROBLEM;
		if (p->error)
			SEEN(c, "%s is missing, or cannot be executed (error %d)", p->name,
			     p->error);
		else
			SEEN(c, "%s is of version %s, and sbxctl of " PACKAGE_VERSION, p->name,
			     p->version[0] ? p->version : "unknown");
		REMEDY(c, "install all of sbx anew, in one piece");
		return;
	}
}

/* --- the session and its limits --- */

static void judge_systemd(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (!f->systemd) {
		SEEN(c, "systemd is not pid 1 here; sbx does not need it");
	} else if (!f->user_bus) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "systemd runs, but its bus cannot be reached: no scopes for sandboxes");
		REMEDY(c, "%s",
		       f->root ? "start dbus" :
				 "log in by a session of logind (ssh, machinectl shell), or "
				 "set XDG_RUNTIME_DIR=/run/user/UID");
	} else if (!f->root && !f->lingers) {
		SEEN(c, "systemd with this user's bus; the user does not linger");
		REMEDY(c, "for sandboxes that outlive the last session: loginctl enable-linger");
	} else {
		SEEN(c, "systemd with %s bus", f->root ? "the system's" : "this user's");
	}
}

/* sbxd.service wants the socket, so a service that is not active starts it. */
static void judge_start_socket(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	const struct sbx_doctor_unit *socket = &f->start_socket;
	bool loaded = strcmp(socket->load, "loaded") == 0;
	bool missing = strcmp(socket->load, "not-found") == 0;
	bool serves = strcmp(f->service.active, "inactive") != 0 &&
		      strcmp(f->service.active, "failed") != 0;

	if (!f->systemd) {
		SEEN(c, "systemd is not pid 1 here; sbxd starts sandboxes without it");
	} else if (f->systemctl.error) {
		c->state = SBX_DOCTOR_UNKNOWN;
		SEEN(c, "not known: systemctl does not tell%s%s", f->systemctl.why[0] ? ": " : "",
		     f->systemctl.why);
	} else if (strcmp(f->service.load, "loaded") != 0) {
		SEEN(c, "sbxd.service of the system is not installed");
	} else if (strcmp(socket->active, "active") == 0) {
		SEEN(c, "active: sbxd.service has its sandboxes started through it");
	} else if (loaded && !serves) {
		SEEN(c, "%s, like sbxd.service, which starts it", socket->active);
	} else {
		c->state = serves ? SBX_DOCTOR_PROBLEM : SBX_DOCTOR_WARNING;
		SEEN(c, "%s, and sbxd.service is %s: starts through its API fail (503, no_unit)",
		     loaded ? socket->active : socket->load, f->service.active);
		REMEDY(c, "%sas root: %ssystemctl enable --now sbx-sandbox.socket",
		       missing ? "install all of sbx anew, in one piece; then " : "",
		       missing ? "systemctl daemon-reload; " :
		       !loaded ? "systemctl unmask sbx-sandbox.socket; " :
				 "");
	}
}

static void judge_files(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	struct sbx_limits l = sbx_limits_default;

	sbx_limits_fit(&l, true, f->n_files > UINT32_MAX ? UINT32_MAX : (uint32_t)f->n_files);
	if (f->n_files == UINT64_MAX)
		SEEN(c, "no limit of open files");
	else
		SEEN(c, "%llu open files", (unsigned long long)f->n_files);
	if (l.n_flows >= sbx_limits_default.n_flows)
		return;
	c->state = SBX_DOCTOR_WARNING;
	SEEN(c, "%llu open files: a sandbox has at most %u connections at once, and not %u",
	     (unsigned long long)f->n_files, l.n_flows, sbx_limits_default.n_flows);
	REMEDY(c, "raise the hard limit (limits.conf: nofile; a unit: LimitNOFILE=)");
}

/* Without an instance a sandbox runs, and new protected paths are found when it ends. */
static void judge_inotify(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	const struct sbx_doctor_inotify *i = &f->inotify;
	long long max = i->n_max, wanted = INSTANCES_GOOD;

	if (max < 0) {
		c->state = SBX_DOCTOR_WARNING;
		SEEN(c, "no inotify: new protected paths are not watched for, and found when a "
			"sandbox ends");
		REMEDY(c, "a kernel with CONFIG_INOTIFY_USER");
		return;
	}
	SEEN(c,
	     "%lld instances for each user, of which a live sandbox with writable grants takes "
	     "one, and other programs some: at most %lld such sandboxes at once; %u live now",
	     max, max, i->n_live);
	if (max >= INSTANCES_MIN && i->n_live <= max / 2)
		return;
	c->state = SBX_DOCTOR_WARNING;
	if (wanted < 4ll * i->n_live)
		wanted = 4ll * i->n_live;
	SEEN(c,
	     "%lld instances for each user, and %u live sandboxes, each of which takes one for "
	     "its writable grants: without one new protected paths are found only when the "
	     "sandbox ends",
	     max, i->n_live);
	REMEDY(c, "as root: sysctl -w %s=%lld; to keep it, the same setting in /etc/sysctl.d/",
	       i->setting, wanted);
}

static void judge_locked(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c)
{
	if (f->may_lock || f->n_locked >= LOCKED_MIN) {
		SEEN(c, "secrets stay out of swap");
		return;
	}
	c->state = SBX_DOCTOR_WARNING;
	SEEN(c, "%llu bytes may be locked: values of secrets may be swapped out",
	     (unsigned long long)f->n_locked);
	REMEDY(c, "raise the hard limit to 1 MiB or more (limits.conf: memlock; a unit: "
		  "LimitMEMLOCK=)");
}

/* --- all of them --- */

static const struct {
	const char *name;
	void (*judge)(const struct sbx_doctor_facts *f, struct sbx_doctor_check *c);
} checks[] = {
	{ "kernel", judge_kernel },
	{ "user-namespaces", judge_userns },
	{ "proc", judge_proc },
	{ "apparmor", judge_apparmor },
	{ "nf_tables", judge_network },
	{ "attach-cgroup", judge_attach },
	{ "cgroup", judge_cgroup },
	{ "bwrap", judge_bwrap },
	{ "landlock", judge_landlock },
	{ "seccomp", judge_seccomp },
	{ "trust-store", judge_trust },
	{ "state-directory", judge_state },
	{ "database", judge_database },
	{ "runtime-directory", judge_runtime },
	{ "programs", judge_programs },
	{ "systemd", judge_systemd },
	{ "sbx-sandbox.socket", judge_start_socket },
	{ "open-files", judge_files },
	{ "inotify", judge_inotify },
	{ "locked-memory", judge_locked },
};
static_assert(SBX_N_ELEMENTS(checks) <= SBX_DOCTOR_CHECKS_MAX, "the report has room");

void sbx_doctor_judge(const struct sbx_doctor_facts *f, struct sbx_doctor_report *ret_report)
{
	*ret_report = (struct sbx_doctor_report){ .n = SBX_N_ELEMENTS(checks) };
	for (size_t i = 0; i < SBX_N_ELEMENTS(checks); i++) {
		ret_report->v[i].name = checks[i].name;
		checks[i].judge(f, &ret_report->v[i]);
	}
}

size_t sbx_doctor_count(const struct sbx_doctor_report *r, enum sbx_doctor_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->v[i].state == state;
	return n;
}
