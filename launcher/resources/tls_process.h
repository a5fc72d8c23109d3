/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RESOURCES_TLS_PROCESS_H
#define SBX_LAUNCHER_RESOURCES_TLS_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/plan/plan.h"
#include "launcher/secrets/secrets.h"
#include "launcher/setup/setup.h"

/* The descriptors that come with TLS_READY, in this order. */
enum sbx_tls_ready_fd {
	SBX_TRFD_AUTHORITY = 0, /* memfd: the authority's certificate, PEM */
	SBX_TRFD_JAVA,		/* memfd, where the rules ask for it: PKCS#12 */
	SBX_N_TLS_READY_FDS,
};

/* The process of sbx-tls. */
struct sbx_tls_process {
	pid_t pid;     /* the launcher's child; 0: none */
	int fd;	       /* channel; -1: none */
	int broker_fd; /* the broker's end of its channel to sbx-tls, until CONFIG is sent; -1 */
	bool ready;
	bool gone; /* its channel ended */
	int ready_fds[SBX_N_TLS_READY_FDS]; /* from TLS_READY until they are read; -1 */
};

void sbx_tls_process_init(struct sbx_tls_process *t);
/* Ends the process and reaps it. */
void sbx_tls_process_fini(struct sbx_tls_process *t);

/* Starts sbx-tls in the cgroup @cgroup_fd (-1: in the launcher's), and sends it the rules of @p
 * with the values of @secrets. 0 or -errno with @err. */
int sbx_tls_process_start(struct sbx_tls_process *t, const struct sbx_plan *p,
			  const struct sbx_secrets *secrets, int cgroup_fd, struct sbx_err *err);
/* Reads what came with TLS_READY (untrusted) into @s: the trust store, and Java's. 0 or -errno with
 * @err. */
int sbx_tls_process_read_ready(struct sbx_tls_process *t, const struct sbx_plan *p,
			       struct sbx_setup *s, struct sbx_err *err);
/* Hands over secret @i again: @fd is a sealed memfd with its value. */
void sbx_tls_process_send_secret(const struct sbx_tls_process *t, uint32_t i, int fd);

#endif
