# SPDX-License-Identifier: LGPL-2.1-or-later

dist_man_MANS += \
	%reldir%/sbx-run.1 \
	%reldir%/sbxctl.1 \
	%reldir%/sbxd.8 \
	%reldir%/sbx-profile.5
