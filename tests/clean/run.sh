#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# run.sh [COMMAND...]: COMMAND (default: ./bootstrap check) in a copy of this tree on a Debian 12 on which
# nothing is installed but what is essential: a root made by mmdebstrap from this machine's own
# apt sources, with its own mount, pid and IPC namespace and this machine's network. Needs root and mmdebstrap.
#
#   SBX_CLEAN_DIR   where the system and the copy go (default /var/tmp/sbx-clean-chroot)
#   SBX_CLEAN_KEEP  set: use the system that is there, with what an earlier run installed
#
# The copy is made of the files that git knows or does not ignore, so no build of yours comes along.

set -euo pipefail

top=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
dir=${SBX_CLEAN_DIR:-/var/tmp/sbx-clean-chroot}
sources=/etc/apt/sources.list.d/debian.sources
[ $# -gt 0 ] || set -- ./bootstrap check

[ "$(id -u)" -eq 0 ] || { echo "run.sh: needs root" >&2; exit 1; }

# Certificates that this machine trusts and a new Debian does not: its way out may need them.
add_own_certificates() {
	local bundle=etc/ssl/certs/ca-certificates.crt
	awk -v dir="$dir/usr/local/share/ca-certificates" '
		/^-----BEGIN/ { text = "" }
		{ text = text $0 "\n" }
		/^-----END/ && FNR == NR { known[text] = 1 }
		/^-----END/ && FNR != NR && !(text in known) { printf "%s", text >(dir "/own-" ++n ".crt") }
	' "$dir/$bundle" "/$bundle"
	chroot "$dir" update-ca-certificates >/dev/null
}

if [ -z "${SBX_CLEAN_KEEP-}" ] || [ ! -x "$dir/bin/bash" ]; then
	rm -rf --one-file-system "$dir"
	mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$dir" "$sources"
	# This machine's settings for its mirrors.
	find /etc/apt/apt.conf.d -type f -exec grep -qE 'Proxy|Verify' {} \; \
		-exec cp -t "$dir/etc/apt/apt.conf.d" {} +
	cp -L /etc/resolv.conf /etc/hosts "$dir/etc/"
	add_own_certificates
fi

rm -rf "$dir/src/sbx"
mkdir -p "$dir/src/sbx"
git -C "$top" ls-files -z --cached --others --exclude-standard |
	tar -C "$top" --null --ignore-failed-read -cf - -T - | tar -C "$dir/src/sbx" -xf -

# pivot_root, not chroot: the kernel makes no user namespace for a process whose root is not its mount
# namespace's.
# shellcheck disable=SC2016 # expanded by the inner shells
exec unshare --mount --pid --fork --ipc --kill-child bash -c '
	set -e
	dir=$1
	shift
	mount --make-rprivate /
	mount --bind "$dir" "$dir"
	mount -t proc proc "$dir/proc"
	mount --rbind /sys "$dir/sys"
	mount --rbind /dev "$dir/dev"
	mount -t tmpfs -o mode=0755 tmpfs "$dir/run"
	mkdir -p "$dir/.old"
	cd "$dir"
	pivot_root . .old
	umount -l /.old
	exec env -i HOME=/root TERM="${TERM:-dumb}" CI="${CI-}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		bash -c "cd /src/sbx && exec \"\$@\"" clean "$@"
' clean "$dir" "$@"
