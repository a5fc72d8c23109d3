# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each of root's sandboxes has a uid that nobody else gets as long as one of the sandbox's processes exists."""
import ctypes
import os
import shutil
import signal
import subprocess
import time

import pytest

from conftest import named, status, statuses

LIBC = ctypes.CDLL(None, use_errno=True)
# The kernel counts the processes of a uid, which tells whether it is in use; there is one count for the whole machine.
pytestmark = pytest.mark.xdist_group("uids")
PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT, PR_SET_CHILD_SUBREAPER, WALL = 7, 0x4206, 0x40, 36, 0x40000000


def reap(world):
    """Reap the processes of killed launchers that this process has to wait for. A zombie counts as a process."""
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        for pid in map(int, f.read().split()):
            if pid != world.proc.pid:
                os.waitpid(pid, os.WNOHANG)


def run_until_free(sbx, seconds=10):
    """Run `true` until there are uids for it."""
    end_by = time.monotonic() + seconds
    while True:
        reap(sbx.world)
        r = sbx.run([], ["true"], root=True)
        if r.rc == 0 or time.monotonic() > end_by:
            return r
        assert r.rc == 125 and "is free" in r.err, r
        time.sleep(0.02)


@pytest.fixture
def pool(sbx):
    """pool("A-B") sets the range; root's directories."""
    sbx.own(0)
    assert LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1) == 0

    def set_range(text):
        with open(sbx.config + "/system.yaml", "w") as f:
            f.write(f"uid_pool: {text}\n")
    yield set_range
    assert LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0) == 0


def start(sbx, args=(), script="echo up; sleep 60", **kw):
    p = sbx.popen(list(args), ["sh", "-c", script], root=True, **kw)
    assert p.stdout.readline() == "up\n", p.stderr.read()
    return p


def command_of(p):
    """The sandbox's first process that is the command and not one of ours."""
    found = named(p.pid, "sh", "sleep")
    assert found, "no command"
    return found[0]


def uid_of(pid):
    return int(status(pid)["Uid"].split()[0])


def end(*procs):
    for p in procs:
        p.terminate()
    for p in procs:
        p.communicate(timeout=30)


def process_with(uid):
    p = subprocess.Popen(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "sh", "-c",
                          "echo up; exec sleep 60"], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    return p


def users(sbx):
    return [row["uid"] for row in sbx.sandboxes()]


def as_uid(uid, code):
    """Run Python as @uid outside; its output."""
    return subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--inh-caps=-all",
                           "/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=20).stdout


TOUCH = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, f):
    try:
        f()
        print(name, "done")
    except OSError as e:
        print(name, "refused")
def trace():
    if libc.ptrace(0x4206, {pid}, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")
attempt("signal", lambda: os.kill({pid}, 0))
attempt("trace", trace)
attempt("memory", lambda: open("/proc/{pid}/mem", "rb").close())
attempt("files", lambda: os.listdir("/proc/{pid}/root"))
"""


def test_two_sandboxes_two_users(sbx, pool):
    """A process with one sandbox's uid cannot signal, trace or read processes of another sandbox. A process with the
    other's uid can signal them."""
    pool("20001-20100")
    a, b = start(sbx), start(sbx)
    try:
        pids = command_of(a), command_of(b)
        uids = [uid_of(pid) for pid in pids]
        assert len(set(uids)) == 2 and all(20001 <= u <= 20100 for u in uids), uids
        assert [int(status(pid)["Gid"].split()[0]) for pid in pids] == uids
        assert as_uid(uids[0], TOUCH.format(pid=pids[1])).split("\n")[:4] == \
            ["signal refused", "trace refused", "memory refused", "files refused"]
        assert as_uid(uids[1], TOUCH.format(pid=pids[1])).split("\n")[0] == "signal done"
        inside = sbx.run([], ["sh", "-c", f"kill -0 {pids[1]} || echo nobody; ls /proc | grep -c '^[0-9]'"], root=True)
        assert inside.out.split()[0] == "nobody" and int(inside.out.split()[1]) < 8, inside
    finally:
        end(a, b)


def test_the_broker_has_one_too(sbx, pool):
    pool("20001-20002")
    p = start(sbx)
    try:
        uids = {int(s["Uid"].split()[0]) for s in statuses(p.pid).values()} - {0}
        assert uids == {20001, 20002}
        r = sbx.run([], ["true"], root=True)
        assert r.rc == 125 and r.err.count("\n") == 1 and "no uid of uid_pool 20001-20002 is free" in r.err, r
    finally:
        end(p)
    assert sbx.run([], ["true"], root=True).rc == 0


def test_a_number_that_root_names(sbx, pool):
    """It may be shared with who names it too, not with a lease, whoever comes first."""
    pool("20001-20003")
    p = start(sbx)
    uid = uid_of(command_of(p))
    r = sbx.run(["--user", str(uid)], ["true"], root=True)
    end(p)
    assert r.rc == 125 and f"uid {uid} is another sandbox's" in r.err, r
    pool("20001-20002")
    named = start(sbx, ["--user", "20001"])
    try:
        r = sbx.run([], ["true"], root=True)
        assert r.rc == 125 and "is free" in r.err, r
        pool("20001-20004")
        assert sbx.run(["--user", "20001"], ["id", "-u"], root=True).out == "20001\n"
        assert sbx.run([], ["true"], root=True).rc == 0
    finally:
        end(named)


def test_fifty_at_once(sbx, pool):
    """100 uids for 50 sandboxes and 50 brokers: each must find the last free ones."""
    pool("20001-20100")
    procs = [sbx.popen([], ["sh", "-c", "id -u; id -g; read x"], root=True, stdin=subprocess.PIPE) for _ in range(50)]
    try:
        lines = [(p.stdout.readline(), p.stdout.readline()) for p in procs]
    finally:
        results = [p.communicate("\n", timeout=60) for p in procs]
    assert all(uid and uid == gid for uid, gid in lines), results
    assert len({uid for uid, _ in lines}) == 50
    assert sbx.run([], ["true"], root=True).rc == 0


@pytest.mark.parametrize("field", ["passwd", "group", "process", "none"])
def test_what_belongs_to_somebody_is_passed_over(sbx, pool, world, field):
    pool("20001-20003")
    line = {"passwd": "someone:x:20002:100::/:/bin/sh\n", "group": "somegroup:x:20002:\n"}.get(field)
    other = None
    if line:
        copy = os.path.join(sbx.tmp, field)
        shutil.copy("/etc/" + field, copy)
        with open(copy, "a") as f:
            f.write(line)
        subprocess.run(world.ns() + ["mount", "--bind", copy, "/etc/" + field], check=True)
    elif field == "process":
        other = process_with(20002)
    try:
        for _ in range(4):
            assert sbx.run([], ["true"], root=True).rc == 0
        p = start(sbx)
        r = sbx.run([], ["true"], root=True)
        end(p)
    finally:
        if line:
            subprocess.run(world.ns() + ["umount", "/etc/" + field], check=True)
        if other:
            other.kill()
            other.communicate()
    assert (20002 in users(sbx)) is (field == "none") or field == "none", users(sbx)
    assert r.rc == 125 and "is free" in r.err, r  # one is not enough for two


def test_subordinate_ids_are_refused(sbx, pool, world):
    copy = os.path.join(sbx.tmp, "subuid")
    pool("20001-20003")
    for text, rc in (("kim:20003:1\n", 125), ("kim:20004:1\n", 0)):
        with open(copy, "w") as f:
            f.write(text)
        subprocess.run(world.ns() + ["mount", "--bind", copy, "/etc/subuid"], check=True)
        try:
            r = sbx.run([], ["true"], root=True)
        finally:
            subprocess.run(world.ns() + ["umount", "/etc/subuid"], check=True)
        assert r.rc == rc and (rc == 0 or ("subuid" in r.err and r.err.count("\n") == 1)), r


@pytest.mark.parametrize("text,rc", [("500-1500", 125), ("20001", 125), ("60000-70000", 125), ("20001-20002", 0)])
def test_ranges(sbx, pool, text, rc):
    pool(text)
    r = sbx.run([], ["true"], root=True)
    assert r.rc == rc and (rc == 0 or "uid_pool" in r.err), r


def test_nothing_is_made_by_a_dry_run(sbx, pool):
    pool("20001-20002")
    shutil.rmtree(sbx.runtime)
    assert sbx.run(["--dry-run"], ["true"], root=True).rc == 0
    assert not os.path.exists(sbx.runtime)
    assert sbx.run([], ["true"], root=True).rc == 0
    assert os.stat(sbx.runtime + "/uids").st_mode & 0o7777 == 0o600


def test_ordinary_users_have_no_lease(sbx):
    assert sbx.run([], ["true"]).rc == 0
    assert not os.path.exists(sbx.runtime + "/uids")


def test_a_removed_runtime_directory_frees_nothing(sbx, pool):
    pool("20001-20004")
    p = start(sbx)
    try:
        mine = uid_of(command_of(p))
        os.unlink(sbx.runtime + "/uids")
        for _ in range(6):
            assert sbx.run([], ["true"], root=True).rc == 0
        assert mine not in users(sbx)[1:]
    finally:
        end(p)


def test_a_killed_launchers_uid_is_kept_for_those_who_still_die(sbx, pool):
    """A tracer keeps one process of a killed sandbox from being gone (ptrace(2): PTRACE_EVENT_EXIT)."""
    pool("20001-20002")
    p = start(sbx)
    victim = command_of(p)
    assert LIBC.ptrace(PTRACE_SEIZE, victim, 0, PTRACE_O_TRACEEXIT) == 0, ctypes.get_errno()
    held = True
    try:
        os.kill(p.pid, signal.SIGKILL)
        assert p.wait(20) == -signal.SIGKILL
        for _ in range(3):  # the broker's uid alone is free
            reap(sbx.world)
            r = sbx.run([], ["true"], root=True)
            assert r.rc == 125 and "is free" in r.err, r
            time.sleep(0.1)
        assert status(victim)["State"].startswith("t")
        os.waitpid(victim, WALL)
        LIBC.ptrace(PTRACE_CONT, victim, 0, 0)
        os.waitpid(victim, WALL)
        held = False
        assert run_until_free(sbx).rc == 0
    finally:
        if held:
            LIBC.ptrace(PTRACE_CONT, victim, 0, 0)


@pytest.mark.parametrize("step", ["begin", "stage", "broker", "runtime", "release"])
def test_a_killed_launcher_frees_its_uids(sbx, pool, step):
    pool("20001-20002")
    r = sbx.run([], ["sleep", "20"], root=True, env={"SBX_FAULT": "kill:" + step}, program="bin/sbx-run-faults")
    assert r.rc == -signal.SIGKILL, r
    assert run_until_free(sbx).rc == 0
