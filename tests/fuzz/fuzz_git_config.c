/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any file that git could be made to read as its configuration. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t lines_of(const uint8_t *data, size_t size)
{
	size_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_result(enum sbx_git_config_verdict verdict, const struct sbx_git_config *config, size_t n_lines)
{
	assert(strlen(config->key) < sizeof(config->key) && strlen(config->worktree) < sizeof(config->worktree));
	assert(verdict == SBX_GIT_CONFIG_HARMLESS || (config->line >= 1 && config->line <= n_lines));
	assert(verdict != SBX_GIT_CONFIG_ACTS || config->key[0] != '\0');
}

/* A hook's path behind anything that is harmless is still found: nothing hides what follows it. */
static void try_behind(const uint8_t *data, size_t size)
{
	static const char acts[] = "\n[core]\n\thooksPath = x\n";
	struct sbx_git_config config = { 0 };
	uint8_t *text = malloc(size + sizeof(acts) - 1);

	assert(text);
	if (size)
		memcpy(text, data, size);
	memcpy(text + size, acts, sizeof(acts) - 1);
	assert(sbx_git_config_judge(sbx_span(text, size + sizeof(acts) - 1), &config) != SBX_GIT_CONFIG_HARMLESS);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_git_config config = { 0 }, again = { 0 };
	enum sbx_git_config_verdict verdict = sbx_git_config_judge(sbx_span(data, size), &config);

	check_result(verdict, &config, lines_of(data, size));
	assert(sbx_git_config_judge(sbx_span(data, size), &again) == verdict && again.line == config.line &&
	       strcmp(again.key, config.key) == 0 && strcmp(again.worktree, config.worktree) == 0);
	if (verdict == SBX_GIT_CONFIG_HARMLESS && (size == 0 || data[size - 1] == '\n'))
		try_behind(data, size);
	return 0;
}
