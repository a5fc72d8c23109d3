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

/* An assert that no build leaves out. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

#endif
