/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * User namespaces: mapping ids, and finding out why the kernel refuses one. The kernel says EPERM
 * or ENOSPC for half a dozen causes. The sysctls tell the cause, so that the message can name it
 * and its remedy.
 */
#include "sys/process/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs/file_text.h"

static long long read_number(const char *path)
{
	char text[32], *end;
	long long v;

	if (sbx_file_text_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -1;
	v = strtoll(text, &end, 10);
	return end == text ? -1 : v;
}

static const char *exhausted_kind(void)
{
	static const char *const kinds[] = { "net", "pid", "mnt" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		char path[64];

		sbx_text_fit(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
		if (read_number(path) == 0)
			return kinds[i];
	}
	return NULL;
}

void sbx_userns_facts_read(struct sbx_userns_facts *ret_facts)
{
	*ret_facts = (struct sbx_userns_facts){
		.max_user_namespaces = read_number("/proc/sys/user/max_user_namespaces"),
		.unprivileged_userns_clone =
			read_number("/proc/sys/kernel/unprivileged_userns_clone"),
		.apparmor_restrict_unprivileged_userns =
			read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.none_of = exhausted_kind(),
	};
}

const char *sbx_userns_explain(int error, const struct sbx_userns_facts *facts, char *buf,
			       size_t n_buf)
{
	if (facts->max_user_namespaces == 0)
		snprintf(buf, n_buf,
			 "user namespaces are turned off (user.max_user_namespaces is 0); as root: "
			 "sysctl -w user.max_user_namespaces=15000");
	else if ((error == ENOSPC || error == EUSERS) && facts->none_of)
		sbx_text_cut(buf, n_buf,
			     "%s namespaces are turned off (user.max_%s_namespaces is 0); as root: "
			     "sysctl -w user.max_%s_namespaces=15000",
			     facts->none_of, facts->none_of, facts->none_of);
	else if (error == ENOSPC || error == EUSERS)
		snprintf(buf, n_buf,
			 "no more user namespaces (user.max_user_namespaces is %lld, or more than "
			 "32 nested); as root: raise it with sysctl -w",
			 facts->max_user_namespaces);
	else if (error == EINVAL)
		snprintf(buf, n_buf,
			 "this kernel has no user, network or pid namespaces (CONFIG_USER_NS, "
			 "CONFIG_NET_NS, CONFIG_PID_NS): another kernel is needed");
	else if ((error == EPERM || error == EACCES) && facts->unprivileged_userns_clone == 0)
		snprintf(buf, n_buf,
			 "user namespaces are for root only (kernel.unprivileged_userns_clone is "
			 "0); as root: sysctl -w kernel.unprivileged_userns_clone=1");
	else if ((error == EPERM || error == EACCES) &&
		 facts->apparmor_restrict_unprivileged_userns == 1)
		snprintf(buf, n_buf,
			 "AppArmor restricts user namespaces "
			 "(kernel.apparmor_restrict_unprivileged_userns is 1); as root: load an "
			 "AppArmor profile with 'userns,' for this program, or sysctl -w "
			 "kernel.apparmor_restrict_unprivileged_userns=0");
	else if (error == EPERM || error == EACCES || error == ENOSYS)
		sbx_text_cut(
			buf, n_buf,
			"user namespaces are refused here (%s), as the filter of a container or a "
			"chroot does; run outside of it, or give the container --security-opt "
			"seccomp=unconfined",
			strerror(error));
	else
		sbx_text_cut(buf, n_buf, "%s", strerror(error));
	return buf;
}

/* Root owns the /proc files of a process that is not dumpable (proc(5)). A launcher with
 * CAP_SETUID may open them with root's file system uid. */
static int open_map(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = errno;

	if (fd >= 0 || error != EACCES)
		return fd < 0 ? -error : fd;
	setfsuid(0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	setfsuid(geteuid());
	return fd < 0 ? -error : fd;
}

/* These files take one write(2). */
static int write_map(const char *path, const char *text)
{
	SBX_AUTO_CLOSE int fd = open_map(path);
	size_t n = strlen(text);
	ssize_t done;

	if (fd < 0)
		return fd;
	done = write(fd, text, n);
	if (done < 0)
		return -errno;
	return (size_t)done == n ? 0 : -EIO;
}

/* @text: the contents for "setgroups", "gid_map" and "uid_map" in @dir ("/proc/self" or
 * "/proc/PID"). */
static int map_in(const char *dir, const char *const text[3], struct sbx_err *err)
{
	static const char *const names[] = { "setgroups", "gid_map", "uid_map" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		char path[64];
		int r;

		if (!text[i])
			continue;
		sbx_text_fit(path, sizeof(path), "%s/%s", dir, names[i]);
		r = write_map(path, text[i]);
		if (r < 0) {
			struct sbx_userns_facts facts;
			char why[512];

			sbx_userns_facts_read(&facts);
			sbx_err_set(err, "cannot write %s: %s", path,
				    sbx_userns_explain(-r, &facts, why, sizeof(why)));
			return r;
		}
	}
	return 0;
}

/* setgroups first: without it the kernel refuses our gid_map, user_namespaces(7). */
static int map_identity(const char *dir, uid_t uid, gid_t gid, struct sbx_err *err)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "%u %u 1", (unsigned int)uid, (unsigned int)uid);
	snprintf(gid_map, sizeof(gid_map), "%u %u 1", (unsigned int)gid, (unsigned int)gid);
	return map_in(dir, (const char *const[]){ "deny", gid_map, uid_map }, err);
}

int sbx_userns_write_maps(pid_t pid, uid_t uid, uid_t outer_uid, gid_t gid, gid_t outer_gid,
			  struct sbx_err *err)
{
	char dir[32], uid_map[64], gid_map[64];

	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	snprintf(uid_map, sizeof(uid_map), "%u %u 1", (unsigned int)uid, (unsigned int)outer_uid);
	snprintf(gid_map, sizeof(gid_map), "%u %u 1", (unsigned int)gid, (unsigned int)outer_gid);
	return map_in(dir, (const char *const[]){ NULL, gid_map, uid_map }, err);
}

int sbx_userns_map_self(uid_t uid, gid_t gid, struct sbx_err *err)
{
	return map_identity("/proc/self", uid, gid, err);
}

int sbx_userns_map_child(pid_t pid, uid_t uid, gid_t gid, struct sbx_err *err)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	return map_identity(dir, uid, gid, err);
}
