# SPDX-License-Identifier: LGPL-2.1-or-later
# store: the database. Includes base and sqlite.

noinst_LIBRARIES += %reldir%/libsbx-store.a
%canon_reldir%_libsbx_store_a_SOURCES = \
	%reldir%/admin/api_sandboxes.c \
	%reldir%/admin/audit.c \
	%reldir%/admin/count.c \
	%reldir%/admin/denials.c \
	%reldir%/admin/keep.c \
	%reldir%/admin/list_events.c \
	%reldir%/admin/list_sandboxes.c \
	%reldir%/admin/list_tasks.c \
	%reldir%/admin/tally.c \
	%reldir%/admin/tokens.c \
	%reldir%/secret_text.c %reldir%/secret_text.h \
	%reldir%/migrate.c %reldir%/migrate.h \
	%reldir%/sql.c %reldir%/sql.h \
	%reldir%/store.c %reldir%/store.h \
	%reldir%/store_error.h \
	%reldir%/store_events.c \
	%reldir%/store_keep.h \
	%reldir%/store_list.h \
	%reldir%/store_look.c %reldir%/store_look.h \
	%reldir%/store_refusals.c \
	%reldir%/store_rules.c %reldir%/store_rules.h \
	%reldir%/store_tally.h \
	%reldir%/store_service.h

check_PROGRAMS += tests/unit/store/test_store tests/unit/store/test_store_keep tests/unit/store/test_store_list tests/unit/store/test_store_rules \
	tests/unit/store/test_store_events tests/unit/store/test_store_reader tests/unit/store/test_store_service \
	tests/unit/store/test_store_denials tests/unit/store/test_store_pages
tests_unit_store_test_store_SOURCES = tests/unit/store/test_store.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_LDADD = src/store/libsbx-store.a src/base/libsbx-base.a $(SQLITE_LIBS) \
	$(JANSSON_LIBS) $(CMOCKA_LIBS)
tests_unit_store_test_store_events_SOURCES = tests/unit/store/test_store_events.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_events_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_reader_SOURCES = tests/unit/store/test_store_reader.c tests/unit/scratch.h
tests_unit_store_test_store_reader_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_list_SOURCES = tests/unit/store/test_store_list.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_list_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_rules_SOURCES = tests/unit/store/test_store_rules.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_rules_LDADD = policy/libsbx-policy.a $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_keep_SOURCES = tests/unit/store/test_store_keep.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_keep_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_service_SOURCES = tests/unit/store/test_store_service.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_service_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_denials_SOURCES = tests/unit/store/test_store_denials.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_denials_LDADD = $(tests_unit_store_test_store_LDADD)
tests_unit_store_test_store_pages_SOURCES = tests/unit/store/test_store_pages.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_store_test_store_pages_LDADD = $(tests_unit_store_test_store_LDADD)
