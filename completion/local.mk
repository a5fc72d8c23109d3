# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sbx-run and sbxctl. tests/unit/launcher/cli/test_option_table.c and tests/unit/ctl/test_command_table.c, tests/unit/daemon/test_files.c compare
# them with the tables, tests/system/test_completion.py with the programs' help.

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %reldir%/sbx-run %reldir%/sbxctl %reldir%/sbxd
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %reldir%/_sbx-run %reldir%/_sbxctl %reldir%/_sbxd
