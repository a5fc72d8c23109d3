# SPDX-License-Identifier: LGPL-2.1-or-later
"""The interpreter of one of pytest-xdist's workers (tests/local.mk): Python in a world of its own.

Each worker has a pid namespace, so that a test which looks for processes sees its own and no neighbour's, and a
mount namespace, in which /var/tmp, where the tests make their directories, is a tmpfs: they make and remove some
hundred thousand files, and ext4 without a journal searches long for an inode number that was not used lately.
The network is the world's that conftest.py makes, one for each worker; so are the test user and its home.

Usage: worker.py ARGUMENT...   runs `python3 ARGUMENT...` like that and exits as it does.
"""
import os
import subprocess
import sys

INSIDE = "SBX_TEST_WORKER_INSIDE"
SCRATCH = "/var/tmp"


def needed():
    """Directories that a mount over SCRATCH must not hide."""
    return [os.path.realpath(os.environ.get(name, "/")) for name in ("SBX_INST", "SBX_SRCDIR", "SBX_BUILDDIR")]


def reap(child):
    """As pid 1: what the tests leave behind is ours to wait for."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xff


def main():
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc",
                              sys.executable, __file__, *sys.argv[1:]])
    del os.environ[INSIDE]
    if not any(path.startswith(SCRATCH + "/") for path in needed()):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "sbx-tests", SCRATCH], check=True)
    child = os.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    sys.exit(reap(child))


main()
