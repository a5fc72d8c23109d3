/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Build time only: makes seccomp_programs.c from the tables, by libseccomp, on stdout.
 *
 * Only the native ABI is in a filter; every other one kills the process. The program is a binary
 * tree over the call numbers (SCMP_FLTATR_CTL_OPTIMIZE 2): a chain of comparisons costs four times
 * as much to install. A row that libseccomp does not take as it is (seccomp_rule_add_exact) fails
 * the build, so no filter has holes.
 *
 * Rows that a profile may lift (base/seccomp_lift.h) must be found again in the program. Such rows
 * are built with an error number as their mark, one for each lift and action, which is then
 * replaced by the action. The places of those returns go into a list; libseccomp returns one action
 * in one place, but this program does not rely on that.
 *
 * This program runs on the machine that compiles it, so call numbers are those of that machine; the
 * file that it writes refuses to be compiled for another.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/seccomp/seccomp.h"
#include "sys/seccomp/seccomp_program.h"
#include "sys/seccomp/seccomp_table.h"

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
	{ "factory_tcp", "SBX_SECCOMP_FACTORY_TCP", &sbx_seccomp_factory_tcp_table },
	{ "tls", "SBX_SECCOMP_TLS", &sbx_seccomp_tls_table },
};
_Static_assert(SBX_N_ELEMENTS(profiles) == SBX_N_SECCOMP_PROFILES, "a table for each profile");

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

/* The meaning of each mark. libseccomp takes errors below 4095, and the kernel has none from
 * 4000 on. */
#define FIRST_MARK 4000
#define MARKS_MAX  64

struct marks {
	struct mark {
		uint32_t action, lifts;
	} v[MARKS_MAX];
	uint32_t n;
};

static int mark_row(struct marks *m, const struct sbx_seccomp_row *row, uint32_t *ret_action)
{
	uint32_t i = 0;

	while (i < m->n && (m->v[i].action != row->action || m->v[i].lifts != row->lifts))
		i++;
	if (i == MARKS_MAX)
		return -E2BIG;
	m->v[i] = (struct mark){ row->action, row->lifts };
	m->n += i == m->n;
	*ret_action = SCMP_ACT_ERRNO(FIRST_MARK + i);
	return 0;
}

static const struct mark *mark_of(const struct marks *m, const struct sock_filter *i)
{
	for (uint32_t n = 0; n < m->n; n++)
		if (i->code == (BPF_RET | BPF_K) && i->k == SCMP_ACT_ERRNO(FIRST_MARK + n))
			return &m->v[n];
	return NULL;
}

static int add_row(scmp_filter_ctx ctx, const struct sbx_seccomp_row *row, struct marks *m)
{
	int last = row->nr_last ? row->nr_last : row->nr;
	uint32_t action = row->action;

	if (row->lifts && mark_row(m, row, &action) < 0) {
		fprintf(stderr, "too many kinds of rows that can be lifted: raise MARKS_MAX\n");
		return -E2BIG;
	}
	for (int nr = row->nr; nr >= 0 && nr <= last; nr++) {
		int r = seccomp_rule_add_exact_array(ctx, action, nr, row->n_args, row->args);

		if (r < 0) {
			fprintf(stderr, "libseccomp refuses the row '%s': %s\n", row->text,
				strerror(-r));
			return r;
		}
	}
	return 0;
}

/* The table's program, written to @fd. */
static int build(const struct sbx_seccomp_table *table, int fd, struct marks *m)
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
		r = add_row(ctx, &table->rows[i], m);
	return r == 0 ? seccomp_export_bpf(ctx, fd) : r;
}

/* --- shortening --- */

/* A load of half a register under an empty mask: libseccomp makes a load, a mask and a comparison
 * of it too. */
static bool is_vain(const struct sock_filter *i)
{
	return i[0].code == (BPF_LD | BPF_W | BPF_ABS) &&
	       i[1].code == (BPF_ALU | BPF_AND | BPF_K) && i[1].k == 0 &&
	       i[2].code == (BPF_JMP | BPF_JEQ | BPF_K) && i[2].k == 0;
}

static bool lands(const struct sock_filter *code, uint32_t from, uint32_t at)
{
	const struct sock_filter *i = &code[from];

	if (BPF_CLASS(i->code) != BPF_JMP)
		return false;
	if (BPF_OP(i->code) == BPF_JA)
		return from + 1 + i->k == at;
	return from + 1 + i->jt == at || from + 1 + i->jf == at;
}

/* Does any jump lead to @at, besides the instruction before it? */
static bool is_target(const struct sock_filter *code, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (lands(code, i, at))
			return true;
	return false;
}

static void shift(uint8_t *jump, const uint32_t *new_at, uint32_t from)
{
	*jump = (uint8_t)(new_at[from + 1 + *jump] - new_at[from] - 1);
}

/* A third of a program is such loads; removing them makes every start and every call shorter. A
 * load is removed only if its comparison leads to the next instruction, and that one does not use
 * the loaded value (it loads the next half, or returns): then a jump to the load may go to that
 * instruction. */
static uint32_t shorten(struct sock_filter *code, uint32_t n)
{
	static uint32_t new_at[BPF_MAXINSNS + 1];
	static bool drop[BPF_MAXINSNS];
	uint32_t n_new = 0;

	for (uint32_t i = 0; i + 3 < n; i++)
		if (is_vain(&code[i]) && code[i + 2].jt == 0 && !is_target(code, i + 2) &&
		    (BPF_CLASS(code[i + 3].code) == BPF_LD ||
		     BPF_CLASS(code[i + 3].code) == BPF_RET))
			drop[i] = drop[i + 1] = drop[i + 2] = true;
	for (uint32_t i = 0; i < n; i++) {
		new_at[i] = n_new;
		n_new += !drop[i];
	}
	new_at[n] = n_new;
	for (uint32_t i = 0; i < n; i++) {
		if (BPF_CLASS(code[i].code) != BPF_JMP || drop[i])
			continue;
		if (BPF_OP(code[i].code) == BPF_JA) {
			code[i].k = new_at[i + 1 + code[i].k] - new_at[i] - 1;
			continue;
		}
		shift(&code[i].jt, new_at, i);
		shift(&code[i].jf, new_at, i);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!drop[i])
			code[new_at[i]] = code[i];
	memset(drop, 0, sizeof(drop));
	return n_new;
}

/* Print the program and, after it, the places of the rows that can be lifted. */
static int print_array(const char *name, const struct sbx_seccomp_table *table)
{
	SBX_AUTO_CLOSE int fd = memfd_create("seccomp", MFD_CLOEXEC);
	static struct sock_filter code[BPF_MAXINSNS];
	static struct sbx_seccomp_place places[BPF_MAXINSNS];
	struct marks marks = { .n = 0 };
	uint32_t n, n_places = 0;
	const struct mark *mark;
	ssize_t size;
	int r;

	if (fd < 0)
		return -errno;
	r = build(table, fd, &marks);
	if (r < 0)
		return r;
	size = pread(fd, code, sizeof(code), 0);
	if (size < 0)
		return -errno;
	n = shorten(code, (uint32_t)((size_t)size / sizeof(code[0])));
	printf("\nstatic struct sock_filter %s[] = {\n", name);
	for (uint32_t i = 0; i < n; i++) {
		mark = mark_of(&marks, &code[i]);
		if (mark) {
			code[i].k = mark->action;
			places[n_places++] = (struct sbx_seccomp_place){ (uint16_t)i, mark->lifts };
		}
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", code[i].code, code[i].jt, code[i].jf,
		       code[i].k);
	}
	printf("};\nstatic const struct sbx_seccomp_place %s_places[] = {\n", name);
	for (uint32_t k = 0; k < n_places; k++)
		printf("\t{ %u, 0x%x },\n", places[k].at, places[k].lifts);
	printf("\t{ 0, 0 },\n};\n");
	return 0;
}

int main(void)
{
	printf("/* Made by seccomp_generate.c. */\n#include \"sys/seccomp/seccomp.h\"\n"
	       "#include \"sys/seccomp/seccomp_program.h\"\n\n"
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
	printf("};\nconst struct sbx_seccomp_place *const "
	       "sbx_seccomp_places[SBX_N_SECCOMP_PROFILES] = {\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++)
		printf("\t[%s] = %s_places,\n", profiles[i].index, profiles[i].name);
	printf("};\n");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
