/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/host/facts.h"

#include <stdlib.h>
#include <string.h>

void sbx_facts_fini(struct sbx_facts *f)
{
	sbx_uid_pool_free(f->uid_pool);
	free(f->user_name);
	free(f->home);
	free(f->shell);
	free(f->cwd);
	free(f->state_dir);
	free(f->runtime_dir);
	free(f->config_dir);
	free(f->user_config_dir);
	free(f->libexec_dir);
	free(f->data_dir);
	free(f->bwrap);
	free(f->scope_helper);
	free(f->resolv_conf);
	free(f->hosts);
	free(f->root);
	memset(f, 0, sizeof(*f));
}

static const char *value_of(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
			return env[i] + n + 1;
	return NULL;
}

const char *sbx_facts_getenv(const struct sbx_facts *f, const char *name)
{
	return value_of(f->environ, name);
}

bool sbx_facts_idmap(const struct sbx_facts *f)
{
	return f->privileged && f->throwaway_user;
}
