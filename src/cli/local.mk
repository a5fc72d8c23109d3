# SPDX-License-Identifier: LGPL-2.1-or-later
# cli: the options of a command line as a table. Includes base and policy.

noinst_LIBRARIES += %reldir%/libsbx-cli-options.a
%canon_reldir%_libsbx_cli_options_a_SOURCES = \
	%reldir%/option.c %reldir%/option.h \
	%reldir%/stdio.c %reldir%/stdio.h
