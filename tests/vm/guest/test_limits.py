# SPDX-License-Identifier: LGPL-2.1-or-later
"""limits.memory, cpus, pids and disk hold, by cgroup v2, in every way sbx-run is started; what is left of it
afterwards: nothing."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from machine import CGROUP, RUN_SECONDS, TESTER, WAYS, cgroups, wait_until

ID = "0123456789ab"
OWN_PIDS = 5  # what sbx-run may add to the limit for its own processes around the command
MIB = 1 << 20

# Written to, not only asked for: argv[1] MiB.
HOG = "import sys\ndata = [b'x' * (1 << 20) for _ in range(int(sys.argv[1]))]\nprint('alive', len(data), flush=True)"

# As many processes as argv[1] says, or as there may be; then how many processors' worth of time two busy ones
# get in argv[2] seconds.
FORKS_AND_BUSY = r"""
import errno, json, os, signal, sys, time
pids, error = [], None
for _ in range(int(sys.argv[1])):
    try:
        pid = os.fork()
    except OSError as e:
        error = errno.errorcode[e.errno]
        break
    if pid == 0:
        time.sleep(600)
    pids.append(pid)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
start = time.monotonic()
for _ in range(2):
    if os.fork() == 0:
        while time.monotonic() < start + float(sys.argv[2]):
            pass
        os._exit(0)
used = 0
for _ in range(2):
    usage = os.wait3(0)[2]
    used += usage.ru_utime + usage.ru_stime
print(json.dumps({"n": len(pids), "error": error, "share": used / (time.monotonic() - start)}))
"""

BOMB = r"""
import os
print("up", flush=True)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""

# Fills a directory: how many MiB there was room for, and how it ended.
FILL = r"""
import errno, json, os, sys
written, error = 0, None
with open(sys.argv[1] + "/fill", "wb", 0) as f:
    try:
        while written < int(sys.argv[2]) << 20:
            written += f.write(b"x" * 65536)
    except OSError as e:
        error = errno.errorcode[e.errno]
print(json.dumps({"mib": written / (1 << 20), "error": error}))
"""

# A writable way out of the cgroup.
ESCAPE = r"""
import json, os
found = []
for path in ("/sys/fs/cgroup", "/proc/self/root/sys/fs/cgroup", "/run", "/mnt"):
    for directory, _, names in os.walk(path):
        if "cgroup.procs" in names and os.access(directory + "/cgroup.procs", os.W_OK):
            found.append(directory)
print(json.dumps(found))
"""


def python(script, *args):
    return ["python3", "-c", script, *map(str, args)]


def limits(**values):
    return [word for key, value in values.items() for word in ("--limit", f"{key}={value}")]


def comm(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def number_in(path):
    with open(path) as f:
        return int(f.read())


def cgroup_of(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return f.read().strip().removeprefix("0::")


def value(cgroup, name):
    """The limit that applies to a cgroup: its own value, or the nearest limit above it."""
    path = cgroup
    while path != "/":
        with contextlib.suppress(FileNotFoundError), open(f"{CGROUP}{path}/{name}") as f:
            text = f.read().strip()
            if not text.startswith("max"):
                return text
        path = os.path.dirname(path)
    return "max"


def processes(word):
    """pids of those that have the word in their environment: the command of a sandbox that --env gave it to."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:
            if word.encode() in f.read().split(b"\0"):
                found.append(int(pid))
    return found


def launchers(sandbox):
    """pids of sbx-run and what it forked: launcher, cleanup process, stage."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().split(b"\0")
            if words[0].endswith(b"/sbx-run") and sandbox.encode() in words:
                found.append(int(pid))
    return found


@pytest.fixture(scope="module")
def managers():
    """Start the managers that systemd starts at a first request, before the tests run."""
    for way in ("unit", "session", "user-unit"):
        subprocess.run([*WAYS[way], "true"], check=True, stdin=subprocess.DEVNULL, timeout=RUN_SECONDS)


@pytest.fixture
def no_cgroup_left(managers):
    before = cgroups()
    yield
    assert wait_until(lambda: not cgroups() - before), cgroups() - before


# --- memory ---

@pytest.mark.parametrize("way", WAYS)
def test_memory(start, no_cgroup_left, way):
    sbx = start(way)
    r = sbx.run(limits(memory="64M"), python(HOG, 256))
    assert (r.rc, r.out) == (137, ""), r
    said = [line for line in r.err.splitlines() if line.startswith("sbx-run: ") and "memory" in line]
    assert len(said) == 1 and re.search(r"\b64(\.0)? ?M", said[0]) and "peak" in said[0], r.err
    assert (sbx.last()["state"], sbx.last()["exit_status"]) == ("oom_killed", 137)
    assert sbx.leftovers() == []
    if way in ("unit", "user-unit"):
        return  # the twin of both is that of root and session
    r = sbx.run(limits(memory="512M"), python(HOG, 256))
    assert (r.rc, r.out, r.err) == (0, "alive 256\n", "")
    assert sbx.last()["state"] == "done"


@pytest.mark.parametrize("way", ["session", "delegated"])
def test_the_neighbour_lives(start, no_cgroup_left, way):
    """Two sandboxes with the same limit: all processes of the one that is over it end, and the other one lives."""
    sbx = start(way)
    script = "sleep 600 & python3 -c \"$1\" 256; echo survived"
    with sbx.running(limits(memory="64M"), ["sh", "-c", "echo up; exec sleep 600"], ID) as neighbour:
        r = sbx.run(["--env", "WHO=hog", *limits(memory="64M")], ["sh", "-c", script, "sh", HOG])
        assert (r.rc, r.out) == (137, ""), r
        assert processes("WHO=hog") == []
        assert neighbour.poll() is None and sbx.row(ID)["state"] == "running"
    assert sbx.row(ID)["state"] == "done" and sbx.row(ID)["exit_status"] == 128 + signal.SIGTERM


def test_a_kill_that_is_not_the_limits(start):
    """A plain SIGKILL also ends in 137; only a kill by the limit sets the state."""
    sbx = start("root")
    r = sbx.run(limits(memory="64M"), ["sh", "-c", "kill -KILL $$"])
    assert r.rc == 137 and "memory" not in r.err and sbx.last()["state"] == "done"


# --- pids and cpus ---

@pytest.mark.parametrize("way", ["root", "session", "user-delegated"])
def test_pids_and_cpus(start, no_cgroup_left, way):
    sbx = start(way)
    [few] = sbx.run(limits(pids=40, cpus="0.5"), python(FORKS_AND_BUSY, 60, 3)).lines()
    assert few["error"] == "EAGAIN" and 20 <= few["n"] < 40, few
    assert 0.25 < few["share"] < 0.7, few
    [enough] = sbx.run(limits(pids=100, cpus="2"), python(FORKS_AND_BUSY, 60, 3)).lines()
    assert (enough["error"], enough["n"]) == (None, 60), enough
    assert enough["share"] > 1.2, enough


@pytest.mark.parametrize("way", ["root", "session"])
def test_a_fork_bomb(start, no_cgroup_left, way):
    """A fork bomb gets to its limit and no further. The machine answers meanwhile, and the end of the command ends
    all."""
    sbx = start(way)
    args = ["--env", "WHO=bomb", *limits(pids=80, cpus="1", wall_time="120s")]
    with sbx.running(args, python(BOMB), ID) as p:
        current = CGROUP + cgroup_of(processes("WHO=bomb")[0]) + "/pids.current"
        assert wait_until(lambda: number_in(current) >= 80, 60), number_in(current)
        began = time.monotonic()
        subprocess.run(["systemctl", "show", "-P", "Version"], check=True, stdout=subprocess.DEVNULL)
        assert time.monotonic() - began < 10
        assert p.poll() is None and number_in(current) <= 80 + OWN_PIDS
    assert sbx.row(ID)["state"] == "done"
    assert wait_until(lambda: processes("WHO=bomb") == [])


# --- disk ---

@pytest.mark.parametrize("way", ["root", "session"])
def test_a_full_disk_is_full_inside_only(start, way):
    sbx = start(way)
    script = ["sh", "-c", 'for d in /tmp "$HOME"; do python3 -c "$1" "$d" 16; done', "sh", FILL]
    free = {path: shutil.disk_usage(path).free for path in ("/tmp", "/var/tmp", "/run")}
    for full in sbx.run(limits(tmp="4M", home="4M"), script).lines():
        assert full["error"] == "ENOSPC" and full["mib"] <= 4, full
    assert sbx.run(limits(tmp="32M", home="32M"), script).lines() == [{"mib": 16, "error": None}] * 2
    for path, before in free.items():
        assert abs(shutil.disk_usage(path).free - before) < 4 * MIB, path


# --- what the kernel is told ---

@pytest.mark.parametrize("way", WAYS)
def test_the_commands_cgroup(start, no_cgroup_left, way):
    """The limits stand where the command is, and the launcher is elsewhere: it must outlive the command."""
    sbx = start(way)
    args = ["--env", "WHO=limited", *limits(memory="64M", cpus="0.5", pids=50)]
    with sbx.running(args, ["sh", "-c", "echo up; exec sleep 600"], ID):
        assert wait_until(lambda: "sleep" in map(comm, processes("WHO=limited")))
        [cgroup] = {cgroup_of(pid) for pid in processes("WHO=limited") if comm(pid) == "sleep"}
        assert value(cgroup, "memory.max") == str(64 * MIB)
        assert 50 <= int(value(cgroup, "pids.max")) <= 50 + OWN_PIDS
        quota, period = map(int, value(cgroup, "cpu.max").split())
        assert quota / period == 0.5
        with open(f"{CGROUP}{cgroup}/memory.oom.group") as f:
            group = f.read().strip()
        assert group == "1"
        launcher = cgroup_of(sbx.row(ID)["pid"])
        assert launcher != cgroup and not launcher.startswith(cgroup + "/"), (launcher, cgroup)


@pytest.mark.parametrize("way", WAYS)
def test_io_weight(start, no_cgroup_left, way):
    """io_weight is set where the controller is delegated, which a user's manager does not do. Elsewhere sbx-run warns,
    or refuses with enforce=strict."""
    sbx = start(way)
    with sbx.running(["--env", "WHO=weighed", *limits(io_weight=50)], ["sh", "-c", "echo up; exec sleep 600"], ID) as p:
        assert wait_until(lambda: "sleep" in map(comm, processes("WHO=weighed")))
        [pid] = [pid for pid in processes("WHO=weighed") if comm(pid) == "sleep"]
        path = f"{CGROUP}{cgroup_of(pid)}/io.weight"
        held = sbx.is_root
        assert os.path.exists(path) == held
        if held:
            with open(path) as f:
                assert f.readline() == "default 50\n"
        os.kill(sbx.row(ID)["pid"], signal.SIGTERM)
        assert ("io_weight is not enforced" in p.communicate(timeout=30)[1]) != held
    r = sbx.run(limits(io_weight=50, enforce="strict"), ["true"])
    assert (r.rc, "limits.io_weight" in r.err) == ((0, False) if held else (125, True))


STRICT = "name: held\nlimits: {memory: 64M, cpus: 0.5, pids: 50, enforce: %s}\nnetwork: {mode: offline}\n"


@pytest.mark.parametrize("way", WAYS)
def test_strict_where_it_can_be(start, no_cgroup_left, way):
    """The receipt says by what each limit is held; and the cgroup, which may belong to the uid that the command
    runs as, is nothing it could leave."""
    sbx = start(way)
    profile, receipt = (os.path.join(sbx.work, name) for name in ("held.yaml", "receipt.json"))
    with open(profile, "w") as f:
        f.write(STRICT % "strict")
    args = ["--profile", profile, "--receipt", receipt, *limits(tmp="8M", open_files=100, wall_time="60s")]
    r = sbx.run(args, python(ESCAPE))
    assert (r.lines(), r.err) == ([[]], "")
    with open(receipt) as f:
        said = json.load(f)["limits"]
    asked = {"memory_bytes": 64 * MIB, "cpus_milli": 500, "pids": 50, "tmp_bytes": 8 * MIB, "open_files": 100,
             "wall_time_ms": 60000}
    assert {key: said[key]["asked"] for key in asked} == asked
    assert {said[key]["enforced_by"] for key in ("memory_bytes", "cpus_milli", "pids")} == {"cgroup"}
    assert "nothing" not in {said[key]["enforced_by"] for key in asked}, said


def test_strict_where_it_cannot_be(start):
    """A user without a manager, in a cgroup that is not delegated: refused, or run with a word about it."""
    sbx = start("session")
    alone = ["setpriv", "--reuid=tester", "--regid=tester", "--init-groups", "env", "-i", "PATH=/usr/bin:/bin",
             f"HOME={TESTER.pw_dir}", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent"]
    results = {}
    for enforce in ("strict", "best-effort"):
        path = os.path.join(sbx.work, enforce + ".yaml")
        with open(path, "w") as f:
            f.write(STRICT % enforce)
        argv = sbx.argv(["--profile", path], ["echo", "ran"])
        results[enforce] = subprocess.run([*alone, *argv[len(WAYS["session"]):]], stdin=subprocess.DEVNULL,
                                          capture_output=True, text=True, timeout=RUN_SECONDS)
    strict, best_effort = results["strict"], results["best-effort"]
    assert (strict.returncode, strict.stdout) == (125, "") and "memory" in strict.stderr, strict
    assert (best_effort.returncode, best_effort.stdout) == (0, "ran\n"), best_effort
    assert "sbx-run: " in best_effort.stderr and "memory" in best_effort.stderr, best_effort


# --- nothing left ---

@pytest.mark.parametrize("way", ["root", "unit", "session", "user-unit"])
def test_nothing_is_left_of_a_run(start, no_cgroup_left, way):
    sbx = start(way)
    script = "setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & exit 3"
    assert sbx.run(["--env", "WHO=left", *limits(memory="64M", pids=50)], ["sh", "-c", script]).rc == 3
    assert wait_until(lambda: processes("WHO=left") == [])
    assert sbx.leftovers() == []


@pytest.mark.parametrize("way,cleanup", [("root", False), ("root", True), ("delegated", True), ("session", False),
                                       ("session", True), ("user-delegated", True)])
def test_sigkill_of_the_launcher(start, no_cgroup_left, way, cleanup):
    """Nothing runs on, and the next start leaves nothing of it, whether or not the cleanup process went with it."""
    sbx = start(way)
    args = ["--env", "WHO=killed", "--id", ID, *limits(memory="64M", pids=50)]
    p = sbx.popen(args, ["sh", "-c", "echo up; sleep 600 & exec sleep 600"])
    assert p.stdout.readline() == "up\n"
    launcher = sbx.row(ID)["pid"]
    pids = launchers(ID)
    assert launcher in pids
    if cleanup:
        # It is in a session of its own; first, so that it cannot do what it is for.
        for pid in pids:
            if pid != launcher and os.getsid(pid) == pid:
                os.kill(pid, signal.SIGKILL)
    os.kill(launcher, signal.SIGKILL)
    p.communicate(timeout=RUN_SECONDS)
    assert p.returncode not in (0, 125)
    assert wait_until(lambda: processes("WHO=killed") == [] and launchers(ID) == [])
    assert sbx.run(limits(memory="64M"), ["true"]).rc == 0
    assert wait_until(lambda: sbx.row(ID)["state"] == "lost"), sbx.row(ID)
    assert sbx.leftovers() == []
