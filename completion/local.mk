# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sbx-run's flags. tests/unit/launcher/cli/test_option_table.c compares them with the table of flags,
# tests/system/test_completion.py with sbx-run --help.

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %reldir%/sbx-run
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %reldir%/_sbx-run
