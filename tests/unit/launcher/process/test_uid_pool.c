/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leases by the kernel's answer need root: tests/system/test_uid_pool.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/process/uid_pool.h"
#include "tests/unit/scratch.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sbx-test-uid-pool-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void write_file(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	scratch_write(path, text);
}

static void test_candidates(void **state)
{
	const struct sbx_id_range range = { 10001, 65000 }, three = { 20001, 20003 };
	uid_t first = sbx_uid_pool_candidate(&range, "0123456789ab", 0);
	unsigned int seen = 0;

	(void)state;
	assert_in_range(first, 10001, 65000);
	assert_int_equal(sbx_uid_pool_candidate(&range, "0123456789ab", 0), first);
	assert_int_not_equal(sbx_uid_pool_candidate(&range, "0123456789ac", 0), first);
	assert_int_not_equal(sbx_uid_pool_candidate(&range, "0123456789ab", 1), first);
	assert_in_range(sbx_uid_pool_candidate(&range, "ffffffffffff", 7), 10001, 65000);
	assert_in_range(sbx_uid_pool_candidate(&range, "000000000000", 54999), 10001, 65000);
	for (uint32_t i = 0; i < 3; i++)
		seen |= 1u << (sbx_uid_pool_candidate(&three, "0123456789ab", i) - 20001);
	assert_int_equal(seen, 7); /* each of them once */
}

static void test_known(void **state)
{
	const struct sbx_id_range range = { 20001, 20100 };
	struct sbx_uid_pool *p = sbx_uid_pool_new(&range, NULL);
	struct sbx_err err = { 0 };
	char passwd[4096] = "root:x:0:0:root:/root:/bin/sh\n"
			    "kim:x:20003:20099::/home/kim:/bin/sh\n"
			    "no line\nodd:x:20004x:1::/:/bin/sh\nodd:x:-20005:1::/:/bin/sh\n";
	size_t n = strlen(passwd);

	(void)state;
	for (unsigned int i = 20050; i < 20070; i++) /* more than one block of them */
		n += (size_t)snprintf(passwd + n, sizeof(passwd) - n, "u%u:x:%u:1::/:/bin/sh\n", i,
				      i);
	write_file("passwd", passwd);
	write_file("group", "wheel:x:10:\nteam:x:20007:kim,root\nlast:*:20100:");
	assert_int_equal(sbx_uid_pool_load(p, dir, &err), 0);
	for (uid_t uid = 20000; uid <= 20101; uid++)
		assert_int_equal(sbx_uid_pool_is_known(p, uid),
				 uid == 20003 || uid == 20007 || uid == 20100 ||
					 (uid >= 20050 && uid < 20070));
	sbx_uid_pool_free(p);
}

static void test_no_files(void **state)
{
	struct sbx_uid_pool *p = sbx_uid_pool_new(NULL, NULL);
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_uid_pool_load(p, dir, &err), 0);
	assert_false(sbx_uid_pool_is_known(p, 10001));
	assert_int_equal(sbx_uid_pool_range(p)->first, 10001);
	assert_int_equal(sbx_uid_pool_range(p)->last, 65000);
	sbx_uid_pool_free(p);
}

static void test_subordinate(void **state)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "kim:19000:1001\n", 0 },
		{ "kim:19000:1002\n", SBX_UID_POOL_E_OVERLAP },
		{ "kim:20101:65536\n", 0 },
		{ "kim:20100:65536", SBX_UID_POOL_E_OVERLAP },
		{ "kim:20050:1\n", SBX_UID_POOL_E_OVERLAP },
		{ "kim:20050:0\n", 0 },
		{ "kim:1:4294967295\n", SBX_UID_POOL_E_OVERLAP },
		/* no numbers */
		{ "kim:20050\nkim\n:\n", 0 },
		{ "kim::65536\nkim: 1:65536\nkim:+1:65536\n", 0 },
	};
	static const char *const files[] = { "subuid", "subgid" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		for (size_t j = 0; j < SBX_N_ELEMENTS(files); j++) {
			const struct sbx_id_range range = { 20001, 20100 };
			struct sbx_uid_pool *p = sbx_uid_pool_new(&range, NULL);
			struct sbx_err err = { 0 };

			write_file(files[j], cases[i].text);
			write_file(files[1 - j], "");
			assert_int_equal(sbx_uid_pool_load(p, dir, &err), cases[i].result);
			if (cases[i].result != 0)
				assert_non_null(strstr(err.msg, files[j]));
			sbx_uid_pool_free(p);
		}
}

/* A uid that another launcher holds cannot be leased until that launcher lets go. */
static void test_locked(void **state)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 20001, .l_len = 1 };
	const struct sbx_id_range range = { 20001, 20002 };
	struct sbx_uid_pool *p = sbx_uid_pool_new(&range, dir);
	struct sbx_err err = { 0 };
	char path[128];
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/uids", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	assert_int_equal(sbx_uid_pool_lease(p, 20001, &err), SBX_UID_POOL_E_BUSY);
	assert_int_equal(sbx_uid_pool_share(p, 20001, &err), SBX_UID_POOL_E_BUSY);
	assert_int_equal(sbx_uid_pool_share(p, 20002, &err), 0);
	assert_int_equal(sbx_uid_pool_share(p, 20003, &err), 0); /* not of the range */
	l.l_start = 20002;
	assert_true(fcntl(fd, F_OFD_SETLK, &l) < 0);
	l.l_type = F_RDLCK;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	close(fd);
	if (geteuid() == 0)
		assert_int_equal(sbx_uid_pool_lease(p, 20001, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	sbx_uid_pool_free(p);
}

/* A lease file that other users own or can open is refused: they could hold our locks. */
static void test_file_of_others(void **state)
{
	static const mode_t modes[] = { 0666, 0640, 0620, 0610, 0604, 0602, 0601 };
	struct sbx_err err = { 0 };
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/uids", dir);
	for (size_t i = 0; i < SBX_N_ELEMENTS(modes) + 3; i++) {
		struct sbx_uid_pool *p = sbx_uid_pool_new(NULL, dir);
		const size_t other = i - SBX_N_ELEMENTS(modes); /* past the modes */

		unlink(path);
		if (other == 0)
			assert_int_equal(mkfifo(path, 0600), 0);
		else
			write_file("uids", "");
		if (other != 0)
			assert_int_equal(chmod(path, i < SBX_N_ELEMENTS(modes) ? modes[i] : 0600),
					 0);
		if (other == 1 && geteuid() == 0)
			assert_int_equal(chown(path, 10002, (gid_t)-1), 0);
		if (other == 2 || (other == 1 && geteuid() != 0)) { /* the twin */
			assert_int_equal(sbx_uid_pool_share(p, 10001, &err), 0);
		} else {
			assert_int_equal(sbx_uid_pool_share(p, 10001, &err), -EPERM);
			assert_non_null(strstr(err.msg, "remove it"));
		}
		sbx_uid_pool_free(p);
	}
}

/* The runtime directory is made, or what is wrong with it is said. */
static void test_runtime_directory(void **state)
{
	struct sbx_err err = { 0 };
	struct sbx_uid_pool *p;
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/run", dir);
	p = sbx_uid_pool_new(NULL, path);
	assert_int_equal(sbx_uid_pool_share(p, 10001, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	sbx_uid_pool_free(p);
	/* A runtime directory that others can write is refused: they could put another file of
	 * leases there. */
	assert_int_equal(chmod(path, 0731), 0);
	p = sbx_uid_pool_new(NULL, path);
	err = (struct sbx_err){ 0 };
	assert_int_equal(sbx_uid_pool_share(p, 10001, &err), -EPERM);
	assert_non_null(strstr(err.msg, "runtime directory"));
	sbx_uid_pool_free(p);
	/* A parent that a group can write is refused too: the group could rename the directory. */
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	p = sbx_uid_pool_new(NULL, path);
	err = (struct sbx_err){ 0 };
	assert_int_equal(sbx_uid_pool_share(p, 10001, &err), -EPERM);
	assert_non_null(strstr(err.msg, "which others can change"));
	sbx_uid_pool_free(p);
	assert_int_equal(chmod(dir, 0700), 0);
	write_file("file", "");
	snprintf(path, sizeof(path), "%s/file/run", dir);
	p = sbx_uid_pool_new(NULL, path);
	err = (struct sbx_err){ 0 };
	assert_int_equal(sbx_uid_pool_share(p, 10001, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "cannot make the runtime directory"));
	sbx_uid_pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_candidates),
		cmocka_unit_test_setup_teardown(test_known, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_no_files, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_subordinate, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_locked, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_file_of_others, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_runtime_directory, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
