/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DOCTOR_DOCTOR_GATHER_H
#define SBX_CTL_DOCTOR_DOCTOR_GATHER_H

#include "ctl/doctor/doctor_facts.h"

/* Reads the facts of this machine and tries, in children, what a sandbox needs. Leaves nothing
 * behind and writes nothing but the -wal and -shm that SQLite makes beside a database it reads.
 * A fact that cannot be found out is said to be so. Takes up to half a minute where a try hangs. */
void sbx_doctor_gather(struct sbx_doctor_facts *ret_f);

/* Parts of it, in files of their own. */
void sbx_doctor_try_all(struct sbx_doctor_facts *f, uid_t uid, gid_t gid);
void sbx_doctor_gather_bwrap(struct sbx_doctor_facts *f);
void sbx_doctor_gather_units(struct sbx_doctor_facts *f);
/* What @program says with the arguments @words and no variables, on stdout and stderr. Waits for
 * five seconds. 0 or -errno. */
int sbx_doctor_output(const char *program, const char *const *words, char *buf, size_t n_buf,
		      int *ret_status);
/* The version in the program @path by its mark; "" without one. 0 or a positive errno. */
int sbx_doctor_program_version(const char *path, char *buf, size_t n_buf);

#endif
