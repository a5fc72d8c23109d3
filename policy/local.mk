# SPDX-License-Identifier: LGPL-2.1-or-later
# policy: profile text -> checked tree -> compiled policy; decide, explain, print. Includes base; PURE.
#
# Deciding (policy_load, policy_decide, policy_explain) needs no library; the broker links that.
# Reading profiles needs $(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS), sbx_policy_hash() $(SBX_MD_LIBS).

SBX_MD_LIBS = $(MD_LIBS)

noinst_LIBRARIES += %reldir%/libsbx-policy.a
%canon_reldir%_libsbx_policy_a_SOURCES = \
	%reldir%/profile/attach.c \
	%reldir%/profile/endpoint.c %reldir%/profile/endpoint.h \
	%reldir%/lists/git_config.c %reldir%/lists/git_config.h \
	%reldir%/lists/git_dir.c %reldir%/lists/git_dir.h \
	%reldir%/keys/job.c %reldir%/keys/job.h \
	%reldir%/keys/key.c %reldir%/keys/key.h \
	%reldir%/keys/key_print.c %reldir%/keys/key_print.h \
	%reldir%/keys/key_read.c %reldir%/keys/key_read.h \
	%reldir%/keys/key_read_items.c %reldir%/keys/key_read_internal.h \
	%reldir%/keys/key_read_requests.c \
	%reldir%/keys/key_scalar.c %reldir%/keys/key_scalar.h \
	%reldir%/profile/net_entry.c %reldir%/profile/net_entry.h \
	%reldir%/forms/option_form.c %reldir%/forms/option_form.h \
	%reldir%/forms/request_form.c %reldir%/forms/request_form.h \
	%reldir%/decide/policy.h \
	%reldir%/decide/policy_blob.h \
	%reldir%/decide/policy_collect.c \
	%reldir%/decide/policy_compile.c \
	%reldir%/decide/policy_decide.c \
	%reldir%/decide/policy_explain.c \
	%reldir%/decide/policy_hash.c \
	%reldir%/decide/policy_match.c \
	%reldir%/decide/policy_load.c %reldir%/decide/policy_internal.h \
	%reldir%/decide/live.c %reldir%/decide/live.h \
	%reldir%/decide/policy_answers.c \
	%reldir%/decide/rules.c %reldir%/decide/rules.h \
	%reldir%/profile/ports.c %reldir%/profile/ports.h \
	%reldir%/profile/profile.c %reldir%/profile/profile.h \
	%reldir%/profile/secret.c %reldir%/profile/secret.h \
	%reldir%/profile/settle.c %reldir%/profile/settle.h \
	%reldir%/keys/profile_parse.c %reldir%/keys/profile_parse.h \
	%reldir%/lists/protected_path.c %reldir%/lists/protected_path.h \
	%reldir%/profile/publish.c %reldir%/profile/publish.h \
	%reldir%/lists/shipped.c %reldir%/lists/shipped.h \
	%reldir%/forms/suggest.c %reldir%/forms/suggest.h \
	%reldir%/keys/system.c \
	%reldir%/forms/units.c %reldir%/forms/units.h \
	%reldir%/forms/variable_form.c %reldir%/forms/variable_form.h \
	%reldir%/forms/yaml_tree.c %reldir%/forms/yaml_tree.h

SBX_POLICY_TEST_LIBS = policy/libsbx-policy.a src/base/libsbx-base.a \
	$(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS) $(SBX_MD_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += \
	tests/unit/policy/lists/test_git_config \
	tests/unit/policy/lists/test_git_dir \
	tests/unit/policy/keys/test_job \
	tests/unit/policy/profile/test_net_entry \
	tests/unit/policy/decide/test_live \
	tests/unit/policy/decide/test_policy \
	tests/unit/policy/decide/test_policy_layers \
	tests/unit/policy/decide/test_policy_load \
	tests/unit/policy/decide/test_policy_oom \
	tests/unit/policy/decide/test_policy_random \
	tests/unit/policy/keys/test_profile \
	tests/unit/policy/keys/test_profile_golden \
	tests/unit/policy/keys/test_profile_man \
	tests/unit/policy/keys/test_profile_requests \
	tests/unit/policy/lists/test_protected_path \
	tests/unit/policy/profile/test_ports \
	tests/unit/policy/profile/test_publish \
	tests/unit/policy/forms/test_request_form \
	tests/unit/policy/profile/test_settle \
	tests/unit/policy/forms/test_suggest \
	tests/unit/policy/keys/test_system \
	tests/unit/policy/forms/test_units \
	tests/unit/policy/forms/test_variable_form \
	tests/unit/policy/forms/test_yaml_tree
tests_unit_policy_lists_test_git_config_SOURCES = tests/unit/policy/lists/test_git_config.c
tests_unit_policy_lists_test_git_config_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_lists_test_git_dir_SOURCES = tests/unit/policy/lists/test_git_dir.c
tests_unit_policy_lists_test_git_dir_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_keys_test_job_SOURCES = tests/unit/policy/keys/test_job.c tests/unit/policy_world.h
tests_unit_policy_keys_test_job_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_profile_test_net_entry_SOURCES = tests/unit/policy/profile/test_net_entry.c
tests_unit_policy_profile_test_net_entry_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_live_SOURCES = tests/unit/policy/decide/test_live.c tests/unit/policy_world.h
tests_unit_policy_decide_test_live_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_SOURCES = tests/unit/policy/decide/test_policy.c tests/unit/embeddings.h tests/unit/policy_world.h
tests_unit_policy_decide_test_policy_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_layers_SOURCES = tests/unit/policy/decide/test_policy_layers.c tests/unit/policy_world.h
tests_unit_policy_decide_test_policy_layers_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_random_SOURCES = tests/unit/policy/decide/test_policy_random.c tests/unit/policy_world.h
tests_unit_policy_decide_test_policy_random_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_load_SOURCES = tests/unit/policy/decide/test_policy_load.c tests/unit/policy_world.h
tests_unit_policy_decide_test_policy_load_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_oom_SOURCES = tests/unit/policy/decide/test_policy_oom.c tests/unit/fail_alloc.h \
	tests/unit/policy_world.h
tests_unit_policy_decide_test_policy_oom_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_decide_test_policy_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc \
	-Wl,--wrap=realloc,--wrap=strdup,--wrap=strndup
tests_unit_policy_keys_test_profile_SOURCES = tests/unit/policy/keys/test_profile.c tests/unit/policy_world.h
tests_unit_policy_keys_test_profile_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_keys_test_profile_golden_SOURCES = tests/unit/policy/keys/test_profile_golden.c tests/unit/golden.h tests/unit/policy_world.h
tests_unit_policy_keys_test_profile_golden_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_keys_test_profile_man_SOURCES = tests/unit/policy/keys/test_profile_man.c tests/unit/policy_world.h
tests_unit_policy_keys_test_profile_man_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_keys_test_profile_requests_SOURCES = tests/unit/policy/keys/test_profile_requests.c tests/unit/policy_world.h
tests_unit_policy_keys_test_profile_requests_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_forms_test_request_form_SOURCES = tests/unit/policy/forms/test_request_form.c
tests_unit_policy_forms_test_request_form_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_profile_test_settle_SOURCES = tests/unit/policy/profile/test_settle.c tests/unit/policy_world.h
tests_unit_policy_profile_test_settle_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_lists_test_protected_path_SOURCES = tests/unit/policy/lists/test_protected_path.c tests/unit/policy_world.h
tests_unit_policy_lists_test_protected_path_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_profile_test_ports_SOURCES = tests/unit/policy/profile/test_ports.c
tests_unit_policy_profile_test_ports_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_profile_test_publish_SOURCES = tests/unit/policy/profile/test_publish.c
tests_unit_policy_profile_test_publish_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_forms_test_suggest_SOURCES = tests/unit/policy/forms/test_suggest.c
tests_unit_policy_forms_test_suggest_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_keys_test_system_SOURCES = tests/unit/policy/keys/test_system.c tests/unit/policy_world.h
tests_unit_policy_keys_test_system_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_forms_test_units_SOURCES = tests/unit/policy/forms/test_units.c
tests_unit_policy_forms_test_units_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_forms_test_variable_form_SOURCES = tests/unit/policy/forms/test_variable_form.c
tests_unit_policy_forms_test_variable_form_LDADD = $(SBX_POLICY_TEST_LIBS)
tests_unit_policy_forms_test_yaml_tree_SOURCES = tests/unit/policy/forms/test_yaml_tree.c
tests_unit_policy_forms_test_yaml_tree_LDADD = $(SBX_POLICY_TEST_LIBS)
SBX_GOLDEN_TESTS += tests/unit/policy/keys/test_profile_golden tests/unit/policy/keys/test_profile_man tests/unit/policy/lists/test_protected_path tests/unit/policy/decide/test_policy_layers

check_PROGRAMS += tests/fuzz/policy/fuzz_git_config tests/fuzz/policy/fuzz_job tests/fuzz/policy/fuzz_profile tests/fuzz/policy/fuzz_policy_blob \
	tests/fuzz/policy/fuzz_pattern tests/fuzz/policy/fuzz_publish
tests_fuzz_policy_fuzz_git_config_SOURCES = tests/fuzz/policy/fuzz_git_config.c
tests_fuzz_policy_fuzz_git_config_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)
tests_fuzz_policy_fuzz_job_SOURCES = tests/fuzz/policy/fuzz_job.c
tests_fuzz_policy_fuzz_job_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)
tests_fuzz_policy_fuzz_profile_SOURCES = tests/fuzz/policy/fuzz_profile.c
tests_fuzz_policy_fuzz_profile_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)
tests_fuzz_policy_fuzz_policy_blob_SOURCES = tests/fuzz/policy/fuzz_policy_blob.c
tests_fuzz_policy_fuzz_policy_blob_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)
tests_fuzz_policy_fuzz_publish_SOURCES = tests/fuzz/policy/fuzz_publish.c
tests_fuzz_policy_fuzz_publish_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)
tests_fuzz_policy_fuzz_pattern_SOURCES = tests/fuzz/policy/fuzz_pattern.c
tests_fuzz_policy_fuzz_pattern_LDADD = $(SBX_FUZZ_LIBS) $(SBX_POLICY_TEST_LIBS)

EXTRA_DIST += \
	tests/golden/profile-agent.yaml \
	tests/golden/profile-ai-bash.yaml \
	tests/golden/profile-build.yaml \
	tests/golden/profile-default.yaml \
	tests/golden/profile-full.yaml \
	tests/golden/profile-install.yaml \
	tests/golden/profile-none.yaml \
	tests/golden/profile-notebook.yaml \
	tests/golden/profile-vite-preview.yaml

noinst_PROGRAMS += bench/bench_decide
bench_bench_decide_SOURCES = bench/bench_decide.c
bench_bench_decide_LDADD = policy/libsbx-policy.a src/base/libsbx-base.a \
	$(YAML_LIBS) $(PSL_LIBS) $(IDN2_LIBS) $(SBX_MD_LIBS)
