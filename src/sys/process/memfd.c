/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sealed memfds: they hand configuration to a process that opens no file. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/process/proc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* linux/memfd.h, Linux 6.3: never executable */
#endif

static int create(const char *name)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

int sbx_memfd_new(const char *name, const void *p, size_t n)
{
	SBX_AUTO_CLOSE int fd = create(name);
	const uint8_t *from = p;

	if (fd < 0)
		return fd;
	while (n > 0) {
		ssize_t done = write(fd, from, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		from += done;
		n -= (size_t)done;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}

bool sbx_memfd_is_sealed(int fd)
{
	const int fixed = F_SEAL_SHRINK | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & fixed) == fixed;
}

int sbx_memfd_size(int fd, size_t n_max, size_t *ret_n)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > n_max)
		return -EFBIG;
	*ret_n = (size_t)st.st_size;
	return 0;
}

int sbx_memfd_read(int fd, void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = pread(fd, (uint8_t *)p + at, n - at, (off_t)at);

		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		at += (size_t)r;
	}
	return 0;
}

int sbx_memfd_load(int fd, size_t n_max, void **ret_p, size_t *ret_n)
{
	SBX_AUTO_FREE uint8_t *p = NULL;
	size_t n = 0;
	int r = sbx_memfd_size(fd, n_max, &n);

	if (r < 0)
		return r;
	p = malloc(n + 1);
	if (!p)
		return -ENOMEM;
	r = sbx_memfd_read(fd, p, n);
	if (r < 0)
		return r;
	p[n] = '\0';
	*ret_p = sbx_steal_ptr(&p);
	*ret_n = n;
	return 0;
}
