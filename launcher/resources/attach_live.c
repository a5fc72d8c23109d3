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
 * removed the others. Some have ended by then, because the rules reset a flow that sends. So the
 * flows are noted when the change begins, and those that are not allowed any more are counted.
 * Where sockets or pins cannot be read, nothing is ended here: the rules refuse every packet of a
 * flow that is not allowed.
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

/* --- open flows --- */

#define LATE_MAX  64
#define FLOWS_MAX 65536 /* more are not counted, unless they are still open at the end */

struct sbx_attach_flow {
	struct sbx_sock_flow flow;
};

static bool note_flow(void *userdata, const struct sbx_sock_flow *f)
{
	struct sbx_attach_run *a = userdata;

	if (a->n_flows == a->n_flows_max && a->n_flows < FLOWS_MAX) {
		size_t n = a->n_flows_max ? a->n_flows_max * 2 : 256;
		struct sbx_attach_flow *v = reallocarray(a->flows, n, sizeof(*v));

		if (v) {
			a->flows = v;
			a->n_flows_max = n;
		}
	}
	if (a->n_flows < a->n_flows_max)
		a->flows[a->n_flows++] = (struct sbx_attach_flow){ .flow = *f };
	return true;
}

static int compare_cookies(const void *pa, const void *pb)
{
	const struct sbx_attach_flow *a = pa, *b = pb;

	return a->flow.cookie < b->flow.cookie ? -1 : a->flow.cookie > b->flow.cookie;
}

/* Asks @fn about the flows of the sandbox's cgroup. 0 or -errno. */
static int each_flow(const struct sbx_attach_run *a, bool destroy, sbx_sock_stays_fn fn,
		     void *userdata, struct sbx_sock_cut *ret_cut)
{
	SBX_AUTO_CLOSE int diag_fd = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	uint64_t cgroups[SBX_SOCK_CUT_CGROUPS_MAX];
	int n = sbx_cgroup_ids(a->command_fd, cgroups, SBX_SOCK_CUT_CGROUPS_MAX);

	*ret_cut = (struct sbx_sock_cut){ 0 };
	if (n < 0 || diag_fd < 0)
		return n < 0 ? n : diag_fd;
	return sbx_sock_cut(diag_fd, cgroups, (size_t)n, destroy, fn, userdata, ret_cut);
}

static void note_flows(struct sbx_attach_run *a)
{
	struct sbx_sock_cut none;

	each_flow(a, false, note_flow, a, &none);
	if (a->n_flows)
		qsort(a->flows, a->n_flows, sizeof(*a->flows), compare_cookies);
}

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
	sbx_attach_run_forget(a);
	e = sbx_attach_lists_new(in, policy, &a->next, err);
	if (e != 0)
		return e < 0 ? refused(err, "the rules cannot be made", e)
			     : SBX_ATTACH_LIVE_E_REFUSED;
	note_flows(a);
	sbx_attach_run_input(a, p, s, a->has_lists ? &a->lists : &p->attach.lists, &from);
	sbx_attach_run_input(a, p, s, &a->next, &to);
	e = sbx_attach_ruleset_new(&to, &a->to);
	e = e < 0 ? refused(err, "the rules cannot be made", e)
		  : narrow(a, &from, &to, ret_changed, err);
	if (e != 0)
		sbx_attach_run_forget(a);
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
	sbx_attach_run_forget(a);
	if (!same)
		write_ruleset(a);
	return 0;
}

/* --- cutting --- */

struct judged {
	const struct sbx_attach_run *a;
	struct sbx_attach_input in;
	struct sbx_attach_pin *pins; /* sorted; of any age */
	size_t n, n_max;
	bool failed;
	size_t n_late;
	uint64_t late[LATE_MAX]; /* cookies */
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

static bool goes_on(const struct judged *j, const struct sbx_sock_flow *f)
{
	const struct sbx_attach_pin key = { .addr = f->remote,
					    .proto = f->proto,
					    .port = f->remote_port };
	bool pinned = j->n && bsearch(&key, j->pins, j->n, sizeof(key), compare_pins);

	return sbx_attach_lets_go_on(&j->in, f, pinned);
}

static bool stays(void *userdata, const struct sbx_sock_flow *f)
{
	struct judged *j = userdata;
	const struct sbx_attach_flow key = { .flow = *f };
	size_t i = 0;

	if (goes_on(j, f))
		return true;
	if (j->a->n_flows &&
	    bsearch(&key, j->a->flows, j->a->n_flows, sizeof(key), compare_cookies))
		return false;
	/* It was opened after the others were noted. A second round shows it again. */
	while (i < j->n_late && i < LATE_MAX && j->late[i] != f->cookie)
		i++;
	if (i == j->n_late || i == LATE_MAX) {
		if (i < LATE_MAX)
			j->late[i] = f->cookie;
		j->n_late++;
	}
	return false;
}

uint32_t sbx_attach_live_cut(struct sbx_attach_run *a, const struct sbx_plan *p,
			     const struct sbx_setup *s)
{
	struct sbx_sock_cut cut;
	struct judged j = { .a = a };
	bool destroy = sbx_step_hook("live-cut") == 0; /* a test does without */
	size_t n = 0;

	sbx_attach_run_input(a, p, s, &a->next, &j.in);
	if (sbx_attach_pins_each(p->id, a->nl_fd, note_pin, &j) == 0 && !j.failed) {
		if (j.n)
			qsort(j.pins, j.n, sizeof(*j.pins), compare_pins);
		each_flow(a, destroy, stays, &j, &cut);
		n = j.n_late;
		for (size_t i = 0; i < a->n_flows; i++)
			n += !goes_on(&j, &a->flows[i].flow);
	}
	free(j.pins);
	return (uint32_t)n;
}
