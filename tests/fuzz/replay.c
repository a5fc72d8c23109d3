/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replays a corpus through a fuzz target without libFuzzer: every file of the directories given, or
 * of $SBX_SRCDIR/tests/fuzz/corpus/<module>/ when the program is called fuzz_<module> and has no
 * argument. Each input is also given cut to every length up to PREFIX_MAX, in a buffer of exactly
 * its size, so that a sanitizer or valgrind sees a read past the end. Files come in the order of
 * their names. With the program's own corpus, a CHECK of fuzz_<module>.c that no input reached is a
 * failure: it would be a test that cannot fail. Prints TAP.
 */

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX  (1 << 20) /* bytes of one corpus file */
#define PREFIX_MAX 512	     /* bytes; longer prefixes than this are not tried one by one */

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
/* Of the linker: the bounds of the section. Weak, for a program without a CHECK. */
extern struct fuzz_check __start_fuzz_checks[] __attribute__((weak));
extern struct fuzz_check __stop_fuzz_checks[] __attribute__((weak));

static int feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return 0;
}

static int replay_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *f = fopen(path, "re");
	size_t n;
	int r = 0;

	if (!f)
		return -errno;
	n = fread(data, 1, sizeof(data), f);
	if (ferror(f) || (n == sizeof(data) && fgetc(f) != EOF))
		r = -EFBIG;
	fclose(f);
	for (size_t cut = 0; !r && cut < n && cut < PREFIX_MAX; cut++)
		r = feed(data, cut);
	return r ? r : feed(data, n);
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* The number of inputs, or -errno. */
static int replay_directory(const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, alphasort);
	int r = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (!r)
			r = replay_file(path);
		if (r)
			printf("# %s: %s\n", path, strerror(-r));
		free(entries[i]);
	}
	free(entries);
	return r ? r : n;
}

static void default_directory(const char *program, char *ret, size_t n_ret)
{
	const char *srcdir = getenv("SBX_SRCDIR");
	const char *base = strrchr(program, '/');

	base = base ? base + 1 : program;
	if (!strncmp(base, "fuzz_", 5))
		base += 5;
	snprintf(ret, n_ret, "%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".", base);
}

/* Prints the CHECKs of the target's own file that no input reached, and returns their number. Those
 * of a file that targets share need not be reached by each of them. */
static int count_unreached(void)
{
	int n = 0;

	for (const struct fuzz_check *c = __start_fuzz_checks; c < __stop_fuzz_checks; c++) {
		const char *base = strrchr(c->file, '/');

		if (c->reached || strncmp(base ? base + 1 : c->file, "fuzz_", 5) != 0)
			continue;
		printf("# %s:%d: no seed reaches this CHECK\n", c->file, c->line);
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	char fallback[4096];
	char *dirs_default[] = { fallback };
	char **dirs = argv + 1;
	int n_dirs = argc - 1;
	bool is_default = n_dirs == 0;
	int n_failed = 0;

	default_directory(argv[0], fallback, sizeof(fallback));
	if (is_default) {
		dirs = dirs_default;
		n_dirs = 1;
	}
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);

	printf("1..%d\n", n_dirs);
	for (int i = 0; i < n_dirs; i++) {
		int n = replay_directory(dirs[i]);
		const char *why = n < 0				  ? strerror(-n) :
				  n == 0			  ? "no inputs" :
				  is_default && count_unreached() ? "a CHECK is not reached" :
								    NULL;

		n_failed += why != NULL;
		if (why)
			printf("not ok %d - %s: %s\n", i + 1, dirs[i], why);
		else
			printf("ok %d - %s: %d inputs and their prefixes\n", i + 1, dirs[i], n);
		fflush(stdout);
	}
	return n_failed ? 1 : 0;
}
