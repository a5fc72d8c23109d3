/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SECRETS_SECRET_HELPER_H
#define SBX_LAUNCHER_SECRETS_SECRET_HELPER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"

/* A child of the launcher that reads secrets again while the command runs, so that neither a slow
 * command nor the launcher's given-up privileges are in the way. */
struct sbx_secret_helper {
	pid_t pid; /* 0: none; no secret can change */
	int fd;	   /* its channel; -1: none */
	uint64_t asked_us[SBX_SECRETS_MAX]; /* monotonic: when a secret was last asked for */
};

void sbx_secret_helper_init(struct sbx_secret_helper *h);
/* Ends the process and reaps it. */
void sbx_secret_helper_fini(struct sbx_secret_helper *h);

/* Starts it, if a secret of @p can change. 0 or -errno with @err. */
int sbx_secret_helper_start(struct sbx_secret_helper *h, const struct sbx_profile *p,
			    const struct sbx_facts *f, struct sbx_err *err);
/* Asks for secret @i of @p, at most once a minute. The answer on the channel is SECRET with a
 * sealed memfd; none comes where the secret cannot be read: the helper says so on stderr. */
void sbx_secret_helper_ask(struct sbx_secret_helper *h, const struct sbx_profile *p, uint32_t i);

#endif
