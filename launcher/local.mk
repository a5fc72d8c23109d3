# SPDX-License-Identifier: LGPL-2.1-or-later
# launcher: sbx-run and sbx-init, in rooms. Each room is a static library; docs/HACKING has what each does and may include.

# flags, jobs and lists of profiles
noinst_LIBRARIES += %reldir%/libsbx-cli.a
%canon_reldir%_libsbx_cli_a_SOURCES = \
	%reldir%/cli/job.c \
	%reldir%/cli/job.h \
	%reldir%/cli/option_table.c \
	%reldir%/cli/option_table.h \
	%reldir%/cli/options_parse.c \
	%reldir%/cli/options_parse.h \
	%reldir%/cli/profile_list.c \
	%reldir%/cli/profile_list.h

# answers about connections
noinst_LIBRARIES += %reldir%/libsbx-explain.a
%canon_reldir%_libsbx_explain_a_SOURCES = \
	%reldir%/explain/explain_flow.c %reldir%/explain/explain_flow.h \
	%reldir%/explain/explain_request.c %reldir%/explain/explain_request.h \
	%reldir%/explain/explained.c %reldir%/explain/explained.h

# --learn: a profile from what a run wanted
noinst_LIBRARIES += %reldir%/libsbx-learn.a
%canon_reldir%_libsbx_learn_a_SOURCES = \
	%reldir%/learn/learn.c %reldir%/learn/learn.h \
	%reldir%/learn/learn_execs.c %reldir%/learn/learn_execs.h \
	%reldir%/learn/learn_file.c %reldir%/learn/learn_file.h \
	%reldir%/learn/learn_lines.c %reldir%/learn/learn_lines.h \
	%reldir%/learn/learn_profile.c %reldir%/learn/learn_profile.h \
	%reldir%/learn/learn_program.c %reldir%/learn/learn_program.h

# values of secrets, read for sbx-tls
noinst_LIBRARIES += %reldir%/libsbx-secrets.a
%canon_reldir%_libsbx_secrets_a_SOURCES = \
	%reldir%/secrets/secret_helper.c \
	%reldir%/secrets/secret_helper.h \
	%reldir%/secrets/secret_value.c \
	%reldir%/secrets/secret_value.h \
	%reldir%/secrets/secrets.c \
	%reldir%/secrets/secrets.h \
	%reldir%/secrets/user_file.c \
	%reldir%/secrets/user_file.h

# the steps of a run, and the loop that waits for its processes
noinst_LIBRARIES += %reldir%/libsbx-run.a
%canon_reldir%_libsbx_run_a_SOURCES = \
	%reldir%/run/announce.c \
	%reldir%/run/announce.h \
	%reldir%/run/control_ops.c \
	%reldir%/run/run.c \
	%reldir%/run/run.h \
	%reldir%/run/run_outcome.c \
	%reldir%/run/run_outcome.h \
	%reldir%/run/step_host.c \
	%reldir%/run/step_review.c \
	%reldir%/run/step_sandbox.c \
	%reldir%/run/step_selftest.c \
	%reldir%/run/step_tls.c \
	%reldir%/run/steps.c \
	%reldir%/run/steps.h \
	%reldir%/run/supervise.c \
	%reldir%/run/supervise.h

# changes of a running sandbox's policy
noinst_LIBRARIES += %reldir%/libsbx-live.a
%canon_reldir%_libsbx_live_a_SOURCES = \
	%reldir%/live/live.c \
	%reldir%/live/live.h \
	%reldir%/live/live_follow.c \
	%reldir%/live/live_internal.h \
	%reldir%/live/live_kernel.c \
	%reldir%/live/live_policy.c \
	%reldir%/live/live_reload.c

# descriptors and times that the launcher's loop waits for
noinst_LIBRARIES += %reldir%/libsbx-loop.a
%canon_reldir%_libsbx_loop_a_SOURCES = %reldir%/loop/watches.c %reldir%/loop/watches.h

# the database of this host; its rules as the policy's
noinst_LIBRARIES += %reldir%/libsbx-rules.a
%canon_reldir%_libsbx_rules_a_SOURCES = \
	%reldir%/rules/database.c \
	%reldir%/rules/database.h \
	%reldir%/rules/rule_check.c \
	%reldir%/rules/rule_check.h \
	%reldir%/rules/rules_load.c \
	%reldir%/rules/rules_load.h \
	%reldir%/rules/tool_rules.c \
	%reldir%/rules/tool_rules.h

# the control socket
noinst_LIBRARIES += %reldir%/libsbx-control-socket.a
%canon_reldir%_libsbx_control_socket_a_SOURCES = \
	%reldir%/control/control.c \
	%reldir%/control/control.h \
	%reldir%/control/control_events.c \
	%reldir%/control/control_events.h \
	%reldir%/control/control_limits.h \
	%reldir%/control/peer.c \
	%reldir%/control/peer.h \
	%reldir%/control/request.c \
	%reldir%/control/request.h \
	%reldir%/control/session.c \
	%reldir%/control/session.h

# what the control socket's operations show
noinst_LIBRARIES += %reldir%/libsbx-serve.a
%canon_reldir%_libsbx_serve_a_SOURCES = \
	%reldir%/serve/disk.c \
	%reldir%/serve/disk.h \
	%reldir%/serve/exec.c \
	%reldir%/serve/exec.h \
	%reldir%/serve/network.c \
	%reldir%/serve/network.h \
	%reldir%/serve/publish.c \
	%reldir%/serve/publish.h \
	%reldir%/serve/show.c \
	%reldir%/serve/show.h \
	%reldir%/serve/usage.c \
	%reldir%/serve/usage.h

# commands that are executed later, beside the first one
noinst_LIBRARIES += %reldir%/libsbx-exec.a
%canon_reldir%_libsbx_exec_a_SOURCES = \
	%reldir%/exec/exec_judge.c \
	%reldir%/exec/exec_judge.h \
	%reldir%/exec/execs.c \
	%reldir%/exec/execs.h \
	%reldir%/exec/stdio.c \
	%reldir%/exec/stdio.h

# too many refusals: review tasks, their hook, the breaker
noinst_LIBRARIES += %reldir%/libsbx-review.a
%canon_reldir%_libsbx_review_a_SOURCES = \
	%reldir%/review/review.c \
	%reldir%/review/review.h \
	%reldir%/review/review_hook.c \
	%reldir%/review/review_hook.h \
	%reldir%/review/reviewer.c \
	%reldir%/review/reviewer.h

# what a run has on the host's side: cgroup, rules, broker, sbx-tls, published ports
noinst_LIBRARIES += %reldir%/libsbx-resources.a
%canon_reldir%_libsbx_resources_a_SOURCES = \
	%reldir%/resources/attach.c \
	%reldir%/resources/attach.h \
	%reldir%/resources/attach_live.c \
	%reldir%/resources/attach_live.h \
	%reldir%/resources/broker_process.c \
	%reldir%/resources/broker_process.h \
	%reldir%/resources/cgroup.c \
	%reldir%/resources/cgroup.h \
	%reldir%/resources/program.c \
	%reldir%/resources/program.h \
	%reldir%/resources/publish.c \
	%reldir%/resources/publish.h \
	%reldir%/resources/tls_process.c \
	%reldir%/resources/tls_process.h

# the processes in the new namespaces; they mount the view and build the network
noinst_LIBRARIES += %reldir%/libsbx-stage.a
%canon_reldir%_libsbx_stage_a_SOURCES = \
	%reldir%/stage/factory.c \
	%reldir%/stage/factory.h \
	%reldir%/stage/init_process.c \
	%reldir%/stage/init_process.h \
	%reldir%/stage/stage.c \
	%reldir%/stage/stage.h \
	%reldir%/stage/stage_config.c \
	%reldir%/stage/stage_config.h \
	%reldir%/stage/stage_network.c \
	%reldir%/stage/stage_network.h \
	%reldir%/stage/stage_process.c \
	%reldir%/stage/stage_process.h

# the mounts of the view
noinst_LIBRARIES += %reldir%/libsbx-tree.a
%canon_reldir%_libsbx_tree_a_SOURCES = \
	%reldir%/tree/tree.c \
	%reldir%/tree/tree.h \
	%reldir%/tree/tree_overmount.c \
	%reldir%/tree/tree_overmount.h \
	%reldir%/tree/tree_place.c \
	%reldir%/tree/tree_place.h

# processes on the host with the user's privileges
noinst_LIBRARIES += %reldir%/libsbx-helpers.a
%canon_reldir%_libsbx_helpers_a_SOURCES = \
	%reldir%/helpers/git_look.c \
	%reldir%/helpers/git_look.h \
	%reldir%/helpers/new_aside.c \
	%reldir%/helpers/new_aside.h \
	%reldir%/helpers/new_due.c \
	%reldir%/helpers/new_due.h \
	%reldir%/helpers/new_protected.c \
	%reldir%/helpers/new_protected.h \
	%reldir%/helpers/new_protected_list.c \
	%reldir%/helpers/new_protected_list.h \
	%reldir%/helpers/new_watch.c \
	%reldir%/helpers/new_watch.h \
	%reldir%/helpers/protect_helper.c \
	%reldir%/helpers/protect_helper.h

# the copy of what an overlay kept
noinst_LIBRARIES += %reldir%/libsbx-keep.a
%canon_reldir%_libsbx_keep_a_SOURCES = \
	%reldir%/keep/keep_copy.c \
	%reldir%/keep/keep_copy.h \
	%reldir%/keep/keep_helper.c \
	%reldir%/keep/keep_helper.h

# rows, events, receipts
noinst_LIBRARIES += %reldir%/libsbx-record.a
%canon_reldir%_libsbx_record_a_SOURCES = \
	%reldir%/record/outcome.h \
	%reldir%/record/receipt.c \
	%reldir%/record/receipt.h \
	%reldir%/record/live_lists.c %reldir%/record/live_lists.h \
	%reldir%/record/record.c \
	%reldir%/record/record.h \
	%reldir%/record/record_events.c \
	%reldir%/record/record_internal.h \
	%reldir%/record/record_lost.c \
	%reldir%/record/record_prune.c \
	%reldir%/record/record_refusals.c \
	%reldir%/record/recorder.c \
	%reldir%/record/recorder.h \
	%reldir%/record/refusals.c \
	%reldir%/record/refusals.h

# entries of the systemd journal
noinst_LIBRARIES += %reldir%/libsbx-journal.a
%canon_reldir%_libsbx_journal_a_SOURCES = \
	%reldir%/journal/entry.c \
	%reldir%/journal/entry.h \
	%reldir%/journal/event_entry.c \
	%reldir%/journal/event_entry.h \
	%reldir%/journal/state_change.c \
	%reldir%/journal/state_change.h

# what dead launchers left is removed
noinst_LIBRARIES += %reldir%/libsbx-cleanup.a
%canon_reldir%_libsbx_cleanup_a_SOURCES = \
	%reldir%/cleanup/cgroup_gc.c \
	%reldir%/cleanup/cgroup_gc.h \
	%reldir%/cleanup/cleanup_process.c \
	%reldir%/cleanup/cleanup_process.h \
	%reldir%/cleanup/gc.c \
	%reldir%/cleanup/gc.h \
	%reldir%/cleanup/gc_report.c \
	%reldir%/cleanup/gc_report.h \
	%reldir%/cleanup/runtime.c \
	%reldir%/cleanup/runtime.h \
	%reldir%/cleanup/sweep.c \
	%reldir%/cleanup/sweep.h

# what a run learns; the plan as JSON and as arguments of bwrap
noinst_LIBRARIES += %reldir%/libsbx-setup.a
%canon_reldir%_libsbx_setup_a_SOURCES = \
	%reldir%/setup/bwrap_argv.c \
	%reldir%/setup/bwrap_argv.h \
	%reldir%/setup/plan_json.c \
	%reldir%/setup/plan_json.h \
	%reldir%/setup/setup.c \
	%reldir%/setup/setup.h

# options, profile and facts become a plan
noinst_LIBRARIES += %reldir%/libsbx-plan.a
%canon_reldir%_libsbx_plan_a_SOURCES = \
	%reldir%/plan/env.c \
	%reldir%/plan/plan.h \
	%reldir%/plan/plan_internal.h \
	%reldir%/plan/plan_limits.c \
	%reldir%/plan/plan_limits.h \
	%reldir%/plan/plan_profile.c \
	%reldir%/plan/plan_publish.c \
	%reldir%/plan/plan_secrets.c \
	%reldir%/plan/plan_tls.c %reldir%/plan/plan_tls.h \
	%reldir%/plan/plan_view.c \
	%reldir%/plan/planner.c \
	%reldir%/plan/planner.h \
	%reldir%/plan/probes.c \
	%reldir%/plan/step.c \
	%reldir%/plan/step.h

# which programs may run
noinst_LIBRARIES += %reldir%/libsbx-commands.a
%canon_reldir%_libsbx_commands_a_SOURCES = \
	%reldir%/commands/command.c \
	%reldir%/commands/command.h \
	%reldir%/commands/command_expand.c \
	%reldir%/commands/command_expand.h \
	%reldir%/commands/command_files.c \
	%reldir%/commands/command_files.h \
	%reldir%/commands/command_follow.c \
	%reldir%/commands/command_follow.h \
	%reldir%/commands/command_masks.c \
	%reldir%/commands/command_masks.h \
	%reldir%/commands/command_names.c \
	%reldir%/commands/command_names.h \
	%reldir%/commands/commands.c \
	%reldir%/commands/commands.h \
	%reldir%/commands/exec_format.c \
	%reldir%/commands/exec_format.h

# what the host's tools would execute stays as it is
noinst_LIBRARIES += %reldir%/libsbx-protect.a
%canon_reldir%_libsbx_protect_a_SOURCES = \
	%reldir%/protect/moved_dir.c \
	%reldir%/protect/moved_dir.h \
	%reldir%/protect/overmounts.c \
	%reldir%/protect/overmounts.h \
	%reldir%/protect/placeholders.c \
	%reldir%/protect/placeholders.h \
	%reldir%/protect/plan_sources.c \
	%reldir%/protect/plan_sources.h \
	%reldir%/protect/protect.c \
	%reldir%/protect/protect.h \
	%reldir%/protect/protect_git.c \
	%reldir%/protect/protect_internal.h \
	%reldir%/protect/protect_links.c \
	%reldir%/protect/protect_path.c \
	%reldir%/protect/protections.c \
	%reldir%/protect/protections.h

# directories and files of the host that the sandbox gets
noinst_LIBRARIES += %reldir%/libsbx-grants.a
%canon_reldir%_libsbx_grants_a_SOURCES = \
	%reldir%/grants/grant.c \
	%reldir%/grants/grant.h \
	%reldir%/grants/grant_asked.c \
	%reldir%/grants/grant_asked.h \
	%reldir%/grants/grant_judge.c \
	%reldir%/grants/grant_judge.h \
	%reldir%/grants/grant_mount.c \
	%reldir%/grants/grant_mount.h \
	%reldir%/grants/grant_work_dir.c \
	%reldir%/grants/grant_work_dir.h \
	%reldir%/grants/keep_target.c \
	%reldir%/grants/keep_target.h \
	%reldir%/grants/view_grants.c \
	%reldir%/grants/view_grants.h

# what the calling user has: git identity, sockets, caches, the ids of directories
noinst_LIBRARIES += %reldir%/libsbx-user.a
%canon_reldir%_libsbx_user_a_SOURCES = \
	%reldir%/user/git_identity.c \
	%reldir%/user/git_identity.h \
	%reldir%/user/idmap.c \
	%reldir%/user/idmap.h \
	%reldir%/user/owner.c \
	%reldir%/user/owner.h \
	%reldir%/user/session_sockets.c \
	%reldir%/user/session_sockets.h \
	%reldir%/user/view_cache.c \
	%reldir%/user/view_cache.h \
	%reldir%/user/view_repository.c \
	%reldir%/user/view_repository.h

# rules for a sandbox in the host's network
noinst_LIBRARIES += %reldir%/libsbx-attach.a
%canon_reldir%_libsbx_attach_a_SOURCES = \
	%reldir%/attach/attach_input.c \
	%reldir%/attach/attach_input.h \
	%reldir%/attach/plan_attach.c \
	%reldir%/attach/plan_attach.h \
	%reldir%/attach/plan_attach_internal.h \
	%reldir%/attach/plan_attach_rules.c

# the parts of the view that every sandbox has
noinst_LIBRARIES += %reldir%/libsbx-rootfs.a
%canon_reldir%_libsbx_rootfs_a_SOURCES = \
	%reldir%/rootfs/overlay.c \
	%reldir%/rootfs/overlay.h \
	%reldir%/rootfs/view_devices.c \
	%reldir%/rootfs/view_devices.h \
	%reldir%/rootfs/view_home.c \
	%reldir%/rootfs/view_home.h \
	%reldir%/rootfs/view_root.c \
	%reldir%/rootfs/view_root.h \
	%reldir%/rootfs/view_scratch.c \
	%reldir%/rootfs/view_scratch.h

# the sandbox's file system before it exists: a list of mounts
noinst_LIBRARIES += %reldir%/libsbx-view.a
%canon_reldir%_libsbx_view_a_SOURCES = \
	%reldir%/view/draft.c \
	%reldir%/view/draft.h \
	%reldir%/view/environment.c \
	%reldir%/view/environment.h \
	%reldir%/view/etc.c \
	%reldir%/view/etc.h \
	%reldir%/view/git_name.c \
	%reldir%/view/git_name.h \
	%reldir%/view/mount_op.c \
	%reldir%/view/mount_op.h \
	%reldir%/view/sandbox_view.c \
	%reldir%/view/sandbox_view.h \
	%reldir%/view/view.c \
	%reldir%/view/view.h \
	%reldir%/view/view_add.c \
	%reldir%/view/view_add.h

# facts of the host and the caller
noinst_LIBRARIES += %reldir%/libsbx-host.a
%canon_reldir%_libsbx_host_a_SOURCES = \
	%reldir%/host/config.c \
	%reldir%/host/config.h \
	%reldir%/host/exit_status.h \
	%reldir%/host/facts.c \
	%reldir%/host/facts.h \
	%reldir%/host/facts_gather.c \
	%reldir%/host/facts_gather.h \
	%reldir%/host/facts_user.c \
	%reldir%/host/facts_user.h \
	%reldir%/host/lookup_ids.c \
	%reldir%/host/lookup_ids.h \
	%reldir%/host/options.h \
	%reldir%/host/reserved_path.c \
	%reldir%/host/reserved_path.h \
	%reldir%/host/trust.c \
	%reldir%/host/trust.h

# privileges, users and terminals of the launcher
noinst_LIBRARIES += %reldir%/libsbx-process.a
%canon_reldir%_libsbx_process_a_SOURCES = \
	%reldir%/process/exec_failed.c \
	%reldir%/process/exec_failed.h \
	%reldir%/process/getent.c \
	%reldir%/process/getent.h \
	%reldir%/process/privileges.c \
	%reldir%/process/privileges.h \
	%reldir%/process/runtime_dir.c \
	%reldir%/process/runtime_dir.h \
	%reldir%/process/signals.h \
	%reldir%/process/terminal.c \
	%reldir%/process/terminal.h \
	%reldir%/process/uid_pool.c \
	%reldir%/process/uid_pool.h

launcher_plan_libs = \
	%reldir%/libsbx-cli.a \
	%reldir%/libsbx-explain.a \
	%reldir%/libsbx-learn.a \
	%reldir%/libsbx-stage.a \
	%reldir%/libsbx-tree.a \
	%reldir%/libsbx-helpers.a \
	%reldir%/libsbx-keep.a \
	%reldir%/libsbx-record.a \
	%reldir%/libsbx-journal.a \
	%reldir%/libsbx-setup.a \
	%reldir%/libsbx-plan.a \
	%reldir%/libsbx-commands.a \
	%reldir%/libsbx-protect.a \
	%reldir%/libsbx-grants.a \
	%reldir%/libsbx-user.a \
	%reldir%/libsbx-attach.a \
	%reldir%/libsbx-rootfs.a \
	%reldir%/libsbx-view.a \
	%reldir%/libsbx-secrets.a \
	%reldir%/libsbx-rules.a \
	%reldir%/libsbx-host.a \
	%reldir%/libsbx-process.a \
	src/store/libsbx-store.a src/ipc/libsbx-ipc.a src/cli/libsbx-cli-options.a policy/libsbx-policy.a $(sys_libs) src/base/libsbx-base.a \
	$(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS) $(SBX_MD_LIBS) $(JANSSON_LIBS) $(SQLITE_LIBS) $(sys_nftnl_libs)

launcher_plan_tests = \
	tests/unit/launcher/attach/test_attach_input \
	tests/unit/launcher/attach/test_plan_attach \
	tests/unit/launcher/attach/test_plan_attach_random \
	tests/unit/launcher/cli/test_option_table \
	tests/unit/launcher/cli/test_options \
	tests/unit/launcher/commands/test_command \
	tests/unit/launcher/commands/test_exec_format \
	tests/unit/launcher/commands/test_tool_rules \
	tests/unit/launcher/helpers/test_git_look \
	tests/unit/launcher/host/test_facts \
	tests/unit/launcher/host/test_trust \
	tests/unit/launcher/keep/test_keep_copy \
	tests/unit/launcher/plan/test_env \
	tests/unit/launcher/plan/test_plan \
	tests/unit/launcher/plan/test_plan_shortage \
	tests/unit/launcher/plan/test_plan_tls \
	tests/unit/launcher/plan/test_probes \
	tests/unit/launcher/process/test_getent \
	tests/unit/launcher/process/test_privileges \
	tests/unit/launcher/process/test_uid_pool \
	tests/unit/launcher/protect/test_protect_git \
	tests/unit/launcher/protect/test_workspace \
	tests/unit/launcher/learn/test_learn tests/unit/launcher/record/test_refusals \
	tests/unit/launcher/rootfs/test_views \
	tests/unit/launcher/record/test_record_changed \
	tests/unit/launcher/rules/test_rules_load \
	tests/unit/launcher/run/test_supervise \
	tests/unit/launcher/secrets/test_secret_helper \
	tests/unit/launcher/secrets/test_secret_value \
	tests/unit/launcher/secrets/test_secrets \
	tests/unit/launcher/setup/test_bwrap_argv \
	tests/unit/launcher/setup/test_plan_json \
	tests/unit/launcher/setup/test_setup \
	tests/unit/launcher/tree/test_tree \
	tests/unit/launcher/user/test_git_identity \
	tests/unit/launcher/user/test_session_sockets \
	tests/unit/launcher/view/test_etc \
	tests/unit/launcher/view/test_view
check_PROGRAMS += $(launcher_plan_tests)
SBX_GOLDEN_TESTS += tests/unit/launcher/cli/test_option_table tests/unit/launcher/setup/test_plan_json
EXTRA_DIST += \
	tests/golden/plan-ai-bash.json \
	tests/golden/plan-build.json \
	tests/golden/plan-default.json \
	tests/golden/plan-flags.json \
	tests/golden/plan-full.json \
	tests/golden/plan-install.json \
	tests/golden/plan-none.json \
	tests/golden/plan-notebook.json \
	tests/golden/plan-vite-preview.json
check_LIBRARIES += %reldir%/libsbx-plan-world.a
%canon_reldir%_libsbx_plan_world_a_SOURCES = \
	tests/unit/plan_world.c tests/unit/plan_world.h tests/unit/scratch.h
launcher_plan_test_libs = %reldir%/libsbx-plan-world.a $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_attach_test_attach_input_SOURCES = tests/unit/launcher/attach/test_attach_input.c
tests_unit_launcher_attach_test_attach_input_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_setup_test_bwrap_argv_SOURCES = tests/unit/launcher/setup/test_bwrap_argv.c
tests_unit_launcher_setup_test_bwrap_argv_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_commands_test_command_SOURCES = tests/unit/launcher/commands/test_command.c
tests_unit_launcher_commands_test_command_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_env_SOURCES = tests/unit/launcher/plan/test_env.c
tests_unit_launcher_plan_test_env_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_view_test_etc_SOURCES = tests/unit/launcher/view/test_etc.c
tests_unit_launcher_view_test_etc_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_commands_test_exec_format_SOURCES = tests/unit/launcher/commands/test_exec_format.c
tests_unit_launcher_commands_test_exec_format_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_commands_test_tool_rules_SOURCES = tests/unit/launcher/commands/test_tool_rules.c
tests_unit_launcher_commands_test_tool_rules_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_host_test_facts_SOURCES = tests/unit/launcher/host/test_facts.c
tests_unit_launcher_host_test_facts_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_process_test_getent_SOURCES = tests/unit/launcher/process/test_getent.c
tests_unit_launcher_process_test_getent_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_user_test_git_identity_SOURCES = tests/unit/launcher/user/test_git_identity.c
tests_unit_launcher_user_test_git_identity_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_keep_test_keep_copy_SOURCES = tests/unit/launcher/keep/test_keep_copy.c tests/unit/scratch.h
tests_unit_launcher_keep_test_keep_copy_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_keep_test_keep_copy_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=futimens,--wrap=chmod,--wrap=fchmodat
tests_unit_launcher_cli_test_option_table_SOURCES = tests/unit/launcher/cli/test_option_table.c tests/unit/option_files.h
tests_unit_launcher_cli_test_option_table_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_cli_test_options_SOURCES = tests/unit/launcher/cli/test_options.c
tests_unit_launcher_cli_test_options_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_plan_SOURCES = tests/unit/launcher/plan/test_plan.c
tests_unit_launcher_plan_test_plan_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_attach_test_plan_attach_SOURCES = tests/unit/launcher/attach/test_plan_attach.c tests/unit/attach_walk.h
tests_unit_launcher_attach_test_plan_attach_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_attach_test_plan_attach_random_SOURCES = \
	tests/unit/launcher/attach/test_plan_attach_random.c tests/unit/attach_walk.h
tests_unit_launcher_attach_test_plan_attach_random_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_secrets_test_secret_helper_SOURCES = tests/unit/launcher/secrets/test_secret_helper.c tests/unit/scratch.h
tests_unit_launcher_secrets_test_secret_helper_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_secrets_test_secret_value_SOURCES = tests/unit/launcher/secrets/test_secret_value.c tests/unit/scratch.h
tests_unit_launcher_secrets_test_secret_value_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_secrets_test_secrets_SOURCES = tests/unit/launcher/secrets/test_secrets.c tests/unit/scratch.h
tests_unit_launcher_secrets_test_secrets_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_secrets_test_secrets_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=munmap
tests_unit_launcher_setup_test_plan_json_SOURCES = tests/unit/launcher/setup/test_plan_json.c tests/unit/golden.h
tests_unit_launcher_setup_test_plan_json_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_helpers_test_git_look_SOURCES = tests/unit/launcher/helpers/test_git_look.c tests/unit/scratch.h
tests_unit_launcher_helpers_test_git_look_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_probes_SOURCES = tests/unit/launcher/plan/test_probes.c
tests_unit_launcher_plan_test_probes_LDADD = $(launcher_plan_test_libs)
check_PROGRAMS += tests/unit/launcher/explain/test_explain_flow
tests_unit_launcher_explain_test_explain_flow_SOURCES = \
	tests/unit/launcher/explain/test_explain_flow.c tests/unit/policy_world.h
tests_unit_launcher_explain_test_explain_flow_LDADD = \
	%reldir%/libsbx-explain.a src/http/libsbx-http.a src/broker/libsbx-broker-core.a \
	src/broker/libsbx-broker-names.a src/wire/libsbx-wire.a $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_learn_test_learn_SOURCES = tests/unit/launcher/learn/test_learn.c tests/unit/policy_world.h
tests_unit_launcher_learn_test_learn_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_record_test_refusals_SOURCES = tests/unit/launcher/record/test_refusals.c
tests_unit_launcher_record_test_refusals_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_process_test_privileges_SOURCES = tests/unit/launcher/process/test_privileges.c
tests_unit_launcher_process_test_privileges_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_user_test_session_sockets_SOURCES = tests/unit/launcher/user/test_session_sockets.c
tests_unit_launcher_user_test_session_sockets_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_record_test_record_changed_SOURCES = tests/unit/launcher/record/test_record_changed.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_launcher_record_test_record_changed_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_rules_test_rules_load_SOURCES = tests/unit/launcher/rules/test_rules_load.c tests/unit/store_world.h tests/unit/scratch.h
tests_unit_launcher_rules_test_rules_load_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_run_test_supervise_SOURCES = tests/unit/launcher/run/test_supervise.c %reldir%/run/run.c %reldir%/run/supervise.c %reldir%/process/terminal.c
tests_unit_launcher_run_test_supervise_LDADD = %reldir%/libsbx-review.a %reldir%/libsbx-exec.a %reldir%/libsbx-loop.a src/ipc/libsbx-ipc.a $(launcher_plan_libs) src/store/libsbx-store.a src/base/libsbx-base.a $(SQLITE_LIBS) $(CMOCKA_LIBS)
tests_unit_launcher_tree_test_tree_SOURCES = tests/unit/launcher/tree/test_tree.c
tests_unit_launcher_tree_test_tree_LDADD = $(launcher_plan_libs) $(CMOCKA_LIBS)
tests_unit_launcher_host_test_trust_SOURCES = tests/unit/launcher/host/test_trust.c tests/unit/scratch.h
tests_unit_launcher_host_test_trust_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_process_test_uid_pool_SOURCES = tests/unit/launcher/process/test_uid_pool.c tests/unit/scratch.h
tests_unit_launcher_process_test_uid_pool_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_protect_test_workspace_SOURCES = tests/unit/launcher/protect/test_workspace.c
tests_unit_launcher_protect_test_workspace_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_view_test_view_SOURCES = tests/unit/launcher/view/test_view.c
tests_unit_launcher_view_test_view_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_plan_tls_SOURCES = tests/unit/launcher/plan/test_plan_tls.c
tests_unit_launcher_plan_test_plan_tls_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_plan_shortage_SOURCES = tests/unit/launcher/plan/test_plan_shortage.c
tests_unit_launcher_plan_test_plan_shortage_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_plan_test_plan_shortage_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open,--wrap=openat,--wrap=__open_2,--wrap=__openat_2 \
	-Wl,--wrap=fopen,--wrap=syscall,--wrap=fstatat,--wrap=stat,--wrap=lstat
tests_unit_launcher_protect_test_protect_git_SOURCES = tests/unit/launcher/protect/test_protect_git.c
tests_unit_launcher_protect_test_protect_git_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_setup_test_setup_SOURCES = tests/unit/launcher/setup/test_setup.c
tests_unit_launcher_setup_test_setup_LDADD = $(launcher_plan_test_libs)
tests_unit_launcher_rootfs_test_views_SOURCES = tests/unit/launcher/rootfs/test_views.c
tests_unit_launcher_rootfs_test_views_LDADD = $(launcher_plan_test_libs)

# the hooks of the real program; one with hooks of its own does not take it
noinst_LIBRARIES += %reldir%/libsbx-step-hook.a
%canon_reldir%_libsbx_step_hook_a_SOURCES = %reldir%/process/step_hook.c %reldir%/process/step_hook.h

launcher_run_libs = \
	%reldir%/libsbx-run.a %reldir%/libsbx-review.a %reldir%/libsbx-serve.a %reldir%/libsbx-control-socket.a src/control/libsbx-control.a \
	%reldir%/libsbx-live.a %reldir%/libsbx-exec.a %reldir%/libsbx-loop.a %reldir%/libsbx-resources.a %reldir%/libsbx-cleanup.a $(launcher_plan_libs) src/store/libsbx-store.a \
	src/http/libsbx-http.a src/wire/libsbx-wire.a src/ipc/libsbx-ipc.a policy/libsbx-policy.a $(sys_libs) \
	src/base/libsbx-base.a %reldir%/libsbx-step-hook.a $(SQLITE_LIBS) $(JANSSON_LIBS) $(sys_nftnl_libs)
launcher_main_sources = %reldir%/cli/main.c %reldir%/process/step_hook.h
if SBX_RUN_STATIC
launcher_main_sources += %reldir%/process/no_loader.c
endif

check_PROGRAMS += tests/unit/launcher/stage/test_factory
tests_unit_launcher_stage_test_factory_SOURCES = tests/unit/launcher/stage/test_factory.c tests/unit/netns.h tests/unit/nft_cases.h
tests_unit_launcher_stage_test_factory_LDADD = $(launcher_plan_test_libs) $(sys_nftnl_libs)

check_PROGRAMS += tests/unit/launcher/exec/test_execs
tests_unit_launcher_exec_test_execs_SOURCES = tests/unit/launcher/exec/test_execs.c
tests_unit_launcher_exec_test_execs_LDADD = %reldir%/libsbx-exec.a %reldir%/libsbx-loop.a $(launcher_plan_test_libs)

check_PROGRAMS += tests/unit/launcher/control/test_control tests/unit/launcher/control/test_request
launcher_control_test_libs = \
	%reldir%/libsbx-control-socket.a src/control/libsbx-control.a %reldir%/libsbx-loop.a $(sys_libs) src/ipc/libsbx-ipc.a \
	src/base/libsbx-base.a $(JANSSON_LIBS)
tests_unit_launcher_control_test_control_SOURCES = tests/unit/launcher/control/test_control.c tests/unit/scratch.h
tests_unit_launcher_control_test_control_LDADD = $(launcher_control_test_libs) $(CMOCKA_LIBS)
tests_unit_launcher_control_test_request_SOURCES = tests/unit/launcher/control/test_request.c
tests_unit_launcher_control_test_request_LDADD = $(launcher_control_test_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/fuzz/launcher/fuzz_control_request
tests_fuzz_launcher_fuzz_control_request_SOURCES = tests/fuzz/launcher/fuzz_control_request.c
tests_fuzz_launcher_fuzz_control_request_LDADD = $(SBX_FUZZ_LIBS) $(launcher_control_test_libs)

check_PROGRAMS += tests/unit/launcher/review/test_review
tests_unit_launcher_review_test_review_SOURCES = tests/unit/launcher/review/test_review.c
tests_unit_launcher_review_test_review_LDADD = %reldir%/libsbx-review.a src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/launcher/loop/test_watches
tests_unit_launcher_loop_test_watches_SOURCES = tests/unit/launcher/loop/test_watches.c
tests_unit_launcher_loop_test_watches_LDADD = %reldir%/libsbx-loop.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/launcher/serve/test_network
tests_unit_launcher_serve_test_network_SOURCES = tests/unit/launcher/serve/test_network.c tests/unit/scratch.h
tests_unit_launcher_serve_test_network_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/launcher/run/test_run_wait tests/unit/launcher/journal/test_state_change \
	tests/unit/launcher/journal/test_event_entry \
	tests/unit/launcher/cleanup/test_sweep tests/unit/launcher/resources/test_tls_process
tests_unit_launcher_run_test_run_wait_SOURCES = tests/unit/launcher/run/test_run_wait.c
tests_unit_launcher_run_test_run_wait_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)
tests_unit_launcher_resources_test_tls_process_SOURCES = \
	tests/unit/launcher/resources/test_tls_process.c tests/unit/scratch.h
tests_unit_launcher_resources_test_tls_process_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)
tests_unit_launcher_cleanup_test_sweep_SOURCES = tests/unit/launcher/cleanup/test_sweep.c tests/unit/scratch.h
tests_unit_launcher_cleanup_test_sweep_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)
tests_unit_launcher_journal_test_event_entry_SOURCES = tests/unit/launcher/journal/test_event_entry.c
tests_unit_launcher_journal_test_event_entry_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)
tests_unit_launcher_journal_test_state_change_SOURCES = tests/unit/launcher/journal/test_state_change.c
tests_unit_launcher_journal_test_state_change_LDADD = $(launcher_run_libs) $(CMOCKA_LIBS)

bin_PROGRAMS += %reldir%/sbx-run
%canon_reldir%_sbx_run_SOURCES = $(launcher_main_sources)
%canon_reldir%_sbx_run_LDFLAGS = $(SBX_LDFLAGS) $(SBX_RUN_LDFLAGS)
%canon_reldir%_sbx_run_LDADD = $(launcher_run_libs)

# The same program with a hook between its steps that fails or kills as the system tests ask.
noinst_PROGRAMS += %reldir%/sbx-run-faults
%canon_reldir%_sbx_run_faults_SOURCES = $(launcher_main_sources) tests/system/step_hook_fault.c
%canon_reldir%_sbx_run_faults_LDFLAGS = $(SBX_LDFLAGS) $(SBX_RUN_LDFLAGS)
%canon_reldir%_sbx_run_faults_LDADD = $(launcher_run_libs)

# Asks systemd for a scope; the one program that links libsystemd.
check_PROGRAMS += tests/unit/launcher/cli/test_scope_args
tests_unit_launcher_cli_test_scope_args_SOURCES = \
	tests/unit/launcher/cli/test_scope_args.c %reldir%/cli/scope_args.c %reldir%/cli/scope_args.h
tests_unit_launcher_cli_test_scope_args_LDADD = src/base/libsbx-base.a $(CMOCKA_LIBS)
if SBX_SYSTEMD
pkglibexec_PROGRAMS += %reldir%/sbx-scope
%canon_reldir%_sbx_scope_SOURCES = %reldir%/cli/scope.c %reldir%/cli/scope_args.c %reldir%/cli/scope_args.h
%canon_reldir%_sbx_scope_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
%canon_reldir%_sbx_scope_LDADD = $(sys_libs) src/base/libsbx-base.a $(SYSTEMD_LIBS)
endif

# Static: it starts in a file system that is not the host's, and an exec without ld.so is faster.
noinst_LIBRARIES += %reldir%/libsbx-init.a
%canon_reldir%_libsbx_init_a_SOURCES = \
	%reldir%/init/init_probes.c %reldir%/init/init_probes.h \
	%reldir%/init/init_programs.c %reldir%/init/init_programs.h \
	%reldir%/init/probe_connect.c \
	%reldir%/init/init_dns.c %reldir%/init/init_dns.h \
	%reldir%/init/probe_dns.c \
	%reldir%/init/probe_execs.c \
	%reldir%/init/probe_files.c \
	%reldir%/init/probe_kernel.c \
	%reldir%/init/probe_ruleset.c \
	%reldir%/init/pid1.c %reldir%/init/pid1.h

pkglibexec_PROGRAMS += %reldir%/sbx-init
%canon_reldir%_sbx_init_SOURCES = %reldir%/init/init.c %reldir%/init/init_argv.h
%canon_reldir%_sbx_init_LDFLAGS = $(SBX_LDFLAGS) $(SBX_INIT_LDFLAGS)
%canon_reldir%_sbx_init_LDADD = \
	%reldir%/libsbx-init.a $(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a

check_PROGRAMS += tests/unit/launcher/init/test_init tests/unit/launcher/init/test_init_dns tests/unit/launcher/init/test_init_probes \
	tests/unit/launcher/init/test_pid1
launcher_init_test_libs = \
	$(sys_libs) src/ipc/libsbx-ipc.a src/base/libsbx-base.a \
	$(sys_nftnl_libs) $(CMOCKA_LIBS)
tests_unit_launcher_init_test_init_SOURCES = tests/unit/launcher/init/test_init.c tests/unit/init_process.h
tests_unit_launcher_init_test_init_LDADD = $(launcher_init_test_libs)
EXTRA_tests_unit_launcher_init_test_init_DEPENDENCIES = %reldir%/sbx-init
tests_unit_launcher_init_test_pid1_SOURCES = tests/unit/launcher/init/test_pid1.c
tests_unit_launcher_init_test_pid1_LDADD = $(launcher_init_test_libs)
EXTRA_tests_unit_launcher_init_test_pid1_DEPENDENCIES = %reldir%/sbx-init
tests_unit_launcher_init_test_init_probes_SOURCES = tests/unit/launcher/init/test_init_probes.c
tests_unit_launcher_init_test_init_probes_LDADD = $(launcher_init_test_libs)
EXTRA_tests_unit_launcher_init_test_init_probes_DEPENDENCIES = %reldir%/sbx-init
tests_unit_launcher_init_test_init_dns_SOURCES = tests/unit/launcher/init/test_init_dns.c
tests_unit_launcher_init_test_init_dns_LDADD = \
	%reldir%/libsbx-init.a $(sys_libs) src/base/libsbx-base.a $(CMOCKA_LIBS)

check_PROGRAMS += tests/fuzz/launcher/fuzz_init_dns
tests_fuzz_launcher_fuzz_init_dns_SOURCES = tests/fuzz/launcher/fuzz_init_dns.c
tests_fuzz_launcher_fuzz_init_dns_LDADD = \
	$(SBX_FUZZ_LIBS) %reldir%/libsbx-init.a $(sys_libs) src/base/libsbx-base.a

check_PROGRAMS += tests/fuzz/launcher/fuzz_exec_format
tests_fuzz_launcher_fuzz_exec_format_SOURCES = tests/fuzz/launcher/fuzz_exec_format.c
tests_fuzz_launcher_fuzz_exec_format_LDADD = $(SBX_FUZZ_LIBS) %reldir%/libsbx-commands.a src/base/libsbx-base.a

# Both make files, in a file system of their own (tests/fuzz/launcher/plan_fuzz.h).
check_PROGRAMS += tests/fuzz/launcher/fuzz_plan tests/fuzz/launcher/fuzz_protect_git
launcher_plan_fuzz_sources = \
	tests/fuzz/launcher/plan_check.c tests/fuzz/launcher/plan_check.h tests/fuzz/launcher/plan_fuzz.c tests/fuzz/launcher/plan_fuzz.h
tests_fuzz_launcher_fuzz_plan_SOURCES = tests/fuzz/launcher/fuzz_plan.c $(launcher_plan_fuzz_sources)
tests_fuzz_launcher_fuzz_plan_LDADD = $(SBX_FUZZ_LIBS) $(launcher_plan_test_libs)
tests_fuzz_launcher_fuzz_protect_git_SOURCES = tests/fuzz/launcher/fuzz_protect_git.c $(launcher_plan_fuzz_sources)
tests_fuzz_launcher_fuzz_protect_git_LDADD = $(SBX_FUZZ_LIBS) $(launcher_plan_test_libs)
