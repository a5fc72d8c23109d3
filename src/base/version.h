/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_VERSION_H
#define SBX_BASE_VERSION_H

/*
 * The version in a program's file: `sbxctl doctor` finds programs of another version without
 * executing them. The mark is this text, the version and a NUL.
 */
#define SBX_VERSION_MARK_TEXT "sbx-program-version="

/* Once in each program, outside of functions. */
#define SBX_VERSION_MARK                                                                           \
	__attribute__((used)) static const char sbx_version_mark[] =                               \
		SBX_VERSION_MARK_TEXT PACKAGE_VERSION

#endif
