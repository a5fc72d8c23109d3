/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Published ports: those of the profile and of the flags. A flag about a port of the sandbox
 * replaces the profile's entry for it, so that another port of the host can be chosen.
 *
 * The system policy decides at which addresses of the host a port may be published. The default is
 * loopback only: a server in the sandbox is as untrusted as the sandbox.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/plan/plan_internal.h"
#include "sys/net/net.h"

static bool is_about(const char *text, uint16_t inside)
{
	struct sbx_publish p;

	return sbx_publish_parse(text, &p, NULL) == 0 && p.inside == inside;
}

/* Removes the profile's entries for the port. */
static void drop(struct sbx_str_list *list, uint16_t inside)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++)
		if (is_about(list->v[i], inside))
			free(list->v[i]);
		else
			list->v[kept++] = list->v[i];
	list->n = kept;
}

static int append(struct sbx_str_list *list, const char *const *texts, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = sbx_str_list_add(list, texts[i]);
	return r;
}

int sbx_plan_publish_merge(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_options *o = p->options;
	struct sbx_str_list *list = &p->profile->network.publish;
	size_t n_before = errs->n;

	if (o->n_publish == 0)
		return 0;
	for (size_t i = 0; i < o->n_publish; i++) {
		struct sbx_publish flag;
		struct sbx_err err = { 0 };

		if (sbx_publish_parse(o->publish[i], &flag, &err) == 0)
			drop(list, flag.inside);
		else
			sbx_err_list_add(errs, "", 0, 0, "--publish %s", err.msg);
	}
	if (errs->n > n_before)
		return SBX_EXIT_REFUSED;
	if (p->air_gap) {
		sbx_err_list_add(errs, "", 0, 0, "--publish and --air-gap exclude each other: a "
				 "server's answers leave the sandbox");
		return SBX_EXIT_REFUSED;
	}
	return append(list, o->publish, o->n_publish);
}

const char *sbx_plan_publish_problem(const struct sbx_system_policy *system,
				     const struct sbx_publish *publish,
				     const struct sbx_publish *taken, size_t n_taken)
{
	if (publish->inside == 53 || publish->inside == SBX_NET_CARRY_PORT)
		return "that port of the sandbox is sbx's own: let the server listen on another";
	if (system->publish == SBX_PUBLISH_NONE)
		return "the system policy publishes nothing (publish: none)";
	if (system->publish != SBX_PUBLISH_ANY && !sbx_publish_is_loopback(publish))
		return "the system policy publishes on loopback addresses only: leave the address "
		       "out, or let the host's owner say 'publish: any' in system.yaml";
	for (size_t i = 0; i < n_taken; i++)
		if (publish->port && taken[i].port == publish->port &&
		    sbx_addr_equal(&taken[i].addr, &publish->addr))
			return "that port of this host is published already";
	return NULL;
}

int sbx_plan_publish(struct sbx_plan *p, struct sbx_err_list *errs)
{
	const struct sbx_str_list *list = &p->profile->network.publish;
	size_t n_before = errs->n;

	if (list->n == 0)
		return 0;
	if (p->air_gap)
		return sbx_notes_add(&p->notes,
				     "with --air-gap nothing is published, though profile "
				     "'%s' says so",
				     p->options->profile);
	if (list->n > SBX_PUBLISH_MAX) {
		sbx_err_list_add(errs, "", 0, 0, "at most %d ports can be published",
				 SBX_PUBLISH_MAX);
		return SBX_EXIT_REFUSED;
	}
	for (size_t i = 0; i < list->n; i++) {
		struct sbx_publish publish;
		struct sbx_err err = { 0 };
		const char *why;

		if (sbx_publish_parse(list->v[i], &publish, &err) != 0) {
			sbx_refuse(errs, &err);
			continue;
		}
		why = sbx_plan_publish_problem(p->system, &publish, p->publish, p->n_publish);
		if (why)
			sbx_err_list_add(errs, "", 0, 0, "publish '%s': %s", list->v[i], why);
		else
			p->publish[p->n_publish++] = publish;
	}
	return errs->n > n_before ? SBX_EXIT_REFUSED : 0;
}
