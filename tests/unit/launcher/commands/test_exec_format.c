/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The format that a file's first bytes name: a script, an ELF file, or neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/commands/exec_format.h"

static int parse(const char *text, struct sbx_exec_format *f)
{
	return sbx_exec_parse(sbx_span_str(text), f);
}

static void script(const char *text, const char *interpreter, const char *arg)
{
	struct sbx_exec_format f;

	assert_int_equal(parse(text, &f), 0);
	assert_int_equal(f.kind, SBX_EXEC_SCRIPT);
	assert_string_equal(f.interpreter, interpreter);
	assert_string_equal(f.arg, arg);
}

static void test_scripts(void **state)
{
	(void)state;
	script("#!/bin/sh\n", "/bin/sh", "");
	script("#!/bin/sh", "/bin/sh", ""); /* the end of the file is one */
	script("#! \t/bin/sh \t-e -u \t\nrest", "/bin/sh", "-e -u");
	script("#!/usr/bin/env python3\n", "/usr/bin/env", "python3");
	script("#!sh\r\n", "sh\r", ""); /* as the kernel does */
}

/* A file with a path of @n bytes after #!, then @then. */
static int long_path(size_t n, const char *then, struct sbx_exec_format *f)
{
	char text[600] = "#!";

	memset(text + 2, 'a', n);
	strcpy(text + 2 + n, then);
	return parse(text, f);
}

static void test_malformed(void **state)
{
	static const char *const nothing[] = { "#!", "#!\n", "#! \t \n", "#!\n/bin/sh\n" };
	struct sbx_exec_format f;
	char blanks[400];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(nothing); i++)
		assert_int_equal(parse(nothing[i], &f), SBX_EXEC_E_NO_INTERPRETER);
	memset(blanks, ' ', sizeof(blanks) - 1);
	blanks[sizeof(blanks) - 1] = '\0';
	memcpy(blanks, "#!", 2);
	assert_int_equal(parse(blanks, &f), SBX_EXEC_E_NO_INTERPRETER);
	/* The path must end within the head; what follows it may be cut. */
	assert_int_equal(long_path(253, "\n", &f), 0);
	assert_int_equal(strlen(f.interpreter), 253);
	assert_int_equal(long_path(253, " argument\n", &f), 0);
	assert_int_equal(long_path(253, "", &f), 0);
	assert_int_equal(long_path(254, "\n", &f), SBX_EXEC_E_TOO_LONG);
	assert_int_equal(long_path(500, "\n", &f), SBX_EXEC_E_TOO_LONG);
	assert_int_equal(f.kind, SBX_EXEC_UNKNOWN);
}

static void test_elf(void **state)
{
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			 .e_phoff = 64,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1170 };
	Elf64_Phdr p = { .p_type = PT_INTERP, .p_offset = 123, .p_filesz = 28 };
	struct sbx_exec_format f;
	uint64_t at, n;

	(void)state;
	assert_int_equal(sbx_exec_parse(sbx_span(&h, sizeof(h)), &f), 0);
	assert_int_equal(f.kind, SBX_EXEC_ELF);
	assert_int_equal(f.phdrs_at, 64);
	assert_int_equal(f.n_phdrs, 1170);
	h.e_phnum = 1171; /* more than the kernel reads */
	sbx_exec_parse(sbx_span(&h, sizeof(h)), &f);
	assert_int_equal(f.n_phdrs, 0);
	h.e_phnum = 2;
	h.e_phentsize = 32;
	sbx_exec_parse(sbx_span(&h, sizeof(h)), &f);
	assert_int_equal(f.n_phdrs, 0);
	h.e_phentsize = sizeof(Elf64_Phdr);
	h.e_ident[EI_CLASS] = ELFCLASS32;
	sbx_exec_parse(sbx_span(&h, sizeof(h)), &f);
	assert_int_equal(f.kind, SBX_EXEC_ELF);
	assert_int_equal(f.n_phdrs, 0);
	for (size_t cut = 0; cut < sizeof(h); cut++) {
		sbx_exec_parse(sbx_span(&h, cut), &f);
		assert_int_equal(f.kind, cut < 4 ? SBX_EXEC_UNKNOWN : SBX_EXEC_ELF);
		assert_int_equal(f.n_phdrs, 0);
	}
	assert_true(sbx_exec_is_interp(sbx_span(&p, sizeof(p)), &at, &n));
	assert_true(at == 123 && n == 28);
	assert_false(sbx_exec_is_interp(sbx_span(&p, sizeof(p) - 1), &at, &n));
	p.p_type = PT_LOAD;
	assert_false(sbx_exec_is_interp(sbx_span(&p, sizeof(p)), &at, &n));
}

static void env(const char *arg, const char *want)
{
	char name[SBX_EXEC_HEAD_MAX];
	bool told = sbx_exec_env_program(arg, name);

	assert_int_equal(told, want != NULL);
	if (want)
		assert_string_equal(name, want);
}

static void test_env(void **state)
{
	(void)state;
	env("python3", "python3");
	env("python3 -u", "python3 -u"); /* one argument: that is what it looks for */
	env("-S python3 -u", "python3");
	env("-Spython3", "python3");
	env("-vS A=b -i  /usr/bin/perl -w", "/usr/bin/perl");
	env("--split-string=node", "node");
	env("", NULL);
	env("-S", NULL);
	env("-i", NULL);
	env("A=b", NULL);
	env("-S -u HOME sh", NULL);
	env("-S PATH=/tmp sh", NULL);
	env("-S P=/tmp sh", "sh");
	env("-S 'python3' x", NULL);
	env("-S ${X} x", NULL);
}

/* The kernel and we agree on how many scripts may interpret one another. */
static void test_depth(void **state)
{
	char dir[] = "/tmp/sbx-depth-XXXXXX", path[64], text[80];

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i <= SBX_EXEC_DEPTH_MAX; i++) {
		SBX_AUTO_CLOSE int fd = -1;
		int status = -1;
		pid_t pid;

		snprintf(text, sizeof(text), i ? "#!%s/%d\n" : "#!/bin/true\n", dir, i - 1);
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
		assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
		fd = sbx_fd_close(fd);
		pid = fork();
		if (pid == 0) {
			execl(path, path, NULL);
			_exit(errno == ELOOP ? 2 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), i < SBX_EXEC_DEPTH_MAX ? 0 : 2);
	}
	for (int i = 0; i <= SBX_EXEC_DEPTH_MAX; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scripts), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_elf),	cmocka_unit_test(test_env),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
