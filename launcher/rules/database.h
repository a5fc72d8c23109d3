/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RULES_DATABASE_H
#define SBX_LAUNCHER_RULES_DATABASE_H

#include "base/err.h"
#include "launcher/host/facts.h"
#include "store/store.h"

/* Open the database that these facts name, and make or migrate it. As sbx_store_open(). */
int sbx_database_open(const struct sbx_facts *f, struct sbx_err *err, struct sbx_store **ret_store);
/* 1: there is one; 0: there is none; or -errno with @err. */
int sbx_database_exists(const struct sbx_facts *f, struct sbx_err *err);

#endif
