/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/start/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/start/start.h"
#include "sys/process/proc.h"
#include "sys/systemd/datagram.h"

#define JOB "job.yaml"

int sbx_start_dir(const struct sbx_facts *facts, const char *id, char *out, size_t n_out)
{
	return sbx_text_format(out, n_out, "%s/api/%s", facts->state_dir, id);
}

static int socket_path(const struct sbx_facts *facts, const char *id, char *out, size_t n_out)
{
	return sbx_text_format(out, n_out, "%s/api-%s.sock", facts->runtime_dir, id);
}

static int write_job(const char *dir, const char *job)
{
	SBX_AUTO_CLOSE int fd = -1;
	size_t n = strlen(job);
	char path[PATH_MAX];

	if (sbx_text_format(path, sizeof(path), "%s/" JOB, dir) < 0)
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (n > 0) {
		ssize_t done = write(fd, job, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -ENOSPC;
		job += done;
		n -= (size_t)done;
	}
	return 0;
}

int sbx_place_make(const struct sbx_facts *facts, const char *id, const char *job)
{
	char dir[PATH_MAX];
	int r = sbx_text_format(dir, sizeof(dir), "%s/api", facts->state_dir);

	if (r == 0 && mkdir(dir, 0700) < 0 && errno != EEXIST)
		r = -errno;
	r = r ? r : sbx_start_dir(facts, id, dir, sizeof(dir));
	if (r == 0 && mkdir(dir, 0700) < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = write_job(dir, job);
	if (r < 0)
		sbx_place_remove(facts, id);
	return r;
}

/* The files of the open directory. */
static void empty(DIR *dir)
{
	const struct dirent *e;

	rewinddir(dir);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(dir), e->d_name, 0);
}

void sbx_place_remove(const struct sbx_facts *facts, const char *id)
{
	SBX_AUTO_CLOSEDIR DIR *d = NULL;
	char path[PATH_MAX];

	if (socket_path(facts, id, path, sizeof(path)) == 0)
		unlink(path);
	if (sbx_start_dir(facts, id, path, sizeof(path)) < 0)
		return;
	d = opendir(path);
	if (d)
		empty(d);
	rmdir(path);
}

static int program_path(char *out, size_t n_out)
{
	char dir[PATH_MAX];
	int r = sbx_proc_exe_dir(dir, sizeof(dir));

	return r ? r : sbx_text_format(out, n_out, "%s/sbx-run", dir);
}

static int spawn(const char *path, char *const *argv, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int e = posix_spawn_file_actions_init(&files);

	if (e)
		return -e;
	e = posix_spawnattr_init(&attributes);
	if (e) {
		posix_spawn_file_actions_destroy(&files);
		return -e;
	}
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	for (int fd = 0; fd < 3 && e == 0; fd++)
		e = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	if (e == 0)
		e = posix_spawn(ret_pid, path, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -e;
}

int sbx_place_run(const struct sbx_facts *facts, const char *id, uint64_t max, int start_s,
		  pid_t *ret_pid)
{
	char dir[PATH_MAX], sock[PATH_MAX], job[PATH_MAX], run[PATH_MAX], output[PATH_MAX];
	char bytes[24], seconds[16];
	const char *argv[] = { "sbx-output", "daemon", dir, sock, bytes, seconds, run, "-q",
			       "--job", job, "--id", id, NULL };
	int r, fd;

	sbx_text_fit(bytes, sizeof(bytes), "%llu", (unsigned long long)max);
	sbx_text_fit(seconds, sizeof(seconds), "%d", start_s);
	r = sbx_start_dir(facts, id, dir, sizeof(dir));
	r = r ? r : socket_path(facts, id, sock, sizeof(sock));
	r = r ? r : sbx_text_format(job, sizeof(job), "%s/" JOB, dir);
	r = r ? r : sbx_text_format(output, sizeof(output), "%s/sbx-output", facts->libexec_dir);
	r = r ? r : program_path(run, sizeof(run));
	r = r ? r : spawn(output, (char *const *)(uintptr_t)argv, ret_pid);
	if (r < 0)
		return r;
	fd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	if (fd >= 0)
		return fd;
	r = -errno;
	sbx_proc_reap(ret_pid);
	return r;
}

void sbx_place_kill(const struct sbx_facts *facts, const char *id)
{
	static const char message[] = "KILL=1";
	char path[PATH_MAX];

	if (socket_path(facts, id, path, sizeof(path)) == 0)
		sbx_datagram_send(path, message, sizeof(message) - 1, 0);
}

/* Is no process in it, and is it old enough? */
static bool is_left(int dir_fd, int64_t age_s)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && st.st_mtime < time(NULL) - age_s &&
	       flock(dir_fd, LOCK_EX | LOCK_NB) == 0;
}

int sbx_places_tidy(const struct sbx_facts *facts, int64_t age_s)
{
	SBX_AUTO_CLOSEDIR DIR *all = NULL;
	const struct dirent *e;
	char path[PATH_MAX];
	int n = 0, r = sbx_text_format(path, sizeof(path), "%s/api", facts->state_dir);

	all = r == 0 ? opendir(path) : NULL;
	if (!all)
		return r ? r : errno == ENOENT ? 0 : -errno;
	while ((e = readdir(all))) {
		SBX_AUTO_CLOSE int fd = -1;

		if (!sbx_id_is_valid(e->d_name))
			continue;
		fd = openat(dirfd(all), e->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || !is_left(fd, age_s))
			continue;
		sbx_place_remove(facts, e->d_name);
		n++;
	}
	return n;
}
