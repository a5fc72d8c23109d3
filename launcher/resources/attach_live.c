/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attach cgroup: a change of the policy of a running sandbox.
 *
 * Between narrow() and widen() the kernel has a ruleset in which the old and the new rules hold
 * (sys/nft/nft_attach.c). So what closes is closed before anything opens, a flow that both policies
 * allow sees nothing, and a launcher that dies leaves less than either.
 *
 * a->rules is the ruleset that the kernel must have at this moment: the watch (attach.c) goes by
 * it. The kernel's reports of our own changes make it look, and it finds the right rules.
 *
 * The open flows are judged by the new lists, with the pins that the kernel has when the broker has
 * removed the others. Where the sockets or the pins cannot be read, nothing is ended here: the
 * rules refuse every packet of a flow that is not allowed, TCP by a reset.
 */
#include "launcher/resources/attach_live.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/process/step_hook.h"
#include "sys/net/net.h"
#include "sys/net/sock_cut.h"

/* --- the rules --- */

static int refused(struct sbx_err *err, const char *what, int e)
{
	sbx_err_set(err, "attach cgroup: %s: %s", what, strerror(-e));
	return SBX_ATTACH_LIVE_E_REFUSED;
}

/* Makes @to the rules that the kernel must have. */
static int change(struct sbx_attach_run *a, struct sbx_nft_ruleset **to, struct sbx_err *err)
{
	int e = sbx_attach_change(a->rules, *to, a->nl_fd, err);

	if (e < 0)
		return e;
	sbx_nft_ruleset_free(a->rules);
	a->rules = *to;
	*to = NULL;
	return 0;
}

void sbx_attach_live_forget(struct sbx_attach_run *a)
{
	sbx_attach_lists_fini(&a->next);
	a->to = sbx_nft_ruleset_free(a->to);
}

static int narrow(struct sbx_attach_run *a, const struct sbx_attach_input *from,
		  const struct sbx_attach_input *to, bool *ret_changed, struct sbx_err *err)
{
	struct sbx_nft_ruleset *both = NULL;
	int same = sbx_attach_is_same(a->rules, a->to), e;

	if (same < 0)
		return refused(err, "the rules cannot be made", same);
	if (same)
		return 0;
	e = sbx_attach_narrow_new(from, to, &both);
	if (e < 0)
		return refused(err, "the rules cannot be made", e);
	e = change(a, &both, err);
	sbx_nft_ruleset_free(both);
	*ret_changed = e == 0;
	return e < 0 && e != -EPROTO ? SBX_ATTACH_LIVE_E_REFUSED : e;
}

int sbx_attach_live_narrow(struct sbx_attach_run *a, const struct sbx_plan *p,
			   const struct sbx_setup *s, const struct sbx_policy_input *in,
			   const struct sbx_policy *policy, bool *ret_changed,
			   struct sbx_err *err)
{
	struct sbx_attach_input from, to;
	int e;

	*ret_changed = false;
	sbx_attach_live_forget(a);
	e = sbx_attach_lists_new(in, policy, &a->next, err);
	if (e != 0)
		return e < 0 ? refused(err, "the rules cannot be made", e)
			     : SBX_ATTACH_LIVE_E_REFUSED;
	sbx_attach_run_input(a, p, s, a->has_lists ? &a->lists : &p->attach.lists, &from);
	sbx_attach_run_input(a, p, s, &a->next, &to);
	e = sbx_attach_ruleset_new(&to, &a->to);
	e = e < 0 ? refused(err, "the rules cannot be made", e)
		  : narrow(a, &from, &to, ret_changed, err);
	if (e != 0)
		sbx_attach_live_forget(a);
	else if (*ret_changed && sbx_step_hook("live-narrow") < 0)
		e = -EIO;
	return e;
}

/* For people: no program reads the file. */
static void write_ruleset(const struct sbx_attach_run *a)
{
	static const char again[] = SBX_ATTACH_RULESET_FILE ".new";
	SBX_AUTO_FREE char *text = sbx_nft_ruleset_text(a->rules);
	SBX_AUTO_CLOSE int fd = openat(a->runtime_fd, again,
				       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t n = text ? strlen(text) : 0;

	if (fd < 0)
		return;
	if (!text || write(fd, text, n) != (ssize_t)n ||
	    renameat(a->runtime_fd, again, a->runtime_fd, SBX_ATTACH_RULESET_FILE) < 0)
		unlinkat(a->runtime_fd, again, 0);
}

int sbx_attach_live_widen(struct sbx_attach_run *a, struct sbx_err *err)
{
	int same = sbx_attach_is_same(a->rules, a->to), e = same < 0 ? same : 0;

	if (same < 0)
		sbx_err_set(err, "attach cgroup: out of memory");
	else if (!same)
		e = change(a, &a->to, err);
	if (e < 0)
		return e;
	sbx_attach_lists_fini(&a->lists);
	a->lists = a->next;
	a->has_lists = true;
	a->next = (struct sbx_attach_lists){ 0 };
	sbx_attach_live_forget(a);
	if (!same)
		write_ruleset(a);
	return 0;
}

/* --- open flows --- */

struct judged {
	struct sbx_attach_input in;
	struct sbx_attach_pin *pins; /* sorted; of any age */
	size_t n, n_max;
	bool failed;
};

static void note_pin(void *userdata, const struct sbx_attach_pin *pin)
{
	struct judged *j = userdata;

	if (j->n == j->n_max) {
		size_t n = j->n_max ? j->n_max * 2 : 256;
		struct sbx_attach_pin *v = reallocarray(j->pins, n, sizeof(*v));

		j->failed |= v == NULL;
		if (!v)
			return;
		j->pins = v;
		j->n_max = n;
	}
	j->pins[j->n++] = *pin;
}

static int compare_pins(const void *pa, const void *pb)
{
	const struct sbx_attach_pin *a = pa, *b = pb;

	if (a->addr.family != b->addr.family)
		return a->addr.family - b->addr.family;
	if (a->port != b->port)
		return a->port - b->port;
	if (a->proto != b->proto)
		return (int)a->proto - (int)b->proto;
	return memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b));
}

static bool stays(void *userdata, const struct sbx_sock_flow *f)
{
	const struct judged *j = userdata;
	const struct sbx_attach_pin key = { .addr = f->remote,
					    .proto = f->proto,
					    .port = f->remote_port };
	bool pinned = j->n && bsearch(&key, j->pins, j->n, sizeof(key), compare_pins);

	return sbx_attach_lets_go_on(&j->in, f, pinned);
}

uint32_t sbx_attach_live_cut(struct sbx_attach_run *a, const struct sbx_plan *p,
			     const struct sbx_setup *s)
{
	uint64_t cgroups[SBX_SOCK_CUT_CGROUPS_MAX];
	SBX_AUTO_CLOSE int diag_fd = -1;
	struct sbx_sock_cut cut = { 0 };
	struct judged j = { 0 };
	int n = sbx_cgroup_ids(a->command_fd, cgroups, SBX_SOCK_CUT_CGROUPS_MAX);
	bool destroy = sbx_step_hook("live-cut") == 0; /* a test does without */
	int r;

	if (n <= 0)
		return 0;
	diag_fd = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	sbx_attach_run_input(a, p, s, &a->next, &j.in);
	r = diag_fd < 0 ? diag_fd : sbx_attach_pins_each(p->id, a->nl_fd, note_pin, &j);
	if (j.n)
		qsort(j.pins, j.n, sizeof(*j.pins), compare_pins);
	if (r == 0 && !j.failed)
		sbx_sock_cut(diag_fd, cgroups, (size_t)n, destroy, stays, &j, &cut);
	free(j.pins);
	return (uint32_t)(cut.n_ended + cut.n_left);
}
