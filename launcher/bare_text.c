/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes and text for sbx-init without a C library (bare.h). Written to be plainly right: what is
 * copied or compared here is at most a packet. The unit test compiles this file under other names
 * (BARE) and compares each function with the C library's.
 */
#undef _FORTIFY_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/bare.h"

#ifndef BARE
#define BARE(name) name
#endif

/* --- bytes: by one instruction each, which no compiler turns into a call of the function it is in --- */

void *BARE(memcpy)(void *restrict to, const void *restrict from, size_t n)
{
	void *p = to;

	__asm__ volatile("rep movsb" : "+D"(p), "+S"(from), "+c"(n) : : "memory");
	return to;
}

void *BARE(memmove)(void *to, const void *from, size_t n)
{
	uint8_t *p = to;
	const uint8_t *q = from;

	if (p <= q)
		return BARE(memcpy)(to, from, n);
	while (n--)
		p[n] = q[n];
	return to;
}

void *BARE(memset)(void *to, int byte, size_t n)
{
	void *p = to;

	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(byte) : "memory");
	return to;
}

void *BARE(__memcpy_chk)(void *restrict to, const void *restrict from, size_t n, size_t size)
{
	if (n > size)
		sbx_bare_trap();
	return BARE(memcpy)(to, from, n);
}

void *BARE(__memset_chk)(void *to, int byte, size_t n, size_t size)
{
	if (n > size)
		sbx_bare_trap();
	return BARE(memset)(to, byte, n);
}

int BARE(memcmp)(const void *a, const void *b, size_t n)
{
	const uint8_t *p = a, *q = b;

	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p < *q ? -1 : 1;
	return 0;
}

/* What clang makes of a memcmp() of which only "equal or not" is asked. */
int BARE(bcmp)(const void *a, const void *b, size_t n)
{
	return BARE(memcmp)(a, b, n);
}

void *BARE(memchr)(const void *p, int byte, size_t n)
{
	const uint8_t *b = p;

	for (; n; n--, b++)
		if (*b == (uint8_t)byte)
			return (void *)(uintptr_t)b;
	return NULL;
}

/* --- strings --- */

size_t BARE(strnlen)(const char *s, size_t n_max)
{
	size_t n = 0;

	while (n < n_max && s[n])
		n++;
	return n;
}

size_t BARE(strlen)(const char *s)
{
	return BARE(strnlen)(s, SIZE_MAX);
}

int BARE(strncmp)(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++)
		if (*a != *b || !*a)
			return (int)(uint8_t)*a - (int)(uint8_t)*b;
	return 0;
}

int BARE(strcmp)(const char *a, const char *b)
{
	return BARE(strncmp)(a, b, SIZE_MAX);
}

size_t BARE(strcspn)(const char *s, const char *reject)
{
	size_t n = 0;

	for (; s[n]; n++)
		for (const char *r = reject; *r; r++)
			if (s[n] == *r)
				return n;
	return n;
}

/* Decimal only: the one base that is asked for. */
long BARE(strtol)(const char *restrict s, char **restrict ret_end, int base)
{
	const char *p = s;
	bool negative = false;
	long v = 0;

	if (base != 10)
		sbx_bare_trap();
	while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
		p++;
	if (*p == '-' || *p == '+')
		negative = *p++ == '-';
	if (*p < '0' || *p > '9')
		p = s; /* no number: nothing was read */
	for (; *p >= '0' && *p <= '9'; p++) {
		int digit = *p - '0';

		/* Downwards, where there is room for one more. */
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v)) {
			v = LONG_MIN;
			errno = ERANGE;
			while (*p >= '0' && *p <= '9')
				p++;
			break;
		}
	}
	if (ret_end)
		*ret_end = (char *)(uintptr_t)p;
	if (negative)
		return v;
	if (v == LONG_MIN) {
		errno = ERANGE;
		return LONG_MAX;
	}
	return -v;
}

/* --- formatted text --- */

/* Counts what does not fit, and cuts it. */
struct sink {
	char *p;
	size_t n_max, n;
};

static void put(struct sink *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++, s->n++)
		if (s->n + 1 < s->n_max)
			s->p[s->n] = p[i];
}

static void put_number(struct sink *s, uint64_t v, bool negative, unsigned base, bool prefix)
{
	char digits[24];
	size_t at = sizeof(digits);
	bool hex_prefix = prefix && base == 16 && v;

	do {
		digits[--at] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	if (hex_prefix) {
		digits[--at] = 'x';
		digits[--at] = '0';
	}
	if (negative)
		digits[--at] = '-';
	put(s, digits + at, sizeof(digits) - at);
}

/* One directive after its '%': [#] then s, d, u, x, the last three also l and ll. Returns what follows.
 * Another one is a mistake of ours, which the first test that comes by it shows. */
static const char *put_directive(struct sink *s, const char *f, va_list *ap)
{
	bool prefix = *f == '#';
	int n_long = 0;
	const char *text;
	int64_t v;

	f += prefix;
	for (; *f == 'l'; f++)
		n_long++;
	switch (*f) {
	case 's':
		text = va_arg(*ap, const char *);
		put(s, text, BARE(strlen)(text));
		break;
	case 'd':
		v = n_long ? va_arg(*ap, long) : va_arg(*ap, int);
		put_number(s, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0, 10, false);
		break;
	case 'u':
	case 'x':
		put_number(s, n_long ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned), false,
			   *f == 'x' ? 16 : 10, prefix);
		break;
	default:
		sbx_bare_trap();
	}
	return f + 1;
}

int BARE(__vsnprintf_chk)(char *buf, size_t n, int flag, size_t size, const char *fmt, va_list ap)
{
	struct sink s = { .p = buf, .n_max = n };
	va_list args;

	(void)flag;
	if (n > size)
		sbx_bare_trap();
	va_copy(args, ap);
	while (*fmt) {
		size_t plain = BARE(strcspn)(fmt, "%");

		put(&s, fmt, plain);
		fmt += plain;
		if (*fmt)
			fmt = put_directive(&s, fmt + 1, &args);
	}
	va_end(args);
	if (n)
		buf[s.n < n ? s.n : n - 1] = '\0';
	return (int)s.n;
}

int BARE(__snprintf_chk)(char *buf, size_t n, int flag, size_t size, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = BARE(__vsnprintf_chk)(buf, n, flag, size, fmt, ap);
	va_end(ap);
	return r;
}

int BARE(vsnprintf)(char *restrict buf, size_t n, const char *restrict fmt, va_list ap)
{
	return BARE(__vsnprintf_chk)(buf, n, 0, SIZE_MAX, fmt, ap);
}

int BARE(snprintf)(char *restrict buf, size_t n, const char *restrict fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = BARE(__vsnprintf_chk)(buf, n, 0, SIZE_MAX, fmt, ap);
	va_end(ap);
	return r;
}

/* --- what went wrong --- */

/* Those that a probe or the exec may meet; the words of the C library. */
static const struct {
	int error;
	const char *text;
} errors[] = {
	{ EPERM, "Operation not permitted" },
	{ ENOENT, "No such file or directory" },
	{ EINTR, "Interrupted system call" },
	{ EIO, "Input/output error" },
	{ ENXIO, "No such device or address" },
	{ EBADF, "Bad file descriptor" },
	{ EAGAIN, "Resource temporarily unavailable" },
	{ ENOMEM, "Cannot allocate memory" },
	{ EACCES, "Permission denied" },
	{ EFAULT, "Bad address" },
	{ EBUSY, "Device or resource busy" },
	{ EEXIST, "File exists" },
	{ ENODEV, "No such device" },
	{ ENOTDIR, "Not a directory" },
	{ EISDIR, "Is a directory" },
	{ EINVAL, "Invalid argument" },
	{ ENFILE, "Too many open files in system" },
	{ EMFILE, "Too many open files" },
	{ ENOSPC, "No space left on device" },
	{ EROFS, "Read-only file system" },
	{ EPIPE, "Broken pipe" },
	{ ENAMETOOLONG, "File name too long" },
	{ ENOSYS, "Function not implemented" },
	{ ELOOP, "Too many levels of symbolic links" },
	{ EBADMSG, "Bad message" },
	{ EUSERS, "Too many users" },
	{ EMSGSIZE, "Message too long" },
	{ EPROTONOSUPPORT, "Protocol not supported" },
	{ EOPNOTSUPP, "Operation not supported" },
	{ EAFNOSUPPORT, "Address family not supported by protocol" },
	{ EADDRINUSE, "Address already in use" },
	{ EADDRNOTAVAIL, "Cannot assign requested address" },
	{ ENETDOWN, "Network is down" },
	{ ENETUNREACH, "Network is unreachable" },
	{ ECONNABORTED, "Software caused connection abort" },
	{ ECONNRESET, "Connection reset by peer" },
	{ ENOBUFS, "No buffer space available" },
	{ ENOTCONN, "Transport endpoint is not connected" },
	{ ETIMEDOUT, "Connection timed out" },
	{ ECONNREFUSED, "Connection refused" },
	{ EHOSTDOWN, "Host is down" },
	{ EHOSTUNREACH, "No route to host" },
	{ EINPROGRESS, "Operation now in progress" },
};

char *BARE(strerror)(int error)
{
	static char other[32];

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return (char *)(uintptr_t)errors[i].text;
	BARE(snprintf)(other, sizeof(other), "error %d", error);
	return other;
}

/* --- addresses --- */

/* The first of the longest runs of at least two zero groups (RFC 5952 section 4.2): its length, and where
 * it begins. */
static unsigned longest_zeros(const unsigned group[8], unsigned *ret_at)
{
	unsigned best = 1;

	*ret_at = 8;
	for (unsigned i = 0; i < 8; i++) {
		unsigned n = 0;

		while (i + n < 8 && group[i + n] == 0)
			n++;
		if (n > best) {
			best = n;
			*ret_at = i;
		}
	}
	return best;
}

static void put_ipv4(struct sink *s, const uint8_t *b)
{
	for (int i = 0; i < 4; i++) {
		put(s, ".", i > 0);
		put_number(s, b[i], false, 10, false);
	}
}

static void put_ipv6(struct sink *s, const uint8_t *b)
{
	unsigned group[8], at, n;

	for (int i = 0; i < 8; i++)
		group[i] = (unsigned)b[2 * i] << 8 | b[2 * i + 1];
	n = longest_zeros(group, &at);
	for (unsigned i = 0; i < 8; i++) {
		if (i == at) {
			put(s, "::", 2);
			i += n - 1;
			continue;
		}
		put(s, ":", i > 0 && i != at + n);
		/* ::a.b.c.d and ::ffff:a.b.c.d */
		if (i == 6 && at == 0 && (n == 6 || (n == 5 && group[5] == 0xffff))) {
			put_ipv4(s, b + 12);
			return;
		}
		put_number(s, group[i], false, 16, false);
	}
}

/* Macros where the compiler optimises. */
#undef htons
#undef ntohs
uint16_t BARE(htons)(uint16_t v)
{
	return __builtin_bswap16(v);
}

uint16_t BARE(ntohs)(uint16_t v)
{
	return __builtin_bswap16(v);
}

const char *BARE(inet_ntop)(int family, const void *restrict address, char *restrict buf, socklen_t n)
{
	struct sink s = { .p = buf, .n_max = n };

	if (family == AF_INET)
		put_ipv4(&s, address);
	else
		put_ipv6(&s, address);
	if (s.n >= n) {
		errno = ENOSPC;
		return NULL;
	}
	buf[s.n] = '\0';
	return buf;
}
