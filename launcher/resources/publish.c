/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outer side of published ports. The launcher listens, with the caller's privileges and before
 * it drops any: a port that is taken, or that the caller may not use, is refused before anything
 * runs. The broker accepts; it resets a connection that comes before the release.
 *
 * No other process may hold a listener, because the port would stay taken when the sandbox has
 * ended. So the step comes after the forks of stage, broker and helpers, and the cleanup process
 * closes all its descriptors.
 */
#include "launcher/resources/publish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/net/net.h"

const char *sbx_publish_remedy(int e)
{
	switch (e) {
	case -EADDRINUSE:
		return "the port is taken: stop what listens there, or publish another (0 takes "
		       "any free one)";
	case -EACCES:
		return "a port this low is root's (net.ipv4.ip_unprivileged_port_start): publish "
		       "one from 1024 on";
	case -EADDRNOTAVAIL:
		return "this host has no such address";
	case -EAFNOSUPPORT:
		return "this host has no IPv6";
	default:
		return strerror(-e);
	}
}

int sbx_publish_open(const struct sbx_plan *plan, struct sbx_setup *s, int fds[SBX_N_BROKER_FDS],
		     struct sbx_err *err)
{
	for (size_t i = 0; i < plan->n_publish; i++) {
		struct sbx_publish *p = &s->publish[i];
		char where[SBX_PUBLISH_STR_MAX];
		int fd = sbx_net_publish_open(&p->addr, p->port, &p->port);

		if (fd < 0) {
			sbx_err_set(err, "cannot publish port %u of the sandbox at %s: %s",
				    p->inside, sbx_publish_format(p, where, sizeof(where)),
				    sbx_publish_remedy(fd));
			return fd;
		}
		fds[SBX_BFD_PUBLISH + i] = fd;
	}
	return 0;
}

void sbx_publish_close(int fds[SBX_N_BROKER_FDS])
{
	for (size_t i = SBX_BFD_PUBLISH; i < SBX_N_BROKER_FDS; i++)
		fds[i] = sbx_fd_close(fds[i]);
}

/* Did the profile let the kernel choose the @i-th port? */
static bool was_chosen(const struct sbx_plan *p, size_t i)
{
	struct sbx_publish asked;

	return sbx_publish_parse(p->profile->network.publish.v[i], &asked, NULL) == 0 &&
	       asked.port == 0;
}

void sbx_publish_tell(const struct sbx_plan *p, const struct sbx_setup *s)
{
	for (size_t i = 0; i < p->n_publish; i++) {
		char where[SBX_PUBLISH_STR_MAX];

		if (!p->options->quiet || was_chosen(p, i))
			fprintf(stderr, "sbx-run: published %s (port %u inside)\n",
				sbx_publish_format(&s->publish[i], where, sizeof(where)),
				p->publish[i].inside);
	}
}
