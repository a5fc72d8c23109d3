/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scripts as fs/binfmt_script.c reads them: the first line counts up to SBX_EXEC_HEAD_MAX bytes;
 * arguments may be cut there, the interpreter's path may not. ELF files as fs/binfmt_elf.c reads
 * them: 64 bits, the machine's byte order, headers of the only valid size.
 */
#include "launcher/commands/exec_format.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "base/text.h"

_Static_assert(sizeof(Elf64_Phdr) == SBX_EXEC_PHDR_BYTES, "as the header says");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* --- #! --- */

static void copy(char to[SBX_EXEC_HEAD_MAX], const char *from, const char *end)
{
	assert(end >= from && end - from < SBX_EXEC_HEAD_MAX);
	memcpy(to, from, (size_t)(end - from));
	to[end - from] = '\0';
}

/* @line is like the kernel's buffer: NULs after the end of the file. */
static int parse_script(const char line[SBX_EXEC_HEAD_MAX], struct sbx_exec_format *f)
{
	const char *end = memchr(line, '\n', SBX_EXEC_HEAD_MAX), *s = line + 2, *name;
	bool cut = !end;

	if (cut)
		end = line + SBX_EXEC_HEAD_MAX - 1;
	while (end > s && is_blank(end[-1]))
		end--;
	while (s < end && is_blank(*s))
		s++;
	name = s;
	while (s < end && *s && !is_blank(*s))
		s++;
	if (s == name)
		return SBX_EXEC_E_NO_INTERPRETER;
	/* Without a newline the last byte must say that the path ends. */
	if (cut && s == line + SBX_EXEC_HEAD_MAX - 1 && *s && !is_blank(*s))
		return SBX_EXEC_E_TOO_LONG;
	copy(f->interpreter, name, s);
	while (s < end && is_blank(*s))
		s++;
	copy(f->arg, s, s + strnlen(s, (size_t)(end - s)));
	f->kind = SBX_EXEC_SCRIPT;
	return 0;
}

/* --- ELF --- */

static void parse_elf(struct sbx_span head, struct sbx_exec_format *f)
{
	Elf64_Ehdr h;

	f->kind = SBX_EXEC_ELF;
	if (head.n < sizeof(h))
		return;
	memcpy(&h, head.p, sizeof(h));
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != NATIVE_DATA ||
	    h.e_phentsize != sizeof(Elf64_Phdr) ||
	    h.e_phnum * sizeof(Elf64_Phdr) > SBX_EXEC_PHDRS_MAX)
		return;
	f->phdrs_at = h.e_phoff;
	f->n_phdrs = h.e_phnum;
}

int sbx_exec_parse(struct sbx_span head, struct sbx_exec_format *ret_format)
{
	char line[SBX_EXEC_HEAD_MAX] = { 0 };

	*ret_format = (struct sbx_exec_format){ .kind = SBX_EXEC_UNKNOWN };
	if (head.n > sizeof(line))
		head.n = sizeof(line);
	if (head.n)
		memcpy(line, head.p, head.n);
	if (line[0] == '#' && line[1] == '!')
		return parse_script(line, ret_format);
	if (memcmp(line, ELFMAG, SELFMAG) == 0)
		parse_elf(head, ret_format);
	return 0;
}

bool sbx_exec_is_interp(struct sbx_span phdr, uint64_t *ret_at, uint64_t *ret_n)
{
	Elf64_Phdr h;

	if (phdr.n < sizeof(h))
		return false;
	memcpy(&h, phdr.p, sizeof(h));
	*ret_at = h.p_offset;
	*ret_n = h.p_filesz;
	return h.p_type == PT_INTERP;
}

/* --- env --- */

/* The length of the next word that env -S would split off; 0: there is none, or it is not plain. */
static size_t next_word(const char **s)
{
	size_t n;

	*s += strspn(*s, " \t");
	n = strcspn(*s, " \t");
	return strcspn(*s, "'\"\\$#") < n ? 0 : n;
}

static bool is_word(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(s, word, n) == 0;
}

static bool is_passed_over(const char *s, size_t n)
{
	static const char *const options[] = { "-",	  "-i", "-v", "--ignore-environment",
					       "--debug", "-S" };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (is_word(s, n, options[i]))
			return true;
	return s[0] != '-' && memchr(s, '=', n) && memcmp(s, "PATH=", n < 5 ? n : 5) != 0;
}

static bool split(const char *s, char ret_name[SBX_EXEC_HEAD_MAX])
{
	size_t n;

	while ((n = next_word(&s)) > 0 && is_passed_over(s, n))
		s += n;
	if (n == 0 || s[0] == '-' || memchr(s, '=', n))
		return false;
	copy(ret_name, s, s + n);
	return true;
}

bool sbx_exec_env_program(const char *arg, char ret_name[SBX_EXEC_HEAD_MAX])
{
	static const char *const splitters[] = { "-S", "-vS", "-iS", "--split-string=" };

	for (size_t i = 0; i < sizeof(splitters) / sizeof(splitters[0]); i++)
		if (strncmp(arg, splitters[i], strlen(splitters[i])) == 0)
			return split(arg + strlen(splitters[i]), ret_name);
	/* One argument, blanks included. */
	if (!arg[0] || arg[0] == '-' || strchr(arg, '='))
		return false;
	return sbx_text_copy(ret_name, SBX_EXEC_HEAD_MAX, arg) == 0;
}
