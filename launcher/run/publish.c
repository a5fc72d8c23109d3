/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outer side of published ports. The launcher listens, with the caller's rights and before any are dropped, so
 * that a port that is taken or closed to the caller is a refusal before anything runs; the broker accepts. What
 * connects before the release is reset there.
 *
 * Nobody else may hold a listener: the port would stay taken when the sandbox has ended. The step comes after stage,
 * broker and keep helper have been started; the cleanup process closes all it has.
 */
#include "launcher/run/publish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/net/net.h"

/* What to do about it. */
static const char *remedy(int e)
{
	switch (e) {
	case -EADDRINUSE:
		return "the port is taken: stop what listens there, or publish another (0 takes any free one)";
	case -EACCES:
		return "a port this low is root's (net.ipv4.ip_unprivileged_port_start): publish one from 1024 on";
	case -EADDRNOTAVAIL:
		return "this host has no such address";
	case -EAFNOSUPPORT:
		return "this host has no IPv6";
	default:
		return strerror(-e);
	}
}

int sbx_publish_open(struct sbx_run *r)
{
	for (size_t i = 0; i < r->plan->n_publish; i++) {
		struct sbx_publish *p = &r->plan->publish[i];
		char where[SBX_PUBLISH_STR_MAX];
		int fd = sbx_net_publish_open(&p->addr, p->port, &p->port);

		if (fd < 0) {
			sbx_err_set(&r->err, "cannot publish port %u of the sandbox at %s: %s", p->inside,
				    sbx_publish_format(p, where, sizeof(where)), remedy(fd));
			return fd;
		}
		r->stage.sandbox_fds[SBX_BFD_PUBLISH + i] = fd;
	}
	return 0;
}

void sbx_publish_close(struct sbx_run *r)
{
	for (size_t i = SBX_BFD_PUBLISH; i < SBX_N_BROKER_FDS; i++)
		r->stage.sandbox_fds[i] = sbx_fd_close(r->stage.sandbox_fds[i]);
}

/* The profile's words are the list that the plan's was made of. */
static bool was_chosen(const struct sbx_plan *p, size_t i)
{
	struct sbx_publish asked;

	return sbx_publish_parse(p->profile->network.publish.v[i], &asked, NULL) == 0 && asked.port == 0;
}

void sbx_publish_tell(const struct sbx_plan *p)
{
	for (size_t i = 0; i < p->n_publish; i++) {
		char where[SBX_PUBLISH_STR_MAX];

		if (!p->options->quiet || was_chosen(p, i))
			fprintf(stderr, "sbx-run: published %s (port %u inside)\n",
				sbx_publish_format(&p->publish[i], where, sizeof(where)), p->publish[i].inside);
	}
}
