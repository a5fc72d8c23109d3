# SPDX-License-Identifier: LGPL-2.1-or-later
"""200 sandboxes, 50 at a time: none fails, and nothing of them is left."""
import os
import time

import pytest

from test_lifecycle import wait_until

# The test uses the machine's cgroups, and test_attach.py looks at those of attach cgroup.
pytestmark = pytest.mark.xdist_group("cgroups")
N, AT_ONCE = 200, 50


def namespaces():
    """Those that any process is in."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for kind in "net", "user", "pid", "mnt", "ipc", "uts", "cgroup":
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                pass
    return found


def cgroups():
    return {path for path, _, _ in os.walk("/sys/fs/cgroup") if "sbx" in path}


def ours(sbx):
    """Processes that know the test's directory: sbx-run's environment names it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if sbx.tmp.encode() in f.read() and int(pid) != os.getpid():
                    found.append(pid)
        except OSError:
            pass
    return found


@pytest.mark.parametrize("root", [False, True])
def test_many(sbx, root):
    if root:
        sbx.own(0)
    before, trees = namespaces(), cgroups()
    results, running, started = [], [], 0
    end = time.monotonic() + 240
    while len(results) < N:
        assert time.monotonic() < end, f"{len(results)} of {N}"
        while started < N and len(running) < AT_ONCE:
            args = ["-q", "--profile", "none" if started % 2 else "install"]
            running.append(sbx.popen(args, ["sh", "-c", "id -u; exec sleep 0.2"], root=root))
            started += 1
        for p in running[:]:
            if p.poll() is not None:
                out, err = p.communicate()
                results.append((p.returncode, out.strip(), err))
                running.remove(p)
        time.sleep(0.01)
    assert [r for r in results if r[0] != 0 or r[2]] == []
    uids = {r[1] for r in results}
    if root:
        assert len(uids) >= AT_ONCE and "0" not in uids, uids
    else:
        assert uids == {str(sbx.world.user.pw_uid)}
    assert [s["state"] for s in sbx.sandboxes()] == ["done"] * N
    assert sbx.leftovers() in ([], ["uids"])
    wait_until(lambda: not (ours(sbx) or namespaces() - before or cgroups() - trees), 10)
    assert ours(sbx) == []
    assert namespaces() - before == set()
    assert cgroups() - trees == set()
    with open("/proc/locks") as f:
        assert f.read().count(str(os.stat(sbx.runtime).st_ino)) == 0
