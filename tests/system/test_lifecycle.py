# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every way out: exit statuses, signals, failed steps, SIGKILL at the worst moment; nothing is left."""
import json
import os
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import INST, children, descendants, named, status, step_names

STEPS = step_names()


def ours(pid, tmp):
    """Is it one of our programs, or does it run in a sandbox that has this test's directory mounted?"""
    if os.readlink(f"/proc/{pid}/exe").startswith(INST):
        return True
    with open(f"/proc/{pid}/mountinfo", errors="replace") as f:
        return f" {tmp}/work " in f.read()


def processes(tmp):
    """pid -> name of every process of this test's sandboxes, however it got where it is."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if ours(pid, tmp):
                with open(f"/proc/{pid}/comm") as f:
                    found[int(pid)] = f.read().strip()
        except OSError:
            continue
    return found


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@pytest.fixture
def clean(sbx):
    """Nothing is left afterwards: no process (and so no namespace: one lives as long as a process or
    an fd in it), no runtime file."""
    yield
    assert wait_until(lambda: processes(sbx.tmp) == {}), processes(sbx.tmp)
    assert sbx.leftovers() == []


def sandboxes(sbx):
    """Rows, when there is a database with tables already."""
    try:
        return sbx.sandboxes()
    except sqlite3.OperationalError:
        return []


def running(sbx, args=(), cmd=("sh", "-c", "echo up; sleep 60"), **kw):
    p = sbx.popen(list(args), list(cmd), **kw)
    assert p.stdout.readline() == "up\n", p.stderr.read()
    return p


def launcher_pid(p):
    """The sbx-run below nsenter/setpriv/env (which exec, so it is the same pid)."""
    return p.pid


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("root", [False, True])
def test_a_failed_step_undoes_everything(sbx, clean, step, root):
    if root:
        sbx.own(0)
    r = sbx.run([], ["sh", "-c", "echo ran; sleep 0.3"], env={"SBX_FAULT": "fail:" + step}, root=root,
                program="bin/sbx-run-faults")
    if step != "release":
        assert r.rc == 125 and r.out == "", (r.rc, r.out, r.err)
    assert f"step {step}" in r.err
    states = [s["state"] for s in sandboxes(sbx)]
    assert not set(states) & {"preparing", "running"}, states


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("fault,rc", [("kill:begin", -signal.SIGKILL), ("fail:begin", 125)])
def test_the_stage_ends_with_the_planning(sbx, clean, fault, rc, root):
    """The stage is started before there is a plan. It ends when planning fails or the launcher is killed."""
    if root:
        sbx.own(0)
    r = sbx.run([], ["echo", "ran"], env={"SBX_FAULT": fault}, root=root, program="bin/sbx-run-faults")
    assert (r.rc, r.out) == (rc, "")


@pytest.mark.parametrize("args,cmd,rc", [
    (["--profile", "nosuch"], ["true"], 125), (["--bind", "relative"], ["true"], 125),
    ([], ["no-such-command"], 127), ([], ["sudo"], 126), (["--dry-run"], ["true"], 0)])
def test_a_refused_plan_leaves_nothing(sbx, clean, args, cmd, rc):
    assert sbx.run(args, cmd).rc == rc


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("root", [False, True])
def test_sigkill_of_the_launcher_after_each_step(sbx, world, clean, step, root):
    if root:
        sbx.own(0)
    world.mark()
    r = sbx.run(["--allow", "allowed.test"], ["sh", "-c", "sleep 60"], root=root,
                env={"SBX_FAULT": "kill:" + step}, program="bin/sbx-run-faults")
    assert r.rc == -signal.SIGKILL
    assert wait_until(lambda: sbx.leftovers() == [])
    assert wait_until(lambda: not {s["state"] for s in sandboxes(sbx)} & {"preparing", "running"})


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("root", [False, True])
def test_sigkill_of_the_launcher_before_each_undo(sbx, clean, step, root):
    if root:
        sbx.own(0)
    r = sbx.run([], ["true"], root=root, env={"SBX_FAULT": "undo:" + step}, program="bin/sbx-run-faults")
    assert r.rc == -signal.SIGKILL
    assert wait_until(lambda: sbx.leftovers() == [])
    # Undos after `record` find the row in its final state.
    state = "done" if STEPS.index(step) < STEPS.index("record") else "lost"
    assert wait_until(lambda: [s["state"] for s in sandboxes(sbx)] == [state]), sandboxes(sbx)


def comm(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def settled_descendants(pid):
    """When the protect helper, which comes some time after the release, is among them."""
    seen, now = None, descendants(pid)
    while seen != now:
        time.sleep(0.2)
        seen, now = now, descendants(pid)
    return now


def test_sigkill_of_each_process(sbx, clean):
    """Whichever process dies, the sandbox ends and the other processes go. sbx-run reports it if it can."""
    killed = []
    while True:
        p = running(sbx, cmd=("sh", "-c", "echo up; exec sleep 60"))
        pids = [p.pid] + settled_descendants(p.pid)
        if len(killed) == len(pids):
            break
        killed.append(comm(pids[len(killed)]))
        os.kill(pids[len(killed) - 1], signal.SIGKILL)
        p.wait(10)
        p.communicate()
        assert p.returncode != 0, killed
        assert wait_until(lambda: processes(sbx.tmp) == {}), (killed, processes(sbx.tmp))
        assert sbx.leftovers() == [], killed
    os.kill(p.pid, signal.SIGTERM)
    p.communicate(timeout=10)
    # The launcher and its forks, bwrap, pid 1 inside, the command, the broker.
    assert len(killed) >= 7 and {"sbx-run", "sbx-broker", "bwrap", "sbx-init"} <= set(killed), killed


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("command,rc", [("exit 3", 3), ("kill -9 $$", 137)])
def test_caller_that_ignores_its_children(sbx, command, rc, root):
    """SIGCHLD ignored is inherited, and would take every child's status away."""
    if root:
        sbx.own(0)
    p = sbx.popen([], ["sh", "-c", command], root=root,
                  preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert p.wait(30) == rc, p.stderr.read()


@pytest.mark.parametrize("root", [False, True])
def test_pid_1_inside_keeps_its_own(sbx, clean, root):
    """It stays beside the command, of the same uid: nothing to take from it, and no way to end it. It has the channel for
    further commands, and what it waits with."""
    if root:
        sbx.own(0)
    script = "kill -KILL 1; kill -TERM 1; kill -STOP 1; cat /proc/1/environ /proc/1/mem && echo read; " \
        "ls /proc/1/fd/ && echo listed; readlink /proc/1/exe && echo linked; cat /proc/1/comm; echo up; sleep 60"
    p = sbx.popen([], ["sh", "-c", script], root=root)
    assert [p.stdout.readline(), p.stdout.readline()] == ["sbx-init\n", "up\n"], p.stderr.read()
    pids = named(p.pid, "sbx-init")
    assert len(pids) == 1
    init = pids[0]
    of_init = status(init)
    kept = sorted(os.readlink(f"/proc/{init}/fd/{n}").split("[")[0 if n == "5" else 1] for n in os.listdir(f"/proc/{init}/fd"))
    assert kept == ["eventpoll]", "signalfd]", "socket:"] and os.readlink(f"/proc/{init}/cwd") == "/"
    assert of_init["State"].startswith("S") and of_init["NSpid"].endswith("\t1")
    assert {of_init[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (of_init["NoNewPrivs"], of_init["Seccomp"]) == ("1", "2")
    os.kill(p.pid, signal.SIGTERM)
    p.communicate(timeout=10)
    assert p.returncode == 143


def cleanup_process_of(launcher):
    """It is the one in a session of its own that has its pipe and nothing else; protect helpers have more."""
    pids = [p for p in children(launcher) if os.getsid(p) == p and os.listdir(f"/proc/{p}/fd") == ["0"]]
    assert len(pids) == 1, pids
    return pids[0]


@pytest.mark.parametrize("root", [False, True])
def test_the_cleanup_process_holds_a_pipe_and_nothing_else(sbx, clean, root):
    """Its memory is a copy of the launcher's: no fd of the caller or of the launcher, no rights, nothing to gain by
    an exec. The launcher's uid alone must not open that memory (test_process.py has the twin)."""
    if root:
        sbx.own(0)
    p = running(sbx, root=root)
    cleanup = cleanup_process_of(launcher_pid(p))
    with open(f"/proc/{cleanup}/status") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    fds = {fd: os.readlink(f"/proc/{cleanup}/fd/{fd}") for fd in os.listdir(f"/proc/{cleanup}/fd")}
    assert list(fds) == ["0"] and fds["0"].startswith("pipe:"), fds
    assert {status[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {""}
    assert status["NoNewPrivs"] == "1"
    for pid in (cleanup, launcher_pid(p)):
        r = subprocess.run(["setpriv", "--reuid", str(0 if root else sbx.world.user.pw_uid), "--regid",
                            str(0 if root else sbx.world.user.pw_gid), "--clear-groups", "--inh-caps=-all",
                            "--bounding-set=-all", "head", "-c", "1", f"/proc/{pid}/environ"],
                           capture_output=True)
        assert r.returncode == 1 and b"Permission denied" in r.stderr, r
    os.kill(p.pid, signal.SIGTERM)
    p.communicate(timeout=10)


def test_broker_killed_means_no_egress_and_the_end(sbx, clean):
    p = running(sbx, ["--allow", "allowed.test"])
    pids = [pid for pid in descendants(p.pid) if processes(sbx.tmp).get(pid) == "sbx-broker"]
    assert len(pids) == 1
    os.kill(pids[0], signal.SIGKILL)
    out, err = p.communicate(timeout=10)
    assert p.returncode == 137 and "broker" in err
    assert sbx.events(action="panic", reason="broker_lost")


@pytest.mark.parametrize("sig,name", [(signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"),
                                      (signal.SIGHUP, "HUP")])
def test_signals_reach_the_command_once(sbx, clean, sig, name):
    script = f"n=0; trap 'n=$((n+1)); echo got' {name}; echo up; " \
        "i=0; while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done; echo n=$n; exit 9"
    p = running(sbx, cmd=("sh", "-c", script))
    os.kill(launcher_pid(p), sig)
    out, err = p.communicate(timeout=20)
    assert out.count("got") == 1 and "n=1" in out, (out, err)
    assert p.returncode == 9


def test_group_signal_reaches_the_command_once(sbx, clean):
    script = "n=0; trap 'n=$((n+1))' TERM; echo up; " \
        "i=0; while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done; echo n=$n; exit 9"
    p = running(sbx, cmd=("sh", "-c", script), start_new_session=True)
    os.killpg(launcher_pid(p), signal.SIGTERM)
    out, err = p.communicate(timeout=20)
    assert "n=1" in out, (out, err)


def test_untrapped_signal_is_128_plus_n(sbx, clean):
    p = running(sbx)
    os.kill(launcher_pid(p), signal.SIGTERM)
    p.communicate(timeout=10)
    assert p.returncode == 143


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 77", 77), ("kill -TERM $$", 143),
                                           ("kill -KILL $$", 137), ("sleep 60 & kill -KILL $$", 137)])
def test_however_the_command_ends(sbx, clean, script, status):
    assert sbx.run([], ["sh", "-c", script]).rc == status
    assert sandboxes(sbx)[0]["state"] == "done"


def test_wall_time(sbx, clean):
    start = time.monotonic()
    r = sbx.run(["--limit", "wall_time=1s"], ["sleep", "30"])
    assert r.rc == 124 and time.monotonic() - start < 10
    r = sbx.run(["--limit", "wall_time=1s"], ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    assert r.rc == 124
    assert {s["state"] for s in sbx.sandboxes()} == {"timed_out"}
    assert sbx.run(["--limit", "wall_time=30s"], ["true"]).rc == 0


def test_wall_time_of_a_stopped_launcher(sbx, clean):
    """It ends what is over its time as soon as it goes on; until then the factory does, 35 s past that time."""
    start = time.monotonic()
    stopped = [running(sbx, ["--limit", "wall_time=1s"]) for _ in range(2)]
    for p in stopped:
        os.kill(launcher_pid(p), signal.SIGSTOP)
    time.sleep(2)
    os.kill(launcher_pid(stopped[0]), signal.SIGCONT)
    assert stopped[0].wait(5) == 124
    assert "sleep" in processes(sbx.tmp).values()
    assert wait_until(lambda: "sleep" not in processes(sbx.tmp).values(), 50)
    assert 30 < time.monotonic() - start < 50
    os.kill(launcher_pid(stopped[1]), signal.SIGCONT)
    assert stopped[1].wait(5) == 124
    for p in stopped:
        assert p.communicate()[1].count("wall_time") == 1
    assert {s["state"] for s in sbx.sandboxes()} == {"timed_out"}


def test_background_processes_end_with_the_command(sbx, clean):
    r = sbx.run([], ["sh", "-c", "setsid sleep 300 & nohup sleep 300 & exit 3"])
    assert r.rc == 3


def test_pipes(sbx, clean):
    r = sbx.run([], ["sh", "-c", "cat; echo err >&2; exec 1>&-; sleep 0.1"], input="a\nb\n")
    assert (r.out, r.err) == ("a\nb\n", "err\n")


def test_closed_stdio(sbx, clean):
    p = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *sbx.argv(["--profile", "none"],
                                                                        ["true"])],
                       env=sbx.env(), timeout=30)
    assert p.returncode == 0


def test_two_sandboxes_with_different_policies(sbx, world):
    a = sbx.popen(["--allow", "allowed.test"], ["sh", "-c", "sleep 1; python3 inside.py tls "
                                                "allowed.test 443 allowed.test"])
    b = sbx.popen(["--allow", "denied.test"], ["sh", "-c", "sleep 1; python3 inside.py tls "
                                               "allowed.test 443 allowed.test"])
    assert json.loads(a.communicate(timeout=30)[0])["ok"] is True
    assert json.loads(b.communicate(timeout=30)[0])["ok"] is False


def test_same_id_twice(sbx, clean):
    p = running(sbx, ["--id", "0123456789ab"])
    r = sbx.run(["--id", "0123456789ab"], ["true"])
    assert r.rc == 125 and "0123456789ab" in r.err
    os.kill(launcher_pid(p), signal.SIGTERM)
    p.communicate(timeout=10)
    r = sbx.run(["--id", "0123456789ab"], ["true"])
    assert r.rc == 125 and "already" in r.err


def test_fd_hygiene(sbx, clean):
    """Nothing that sbx-run inherited is open inside."""
    fd = os.open("/etc/shadow", os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        r = sbx.run([], ["python3", "inside.py", "status"], pass_fds=[fd])
    finally:
        os.close(fd)
    status = json.loads(r.out)
    assert status["fds"] in ([0, 1, 2, 3], [0, 1, 2]), status["fds"]  # 3: the listing itself


# --- the database between the runs ---

def test_a_short_command_moves_nothing(sbx, clean):
    """Short runs leave their rows in the WAL. A longer run moves the WAL into the database, and so does one of many
    short runs when the WAL has become long."""
    database = sbx.state + "/sbx.db"
    sbx.run([], ["true"])
    before = os.stat(database)
    for _ in range(4):  # the WAL has the tables, too
        sbx.run([], ["true"])
    assert os.stat(database).st_mtime_ns == before.st_mtime_ns
    sbx.run([], ["sleep", "0.5"])
    moved = os.stat(database)
    assert moved.st_mtime_ns > before.st_mtime_ns
    for _ in range(40):
        sbx.run([], ["true"])
    assert os.stat(database).st_mtime_ns > moved.st_mtime_ns
    assert os.stat(database + "-wal").st_size < 400 * 1024
    assert [s["state"] for s in sbx.sandboxes()] == ["done"] * 46


@pytest.mark.parametrize("length", [480, 498, 499, 505, 510, 511, 512])
def test_a_long_runtime_directory(sbx, length):
    """It works or it is refused; what else is there stays."""
    directory = os.path.join(sbx.tmp, "r" * 200, "s" * 200)
    directory = os.path.join(directory, "t" * (length - len(directory) - 1))
    os.makedirs(directory)
    victim = os.path.join(directory, "victim")
    with open(victim, "w", encoding="ascii"):
        pass
    sbx.own(sbx.world.user.pw_uid)
    r = sbx.run([], ["true"], env={"SBX_RUNTIME_DIR": directory})
    assert r.rc == (0 if length <= 498 else 125) and r.err.count("\n") == (r.rc != 0), r
    assert set(os.listdir(directory)) - {"etc", "uids"} == {"victim"}, r
