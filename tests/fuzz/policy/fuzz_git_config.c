/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Git configurations: any bytes get a verdict with a line that exists, and nothing in a harmless
 * file hides what follows it: a key that executes is found there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/lists/git_config.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 65536

static const char evil[] = "\n[core]\n\tfsmonitor = x\n";

static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_what_follows(const uint8_t *data, size_t size)
{
	static uint8_t text[TEXT_MAX + sizeof(evil)];
	struct sbx_git_config found;

	memcpy(text, data, size);
	memcpy(text + size, evil, sizeof(evil) - 1);
	CHECK(sbx_git_config_judge(sbx_span(text, size + sizeof(evil) - 1), &found) ==
	      SBX_GIT_CONFIG_ACTS);
	CHECK(strcmp(found.key, "core.fsmonitor") == 0 &&
	      found.line == count_lines(data, size) + 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_git_config found;
	enum sbx_git_config_verdict v;

	if (size > TEXT_MAX)
		return 0;
	v = sbx_git_config_judge(sbx_span(data, size), &found);
	CHECK(v <= SBX_GIT_CONFIG_UNCLEAR && found.line <= count_lines(data, size));
	CHECK(memchr(found.key, '\0', sizeof(found.key)) &&
	      memchr(found.worktree, '\0', sizeof(found.worktree)));
	CHECK((v == SBX_GIT_CONFIG_ACTS) == (found.key[0] != '\0'));
	/* A backslash at the end makes the next line a part of the last one. */
	if (v == SBX_GIT_CONFIG_HARMLESS && size > 0 && data[size - 1] != '\\')
		check_what_follows(data, size);
	return 0;
}
