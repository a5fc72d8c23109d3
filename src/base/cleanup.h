/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_CLEANUP_H
#define SBX_BASE_CLEANUP_H

/*
 * Ownership by scope: a resource is declared and assigned in one statement with its cleanup and
 * given away with a steal helper. Header-only, so the pure archives stay free of close(2).
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SBX_CLEANUP(fn) __attribute__((cleanup(fn)))
#define SBX_N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

static inline void sbx_freep(void *p)
{
	free(*(void **)p);
}
#define SBX_AUTO_FREE SBX_CLEANUP(sbx_freep)

/* Close unless negative; errno is kept. Returns -1, so that `fd = sbx_fd_close(fd)` reads well. */
static inline int sbx_fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -1;
}

static inline void sbx_fd_closep(int *fd)
{
	*fd = sbx_fd_close(*fd);
}
#define SBX_AUTO_CLOSE SBX_CLEANUP(sbx_fd_closep)

static inline void sbx_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}
#define SBX_AUTO_FCLOSE SBX_CLEANUP(sbx_fclosep)

static inline void sbx_closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define SBX_AUTO_CLOSEDIR SBX_CLEANUP(sbx_closedirp)

static inline int sbx_fd_steal(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

/* A pipe, close-on-exec. 0 or -errno. */
static inline int sbx_fd_pipe(int *ret_read_end, int *ret_write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read_end = fds[0];
	*ret_write_end = fds[1];
	return 0;
}

/* O_NONBLOCK on. 0 or -errno. */
static inline int sbx_fd_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static inline void *sbx_steal_ptr_impl(void *pp)
{
	void **p = pp, *r = *p;

	*p = NULL;
	return r;
}
#define sbx_steal_ptr(pp) ((__typeof__(*(pp)))sbx_steal_ptr_impl(pp))

/* Define a cleanup wrapper for `type *` and its `func(type *)`: SBX_DEFINE_CLEANUP(struct x,
 * x_free) gives x_freep(), used as SBX_CLEANUP(x_freep). */
#define SBX_DEFINE_CLEANUP(type, func)               \
	__attribute__((unused)) static inline void func##p(type **p) \
	{                                            \
		if (*p)                              \
			func(*p);                    \
	}                                            \
	struct sbx_semicolon_##func

#endif
