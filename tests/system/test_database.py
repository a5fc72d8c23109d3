# SPDX-License-Identifier: LGPL-2.1-or-later
"""The database is locked, disks are full, calls fail: signals and clocks do not wait, and no event is lost."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import USER, status
from workspaces import space  # noqa: F401
from test_lifecycle import clean, cleanup_process_of, processes, running, wait_until  # noqa: F401

ID = "dadadadadada"
NOISY = "(n=0; while :; do n=$((n + 1)); getent hosts $n.nope.test; sleep 0.1; done) & echo up; "


@contextlib.contextmanager
def held(sbx):
    """Another process that holds the database for a while (as root: the lock is on the file)."""
    db = sqlite3.connect(sbx.state + "/sbx.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")
        db.close()


def refusals(sbx):
    return sum(e["raw_pkts"] for e in sbx.events(action="deny") if e["fqdn_pinned"].endswith(".nope.test"))


def row(sbx):
    (found,) = [s for s in sbx.sandboxes() if s["id"] == ID]
    return found


@pytest.mark.parametrize("way", ["signal", "wall time"])
def test_held_while_it_runs(sbx, clean, way):
    """Signals and clocks do not wait for a locked database. Refusals are written when the lock is free."""
    args = ["--id", ID] + (["--limit", "wall_time=2s"] if way == "wall time" else [])
    p = running(sbx, args, ("sh", "-c", "trap '' TERM; trap 'kill %1; exit 3' INT; " + NOISY + "while :; do sleep 0.1; done"))
    start = time.monotonic()
    with held(sbx):
        time.sleep(1.5)
        if way == "signal":
            start = time.monotonic()
            os.kill(p.pid, signal.SIGINT)
        assert wait_until(lambda: not [n for n in processes(sbx.tmp).values() if n == "sh"], 6)
        took = time.monotonic() - start
    _out, err = p.communicate(timeout=20)
    assert p.returncode == (3 if way == "signal" else 124) and took < (2 if way == "signal" else 5.5), (took, err)
    assert row(sbx)["state"] == ("done" if way == "signal" else "timed_out")
    assert refusals(sbx) > 3 and "not in the database" not in err and "locked" not in err, err


def test_held_at_the_release(sbx, clean):
    """The row says `running` as soon as the lock is free, though nothing else is to be written."""
    p = sbx.popen(["--id", ID], ["sh", "-c", "echo up; exec sleep 20"], program="bin/sbx-run-faults",
                  env={"SBX_FAULT": "stop:selftest"})
    assert wait_until(lambda: status(p.pid)["State"].startswith("T"))
    with held(sbx):
        os.kill(p.pid, signal.SIGCONT)
        assert p.stdout.readline() == "up\n"
        time.sleep(0.5)
        assert row(sbx)["state"] == "preparing"
    assert wait_until(lambda: row(sbx)["state"] == "running", 2)
    os.kill(p.pid, signal.SIGTERM)
    assert p.communicate(timeout=10)[1] == "" and p.returncode == 143


def test_held_over_the_end(sbx, clean):
    """At its end sbx-run waits for the lock for a while, and then reports the events it could not write. The next start
    ends the row."""
    p = running(sbx, ["--id", ID], ("sh", "-c", "sleep 60 & echo up; sleep 0.3; exit 7"))
    with held(sbx):
        assert wait_until(lambda: not {"sh", "sleep", "sbx-init"} & set(processes(sbx.tmp).values()), 2)
        assert p.poll() is None
        _out, err = p.communicate(timeout=30)
        assert p.returncode == 7 and "is not in the database" in err and err.count("\n") == 2, err
    assert row(sbx)["state"] == "running" and sbx.leftovers() == [ID]
    assert sbx.run([], ["true"]).rc == 0
    assert row(sbx)["state"] == "lost" and sbx.leftovers() == []


def test_held_for_a_moment_at_the_end(sbx, clean):
    p = running(sbx, ["--id", ID], ("sh", "-c", "echo up; sleep 0.3; exit 7"))
    with held(sbx):
        time.sleep(1.5)
    _out, err = p.communicate(timeout=30)
    assert (p.returncode, err) == (7, "") and (row(sbx)["state"], row(sbx)["exit_status"]) == ("done", 7)


def test_held_when_the_launcher_is_killed(sbx, clean):
    """The cleanup process cannot write to a locked database either. It leaves the runtime directory for the next
    --gc."""
    p = running(sbx, ["--id", ID])
    cleanup = cleanup_process_of(p.pid)
    with held(sbx):
        os.kill(p.pid, signal.SIGKILL)
        p.communicate(timeout=10)
        assert wait_until(lambda: cleanup not in processes(sbx.tmp), 15)
        r = sbx.run(["--gc", "-v"], [])
        assert r.rc == 125 and "gc: runtime:" in r.err and "locked" in r.err, r
    assert row(sbx)["state"] == "running" and sbx.leftovers() == [ID]
    r = sbx.run(["--gc", "-v"], [])
    assert r.rc == 0 and r.err.endswith("gc: 1 removed\n") and row(sbx)["state"] == "lost"


def limited(space, n_bytes, sandbox_id, script):
    """`ulimit -f` of whoever starts sbx-run: no file of that user grows past it."""
    # No terminated host: its certificates are files in memory that may not grow either. The policy is one of 4 KiB.
    allow = ", ".join(f"a-long-name-{i}.example.org" for i in range(60))
    space.sbx.profile("plain", f"name: plain\nextends: none\nnetwork: {{mode: fetch, allow: [{allow}]}}\n")
    argv = space.sbx.argv(space.args(["-q", "--profile", "plain", "--id", sandbox_id]), ["sh", "-c", script], root=space.root)
    return subprocess.run(["prlimit", f"--fsize={n_bytes}", "--", *argv], env=space.sbx.env(None, not space.root),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("n_bytes,status,said", [
    (4096, 125, "the rules of sandboxes cannot be read"), (110000, 7, "refusals and 0 others are not in the database"), (300000, 7, None)])
def test_files_that_may_not_grow(space, clean, n_bytes, status, said):
    """A database that may not grow is an error that is said, and no signal that ends the launcher."""
    names = "for n in $(seq 150); do getent hosts $n.$n.a-long-name-that-is-not-allowed.nope.test; done; sleep 1.2; "
    r = limited(space, 4096, ID, "exit 7")
    assert r.returncode == 125 and "File too large" in r.stderr and r.stderr.count("\n") == 1, r
    assert limited(space, 1 << 30, "dadadadadadb", "exit 7").returncode == 7  # it makes what all sandboxes share
    r = limited(space, n_bytes, "dadadadadadc", names * 2 + "exit 7")
    assert r.returncode == status and (said in r.stderr if said else r.stderr == ""), r
    r = limited(space, 1 << 30, "dadadadadadd", "exit 7")
    assert (r.returncode, r.stderr) == (7, ""), r
    assert space.sbx.leftovers() == []


@pytest.mark.parametrize("ignored", [False, True])
def test_the_signal_is_the_commands(sbx, ignored):
    """SIGXFSZ (25), which the launcher ignores, ends a command, as every signal but nohup's."""
    script = "grep SigIgn: /proc/self/status; dd if=/dev/zero of=$HOME/f bs=9000 count=1 2>/dev/null; echo $?"
    argv = ["sh", "-c", ("trap '' XFSZ; " if ignored else "") + 'exec "$@"', "sh"] + sbx.argv([], ["sh", "-c", script])
    r = subprocess.run(["prlimit", "--fsize=2000000", "--", *argv], env=sbx.env(), capture_output=True, text=True, timeout=60,
                       check=False)
    assert r.stdout == "SigIgn:\t0000000000000000\n0\n", r
    r = sbx.run([], ["prlimit", "--fsize=4096", "--", "sh", "-c", script])
    assert r.rc == 0 and r.out == "SigIgn:\t0000000000000000\n153\n", r


def test_rows_that_cannot_be_ended(sbx, clean):
    """Rows of dead sandboxes without directories, and a locked database: --gc says once that it cannot end them."""
    assert sbx.run([], ["true"]).rc == 0
    with sqlite3.connect(sbx.state + "/sbx.db") as db:
        for i in range(3):
            db.execute("INSERT INTO sandbox (id, profile, state, pid, pid_start, uid, command, created_ms) "
                       "VALUES (?, 'none', 'running', 4000000, 0, 0, '[]', 1)", (f"dead{i:08d}",))
    with held(sbx):
        r = sbx.run(["--gc", "-v"], [])
    assert r.rc == 125 and "gc: rows:" in r.err and "locked" in r.err and r.seconds < 9, r
    r = sbx.run(["--gc", "-v"], [])
    assert r.rc == 0 and r.err.endswith("gc: 3 removed\n"), r


# --- a full disk ---

@pytest.fixture
def small(sbx):
    """1 MiB below the directory that is granted, or that has the database."""
    def mount(path):
        user = sbx.world.user
        options = f"size=1M,mode=0700,uid={user.pw_uid},gid={user.pw_gid}"
        subprocess.run([*sbx.world.ns(), "mount", "-t", "tmpfs", "-o", options, "small", path], check=True)
        mounted.append(path)

    mounted = []
    yield mount
    for path in mounted:
        subprocess.run([*sbx.world.ns(), "umount", "-l", path], check=True)


def shell(sbx, script, directory):
    """On the host, as the user; what is mounted there is seen."""
    r = subprocess.run([*sbx.world.ns(USER), "env", "-C", directory, "HOME=/nonexistent", "sh", "-c", script],
                       capture_output=True, text=True, timeout=30, check=False)
    return r.returncode, r.stdout + r.stderr


FILL = "dd if=/dev/zero of=fill bs=4k 2>/dev/null; rm -f x; ! echo full 2>/dev/null >x; rm -f x"


def test_a_full_workspace(sbx, clean, small):
    """Placeholders cannot be made on a full file system: the run is refused with the reason, and git finds everything
    unchanged."""
    small(sbx.work)
    made = shell(sbx, "git init -q . && git -c user.name=x -c user.email=x commit -q --allow-empty -m x; " + FILL, sbx.work)
    assert made == (0, "")
    before = shell(sbx, "find . | sort; git log --oneline", sbx.work)
    r = sbx.run([], ["true"])
    assert r.rc == 125 and ".git/commondir" in r.err and "No space left on device" in r.err, r
    assert shell(sbx, "find . | sort; git log --oneline", sbx.work) == before and before[0] == 0
    assert shell(sbx, "rm fill", sbx.work) == (0, "")
    r = sbx.run([], ["git", "log", "--oneline"])
    assert r.rc == 0 and r.out in before[1], r


def test_a_placeholder_that_was_left_empty(sbx, clean):
    """As by a power cut before its text was there; what only looks like it stays."""
    assert shell(sbx, "git init -q .; : >.git/commondir; chmod 1444 .git/commondir", sbx.work)[0] == 0
    r = sbx.run([], ["git", "status", "--porcelain"])
    assert r.rc == 0 and not os.path.exists(sbx.work + "/.git/commondir"), r
    assert shell(sbx, ": >.git/commondir; chmod 444 .git/commondir", sbx.work)[0] == 0
    assert sbx.run([], ["true"]).rc == 0
    assert os.path.exists(sbx.work + "/.git/commondir")


def test_a_full_state_directory(sbx, clean, small):
    """A run that was recorded at its start and cannot be at its end."""
    small(sbx.state)
    assert sbx.run([], ["true"]).rc == 0
    p = running(sbx, ["--id", ID], ("sh", "-c", "echo up; read x; exit 7"), stdin=subprocess.PIPE)
    assert shell(sbx, FILL, sbx.state) == (0, "")
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 7 and "is not in the database" in err, err
    assert sbx.leftovers() == [ID]
    assert shell(sbx, "rm fill", sbx.state) == (0, "")
    assert sbx.run([], ["true"]).rc == 0 and sbx.leftovers() == []
    code = f"import sqlite3; print(sqlite3.connect('sbx.db').execute(\"SELECT state FROM sandbox WHERE id = '{ID}'\").fetchall())"
    r = subprocess.run([*sbx.world.ns(USER), "env", "-C", sbx.state, "/usr/bin/python3", "-c", code], capture_output=True,
                       text=True, check=True, timeout=30)
    assert r.stdout == "[('lost',)]\n", r


# --- calls that fail ---

@pytest.mark.parametrize("n, why", [(1, "which process is the sandbox's init"), (2, "cannot watch the command"), (3, None)])
def test_nobody_runs_unwatched(sbx, n, why):
    """A run that gets no pidfd of init or of the command does not start. There is no third pidfd_open() that could
    fail."""
    assert shell(sbx, "git init -q .", sbx.work)[0] == 0
    sbx.wrapper = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e",
                   f"inject=pidfd_open:error=EMFILE:when={n}"]
    r = sbx.run([], ["echo", "ran"])
    assert (r.rc, r.out) == ((125, "") if why else (0, "ran\n")) and (why or "") in r.err, r
    assert sbx.leftovers() == []


@pytest.mark.parametrize("call, error", [("openat", "EMFILE"), ("mknodat", "ENOSPC"), ("linkat", "EMLINK"), ("write", "ENOSPC")])
def test_each_call_fails_once(sbx, call, error):
    """Of the launcher's own, the first to the last: it starts or it does not, and nothing is left either way."""
    def leftovers():
        return sorted(os.path.join(at, n)[len(sbx.work):] for at, dirs, files in os.walk(sbx.work) for n in dirs + files)

    assert shell(sbx, "git init -q .", sbx.work)[0] == 0
    before, codes, args = leftovers(), set(), []
    if call in ("mknodat", "linkat"):  # placeholders
        args = ["--profile", sbx.profile("refusing", "extends: default\nfilesystem: {new_protected: refuse}\n")]
    for n in range(1, 400):
        log = os.path.join(sbx.tmp, "calls")
        sbx.wrapper = ["strace", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={n}"]
        if os.path.exists(log):
            os.unlink(log)
        r = sbx.run(args, ["true"])
        codes.add(r.rc)
        assert r.rc in (0, 125) and "ignal" not in r.err, (n, r)
        assert leftovers() == before and not sbx.leftovers(), (n, r)
        with open(log) as f:
            if "INJECTED" not in f.read():
                break
    else:
        pytest.fail("it never ended")
    assert n > 1 and 0 in codes, n
