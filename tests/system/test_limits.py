# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits on a machine whose cgroups have no controllers: the limits that hold without them, and the messages about
the others. Limits that a cgroup holds are tested in the VM (tests/vm)."""
import json
import os

import pytest

FORK = """
import os, signal, json
pids = []
try:
    while len(pids) < 60:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
    error = 0
except OSError as e:
    error = e.errno
for pid in pids:
    os.kill(pid, signal.SIGKILL)
print(json.dumps([len(pids) + 1, error]))
"""

def controllers():
    for path in ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers"):
        if os.path.exists(path):
            with open(path) as f:
                return set(f.read().split())
    return set()


has_controllers = bool(controllers() & {"memory", "cpu", "pids"})
no_controllers = pytest.mark.skipif(has_controllers, reason="this machine's cgroups have controllers")


@pytest.mark.parametrize("root", [False, True])
def test_pids(sbx, root):
    if root:
        sbx.own(0)
    def run(*limit):
        r = sbx.run(["--profile", "none", *limit], ["python3", "-c", FORK], root=root)
        assert r.rc == 0, r.err
        return json.loads(r.out)
    assert run("--limit", "pids=20") == [20, 11]  # EAGAIN
    assert run("--limit", "pids=200") == [61, 0]


def test_pids_are_each_sandboxs_own(sbx):
    """A full one takes nothing away from its neighbour of the same user."""
    code = FORK.replace("for pid", "print('full', flush=True); input()\nfor pid", 1)
    full = sbx.popen(["--profile", "none", "--limit", "pids=20"], ["python3", "-c", code], stdin=-1)
    assert full.stdout.readline().strip() == "full"
    r = sbx.run(["--profile", "none", "--limit", "pids=20"], ["python3", "-c", FORK])
    assert json.loads(r.out) == [20, 11]
    out, err = full.communicate("\n", 30)
    assert json.loads(out) == [20, 11], err


@no_controllers
@pytest.mark.parametrize("limit", ["memory=64M", "cpus=0.5"])
def test_not_enforced(sbx, limit):
    key = limit.split("=")[0]
    r = sbx.run(["--profile", "none", "--limit", limit], ["true"])
    assert r.rc == 0 and f"limits.{key} is not enforced: " in r.err, r.err
    assert sbx.run(["-q", "--profile", "none", "--limit", limit], ["true"]).err == ""
    r = sbx.run(["--profile", "none", "--limit", limit, "--limit", "enforce=strict"], ["echo", "ran"])
    assert r.rc == 125 and r.out == ""
    assert f"limits.{key} cannot be enforced here, and limits.enforce is strict: " in r.err, r.err
    assert sbx.leftovers() == []
    # Strict alone, with limits that are held, is no reason to refuse.
    assert sbx.run(["--profile", "none", "--limit", "pids=20", "--limit", "enforce=strict"], ["true"]).rc == 0


@no_controllers
@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_how_to_get_a_cgroup_is_said(sbx, root):
    """One line, with what this machine and this user can do about it."""
    if root:
        sbx.own(0)
    r = sbx.run(["--scratch", "--profile", "none", "--limit", "memory=64M"], ["true"], root=root)
    assert r.rc == 0 and r.err.count("\n") == 1, r
    ways = ("systemd.unified_cgroup_hierarchy=1", "systemd-run --" + ("scope" if root else "user --scope"),
            "mount cgroup2 writable" if root else "start it as root")
    assert sum(way in r.err for way in ways) == 1, r


def test_too_few_open_files(sbx):
    """Fewer than the self-test needs is not begun: the least that may be asked for is enough, for all of a profile's probes."""
    r = sbx.run(["--limit", "open_files=63"], ["true"])
    assert r.rc == 125 and "open_files" in r.err and "64" in r.err and r.err.count("\n") == 1, r
    probes = "".join(f"  - {{connect_refused: '203.0.113.{i}:700/tcp'}}\n  - {{dns_refused: 'n{i}.test'}}\n" for i in range(1, 13))
    sbx.profile("probes", f"limits: {{open_files: 64}}\nselftest:\n{probes}")
    for args in (["--profile", "probes"], ["--profile", "probes", "--publish", "0:80"], ["--limit", "open_files=64", "--overlay"],
                 ["--profile", "probes", "--allow", "allowed.test"]):
        r = sbx.run(args, ["sh", "-c", "ulimit -n"])
        assert (r.rc, r.out) == (0, "64\n"), (args, r)


@no_controllers
def test_receipt_tells(sbx):
    path = os.path.join(sbx.work, "receipt.json")
    args = ["--limit", "pids=20", "--limit", "memory=64M", "--limit", "open_files=100", "--receipt", path]
    assert sbx.run(["--profile", "none", *args], ["true"]).rc == 0
    with open(path) as f:
        receipt = json.load(f)
    assert {k: v["enforced_by"] for k, v in receipt["limits"].items() if k in ("pids", "memory_bytes", "open_files",
                                                                             "cpus_milli")} == {
        "pids": "rlimit", "memory_bytes": "nothing", "open_files": "rlimit", "cpus_milli": "nothing"}
    assert receipt["cgroup"]["source"] == "none" and receipt["cgroup"]["used"]["cpu_us"] is None
