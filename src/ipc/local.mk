# SPDX-License-Identifier: LGPL-2.1-or-later
# ipc: messages (PURE), channels with fd passing. Includes base.

noinst_LIBRARIES += %reldir%/libsbx-ipc.a
%canon_reldir%_libsbx_ipc_a_SOURCES = \
	%reldir%/channel.c %reldir%/channel.h \
	%reldir%/lines.c %reldir%/lines.h \
	%reldir%/messages.c %reldir%/messages.h

check_PROGRAMS += tests/unit/ipc/test_channel
tests_unit_ipc_test_channel_SOURCES = tests/unit/ipc/test_channel.c
tests_unit_ipc_test_channel_LDADD = src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/ipc/test_lines
tests_unit_ipc_test_lines_SOURCES = tests/unit/ipc/test_lines.c
tests_unit_ipc_test_lines_LDADD = src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/ipc/test_messages
tests_unit_ipc_test_messages_SOURCES = tests/unit/ipc/test_messages.c
tests_unit_ipc_test_messages_LDADD = src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/fuzz/ipc/fuzz_messages
tests_fuzz_ipc_fuzz_messages_SOURCES = tests/fuzz/ipc/fuzz_messages.c
tests_fuzz_ipc_fuzz_messages_LDADD = $(SBX_FUZZ_LIBS) src/ipc/libsbx-ipc.a src/base/libsbx-base.a
