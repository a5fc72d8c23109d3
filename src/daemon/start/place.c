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
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/output/start_line.h"
#include "daemon/start/start.h"
#include "sys/fs/unix_stream.h"
#include "sys/process/proc.h"
#include "sys/systemd/datagram.h"

#define START_MAX_S 60 /* a start takes less: its directory is left alone */

int sbx_start_dir(const struct sbx_facts *facts, const char *id, char *out, size_t n_out)
{
	return sbx_output_dir(facts->state_dir, id, out, n_out);
}

static int write_job(const char *dir, const char *job)
{
	SBX_AUTO_CLOSE int fd = -1;
	size_t n = strlen(job);
	char path[PATH_MAX];

	if (sbx_text_format(path, sizeof(path), "%s/" SBX_OUTPUT_JOB, dir) < 0)
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

	if (sbx_output_socket(facts->runtime_dir, id, path, sizeof(path)) == 0)
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

/* A process whose standard input is @in. It forks at once, so that waiting for it is short. */
static int spawn(const char *path, char *const *argv, int in)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid = 0;
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
	e = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	for (int fd = 1; fd < 3 && e == 0; fd++)
		e = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	if (e == 0)
		e = posix_spawn(&pid, path, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	sbx_proc_reap(&pid);
	return -e;
}

/* A process of our own: the connection to it, or -errno. */
static int connect_process(const struct sbx_facts *facts)
{
	char run[PATH_MAX], output[PATH_MAX];
	const char *argv[] = { "sbx-output",	   "daemon", facts->state_dir,
			       facts->runtime_dir, run,	     NULL };
	int fds[2],
		r = sbx_text_format(output, sizeof(output), "%s/sbx-output", facts->libexec_dir);

	r = r ? r : program_path(run, sizeof(run));
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = spawn(output, (char *const *)(uintptr_t)argv, fds[1]);
	sbx_fd_close(fds[1]);
	if (r == 0)
		return fds[0];
	sbx_fd_close(fds[0]);
	return r;
}

int sbx_place_begin(const struct sbx_facts *facts, const char *start_socket, const char *id)
{
	SBX_AUTO_CLOSE int fd =
		start_socket ? sbx_unix_connect(start_socket) : connect_process(facts);
	char line[SBX_START_LINE_LEN + 1];
	ssize_t n;

	if (fd < 0)
		return sbx_fd_steal(&fd);
	sbx_text_fit(line, sizeof(line), "%s\n", id);
	n = send(fd, line, SBX_START_LINE_LEN, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != SBX_START_LINE_LEN)
		return n < 0 ? -errno : -EAGAIN;
	return sbx_fd_steal(&fd);
}

void sbx_place_kill(const struct sbx_facts *facts, const char *id)
{
	static const char message[] = "KILL=1";
	char path[PATH_MAX];

	if (sbx_output_socket(facts->runtime_dir, id, path, sizeof(path)) == 0)
		sbx_datagram_send(path, message, sizeof(message) - 1, 0);
}

/* Seconds since it was changed. Below 0: a process is in it, or a start is under way. */
static int64_t left_for_s(int dir_fd)
{
	struct stat st;
	int64_t age_s;

	if (fstat(dir_fd, &st) < 0)
		return -1;
	age_s = time(NULL) - st.st_mtime;
	return age_s < START_MAX_S || flock(dir_fd, LOCK_EX | LOCK_NB) < 0 ? -1 : age_s;
}

/* Of sbx-output that was killed: the job may have secrets. */
static void remove_begun(const struct sbx_facts *facts, const char *id, int dir_fd)
{
	char path[PATH_MAX];

	unlinkat(dir_fd, SBX_OUTPUT_JOB, 0);
	if (sbx_output_socket(facts->runtime_dir, id, path, sizeof(path)) == 0)
		unlink(path);
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
		int64_t left_s;

		if (!sbx_id_is_valid(e->d_name))
			continue;
		fd = openat(dirfd(all), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		left_s = fd < 0 ? -1 : left_for_s(fd);
		if (left_s >= 0)
			remove_begun(facts, e->d_name, fd);
		if (left_s <= age_s)
			continue;
		sbx_place_remove(facts, e->d_name);
		n++;
	}
	return n;
}
