/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_TLS_H
#define SBX_LAUNCHER_PLAN_PLAN_TLS_H

#include <stddef.h>

/* The i-th of the places where the host's trust store is looked for; NULL: there are no more. */
const char *sbx_trust_store_at(size_t i);

#endif
