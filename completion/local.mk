# SPDX-License-Identifier: LGPL-2.1-or-later
# What shells know of sbx-run's flags. tests/system/test_completion.py compares them with sbx-run --help.

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %reldir%/sbx-run
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %reldir%/_sbx-run
