/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first bytes of any file, its program headers, and what env(1) is told. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/commands/exec_format.h"
#include "tests/fuzz/fuzz.h"

static void try_env(const char *arg)
{
	char name[SBX_EXEC_HEAD_MAX];

	if (sbx_exec_env_program(arg, name))
		CHECK(name[0] && strlen(name) < sizeof(name) && name[0] != '-');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_exec_format f;
	uint64_t at, n;
	int r = sbx_exec_parse(sbx_span(data, size), &f);

	CHECK(strlen(f.interpreter) < sizeof(f.interpreter) && strlen(f.arg) < sizeof(f.arg));
	CHECK((f.kind == SBX_EXEC_SCRIPT) == (f.interpreter[0] != '\0'));
	CHECK(f.n_phdrs * (size_t)SBX_EXEC_PHDR_BYTES <= SBX_EXEC_PHDRS_MAX);
	CHECK(r == 0 || f.kind == SBX_EXEC_UNKNOWN);
	if (f.kind == SBX_EXEC_SCRIPT)
		try_env(f.arg);
	sbx_exec_is_interp(sbx_span(data, size), &at, &n);
	return 0;
}
