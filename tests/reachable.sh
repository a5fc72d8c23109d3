#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# reachable.sh COMMAND...: runs COMMAND in a directory that every user can enter, /, and with an SBX_INST
# that every user can get at: where the build is below a directory that is closed to others (a clone in
# /root), with a copy of the installation. Paths among the arguments must be absolute.

inst=$SBX_INST
cd / || exit
if [ "$(id -u)" -eq 0 ] && [ -x "$inst/bin/sbx-run" ] &&
	! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$inst/bin/sbx-run"; then
	copy=$(mktemp -d /var/tmp/sbx-inst-XXXXXX) || exit
	trap 'rm -rf "$copy"' EXIT
	trap 'exit 143' HUP INT TERM
	chmod 755 "$copy"
	cp -R "$inst" "$copy/inst" || exit
	SBX_INST=$copy/inst
	export SBX_INST
	"$@"
	exit
fi
exec "$@"
