# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-run --gc removes everything that dead launchers left, and nothing of live sandboxes."""
import contextlib
import os
import shutil
import signal
import threading

import pytest

from conftest import children
from test_lifecycle import clean, cleanup_process_of, launcher_pid, processes, running, sandboxes, wait_until  # noqa: F401

DEAD, LIVE = "dddddddddddd", "aaaaaaaaaaaa"


def gc(sbx, *args, **kw):
    return sbx.run(["--gc", *args], [], **kw)


def kill_with_cleanup_process(sbx, p):
    """Nobody is left who could undo anything. The cleanup process first, stopped: it must not act."""
    pids = [cleanup_process_of(launcher_pid(p)), launcher_pid(p)]
    os.kill(pids[0], signal.SIGSTOP)
    os.kill(pids[1], signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    p.communicate(timeout=10)
    assert wait_until(lambda: not set(pids) & set(processes(sbx.tmp)))


def state_of(sbx, sandbox_id):
    return {s["id"]: s["state"] for s in sandboxes(sbx)}[sandbox_id]


@pytest.mark.parametrize("root", [False, True])
def test_the_dead_go_and_the_living_stay(sbx, clean, root):
    if root:
        sbx.own(0)
    dead, live = running(sbx, ["--id", DEAD], root=root), running(sbx, ["--id", LIVE], root=root)
    assert gc(sbx, "-v", root=root).err == "sbx-run: gc: 0 removed\n"
    kill_with_cleanup_process(sbx, dead)
    assert sorted(sbx.leftovers()) == [LIVE, DEAD]
    r = gc(sbx, "-v", root=root)
    assert (r.rc, r.out) == (0, "")
    assert r.err == f"sbx-run: gc: {sbx.runtime}/{DEAD}: its launcher is dead\nsbx-run: gc: 1 removed\n"
    assert sbx.leftovers() == [LIVE]
    assert (state_of(sbx, DEAD), state_of(sbx, LIVE)) == ("lost", "running")
    r = gc(sbx, root=root)
    assert (r.rc, r.out, r.err) == (0, "", "")
    os.kill(live.pid, signal.SIGTERM)
    live.communicate(timeout=10)
    assert live.returncode == 143 and state_of(sbx, LIVE) == "done"


def test_rows_without_a_directory(sbx, clean):
    """As after a reboot, which empties the runtime directory and takes the launchers."""
    dead, live = running(sbx, ["--id", DEAD]), running(sbx, ["--id", LIVE])
    kill_with_cleanup_process(sbx, dead)
    shutil.rmtree(os.path.join(sbx.runtime, DEAD))
    r = gc(sbx, "-v")
    assert r.err == f"sbx-run: gc: sandbox {DEAD} is recorded as lost\nsbx-run: gc: 1 removed\n"
    assert (state_of(sbx, DEAD), state_of(sbx, LIVE)) == ("lost", "running")
    # a launcher that lives has its directory elsewhere
    elsewhere = os.path.join(sbx.tmp, "elsewhere")
    os.mkdir(elsewhere, 0o711)
    os.chown(elsewhere, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    r = gc(sbx, "-v", env={"SBX_RUNTIME_DIR": elsewhere})
    assert r.err == "sbx-run: gc: 0 removed\n" and state_of(sbx, LIVE) == "running"
    os.kill(live.pid, signal.SIGTERM)
    live.communicate(timeout=10)
    assert state_of(sbx, LIVE) == "done"


def test_only_what_a_sandbox_made(sbx):
    names = ["etc", "notes", "ABCDEFABCDEF", "0123456789ab.bak", ".new-0123456789ab", "x" * 12]
    for name in names + ["0123456789ab"]:
        os.mkdir(os.path.join(sbx.runtime, name))
    outside = os.path.join(sbx.tmp, "outside")
    os.mkdir(outside)
    os.symlink(outside, os.path.join(sbx.runtime, "0123456789ac"))
    sbx.own(sbx.world.user.pw_uid)
    assert gc(sbx).rc == 0
    assert sorted(os.listdir(sbx.runtime)) == sorted([*names, "0123456789ac"])
    assert os.path.isdir(outside)


def test_more_than_a_start_would_look_at(sbx):
    for i in range(1100):
        os.mkdir(os.path.join(sbx.runtime, f"{i:012x}"))
    sbx.own(sbx.world.user.pw_uid)
    assert gc(sbx).rc == 0
    assert os.listdir(sbx.runtime) == []


def test_nothing_is_made_where_nothing_is(sbx):
    for directory in (sbx.runtime, sbx.state):
        os.rmdir(directory)
    r = gc(sbx)
    assert (r.rc, r.out, r.err) == (0, "", "")
    assert not os.path.exists(sbx.runtime) and not os.path.exists(sbx.state)


def test_a_directory_of_somebody_elses(sbx):
    victim = os.path.join(sbx.runtime, "0123456789ab")
    os.mkdir(victim)
    sbx.own(sbx.world.user.pw_uid)
    os.chmod(sbx.runtime, 0o777)
    r = gc(sbx)
    assert r.rc == 125 and "runtime" in r.err and r.err.count("\n") == 1 and os.path.isdir(victim)
    os.chmod(sbx.runtime, 0o711)
    assert gc(sbx).rc == 0 and not os.path.exists(victim)


@pytest.mark.parametrize("args, cmd", [([], ["true"]), (["--profile", "none"], []), (["--job", "x"], []),
                                       (["--dry-run"], []), (["--gc"], [])])
def test_it_stands_alone(sbx, args, cmd):
    r = sbx.run(["--gc", *args], cmd)
    assert r.rc == 125 and "--gc stands alone" in r.err


def test_beside_starts_and_ends(sbx, clean):
    """Sandboxes come and go under it: none is lost, none fails."""
    done = threading.Event()
    said = []

    def sweep():
        while not done.is_set():
            r = gc(sbx, "-v")
            said.append((r.rc, r.err))

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        results = [sbx.run(["--profile", "none"], ["true"]) for _ in range(60)]
    finally:
        done.set()
        thread.join()
    assert {(r.rc, r.err) for r in results} == {(0, "")}
    assert set(said) == {(0, "sbx-run: gc: 0 removed\n")} and len(said) > 5
    assert {s["state"] for s in sandboxes(sbx)} == {"done"}


@pytest.mark.parametrize("next_one", [False, True])
def test_it_ends_between_the_look_and_the_lock(sbx, clean, next_one):
    """A sandbox ends after --gc opened its directory and before --gc has its lock. --gc removes nothing, also not a new
    directory of the same name."""
    first = running(sbx, ["--id", LIVE])
    directory = os.path.join(sbx.runtime, LIVE)
    was = os.stat(directory)
    sbx.wrapper = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=3s"]
    sweep = sbx.popen(["--gc", "-v"], [])
    sbx.wrapper = []

    def has_it_open():
        for pid in children(sweep.pid):
            with contextlib.suppress(FileNotFoundError):
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    st = os.stat(f"/proc/{pid}/fd/{fd}")
                    if (st.st_dev, st.st_ino) == (was.st_dev, was.st_ino):
                        return True
        return False

    try:
        assert wait_until(has_it_open)
        os.kill(first.pid, signal.SIGTERM)
        first.communicate(timeout=10)
        assert first.returncode == 143 and not os.path.exists(directory)
        if next_one:
            os.mkdir(directory)
            os.chown(directory, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
        assert sweep.communicate(timeout=60)[1] == "sbx-run: gc: 0 removed\n" and sweep.returncode == 0
    finally:
        sweep.kill()
        sweep.wait()
    assert state_of(sbx, LIVE) == "done" and sbx.leftovers() == [LIVE] * next_one
    assert gc(sbx).rc == 0 and sbx.leftovers() == []
