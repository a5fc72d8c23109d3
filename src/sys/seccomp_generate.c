/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Build time only: from the tables to seccomp_programs.c, by libseccomp, on stdout.
 *
 * Only the native ABI is in a filter; every other one kills the process. The program is a binary
 * tree over the call numbers (SCMP_FLTATR_CTL_OPTIMIZE 2): a chain of comparisons costs four times
 * as much to install. A row libseccomp does not take as it is (seccomp_rule_add_exact) fails the
 * build: there is no filter with holes.
 *
 * This program runs where it was compiled, so call numbers are those of the machine that builds;
 * the file it writes refuses to be compiled for another.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp_program.h"
#include "sys/seccomp_table.h"

#if defined(__x86_64__)
#define ARCH "__x86_64__"
#elif defined(__aarch64__)
#define ARCH "__aarch64__"
#else
#error "say by which macro the compiler names this architecture"
#endif

static const struct {
	const char *name, *index;
	const struct sbx_seccomp_table *table;
} profiles[] = {
	{ "command", "SBX_SECCOMP_COMMAND", &sbx_seccomp_command_table },
	{ "broker", "SBX_SECCOMP_BROKER", &sbx_seccomp_broker_table },
	{ "factory", "SBX_SECCOMP_FACTORY", &sbx_seccomp_factory_table },
};
_Static_assert(SBX_N_ELEMENTS(profiles) == SBX_N_SECCOMP_PROFILES, "a table for each profile");

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int add_row(scmp_filter_ctx ctx, const struct sbx_seccomp_row *row)
{
	int last = row->nr_last ? row->nr_last : row->nr;

	for (int nr = row->nr; nr >= 0 && nr <= last; nr++) {
		int r = seccomp_rule_add_exact_array(ctx, row->action, nr, row->n_args, row->args);

		if (r < 0) {
			fprintf(stderr, "libseccomp refuses the row '%s': %s\n", row->text,
				strerror(-r));
			return r;
		}
	}
	return 0;
}

/* The table's program, written to @fd. */
static int build(const struct sbx_seccomp_table *table, int fd)
{
	SBX_CLEANUP(release) scmp_filter_ctx ctx = seccomp_init(table->default_action);
	int r;

	if (!ctx)
		return -ENOMEM; /* or an architecture libseccomp does not know */
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_API_SYSRAWRC, 1);
	for (size_t i = 0; r == 0 && i < table->n_rows; i++)
		r = add_row(ctx, &table->rows[i]);
	return r == 0 ? seccomp_export_bpf(ctx, fd) : r;
}

static int print_array(const char *name, const struct sbx_seccomp_table *table)
{
	SBX_AUTO_CLOSE int fd = memfd_create("seccomp", MFD_CLOEXEC);
	struct sock_filter i;
	int r;

	if (fd < 0)
		return -errno;
	r = build(table, fd);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	printf("\nstatic struct sock_filter %s[] = {\n", name);
	while (read(fd, &i, sizeof(i)) == sizeof(i))
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", i.code, i.jt, i.jf, i.k);
	printf("};\n");
	return 0;
}

int main(void)
{
	printf("/* Made by seccomp_generate.c. */\n#include \"sys/seccomp_program.h\"\n\n"
	       "#ifndef " ARCH "\n#error \"made on and for " ARCH "\"\n#endif\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++) {
		int r = print_array(profiles[i].name, profiles[i].table);

		if (r < 0) {
			fprintf(stderr, "cannot make the seccomp filter '%s': %s\n",
				profiles[i].name, strerror(-r));
			return 1;
		}
	}
	printf("\nconst struct sock_fprog sbx_seccomp_programs[SBX_N_SECCOMP_PROFILES] = {\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++)
		printf("\t[%s] = { sizeof(%s) / sizeof(%s[0]), %s },\n", profiles[i].index,
		       profiles[i].name, profiles[i].name, profiles[i].name);
	printf("};\n");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
