# SPDX-License-Identifier: LGPL-2.1-or-later
# doctor: what this machine offers to sandboxes. doctor_judge.c is PURE.

noinst_LIBRARIES += %reldir%/libsbx-doctor.a
%canon_reldir%_libsbx_doctor_a_SOURCES = \
	%reldir%/doctor.h \
	%reldir%/doctor_ask.c \
	%reldir%/doctor_facts.h \
	%reldir%/doctor_gather.c %reldir%/doctor_gather.h \
	%reldir%/doctor_judge.c \
	%reldir%/doctor_try.c
doctor_libs = %reldir%/libsbx-doctor.a src/control/libsbx-control.a $(launcher_run_libs)

check_PROGRAMS += tests/unit/ctl/test_doctor
tests_unit_ctl_test_doctor_SOURCES = tests/unit/ctl/test_doctor.c tests/unit/scratch.h
tests_unit_ctl_test_doctor_LDADD = $(doctor_libs) $(CMOCKA_LIBS)
