/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine that has everything is ok; each thing that is missing is named by its check alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "ctl/doctor/doctor.h"
#include "ctl/doctor/doctor_gather.h"
#include "store/store.h"
#include "store/store_look.h"
#include "tests/unit/scratch.h"

static void healthy(struct sbx_doctor_facts *f)
{
	const struct sbx_doctor_try worked = { .tried = true };

	*f = (struct sbx_doctor_facts){
		.kernel = "6.1.0-22-amd64",
		.openat2 = worked,
		.userns = { 15000, 1, -1, NULL },
		.namespaces = worked,
		.proc = worked,
		.netns = worked,
		.network = worked,
		.attach = worked,
		.bwrap_run = worked,
		.cgroup = { .mount = "/sys/fs/cgroup", .own = "/x", .systemd = true },
		.place = { .source = SBX_CGROUP_DELEGATED,
			   .path = "/sys/fs/cgroup/x",
			   .controllers = (1u << SBX_N_CGROUP_CONTROLLERS) - 1 },
		.bwrap = { .path = "/usr/bin/bwrap", .version = "0.8.0" },
		.landlock_abi = 6,
		.trust_store = "/etc/ssl/certs/ca-certificates.crt",
		.trust_looked = "/etc/ssl/certs/ca-certificates.crt",
		.state = { .path = "/s", .exists = true },
		.runtime = { .path = "/r", .exists = true },
		.database = { .exists = true, .version = SBX_STORE_VERSION },
		.n_programs = 2,
		.programs = { { .name = "sbx-init", .version = PACKAGE_VERSION },
			      { .name = "sbx-scope", .optional = true, .error = ENOENT } },
		.libexec_dir = "/l",
		.systemd = true,
		.user_bus = true,
		.lingers = true,
		.systemctl = worked,
		.service = { "loaded", "active" },
		.start_socket = { "loaded", "active" },
		.inotify = { 128, "fs.inotify.max_user_instances", 64 },
		.n_files = 1048576,
		.n_locked = 8 << 20,
	};
}

static void test_healthy(void **state)
{
	struct sbx_doctor_facts f;
	struct sbx_doctor_report r;

	(void)state;
	healthy(&f);
	sbx_doctor_judge(&f, &r);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_OK), r.n);
	for (size_t i = 0; i < r.n; i++) {
		assert_true(r.v[i].seen[0]);
		assert_string_equal(r.v[i].remedy, "");
	}
}

#define LACKS(name, change)                                                                        \
	static void name(struct sbx_doctor_facts *f)                                               \
	{                                                                                          \
		change;                                                                            \
	}

#define SAY(member, error_, text)                                                                  \
	(f->member.error = (error_), sbx_text_fit(f->member.why, sizeof(f->member.why), text))

LACKS(old_kernel, sbx_text_fit(f->kernel, sizeof(f->kernel), "5.11.9"))
LACKS(no_version, sbx_text_fit(f->kernel, sizeof(f->kernel), "odd"))
LACKS(no_openat2, SAY(openat2, ENOSYS, "this kernel has no openat2"))
LACKS(no_userns, f->userns.max_user_namespaces = 0)
LACKS(no_net, f->userns.none_of = "net")
LACKS(root_only, f->userns.unprivileged_userns_clone = 0)
LACKS(netns_fails, SAY(netns, ENOSPC, "net namespaces are off; as root: sysctl x"))
LACKS(masked_proc, SAY(proc, EPERM, "Operation not permitted"))
LACKS(restricted,
      (f->apparmor = SBX_APPARMOR_ON, f->userns.apparmor_restrict_unprivileged_userns = 1))
LACKS(no_tproxy, SAY(network, ENOENT, "ruleset: this kernel has no tproxy"))
LACKS(no_socket, SAY(attach, ENOENT, "this kernel has no socket expression"))
LACKS(no_cgroup, f->cgroup.mount[0] = '\0')
LACKS(no_place, f->place = (struct sbx_cgroup_place){ 0 })
LACKS(few_controllers, f->place.controllers = SBX_CGROUP_BIT(SBX_CGROUP_PIDS))
LACKS(no_bwrap, (f->bwrap.path[0] = '\0', f->bwrap_run.tried = false,
		 sbx_text_fit(f->bwrap.why, sizeof(f->bwrap.why), "bwrap was not found: x")))
LACKS(old_bwrap, sbx_text_fit(f->bwrap.version, sizeof(f->bwrap.version), "0.7.9"))
LACKS(poor_bwrap, sbx_text_fit(f->bwrap.missing, sizeof(f->bwrap.missing), "--as-pid-1"))
LACKS(bwrap_fails, SAY(bwrap_run, EIO, "bwrap: setting up uid map: Permission denied"))
LACKS(no_landlock, f->landlock_abi = 0)
LACKS(first_landlock, f->landlock_abi = 1)
LACKS(no_seccomp, f->seccomp_error = ENOSYS)
LACKS(no_trust, f->trust_store[0] = '\0')
LACKS(read_only_state, SAY(state, EROFS, "/s: Read-only file system"))
LACKS(no_places, (f->state.path[0] = '\0', f->runtime.path[0] = '\0',
		  sbx_text_fit(f->places_why, sizeof(f->places_why), "others may write")))
LACKS(damaged, SAY(database, EUCLEAN, "damaged"))
LACKS(newer, f->database.version = SBX_STORE_VERSION + 1)
LACKS(open_to_all, f->database.others_read = true)
LACKS(runtime_long, SAY(runtime, ENAMETOOLONG, "/r: too long"))
LACKS(no_init, f->programs[0].error = ENOENT)
LACKS(old_init, sbx_text_fit(f->programs[0].version, 32, "0.0.1"))
LACKS(old_scope, (f->programs[1].error = 0, f->programs[1].version[0] = '\0'))
LACKS(no_bus, f->user_bus = false)
LACKS(no_systemctl, SAY(systemctl, EIO, "Failed to connect to bus"))
LACKS(socket_stopped, sbx_text_fit(f->start_socket.active, 16, "inactive"))
LACKS(socket_masked, (f->start_socket = (struct sbx_doctor_unit){ "masked", "inactive" },
		      sbx_text_fit(f->service.active, 16, "inactive")))
LACKS(socket_missing, f->start_socket = ((struct sbx_doctor_unit){ "not-found", "inactive" }))
LACKS(no_inotify, f->inotify.n_max = -1)
LACKS(few_instances, f->inotify.n_max = 127)
LACKS(many_live, f->inotify.n_live = 65)
LACKS(very_many_live, f->inotify.n_live = 2000)
LACKS(few_files, f->n_files = 1024)
LACKS(few_locked, f->n_locked = 65536)

static const struct {
	void (*lacks)(struct sbx_doctor_facts *f);
	const char *name, *seen, *remedy;
	enum sbx_doctor_state state;
} cases[] = {
	{ old_kernel, "kernel", "5.11.9", "5.12", SBX_DOCTOR_PROBLEM },
	{ no_version, "kernel", "odd", "5.12", SBX_DOCTOR_PROBLEM },
	{ no_openat2, "kernel", "openat2", "openat2", SBX_DOCTOR_PROBLEM },
	{ no_userns, "user-namespaces", "turned off", "sysctl -w", SBX_DOCTOR_PROBLEM },
	{ no_net, "user-namespaces", "max_net_namespaces", "sysctl -w", SBX_DOCTOR_PROBLEM },
	{ root_only, "user-namespaces", "root only", "unprivileged_userns_clone=1",
	  SBX_DOCTOR_PROBLEM },
	{ netns_fails, "user-namespaces", "are off", "as root: sysctl x", SBX_DOCTOR_PROBLEM },
	{ masked_proc, "proc", "not permitted", "container", SBX_DOCTOR_PROBLEM },
	{ restricted, "apparmor", "restricts", "userns,", SBX_DOCTOR_WARNING },
	{ no_tproxy, "nf_tables", "no tproxy", "modprobe", SBX_DOCTOR_PROBLEM },
	{ no_socket, "attach-cgroup", "no socket", "nft_socket", SBX_DOCTOR_WARNING },
	{ no_cgroup, "cgroup", "not mounted", "mount it", SBX_DOCTOR_WARNING },
	{ no_place, "cgroup", "no place", "Delegate", SBX_DOCTOR_WARNING },
	{ few_controllers, "cgroup", "cpu, memory, io", "Delegate", SBX_DOCTOR_WARNING },
	{ no_bwrap, "bwrap", "was not found", "bubblewrap", SBX_DOCTOR_PROBLEM },
	{ old_bwrap, "bwrap", "0.7.9", "0.8", SBX_DOCTOR_PROBLEM },
	{ poor_bwrap, "bwrap", "--as-pid-1", "0.8", SBX_DOCTOR_PROBLEM },
	{ bwrap_fails, "bwrap", "uid map", "userns", SBX_DOCTOR_PROBLEM },
	{ no_landlock, "landlock", "commands.allow", "5.19", SBX_DOCTOR_WARNING },
	{ first_landlock, "landlock", "renamed", "5.19", SBX_DOCTOR_WARNING },
	{ no_seccomp, "seccomp", "cannot", "CONFIG_SECCOMP_FILTER", SBX_DOCTOR_PROBLEM },
	{ no_trust, "trust-store", "no trust store", "ca-certificates", SBX_DOCTOR_WARNING },
	{ damaged, "database", "damaged", "backup", SBX_DOCTOR_PROBLEM },
	{ newer, "database", "knows versions up to", "newer", SBX_DOCTOR_PROBLEM },
	{ open_to_all, "database", "other users", "chmod", SBX_DOCTOR_WARNING },
	{ runtime_long, "runtime-directory", "too long", "SBX_RUNTIME_DIR", SBX_DOCTOR_PROBLEM },
	{ no_init, "programs", "sbx-init is missing", "anew", SBX_DOCTOR_PROBLEM },
	{ old_init, "programs", "0.0.1", "anew", SBX_DOCTOR_PROBLEM },
	{ old_scope, "programs", "unknown", "anew", SBX_DOCTOR_PROBLEM },
	{ no_bus, "systemd", "bus", "XDG_RUNTIME_DIR", SBX_DOCTOR_WARNING },
	{ no_systemctl, "sbx-sandbox.socket", "connect to bus", "", SBX_DOCTOR_UNKNOWN },
	{ socket_stopped, "sbx-sandbox.socket", "inactive, and sbxd.service is active",
	  "enable --now sbx-sandbox.socket", SBX_DOCTOR_PROBLEM },
	{ socket_masked, "sbx-sandbox.socket", "masked, and sbxd.service is inactive",
	  "unmask sbx-sandbox.socket; systemctl enable", SBX_DOCTOR_WARNING },
	{ socket_missing, "sbx-sandbox.socket", "not-found, and", "daemon-reload; systemctl enable",
	  SBX_DOCTOR_PROBLEM },
	{ no_inotify, "inotify", "no inotify", "CONFIG_INOTIFY_USER", SBX_DOCTOR_WARNING },
	{ few_instances, "inotify", "127 instances", "fs.inotify.max_user_instances=4096",
	  SBX_DOCTOR_WARNING },
	{ many_live, "inotify", "65 live", "fs.inotify.max_user_instances=4096",
	  SBX_DOCTOR_WARNING },
	{ very_many_live, "inotify", "2000 live", "fs.inotify.max_user_instances=8000",
	  SBX_DOCTOR_WARNING },
	{ few_files, "open-files", "1024", "nofile", SBX_DOCTOR_WARNING },
	{ few_locked, "locked-memory", "65536", "memlock", SBX_DOCTOR_WARNING },
};

static void test_each_is_named_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_doctor_facts f;
		struct sbx_doctor_report r;

		healthy(&f);
		cases[i].lacks(&f);
		sbx_doctor_judge(&f, &r);
		for (size_t k = 0; k < r.n; k++) {
			bool named = strcmp(r.v[k].name, cases[i].name) == 0;

			assert_int_equal(r.v[k].state, named ? cases[i].state : SBX_DOCTOR_OK);
			if (!named)
				continue;
			assert_non_null(strstr(r.v[k].seen, cases[i].seen));
			assert_non_null(strstr(r.v[k].remedy, cases[i].remedy));
		}
	}
}

/* Where no namespace can be made, the checks that need one are unknown: the cause is named once. */
static void test_what_was_not_tried(void **state)
{
	struct sbx_doctor_facts f;
	struct sbx_doctor_report r;

	(void)state;
	healthy(&f);
	f.namespaces.error = EPERM;
	f.proc.tried = f.netns.tried = f.network.tried = f.attach.tried = false;
	f.bwrap_run.tried = false;
	sbx_doctor_judge(&f, &r);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_PROBLEM), 1);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_UNKNOWN), 3);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_WARNING), 0);
}

/* Machines that need no sbx-sandbox.socket. */
static void test_no_start_socket(void **state)
{
	static const struct {
		bool systemd;
		struct sbx_doctor_unit service, socket;
		const char *seen;
	} machines[] = {
		{ false, { "", "" }, { "", "" }, "not pid 1" },
		{ true, { "not-found", "inactive" }, { "not-found", "inactive" }, "not installed" },
		{ true, { "masked", "inactive" }, { "loaded", "inactive" }, "not installed" },
		{ true, { "loaded", "inactive" }, { "loaded", "inactive" }, "which starts it" },
		{ true, { "loaded", "failed" }, { "loaded", "failed" }, "which starts it" },
		{ true, { "loaded", "inactive" }, { "loaded", "active" }, "through it" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(machines); i++) {
		struct sbx_doctor_facts f;
		struct sbx_doctor_report r;

		healthy(&f);
		f.systemd = machines[i].systemd;
		f.service = machines[i].service;
		f.start_socket = machines[i].socket;
		sbx_doctor_judge(&f, &r);
		assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_OK), r.n);
		for (size_t k = 0; k < r.n; k++)
			if (strcmp(r.v[k].name, "sbx-sandbox.socket") == 0)
				assert_non_null(strstr(r.v[k].seen, machines[i].seen));
	}
}

/* The database is in the state directory. */
static void test_read_only_state(void **state)
{
	struct sbx_doctor_facts f;
	struct sbx_doctor_report r;

	(void)state;
	healthy(&f);
	read_only_state(&f);
	sbx_doctor_judge(&f, &r);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_PROBLEM), 1);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_UNKNOWN), 1);
}

/* Both directories are named where they cannot be told. */
static void test_no_places(void **state)
{
	struct sbx_doctor_facts f;
	struct sbx_doctor_report r;

	(void)state;
	healthy(&f);
	no_places(&f);
	sbx_doctor_judge(&f, &r);
	assert_int_equal(sbx_doctor_count(&r, SBX_DOCTOR_PROBLEM), 2);
}

/* --- gathering --- */

static char *scratch(void)
{
	static char dir[] = "/tmp/sbx-doctor-XXXXXX";

	sbx_text_fit(dir, sizeof(dir), "/tmp/sbx-doctor-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return dir;
}

static void test_program_version(void **state)
{
	char *dir = scratch(), path[128], version[32];

	(void)state;
	sbx_text_fit(path, sizeof(path), "%s/p", dir);
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), ENOENT);
	scratch_write(path, "xx" SBX_VERSION_MARK_TEXT "1.2.3");
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), EACCES);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), 0);
	assert_string_equal(version, "1.2.3");
	scratch_write(path, "no mark, and a hostile \x1b[2J");
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), 0);
	assert_string_equal(version, "");
	scratch_write(path, SBX_VERSION_MARK_TEXT "\x1b[2J");
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), 0);
	assert_null(strchr(version, '\x1b'));
	scratch_write(path, "");
	assert_int_equal(sbx_doctor_program_version(path, version, sizeof(version)), ENOEXEC);
	scratch_remove(dir);
}

static void test_store_look(void **state)
{
	char *dir = scratch(), path[128];
	struct sbx_store_look look;
	struct sbx_err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(sbx_store_look(dir, &look, &err), 0);
	assert_false(look.exists);
	sbx_text_fit(path, sizeof(path), "%s/sbx.db", dir);
	assert_int_equal(stat(path, &st), -1); /* looking makes none */
	scratch_write(path,
		      "this is no database, however long it is made: it has no header at all");
	assert_int_equal(sbx_store_look(dir, &look, &err), -EUCLEAN);
	assert_true(look.exists && err.msg[0]);
	scratch_remove(dir);
}

/* Whatever this machine has: a report with a line for each check. */
static void test_this_machine(void **state)
{
	static struct sbx_doctor_facts f;
	char *dir = scratch();
	struct sbx_doctor_report r;

	(void)state;
	setenv("SBX_STATE_DIR", dir, 1);
	setenv("SBX_RUNTIME_DIR", dir, 1);
	sbx_doctor_gather(&f);
	sbx_doctor_judge(&f, &r);
	assert_true(f.namespaces.tried);
	for (size_t i = 0; i < r.n; i++) {
		assert_true(r.v[i].seen[0]);
		print_message("%s: %s: %s (%s)\n", r.v[i].name, sbx_doctor_state_str(r.v[i].state),
			      r.v[i].seen, r.v[i].remedy);
	}
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_each_is_named_alone),
		cmocka_unit_test(test_what_was_not_tried),
		cmocka_unit_test(test_no_start_socket),
		cmocka_unit_test(test_read_only_state),
		cmocka_unit_test(test_no_places),
		cmocka_unit_test(test_program_version),
		cmocka_unit_test(test_store_look),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
