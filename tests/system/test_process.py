# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of the sandbox's processes: when each ends, which process reaps, and which of ours can be traced or read."""
import os
import signal
import subprocess
import time

import pytest

from conftest import children, descendants, named, status, statuses

PYTHON = "/usr/bin/python3"


@pytest.fixture(params=[False, True], ids=["user", "root"])
def sandbox(sbx, world, request):
    """An ordinary user's, and root's with a uid of its own, which has that user's directory."""
    if request.param:
        sbx.own(0)
        os.chown(sbx.work, world.user.pw_uid, world.user.pw_gid)
    return request.param


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


# --- the end of the run ---

# Processes left behind, as by a shell, a daemon and an impatient parent; each writes when the file `go` appears.
LEFT = {
    "background": "(while [ ! -e go ]; do sleep 0.05; done; touch done) &",
    "setsid": "setsid sh -c 'while [ ! -e go ]; do sleep 0.05; done; touch done' &",
    "daemon": "(setsid sh -c 'cd /; exec <&- >&- 2>&-; (while [ ! -e $0/go ]; do sleep 0.05; done; touch $0/done) &' "
              "$PWD &);",
}


@pytest.mark.parametrize("how", LEFT)
def test_what_is_left_ends_with_the_command(sbx, sandbox, how):
    r = sbx.run([], ["sh", "-c", LEFT[how] + " exit 3"], root=sandbox)
    assert r.rc == 3, r
    with open(os.path.join(sbx.work, "go"), "w"):
        pass
    time.sleep(0.5)
    assert not os.path.exists(os.path.join(sbx.work, "done"))


@pytest.mark.parametrize("how", LEFT)
def test_wait_all(sbx, sandbox, how):
    """--wait-all waits for a daemon: the status is the command's, and nothing of the daemon's output is lost."""
    p = sbx.popen(["--wait-all"], ["sh", "-c", LEFT[how] + " echo gone; exit 3"], root=sandbox)
    assert p.stdout.readline() == "gone\n"
    time.sleep(0.5)
    assert p.poll() is None
    with open(os.path.join(sbx.work, "go"), "w"):
        pass
    assert p.wait(20) == 3
    assert os.path.exists(os.path.join(sbx.work, "done"))
    assert sbx.sandboxes()[-1]["exit_status"] == 3, sbx.sandboxes()


def test_wait_all_alone(sbx):
    """When no other process is left, --wait-all changes no exit status."""
    for command, rc in ((["true"], 0), (["sh", "-c", "exit 9"], 9), (["sh", "-c", "kill -TERM $$"], 143),
                        (["sh", "-c", "kill -KILL $$"], 137), (["no-such-command"], 127), (["/etc/passwd"], 126)):
        assert sbx.run(["--wait-all"], command).rc == rc, command
        assert sbx.run([], command).rc == rc, command


def test_wait_all_told_at_once(sbx):
    """The launcher hears of the command's end and of the last process's end in the same turn."""
    p = sbx.popen(["--wait-all"], ["sh", "-c", "echo up; sleep 0.5; exit 9"])
    assert p.stdout.readline() == "up\n"
    os.kill(p.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: not named(p.pid, "bwrap", "sbx-init", "sh", "sleep"))
    finally:
        os.kill(p.pid, signal.SIGCONT)
    assert p.wait(20) == 9


def test_wait_all_after_a_kill(sbx):
    """The command was killed, which the launcher has only pid 1's word for; others are waited for."""
    p = sbx.popen(["--wait-all"], ["sh", "-c", LEFT["setsid"] + " echo gone; kill -KILL $$"])
    assert p.stdout.readline() == "gone\n"
    time.sleep(0.5)
    assert p.poll() is None
    with open(os.path.join(sbx.work, "go"), "w"):
        pass
    assert p.wait(20) == 137 and os.path.exists(os.path.join(sbx.work, "done"))


def test_wait_all_in_a_job(sbx):
    job = os.path.join(sbx.work, "job.yaml")
    for word, there in (("false", False), ("true", True)):
        with open(job, "w") as f:
            f.write(f"wait_all: {word}\ncommand: [sh, -c, '(sleep 0.5; touch {word}) & exit 4']\n")
        assert sbx.run(["--job", job], []).rc == 4
        assert os.path.exists(os.path.join(sbx.work, word)) == there


def test_wait_all_has_a_wall_time(sbx):
    code = "trap 'touch asked; exit' TERM; while :; do sleep 0.05; done"
    r = sbx.run(["--wait-all", "--limit", "wall_time=1s"], ["sh", "-c", f"setsid sh -c \"{code}\" & exit 0"])
    assert r.rc == 124 and r.seconds < 10 and os.path.exists(os.path.join(sbx.work, "asked")), r
    r = sbx.run(["--wait-all", "--limit", "wall_time=1s"], ["sh", "-c", "trap '' TERM; setsid sleep 60 & exit 0"])
    assert r.rc == 124 and 2.5 < r.seconds < 20, r


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_wait_all_signals(sbx, sandbox, sig):
    """After the command's end a signal to sbx-run is for all that is left, in whatever session."""
    code = "import os, signal, sys, time\n" \
        f"signal.signal({int(sig)}, lambda *a: (print('got', flush=True), os._exit(0)))\n" \
        "print('up', flush=True)\ntime.sleep(60)\n"
    p = sbx.popen(["--wait-all"], ["sh", "-c", f"setsid {PYTHON} -c \"$0\" & setsid {PYTHON} -c \"$0\" & exit 5", code],
                  root=sandbox)
    assert [p.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    time.sleep(0.3)
    assert p.poll() is None
    p.send_signal(sig)
    out, err = p.communicate(timeout=20)
    assert (out, p.returncode) == ("got\n" * 2, 5), (out, err)


def test_wait_all_killed(sbx):
    """SIGKILL of the launcher ends all processes that are left."""
    p = sbx.popen(["--wait-all"], ["sh", "-c", "setsid sleep 60 & echo gone; exit 0"])
    assert p.stdout.readline() == "gone\n"
    wait_for(lambda: named(p.pid, "sleep"))
    left = named(p.pid, "sleep")
    p.kill()
    p.communicate(timeout=20)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left))


# --- zombies ---

ZOMBIES = """
import os, time
def state(pid):
    try:
        return open(f"/proc/{pid}/stat").read().split(") ")[1][0]
    except (FileNotFoundError, ProcessLookupError):  # before the open, or after it
        return "gone"
def orphan():
    "The pid of a process whose parent is dead and that ends at once."
    r, w = os.pipe()
    if os.fork() == 0:
        pid = os.fork()
        if pid:
            os.write(w, str(pid).encode())
        else:
            time.sleep(0.05)
        os._exit(0)
    os.wait()
    return int(os.read(r, 20))
orphans = [orphan() for _ in range(50)]
own = os.fork()
if own == 0:
    os._exit(0)
end = time.monotonic() + 10
while time.monotonic() < end and {state(p) for p in orphans} != {"gone"}:
    time.sleep(0.05)
print({state(p) for p in orphans}, state(own))  # our own is not reaped: its state is what a zombie's looks like
"""


def test_zombies(sbx, sandbox):
    r = sbx.run([], [PYTHON, "-c", ZOMBIES], root=sandbox)
    assert r.out == "{'gone'} Z\n", r


# --- who can be looked into from outside ---

LOOK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in map(int, sys.argv[1:]):
    seen = []
    for name in ("environ", "maps", "mem"):
        try:
            os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
            seen.append(name)
        except PermissionError:
            pass
    if libc.ptrace(0x4206, pid, None, None) == 0:  # SEIZE
        seen.append("ptrace")
    print(pid, *seen)
"""
ALL = ["environ", "maps", "mem", "ptrace"]


def look(uid, pids):
    """The accesses that a process of @uid, without capabilities, has to each of @pids: {pid: words}."""
    r = subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all",
                        "--bounding-set=-all", PYTHON, "-c", LOOK, *map(str, pids)],
                       capture_output=True, text=True, timeout=30)
    assert r.returncode == 0, r
    return {int(line.split()[0]): line.split()[1:] for line in r.stdout.splitlines()}


def test_nobody_of_ours_is_dumpable(sbx, world, sandbox):
    """A process of the same uid, outside: it has the command, which is the twin, and none of what is around it. (bwrap
    and pid 1 inside run in user namespaces, whose owner has every capability there: from inside they are closed,
    test_kernel_probes.py.)"""
    p = sbx.popen(["--allow", "allowed.test"], ["sh", "-c", "echo up; exec sleep 30"], root=sandbox)
    try:
        assert p.stdout.readline() == "up\n"
        wait_for(lambda: named(p.pid, "sleep"))
        found = {p.pid: status(p.pid), **statuses(p.pid)}
        pids = list(found)
        names = {pid: s["Name"] for pid, s in found.items()}
        ours = [pid for pid in pids if names[pid] in ("sbx-run", "sbx-broker")]
        seen = [names[pid] for pid in ours]
        assert seen.count("sbx-broker") == 1 and seen.count("sbx-run") >= 3, names  # and cleanup process and stage
        (command,) = [pid for pid in pids if names[pid] == "sleep"]
        uid = {pid: int(s["Uid"].split()[0]) for pid, s in found.items()}
        if not sandbox:
            assert set(uid.values()) == {world.user.pw_uid}
        for of in set(uid.values()):
            mine = [pid for pid in ours if uid[pid] == of]
            assert look(of, mine) == {pid: [] for pid in mine}, names
        assert look(uid[command], [command]) == {command: ALL}
        # root's twin, which has as few capabilities as the cleanup process
        other = subprocess.Popen(["setpriv", "--inh-caps=-all", "--bounding-set=-all", "sleep", "30"])
        try:
            wait_for(lambda: status(other.pid)["Name"] == "sleep")
            assert look(0, [other.pid]) == {other.pid: ALL}
        finally:
            other.kill()
            other.wait()
    finally:
        p.terminate()
        p.communicate(timeout=20)


@pytest.mark.parametrize("allowed", ["all", "one"])
def test_processors(sbx, sandbox, allowed):
    """The stage starts on another processor than the launcher's (clone_apart() in stage.c). Afterwards every process has
    the affinity that sbx-run was given, the command above all."""
    had = os.sched_getaffinity(0)
    given = had if allowed == "all" else {max(had)}
    os.sched_setaffinity(0, given)
    try:
        p = sbx.popen(["--allow", "allowed.test"], ["sh", "-c", "nproc; exec sleep 30"], root=sandbox)
    finally:
        os.sched_setaffinity(0, had)
    try:
        assert p.stdout.readline() == f"{len(given)}\n"
        seen = {}

        def settled():
            """Those that only help are gone, which may happen while one looks."""
            try:
                seen.clear()
                seen.update((pid, (status(pid)["Name"], os.sched_getaffinity(pid)))
                            for pid in [p.pid, *descendants(p.pid)])
            except (FileNotFoundError, ProcessLookupError):
                return False
            return "sleep" in [name for name, _ in seen.values()]

        wait_for(settled)
        assert {"sbx-run", "sbx-broker", "bwrap", "sbx-init"} <= {name for name, _ in seen.values()}
        assert all(has == given for _, has in seen.values()), seen
    finally:
        p.terminate()
        p.communicate(timeout=20)


@pytest.mark.parametrize("mask", [0o002, 0o027, 0o077])
def test_umask(sbx, sandbox, mask):
    """The command has its caller's umask, so that no other user may read or write its files in a workspace. Files that
    sbx makes have modes of their own."""
    had = os.umask(mask)
    try:
        p = sbx.popen([], ["sh", "-c", "umask; touch made; mkdir below; stat -c %a made below"], root=sandbox)
    finally:
        os.umask(had)
    out, err = p.communicate(timeout=20)
    assert p.returncode == 0, err
    assert [int(line, 8) for line in out.split()] == [mask, 0o666 & ~mask, 0o777 & ~mask]


NET_BIND_SERVICE, NET_ADMIN, NET_RAW = 1 << 10, 1 << 12, 1 << 13


@pytest.mark.parametrize("options, caps", [
    (["--allow", "allowed.test"], NET_BIND_SERVICE | NET_ADMIN | NET_RAW),
    (["--profile", "none"], NET_BIND_SERVICE | NET_RAW)], ids=["fetch", "offline"])
def test_helpers_are_confined(sbx, sandbox, options, caps):
    """The stage installs its filter when its work is done, which may be just after the release. It keeps the right to
    change its namespace's ruleset only where the ruleset may change."""
    p = sbx.popen(options, ["sh", "-c", "echo up; exec sleep 30"], root=sandbox)
    try:
        assert p.stdout.readline() == "up\n"
        bwrap = min(named(p.pid, "bwrap"))
        (stage,) = [pid for pid in children(p.pid) if bwrap in children(pid)]
        (broker,) = named(p.pid, "sbx-broker")
        wait_for(lambda: status(stage)["Seccomp"] == "2")
        assert status(broker)["Seccomp"] == "2"
        assert (int(status(stage)["CapEff"], 16), int(status(broker)["CapEff"], 16)) == (caps, 0)
        assert {status(pid)["NoNewPrivs"] for pid in (stage, broker)} == {"1"}
    finally:
        p.terminate()
        p.communicate(timeout=20)


def ran_ns(pid):
    """The processor time of a process (schedstat: Documentation/scheduler/sched-stats.rst)."""
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0])


def test_waiting_takes_no_processor(sbx, sandbox):
    """While the command runs, every process of sbx sleeps until something happens."""
    p = sbx.popen(["--allow", "allowed.test"], ["sh", "-c", "echo up; exec sleep 30"], root=sandbox)
    try:
        assert p.stdout.readline() == "up\n"
        wait_for(lambda: named(p.pid, "sleep"))
        time.sleep(0.3)
        pids = [p.pid, *descendants(p.pid)]
        before = {pid: ran_ns(pid) for pid in pids}
        time.sleep(1)
        assert {pid: (ran_ns(pid) - before[pid]) // 50_000_000 for pid in pids} == {pid: 0 for pid in pids}
    finally:
        p.terminate()
        p.communicate(timeout=20)
