/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning: a list of parts, each of which fills in its fields. Everything that can be refused is
 * refused here, before anything is made: nothing below opens a file for writing or mounts anything that
 * others could see. What a plan holds besides memory are O_PATH descriptors of what will be bound, and for
 * id-mapped grants, where only trying tells whether a file system can, mounts that are attached nowhere.
 *
 * The parts that look at files on the sandbox's behalf (mounts, the command) do so with the
 * effective ids of the sandbox's user: root's eyes would find what the user may not see, and a path
 * that root walks through a user's directory is a race for that user to win.
 */
#include "launcher/plan/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/host/facts.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/rootfs/view.h"

SBX_DEFINE_CLEANUP(struct sbx_plan, sbx_plan_free);

const char *sbx_mount_op_kind_str(enum sbx_mount_op_kind k)
{
	static const char *const names[] = {
		"bind", "etc", "merge", "overlay", "scratch", "tmpfs", "symlink", "dir", "proc", "dev", "device", "file",
		"remount_ro", "mask", "pin",
	};

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_MOUNT_OP_KINDS, "every kind has its name");
	return k < SBX_N_MOUNT_OP_KINDS ? names[k] : "?";
}

const char *sbx_mount_origin_str(enum sbx_mount_origin o)
{
	static const char *const names[] = { "view", "profile", "cwd", "flag", "mask", "protect", "cache" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_ORIGINS, "every origin has its name");
	return o < SBX_N_ORIGINS ? names[o] : "?";
}

bool sbx_placeholder_is_one(const struct stat *st)
{
	return st->st_mode == SBX_PLACEHOLDER_SOCKET_MODE ||
	       (st->st_mode == SBX_PLACEHOLDER_FILE_MODE && st->st_size <= 2 && st->st_nlink == 1);
}

const char *sbx_program_why_str(enum sbx_program_why w)
{
	static const char *const names[] = { "entry", "interpreter", "loader" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_PROGRAM_WHYS, "every reason has its name");
	return w < SBX_N_PROGRAM_WHYS ? names[w] : "?";
}

const char *sbx_masked_why_str(enum sbx_masked_why w)
{
	static const char *const names[] = { "name", "link", "copy" };

	_Static_assert(SBX_N_ELEMENTS(names) == SBX_N_MASKED_WHYS, "every reason has its name");
	return w < SBX_N_MASKED_WHYS ? names[w] : "?";
}

bool sbx_plan_wants_overlay(const struct sbx_plan *p)
{
	return p->options->overlay || p->options->keep ||
	       p->profile->filesystem.workspace == SBX_WORKSPACE_OVERLAY;
}

const char *sbx_plan_asked(const struct sbx_str_list *profile, const char *const *flags, size_t n_flags, size_t i,
			   enum sbx_mount_origin *ret_origin)
{
	*ret_origin = i < profile->n ? SBX_ORIGIN_PROFILE : SBX_ORIGIN_FLAG;
	if (i < profile->n)
		return profile->v[i];
	return i - profile->n < n_flags ? flags[i - profile->n] : NULL;
}

int sbx_plan_refuse(struct sbx_err_list *errs, const struct sbx_err *err)
{
	sbx_err_list_add(errs, err->file, err->line, err->column, "%s", err->msg);
	return SBX_PLAN_REFUSED;
}

int sbx_plan_note(struct sbx_plan *p, const char *fmt, ...)
{
	struct sbx_err text = { 0 };
	va_list ap;

	if (p->n_notes >= SBX_PLAN_NOTES_MAX)
		return 0;
	if (!p->notes) {
		p->notes = calloc(SBX_PLAN_NOTES_MAX, sizeof(*p->notes));
		if (!p->notes)
			return -ENOMEM;
	}
	va_start(ap, fmt);
	sbx_err_vset(&text, fmt, ap); /* escapes what could drive a terminal */
	va_end(ap);
	p->notes[p->n_notes] = strdup(text.msg);
	if (!p->notes[p->n_notes])
		return -ENOMEM;
	p->n_notes++;
	return 0;
}

static const char *value_of(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
			return env[i] + n + 1;
	return NULL;
}

const char *sbx_plan_getenv(const struct sbx_plan *p, const char *name)
{
	return value_of(p->env, name);
}

const char *sbx_facts_getenv(const struct sbx_facts *f, const char *name)
{
	return value_of(f->environ, name);
}

char *sbx_plan_normalise_pattern(const char *path)
{
	size_t n = strlen(path), pos = 0;
	SBX_AUTO_FREE char *out = malloc(n + 2);

	if (!out || path[0] != '/')
		return NULL;
	for (const char *s = path; *s;) {
		size_t len;

		s += strspn(s, "/");
		len = strcspn(s, "/");
		if (len == 2 && s[0] == '.' && s[1] == '.')
			return NULL;
		if (len > 0 && !(len == 1 && s[0] == '.')) {
			out[pos++] = '/';
			memcpy(out + pos, s, len);
			pos += len;
		}
		s += len;
	}
	if (pos == 0)
		out[pos++] = '/';
	out[pos] = '\0';
	return sbx_steal_ptr(&out);
}

char *sbx_plan_normalise(const char *path)
{
	SBX_AUTO_FREE char *out = sbx_plan_normalise_pattern(path);

	if (!out || strlen(out) >= PATH_MAX)
		return NULL;
	for (const char *part = out; *part; part += strcspn(part, "/"))
		if (strcspn(++part, "/") > NAME_MAX)
			return NULL;
	return sbx_steal_ptr(&out);
}

/* --- parts --- */

/* Those that look at the host's files as the sandbox's user. */
static int plan_as_user(struct sbx_plan *p, struct sbx_err_list *errs)
{
	SBX_CLEANUP(sbx_as_user_end) struct sbx_as_user saved = { 0 };
	int r = sbx_as_user_begin(p->facts, &saved);

	if (r < 0) {
		sbx_err_list_add(errs, "", 0, 0, "cannot look at files as uid %u: %s",
				 p->facts->uid, strerror(-r));
		return SBX_PLAN_REFUSED;
	}
	p->eyes = &saved;
	r = sbx_plan_view(p, errs);
	if (r == 0)
		r = sbx_plan_env(p, errs);
	if (r == 0)
		r = sbx_plan_command(p, errs);
	p->eyes = NULL;
	return r;
}

int sbx_plan_new(const struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs,
		 struct sbx_plan **ret_plan)
{
	SBX_CLEANUP(sbx_plan_freep) struct sbx_plan *p = calloc(1, sizeof(*p));
	struct sbx_err err = { 0 };
	int r;

	if (!p)
		return -ENOMEM;
	/* Said once, and not of each path that is looked at. */
	if (sbx_path_check_support(&err) != 0)
		return sbx_plan_refuse(errs, &err);
	p->host_etc_fd = -1;
	p->keep.fd = p->root.dir.fd = -1;
	p->options = o;
	p->facts = f;
	p->argv = o->argv;
	p->air_gap = o->air_gap;
	memcpy(p->id, f->id, sizeof(p->id));

	r = sbx_plan_profile(p, errs);
	if (r == 0)
		r = sbx_plan_network(p, errs);
	if (r == 0)
		r = plan_as_user(p, errs);
	if (r == 0)
		r = sbx_plan_probes(p, errs);
	if (r != 0)
		return r;
	*ret_plan = sbx_steal_ptr(&p);
	return 0;
}

struct sbx_plan *sbx_plan_free(struct sbx_plan *p)
{
	if (!p)
		return NULL;
	sbx_policy_free(p->policy);
	free(p->policy_blob);
	sbx_profile_free(p->profile);
	sbx_system_policy_free(p->system);
	free(p->profile_file);
	free(p->system_file);
	sbx_plan_sources_fini(&p->sources);
	free((void *)p->nft.cidrs);
	sbx_attach_lists_fini(&p->attach.lists);
	for (size_t i = 0; i < p->n_mounts; i++) {
		sbx_path_fini(&p->mounts[i].source);
		sbx_fd_close(p->mounts[i].mount_fd);
		free(p->mounts[i].text);
		free(p->mounts[i].dest);
	}
	free(p->mounts);
	for (size_t i = 0; i < p->n_placeholders; i++)
		free(p->placeholders[i].name);
	free(p->placeholders);
	for (size_t i = 0; i < p->n_placeholder_dirs; i++) {
		sbx_fd_close(p->placeholder_dirs[i].fd);
		sbx_fd_close(p->placeholder_dirs[i].lock_fd);
		sbx_fd_close(p->placeholder_dirs[i].model_fd);
		free(p->placeholder_dirs[i].path);
	}
	free(p->placeholder_dirs);
	sbx_path_fini(&p->root.dir);
	sbx_fd_close(p->host_etc_fd);
	sbx_fd_close(p->keep.fd);
	free(p->keep.path);
	free(p->keep.name);
	for (size_t i = 0; i < p->n_env; i++)
		free(p->env[i]);
	free(p->env);
	free(p->env_origin);
	free(p->chdir);
	free(p->hostname);
	free(p->command_path);
	for (size_t i = 0; i < p->n_programs; i++) {
		free(p->programs[i].path);
		free(p->programs[i].for_what);
	}
	free(p->programs);
	for (size_t i = 0; i < p->n_masked; i++)
		sbx_masked_fini(&p->masked[i]);
	free(p->masked);
	free(p->probes);
	for (size_t i = 0; i < p->n_notes; i++)
		free(p->notes[i]);
	free(p->notes);
	free(p);
	return NULL;
}
