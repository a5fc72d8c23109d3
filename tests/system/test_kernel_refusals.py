# SPDX-License-Identifier: LGPL-2.1-or-later
"""When the kernel refuses a call, sbx-run names the cause and the remedy, and exits with 125."""
import os
import subprocess

import pytest

from conftest import INST, USER

# A user namespace with every id mapped, in which a sysctl is set before the test user runs sbx-run.
ENTER = r"""
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
setting, user, *argv = sys.argv[1:]
ready, go = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    assert libc.unshare(0x10000000 | 0x20000000 | 0x00020000) == 0  # NEWUSER NEWPID NEWNS
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    if os.fork() == 0:
        subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
        if setting:
            path, value = setting.split("=")
            with open(path, "w") as f:
                f.write(value)
        os.execvp("setpriv", ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *argv])
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.read(ready[0], 1)
for name in ("uid_map", "gid_map"):
    with open(f"/proc/{pid}/{name}", "w") as f:
        f.write("0 0 100000")
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def run(sbx, setting):
    argv = sbx.world.ns() + ["/usr/bin/python3", "-c", ENTER, setting, USER, "env", "-C", sbx.work,
                             os.path.join(INST, "bin", "sbx-run"), "--", "echo", "ran"]
    return subprocess.run(argv, capture_output=True, text=True, env=sbx.env(), timeout=60)


@pytest.mark.parametrize("setting,word", [
    ("/proc/sys/user/max_user_namespaces=0", "max_user_namespaces"),
    ("/proc/sys/user/max_net_namespaces=0", "max_net_namespaces"),
    ("/proc/sys/user/max_pid_namespaces=0", "max_pid_namespaces"),
    ("/proc/sys/user/max_mnt_namespaces=0", "max_mnt_namespaces"),
])
def test_namespace_limits(sbx, setting, word):
    r = run(sbx, setting)
    assert (r.returncode, r.stdout) == (125, ""), r
    lines = [line for line in r.stderr.splitlines() if line.startswith("sbx-run: ")]
    assert len(lines) == 1 and word in lines[0], r
    twin = run(sbx, "")
    assert (twin.returncode, twin.stdout) == (0, "ran\n"), twin


def test_missing_bwrap_and_helpers(sbx, tmp_path):
    import shutil
    copy = os.path.join(sbx.tmp, "inst")
    shutil.copytree(INST, copy)
    os.unlink(os.path.join(copy, "libexec", "sbx", "sbx-init"))
    argv = sbx.world.ns(USER) + ["env", "-C", sbx.work, os.path.join(copy, "bin", "sbx-run"), "--", "true"]
    r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(), timeout=30)
    assert r.returncode == 125 and "sbx-init" in r.stderr and r.stderr.count("\n") == 1, r
    shutil.copy(os.path.join(INST, "libexec", "sbx", "sbx-init"), os.path.join(copy, "libexec", "sbx"))
    assert subprocess.run(argv, capture_output=True, env=sbx.env(), timeout=30).returncode == 0
