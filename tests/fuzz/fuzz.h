/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_FUZZ_FUZZ_H
#define SBX_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* libFuzzer's interface (LLVM, docs/LibFuzzer.rst). A target defines the first and may define the
 * second. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A CHECK of the program. They are all in one section of it, as an array. */
struct fuzz_check {
	const char *file;
	int line, reached;
};
#define FUZZ_CHECKS __attribute__((section("fuzz_checks"), used, aligned(16)))

/* An assert that no build leaves out. A seed must reach it (tests/fuzz/replay.c). */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		FUZZ_CHECKS static struct fuzz_check here_ = { __FILE__, __LINE__, 0 };            \
                                                                                                   \
		here_.reached = 1;                                                                 \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

#endif
