/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The static sbx-run loads no code. SQLite comes with a loader of extensions, which is off unless a
 * program turns it on. libpsl, libidn2 and libunistring come with conversions from the locale's
 * encoding, but policy/profile/net_entry.c gives them UTF-8 only. For these a static program's libc
 * would load shared objects, which may be made for another libc. So the calls end here, and fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <iconv.h>
#include <stddef.h>

void *dlopen(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return NULL;
}

/* glibc's internal name of dlopen(). Defining it keeps glibc's own function out of the program, and
 * with it a warning of the linker. Weak, for a glibc that needs its own function after all. */
void *__dlopen(const char *path, int flags);

__attribute__((weak)) void *__dlopen(const char *path, int flags)
{
	return dlopen(path, flags);
}

void *dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

char *dlerror(void)
{
	static char text[] = "sbx-run loads no shared objects";

	return text;
}

iconv_t iconv_open(const char *to, const char *from)
{
	(void)to;
	(void)from;
	errno = EINVAL;
	return (iconv_t)-1;
}

size_t iconv(iconv_t cd, char **in, size_t *n_in, char **out, size_t *n_out)
{
	(void)cd;
	(void)in;
	(void)n_in;
	(void)out;
	(void)n_out;
	errno = EBADF;
	return (size_t)-1;
}

int iconv_close(iconv_t cd)
{
	(void)cd;
	errno = EBADF;
	return -1;
}
