/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Plans of generated profiles, system policies, options and trees: refused with a reason, or what
 * plan_check.h asks for. An input is lines, of which the first letter says what it is:
 *
 *   d PATH   f PATH TEXT   l PATH TARGET   h PATH OLD   s PATH   m PATH MODE   made in `play`
 *   p LINE   y LINE   of the profile and of system.yaml
 *   w WORD   an option or its value
 *   P PATH   the profile is that file
 *
 * '@' stands for the path of `play`, '%' for a name of 200 bytes. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher/plan_fuzz.h"

#define TEXT_MAX  16384
#define WORDS_MAX 24

struct scene {
	char system[TEXT_MAX], profile[TEXT_MAX], profile_path[TEXT_MAX];
	char words[WORDS_MAX][TEXT_MAX];
	size_t n_system, n_profile, n_words;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	plan_fuzz_begin();
	return 0;
}

/* Returns the bytes written; a NUL follows. A text that is too long is cut. */
static size_t expand(const char *s, size_t n, char *ret, size_t n_ret)
{
	static const char name[] = "012345678901234567890123456789012345678901234567890123456789012"
				   "3456789012345678901234567890"
				   "123456789012345678901234567890123456789012345678901234567890123"
				   "4567890123456789012345678901"
				   "234567890123456789";
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const char *what = s[i] == '@' ? plan_fuzz_play() : s[i] == '%' ? name : s + i;
		size_t n_what = what == s + i ? 1 : strlen(what);

		if (at + n_what + 1 > n_ret)
			break;
		memcpy(ret + at, what, n_what);
		at += n_what;
	}
	ret[at] = '\0';
	return at;
}

/* Of the two arguments of @s the second, "" without one; the first ends there. */
static char *second(char *s)
{
	char *space = strchr(s, ' ');

	if (!space)
		return s + strlen(s);
	*space = '\0';
	return space + 1;
}

static void append_line(char text[TEXT_MAX], size_t *n, const char *line)
{
	size_t n_line = strlen(line);

	if (*n + n_line + 2 > TEXT_MAX)
		return;
	memcpy(text + *n, line, n_line);
	*n += n_line;
	text[(*n)++] = '\n';
	text[*n] = '\0';
}

static void take_line(struct scene *s, const char *line, size_t n)
{
	char text[TEXT_MAX], *more;

	if (n < 2 || memchr(line, '\0', n))
		return;
	n = expand(line + 2, n - 2, text, sizeof(text));
	switch (line[0]) {
	case 'p':
		append_line(s->profile, &s->n_profile, text);
		return;
	case 'y':
		append_line(s->system, &s->n_system, text);
		return;
	case 'P':
		memcpy(s->profile_path, text, n + 1);
		return;
	case 'w':
		if (s->n_words < WORDS_MAX)
			memcpy(s->words[s->n_words++], text, n + 1);
		return;
	case 'd':
		plan_fuzz_dir(text);
		return;
	case 's':
		plan_fuzz_socket(text);
		return;
	}
	more = second(text);
	if (line[0] == 'f')
		plan_fuzz_file(text, more, strlen(more));
	else if (line[0] == 'l')
		plan_fuzz_link(text, more);
	else if (line[0] == 'h')
		plan_fuzz_hard_link(text, more);
	else if (line[0] == 'm')
		plan_fuzz_mode(text, (mode_t)strtoul(more, NULL, 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene s;
	const char *at = (const char *)data, *end = at + size;
	char *words[WORDS_MAX];

	s.n_system = s.n_profile = s.n_words = 0;
	s.system[0] = s.profile[0] = s.profile_path[0] = '\0';
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((newline ? newline : end) - at);

		take_line(&s, at, n);
		at = newline ? newline + 1 : end;
	}
	for (size_t i = 0; i < s.n_words; i++)
		words[i] = s.words[i];
	plan_fuzz_run(words, s.n_words, s.system, s.profile_path[0] ? s.profile_path : NULL,
		      s.profile);
	plan_fuzz_clear();
	return 0;
}
