/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Linked before the library's core_resolved_pins: pins whose minutes are 0.6 s. */
#include <stdint.h>

#define SECOND UINT64_C(10)

#include "broker/names/resolved_pins.c"
