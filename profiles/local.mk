# SPDX-License-Identifier: LGPL-2.1-or-later
# The shipped profiles.

profilesdir = $(pkgdatadir)/profiles
dist_profiles_DATA = \
	%reldir%/agent.yaml \
	%reldir%/ai-bash.yaml \
	%reldir%/build.yaml \
	%reldir%/default.yaml \
	%reldir%/full.yaml \
	%reldir%/install.yaml \
	%reldir%/none.yaml \
	%reldir%/notebook.yaml \
	%reldir%/vite-preview.yaml
