/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_SETUP_SETUP_H
#define SBX_LAUNCHER_SETUP_SETUP_H

#include "base/span.h"
#include "launcher/plan/plan.h"
#include "launcher/secrets/secrets.h"

/*
 * The values that a run learns while its steps carry out the plan. The plan itself never changes
 * after planning: a consumer that runs after planning reads these values here.
 */
struct sbx_setup {
	/* source of the SBX_MOUNT_ETC op (etc.h), fd owned; -1: not prepared yet */
	struct sbx_path etc;
	struct sbx_addr stub;	  /* attach cgroup: where the sandbox's DNS listens */
	char *resolv_conf;	  /* attach cgroup: the text of SBX_RESOLV_CONF; NULL: as planned */
	/* terminated hosts, heap; NULL: not known yet */
	char *authority; /* PEM: the end of the trust store, which begins with the plan's */
	char *java;	 /* Java's trust store */
	size_t n_java;
	/* as the plan's environment, with placeholders; heap; NULL: there are none */
	char **env;
	/* with the ports of the stage's listeners; cidrs borrowed from the plan */
	struct sbx_nft_input nft;
	/* with the ports that the kernel chose, and after the plan's those published later */
	struct sbx_publish publish[SBX_PUBLISH_MAX];
	size_t n_publish;
	/* attach cgroup: with the stub and the ports of our own listeners; terminated hosts: with
	 * the end of the trust store */
	struct sbx_msg_probes probes;
};

/* Empty: for a run that has no plan yet. @s is zero. */
void sbx_setup_init(struct sbx_setup *s);
/* Begins with the values of @p, which must outlive it. */
void sbx_setup_start(struct sbx_setup *s, const struct sbx_plan *p);
void sbx_setup_fini(struct sbx_setup *s);

/* The trust store ends with the sandbox's @authority (PEM). 0 or -ENOMEM. */
int sbx_setup_trust(struct sbx_setup *s, struct sbx_span authority);
/* The variables of @p with the @placeholders of its profile's secrets, in their order, and the
 * probes with those of the self-test. 0 or -ENOMEM. */
int sbx_setup_placeholders(struct sbx_setup *s, const struct sbx_plan *p,
			   const struct sbx_secrets *placeholders);

/* Writes the texts of the SBX_FILL mounts to the stage's files @fds (-1: none). 0, -EBADMSG: what
 * is written is no file, or its text is not known; -errno. */
int sbx_setup_write_fills(const struct sbx_setup *s, const struct sbx_plan *p,
			  const int fds[SBX_N_FILLS]);

/* PURE. The @planned mount as it is made: a shallow copy with what was learned; everything in it is
 * borrowed. */
struct sbx_mount_op sbx_setup_mount(const struct sbx_setup *s, const struct sbx_mount_op *planned);

#endif
