/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The facts for `sbxctl doctor`: files of /proc and /sys, and sbx's own directories, by the code
 * that the launcher finds them with. doctor_try.c has what is tried, doctor_ask.c what other
 * programs tell.
 */
#include "ctl/doctor/doctor_gather.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "base/text.h"
#include "base/version.h"
#include "control/client.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "launcher/host/facts_user.h"
#include "launcher/plan/plan_tls.h"
#include "store/store_look.h"
#include "sys/fs/file_text.h"
#include "sys/fs/path_resolve.h"
#include "sys/process/proc.h"
#include "sys/seccomp/landlock.h"

#define CONTROL_SOCKET "control.sock" /* the longest path below a sandbox's directory */

/* --- the kernel --- */

static void gather_kernel(struct sbx_doctor_facts *f)
{
	struct utsname u;
	struct sbx_err err = { 0 };

	if (uname(&u) == 0)
		sbx_text_cut(f->kernel, sizeof(f->kernel), "%s", u.release);
	f->openat2.tried = true;
	f->openat2.error = sbx_path_check_support(&err) != 0 ? ENOSYS : 0;
	sbx_text_cut(f->openat2.why, sizeof(f->openat2.why), "%s", err.msg);
	sbx_userns_facts_read(&f->userns);
	f->landlock_abi = sbx_landlock_abi();
}

static void gather_seccomp(struct sbx_doctor_facts *f)
{
	const uint32_t actions[] = { SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS,
				     SECCOMP_RET_ALLOW };

	for (size_t i = 0; i < SBX_N_ELEMENTS(actions); i++)
		if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]) < 0)
			f->seccomp_error = errno;
}

static void gather_apparmor(struct sbx_doctor_facts *f)
{
	char text[8];

	if (sbx_file_text_read(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", text,
			       sizeof(text)) <= 0)
		return;
	f->apparmor = text[0] == 'Y' ? SBX_APPARMOR_ON : SBX_APPARMOR_OFF;
	if (f->apparmor != SBX_APPARMOR_ON)
		return;
	sbx_file_text_read(AT_FDCWD, "/proc/self/attr/current", f->apparmor_label,
			   sizeof(f->apparmor_label));
	f->apparmor_label[strcspn(f->apparmor_label, "\n")] = '\0';
}

static uint64_t hard_limit(__rlimit_resource_t which)
{
	struct rlimit l;

	if (getrlimit(which, &l) < 0)
		return 0;
	return l.rlim_max == RLIM_INFINITY ? UINT64_MAX : (uint64_t)l.rlim_max;
}

static void gather_limits(struct sbx_doctor_facts *f)
{
	uint64_t caps = 0;

	f->n_files = hard_limit(RLIMIT_NOFILE);
	f->n_locked = hard_limit(RLIMIT_MEMLOCK);
	f->may_lock = sbx_caps_effective(&caps) == 0 && caps & (UINT64_C(1) << CAP_IPC_LOCK);
}

/* The number in a file of /proc/sys; -1: there is none. */
static int64_t setting(const char *path)
{
	char text[32], *end;
	long long n;

	if (sbx_file_text_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -1;
	n = strtoll(text, &end, 10);
	return end != text && n >= 0 ? n : -1;
}

static uint32_t count_live(const char *runtime_dir)
{
	DIR *dir = opendir(runtime_dir);
	const struct dirent *e;
	uint32_t n = 0;

	while (dir && (e = readdir(dir)))
		n += sbx_control_has_launcher(runtime_dir, e->d_name);
	if (dir)
		closedir(dir);
	return n;
}

/* A user namespace has a limit of its own beside the machine's: the lower one holds. */
static void gather_inotify(struct sbx_doctor_facts *f)
{
	int64_t own = setting("/proc/sys/user/max_inotify_instances");

	f->inotify.n_max = setting("/proc/sys/fs/inotify/max_user_instances");
	f->inotify.setting = "fs.inotify.max_user_instances";
	if (own >= 0 && own < f->inotify.n_max) {
		f->inotify.n_max = own;
		f->inotify.setting = "user.max_inotify_instances";
	}
}

static void gather_trust(struct sbx_doctor_facts *f)
{
	const char *path;

	for (size_t i = 0; !f->trust_store[0] && (path = sbx_trust_store_at(i)); i++) {
		struct stat st;

		if (i == 0)
			sbx_text_cut(f->trust_looked, sizeof(f->trust_looked), "%s", path);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
		    access(path, R_OK) == 0)
			sbx_text_cut(f->trust_store, sizeof(f->trust_store), "%s", path);
	}
}

/* --- control groups and systemd --- */

static void gather_systemd(struct sbx_doctor_facts *f, const struct sbx_facts *facts)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct sbx_user user = { 0 };
	char path[512] = "/run/dbus/system_bus_socket";

	f->cgroup = facts->cgroup;
	f->place = facts->cgroup_place;
	f->scope = facts->scope_helper != NULL;
	/* also where no cgroup has a controller, and the launcher does not ask */
	f->systemd = access("/run/systemd/system", F_OK) == 0; /* sd_booted(3) */
	if (!f->root)
		sbx_text_cut(path, sizeof(path), "%s/bus", runtime ? runtime : "");
	f->user_bus = access(path, F_OK) == 0;
	if (f->root || sbx_user_by_uid(getuid(), &user) != 0)
		return;
	sbx_text_cut(path, sizeof(path), "/var/lib/systemd/linger/%s", user.name);
	f->lingers = access(path, F_OK) == 0;
	sbx_user_fini(&user);
}

/* --- directories of sbx --- */

static void dir_fails(struct sbx_doctor_dir *d, int error, const char *why)
{
	d->error = error;
	sbx_text_cut(d->why, sizeof(d->why), "%s: %s", d->path, why);
}

/* The nearest directory above that exists must be writable for us. */
static void check_makeable(struct sbx_doctor_dir *d)
{
	char above[sizeof(d->path)], why[640], *slash;
	int e = ENOENT;

	sbx_text_fit(above, sizeof(above), "%s", d->path);
	while (e == ENOENT && (slash = strrchr(above, '/'))) {
		slash[slash == above] = '\0';
		e = access(above, W_OK | X_OK) < 0 ? errno : 0;
		if (slash == above)
			break;
	}
	if (e == 0)
		return;
	sbx_text_cut(why, sizeof(why), "it does not exist, and cannot be made in %s: %s", above,
		     strerror(e));
	dir_fails(d, e, why);
}

static void check_dir(struct sbx_doctor_dir *d, const char *path)
{
	struct stat st;

	if (sbx_text_copy(d->path, sizeof(d->path), path) < 0) {
		dir_fails(d, ENAMETOOLONG, "the path is too long");
		return;
	}
	if (stat(path, &st) < 0 && errno == ENOENT) {
		check_makeable(d);
		return;
	}
	if (stat(path, &st) < 0) {
		dir_fails(d, errno, strerror(errno));
		return;
	}
	d->exists = true;
	if (!S_ISDIR(st.st_mode))
		dir_fails(d, ENOTDIR, "it is no directory");
	else if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH))
		dir_fails(d, EPERM, "it must be yours and writable by no other user");
	else if (access(path, R_OK | W_OK | X_OK) < 0)
		dir_fails(d, errno, strerror(errno));
}

/* The control socket's path must fit its address. */
static void check_socket_path(struct sbx_doctor_dir *d)
{
	size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (!d->error && strlen(d->path) + SBX_ID_LEN + strlen("//" CONTROL_SOCKET) > max)
		dir_fails(d, ENAMETOOLONG, "the path is too long for the control sockets in it");
}

static void gather_database(struct sbx_doctor_facts *f)
{
	struct sbx_store_look look;
	struct sbx_err err = { 0 };
	int r;

	if (!f->state.exists || f->state.error)
		return;
	r = sbx_store_look(f->state.path, &look, &err);
	f->database.error = r < 0 ? -r : 0;
	sbx_text_cut(f->database.why, sizeof(f->database.why), "%s", err.msg);
	f->database.exists = look.exists;
	f->database.version = look.version;
	f->database.others_read = look.mode & 077;
}

/* --- sbx's own programs --- */

int sbx_doctor_program_version(const char *path, char *buf, size_t n_buf)
{
	static const char text[] = SBX_VERSION_MARK_TEXT;
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const char *p, *mark;
	struct stat st;
	size_t n;

	buf[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return EACCES;
	n = (size_t)st.st_size;
	p = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (p == MAP_FAILED)
		return n ? errno : ENOEXEC;
	mark = memmem(p, n, text, strlen(text));
	if (mark) {
		const char *version = mark + strlen(text);
		size_t n_left = n - (size_t)(version - p), n_version = strnlen(version, n_left);

		sbx_escape(version, n_version < n_buf ? n_version : n_buf - 1, buf, n_buf);
	}
	munmap((void *)(uintptr_t)p, n);
	return 0;
}

static bool is_missing(const struct sbx_doctor_facts *f, const char *name)
{
	for (size_t i = 0; i < f->n_programs; i++)
		if (strcmp(f->programs[i].name, name) == 0)
			return f->programs[i].error == ENOENT;
	return true;
}

static void add_program(struct sbx_doctor_facts *f, const char *dir, const char *name,
			bool optional)
{
	struct sbx_doctor_program *p = &f->programs[f->n_programs++];
	char path[4096];

	p->name = name;
	p->optional = optional;
	p->error = sbx_text_format(path, sizeof(path), "%s/%s", dir, name) < 0 ?
			   ENAMETOOLONG :
			   sbx_doctor_program_version(path, p->version, sizeof(p->version));
}

/* sbxd is beside sbxctl. A machine without it needs no sbx-output. */
static void gather_programs(struct sbx_doctor_facts *f, const char *libexec_dir)
{
	static const char *const required[] = { "sbx-init", "sbx-broker", "sbx-tls" };
	char self[4096];

	sbx_text_cut(f->libexec_dir, sizeof(f->libexec_dir), "%s", libexec_dir);
	for (size_t i = 0; i < SBX_N_ELEMENTS(required); i++)
		add_program(f, libexec_dir, required[i], false);
	add_program(f, libexec_dir, "sbx-scope", true);
	if (sbx_proc_exe_dir(self, sizeof(self)) < 0)
		return;
	add_program(f, self, "sbxd", true);
	add_program(f, libexec_dir, "sbx-output", is_missing(f, "sbxd"));
}

/* --- all --- */

/* The user of a sandbox: the caller, or with root one that owns nothing. */
static void gather_tries(struct sbx_doctor_facts *f)
{
	uid_t nobody = 65534;

	sbx_doctor_try_all(f, f->root ? nobody : getuid(), f->root ? nobody : getgid());
}

void sbx_doctor_gather(struct sbx_doctor_facts *ret_f)
{
	struct sbx_facts facts = { 0 };
	struct sbx_err err = { 0 };

	*ret_f = (struct sbx_doctor_facts){ .root = geteuid() == 0 };
	gather_kernel(ret_f);
	gather_seccomp(ret_f);
	gather_apparmor(ret_f);
	gather_limits(ret_f);
	gather_inotify(ret_f);
	gather_trust(ret_f);
	if (sbx_facts_gather_places(&facts, &err) == 0) {
		check_dir(&ret_f->state, facts.state_dir);
		check_dir(&ret_f->runtime, facts.runtime_dir);
		check_socket_path(&ret_f->runtime);
		ret_f->inotify.n_live = count_live(facts.runtime_dir);
		gather_programs(ret_f, facts.libexec_dir);
		gather_database(ret_f);
	} else {
		sbx_text_cut(ret_f->places_why, sizeof(ret_f->places_why), "%s", err.msg);
	}
	err = (struct sbx_err){ 0 };
	if (sbx_facts_gather_bwrap(&facts, &err) == 0)
		sbx_text_cut(ret_f->bwrap.path, sizeof(ret_f->bwrap.path), "%s", facts.bwrap);
	else
		sbx_text_cut(ret_f->bwrap.why, sizeof(ret_f->bwrap.why), "%s", err.msg);
	if (sbx_facts_gather_cgroup(&facts) == 0)
		gather_systemd(ret_f, &facts);
	sbx_facts_fini(&facts);
	sbx_doctor_gather_bwrap(ret_f);
	sbx_doctor_gather_units(ret_f);
	gather_tries(ret_f);
}
