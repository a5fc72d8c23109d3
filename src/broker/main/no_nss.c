/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The static broker has no name service switch. libevent and c-ares contain calls into it that the
 * broker never reaches: it resolves with ares_query alone. In a static program these calls would
 * pull in libc's loader of shared objects. They could give no answer either: seccomp lets the
 * broker open no file and no AF_UNIX socket. So the functions are defined here, and fail.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret_info)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)ret_info;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *info)
{
	(void)info;
}

struct protoent *getprotobynumber(int proto)
{
	(void)proto;
	return NULL;
}

struct servent *getservbyname(const char *name, const char *proto)
{
	(void)name;
	(void)proto;
	return NULL;
}

int getservbyport_r(int port, const char *proto, struct servent *buf, char *text, size_t n_text,
		    struct servent **ret_entry)
{
	(void)port;
	(void)proto;
	(void)buf;
	(void)text;
	(void)n_text;
	*ret_entry = NULL;
	return ENOENT;
}
