# SPDX-License-Identifier: LGPL-2.1-or-later
# The database's schema, applied in order.

migrationsdir = $(pkgdatadir)/migrations
dist_migrations_DATA = \
	%reldir%/0001-initial.sql \
	%reldir%/0002-request.sql \
	%reldir%/0003-rules.sql \
	%reldir%/0004-service.sql \
	%reldir%/0005-scale.sql \
	%reldir%/0006-live-rules.sql \
	%reldir%/0007-audit-outcome.sql
