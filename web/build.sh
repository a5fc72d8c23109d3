#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# build.sh SRCDIR WORKDIR: the page of SRCDIR is built in WORKDIR/../dist. SRCDIR may be
# read-only: the sources are copied. npm is asked only when the lock file changed.

set -eu

src=$1
work=$2
mkdir -p "$work"

# From anew, so that a file that was removed is gone; the packages stay.
for old in "$work"/* "$work"/.npmrc; do
	case $old in
	*/node_modules | */installed.lock) ;;
	*) rm -rf "$old" ;;
	esac
done
for name in .npmrc index.html package.json package-lock.json public src test tsconfig.json vite.config.mjs; do
	cp -R "$src/$name" "$work/"
done
chmod -R u+w "$work/public" "$work/src" "$work/test"

cd "$work"
if ! cmp -s package-lock.json installed.lock; then
	rm -f installed.lock
	# No package's script is run, and nothing of the caller's npm settings but the registry matters.
	npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error || exit 69 # EX_UNAVAILABLE
	cp package-lock.json installed.lock
fi
node_modules/.bin/tsc
node_modules/.bin/vite build --logLevel warn
