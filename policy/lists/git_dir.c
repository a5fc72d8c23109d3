/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/lists/git_dir.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

enum { HEAD = 1, CONFIG = 2, COMMONDIR = 4, OBJECTS = 8, REFS = 16 };

unsigned int sbx_git_dir_mark(const char *name, bool may_be_file, bool may_be_dir)
{
	static const struct {
		const char *name;
		unsigned int mark;
		bool is_dir;
	} marks[] = {
		{ "HEAD", HEAD, false },
		{ "config", CONFIG, false },
		{ "commondir", COMMONDIR, false },
		{ "objects", OBJECTS, true },
		{ "refs", REFS, true },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(marks); i++)
		if (strcmp(name, marks[i].name) == 0)
			return (marks[i].is_dir ? may_be_dir : may_be_file) ? marks[i].mark : 0;
	return 0;
}

bool sbx_git_dir_known(unsigned int marks, bool strict)
{
	const unsigned int both = OBJECTS | REFS, linked = HEAD | COMMONDIR;

	return strict ? (marks & both) == both || (marks & linked) == linked : marks != 0;
}
