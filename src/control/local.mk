# SPDX-License-Identifier: LGPL-2.1-or-later
# control: the control sockets' protocol, and its client. Includes base, ipc and jansson.

noinst_LIBRARIES += %reldir%/libsbx-control.a
%canon_reldir%_libsbx_control_a_SOURCES = \
	%reldir%/client.c %reldir%/client.h \
	%reldir%/protocol.c %reldir%/protocol.h

check_PROGRAMS += tests/unit/control/test_client tests/unit/control/test_protocol
control_test_libs = \
	src/control/libsbx-control.a src/ipc/libsbx-ipc.a src/base/libsbx-base.a $(JANSSON_LIBS) $(CMOCKA_LIBS)
tests_unit_control_test_client_SOURCES = tests/unit/control/test_client.c tests/unit/scratch.h
tests_unit_control_test_client_LDADD = $(control_test_libs)
tests_unit_control_test_protocol_SOURCES = tests/unit/control/test_protocol.c
tests_unit_control_test_protocol_LDADD = $(control_test_libs)
