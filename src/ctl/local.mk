# SPDX-License-Identifier: LGPL-2.1-or-later
# ctl: sbxctl, in rooms. docs/HACKING has what each does and may include.

# tables, colours, JSON, quantities
noinst_LIBRARIES += %reldir%/libsbx-ctl-print.a
%canon_reldir%_libsbx_ctl_print_a_SOURCES = \
	%reldir%/print/form.c %reldir%/print/form.h \
	%reldir%/print/out.c %reldir%/print/out.h \
	%reldir%/print/table.c %reldir%/print/table.h \
	%reldir%/print/width.c %reldir%/print/width.h

# the command line, the help, the places
noinst_LIBRARIES += %reldir%/libsbx-ctl-frame.a
%canon_reldir%_libsbx_ctl_frame_a_SOURCES = \
	%reldir%/frame/command.h \
	%reldir%/frame/help.c %reldir%/frame/help.h \
	%reldir%/frame/list.c %reldir%/frame/list.h \
	%reldir%/frame/parse.c %reldir%/frame/parse.h \
	%reldir%/frame/places.c %reldir%/frame/places.h

# the commands
noinst_LIBRARIES += %reldir%/libsbx-ctl-commands.a
%canon_reldir%_libsbx_ctl_commands_a_SOURCES = \
	%reldir%/answers/answers.h \
	%reldir%/answers/cmd_doctor.c \
	%reldir%/answers/cmd_explain.c \
	%reldir%/answers/cmd_gc.c \
	%reldir%/answers/cmd_profile.c \
	%reldir%/answers/dry_plan.c %reldir%/answers/dry_plan.h \
	%reldir%/answers/explain_view.c %reldir%/answers/explain_view.h \
	%reldir%/answers/text_diff.c %reldir%/answers/text_diff.h \
	%reldir%/exec/cmd_exec.c %reldir%/exec/exec.h \
	%reldir%/exec/exec_pipes.c %reldir%/exec/exec_pipes.h \
	%reldir%/exec/exec_terminal.c %reldir%/exec/exec_terminal.h \
	%reldir%/data/change.c %reldir%/data/change.h \
	%reldir%/data/cmd_db.c \
	%reldir%/data/cmd_denies.c \
	%reldir%/data/cmd_events.c \
	%reldir%/data/cmd_review.c \
	%reldir%/data/cmd_rules.c \
	%reldir%/data/cmd_rules_file.c \
	%reldir%/data/cmd_rules_test.c \
	%reldir%/data/cmd_workspace.c \
	%reldir%/data/data.h \
	%reldir%/data/event_row.c %reldir%/data/event_row.h \
	%reldir%/data/rule_file.c \
	%reldir%/data/rule_row.c %reldir%/data/rule_row.h \
	%reldir%/live/ask.c %reldir%/live/ask.h \
	%reldir%/live/cmd_net.c \
	%reldir%/live/cmd_ps.c \
	%reldir%/live/cmd_show.c \
	%reldir%/live/cmd_signal.c \
	%reldir%/live/live.h \
	%reldir%/live/sandbox_now.c %reldir%/live/sandbox_now.h \
	%reldir%/live/sandbox_row.c %reldir%/live/sandbox_row.h \
	%reldir%/live/show_text.c %reldir%/live/show_text.h \
	%reldir%/live/watch.c %reldir%/live/watch.h \
	%reldir%/service/api_client.c %reldir%/service/api_client.h \
	%reldir%/service/cmd_token.c \
	%reldir%/service/cmd_web.c \
	%reldir%/service/service.h \
	%reldir%/main/command_table.c %reldir%/main/command_table.h

ctl_libs = \
	%reldir%/libsbx-ctl-commands.a %reldir%/libsbx-ctl-frame.a %reldir%/libsbx-ctl-print.a \
	src/ctl/doctor/libsbx-doctor.a src/control/libsbx-control.a $(launcher_run_libs)
ctl_main_sources = %reldir%/main/main.c
if SBX_RUN_STATIC
ctl_main_sources += launcher/process/no_loader.c
endif

bin_PROGRAMS += %reldir%/sbxctl
%canon_reldir%_sbxctl_SOURCES = $(ctl_main_sources) launcher/process/step_hook.c
%canon_reldir%_sbxctl_LDFLAGS = $(SBX_LDFLAGS) $(SBX_RUN_LDFLAGS)
%canon_reldir%_sbxctl_LDADD = $(ctl_libs)

check_PROGRAMS += tests/unit/ctl/test_command_table tests/unit/ctl/test_parse tests/unit/ctl/test_print
SBX_GOLDEN_TESTS += tests/unit/ctl/test_command_table
tests_unit_ctl_test_command_table_SOURCES = tests/unit/ctl/test_command_table.c tests/unit/option_files.h
tests_unit_ctl_test_command_table_LDADD = $(ctl_libs) $(CMOCKA_LIBS)
tests_unit_ctl_test_parse_SOURCES = tests/unit/ctl/test_parse.c
tests_unit_ctl_test_parse_LDADD = $(ctl_libs) $(CMOCKA_LIBS)
tests_unit_ctl_test_print_SOURCES = tests/unit/ctl/test_print.c
tests_unit_ctl_test_print_LDADD = $(ctl_libs) $(CMOCKA_LIBS)
