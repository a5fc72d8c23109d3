# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files that systemd/ installs, under a real systemd: users and directories, sbx@.service, a service of one's own,
and the scopes that sbx-scope asks for."""
import contextlib
import json
import os
import pwd
import shutil
import sqlite3
import stat
import subprocess

import pytest

from machine import CGROUP, PREFIX, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
STATE, RUNTIME, JOBS = "/var/lib/sbx", "/run/sbx", "/etc/sbx/jobs"
CGROUP_OF_SLICE = CGROUP + "/sbx.slice"
pytestmark = pytest.mark.usefixtures("installed")


def run(*argv, timeout=90):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)


def show(unit, *properties):
    out = run("systemctl", "show", unit, *(f"-p{p}" for p in properties)).stdout
    found = dict(line.split("=", 1) for line in out.splitlines())
    return found[properties[0]] if len(properties) == 1 else [found[p] for p in properties]


def rows(query, *params):
    with contextlib.closing(sqlite3.connect(f"file:{STATE}/sbx.db?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        return [dict(r) for r in db.execute(query, params)]


def last():
    return rows("SELECT * FROM sandbox ORDER BY rowid DESC LIMIT 1")[0]


def leftovers():
    return [name for name in os.listdir(RUNTIME) if name not in ("etc", "uids")]


def journal(**match):
    """Entries, oldest first: what journald has is what arrived, and it reads its socket when it likes."""
    run("journalctl", "--sync")
    out = run("journalctl", "-b", "-o", "json", *(f"{k}={v}" for k, v in match.items())).stdout
    return [json.loads(line) for line in out.splitlines()]


def states_of(sandbox):
    """Its changes of state; its events have the same SBX_ID."""
    return [e for e in journal(SBX_ID=sandbox) if "SBX_STATE" in e]


@pytest.fixture
def job():
    """job(NAME, TEXT): writes it and gives its unit."""
    made = []

    def make(name, text):
        path = os.path.join(JOBS, name + ".yaml")
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        unit = f"sbx@{name}.service"
        made.append((unit, path))
        return unit

    yield make
    for unit, path in made:
        run("systemctl", "stop", unit)
        run("systemctl", "reset-failed", unit)
        os.unlink(path)
    assert leftovers() == []


def test_users_and_directories():
    broker = pwd.getpwnam("sbx-broker")
    assert 0 < broker.pw_uid < 1000 and broker.pw_shell == "/usr/sbin/nologin"
    for path, mode in ((RUNTIME, 0o711), (STATE, 0o700), (JOBS, 0o755)):
        st = os.stat(path)
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (0, 0, mode), path


def test_systemd_takes_the_units():
    for unit in ("sbx@x.service", "sbx.slice"):
        r = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        assert (r.returncode, r.stdout, r.stderr) == (0, "", ""), r


def test_a_job_is_up_while_its_command_runs(job):
    unit = job("up", "profile: none\nscratch: true\nanalysis_id: up-1\nlimit: [memory=64M, pids=50]\ncommand: [sleep, '600']\n")
    r = run("systemctl", "start", unit)  # comes back with READY=1
    assert r.returncode == 0, run("journalctl", "-b", "-u", unit).stdout
    row = last()
    assert (row["state"], row["analysis_id"]) == ("running", "up-1")
    active, sub, text, group, main = show(unit, "ActiveState", "SubState", "StatusText", "ControlGroup", "MainPID")
    assert (active, sub, text) == ("active", "running", f"sandbox {row['id']} runs its command (profile none)")
    assert group == "/sbx.slice/" + unit and int(main) == row["pid"]
    below = [path for path, _, _ in os.walk(CGROUP + group) if path.endswith("/command")]
    assert len(below) == 1
    with open(below[0] + "/memory.max") as f:
        assert f.read() == f"{64 << 20}\n"
    brokers = run("pgrep", "-x", "sbx-broker").stdout.split()
    assert {os.stat(f"/proc/{pid}").st_uid for pid in brokers} == {pwd.getpwnam("sbx-broker").pw_uid}
    assert run("systemctl", "stop", unit).returncode == 0
    row = last()
    assert row["state"] not in ("preparing", "running") and row["ended_ms"]
    assert leftovers() == [] and not os.path.exists(CGROUP + group)
    states = [(e["SBX_STATE"], e["SBX_UNIT"], e["_SYSTEMD_UNIT"]) for e in states_of(row["id"])]
    assert [s[0] for s in states] == ["preparing", "running", row["state"]]
    assert {s[1:] for s in states} == {(unit, unit)}


@pytest.mark.parametrize("text, status, result", [
    ("profile: none\nscratch: true\ncommand: ['true']\n", "0", "success"),
    ("profile: none\nscratch: true\ncommand: [sh, -c, 'exit 7']\n", "7", "exit-code"),
    ("profile: none\nscratch: true\nlimit: [wall_time=1s]\ncommand: [sleep, '600']\n", "124", "exit-code")])
def test_how_a_job_ends_is_how_the_unit_ends(job, text, status, result):
    unit = job("ends", text)
    run("systemctl", "start", unit)
    assert wait_until(lambda: show(unit, "ActiveState") in ("inactive", "failed"))
    assert show(unit, "ExecMainStatus", "Result") == [status, result]


@pytest.mark.parametrize("text, said", [("profil: x\ncommand: ['true']\n", "did you mean 'profile'"),
                                        ("profile: nosuch\ncommand: ['true']\n", "there is no profile"),
                                        ("profile: none\nscratch: true\nbind: [/proc]\ncommand: ['true']\n", "/proc"),
                                        ("profile: none\ncommand: ['true']\n", "--scratch")])
def test_a_job_that_cannot_run_was_never_up(job, text, said):
    unit = job("never", text)
    r = run("systemctl", "start", unit)
    assert r.returncode != 0
    assert show(unit, "ExecMainStatus", "ActiveState") == ["125", "failed"]
    assert said in run("journalctl", "-b", "-u", unit, "-o", "cat").stdout


def test_the_whole_unit_is_killed(job):
    """Launcher, cleanup process and all, in one blow: ExecStopPost= sweeps."""
    unit = job("killed", "profile: none\nscratch: true\ncommand: [sleep, '600']\n")
    other = job("lives", "profile: none\nscratch: true\ncommand: [sleep, '600']\n")
    assert run("systemctl", "start", other).returncode == 0
    lives = last()["id"]
    assert run("systemctl", "start", unit).returncode == 0
    victim = last()["id"]
    assert sorted(leftovers()) == sorted([lives, victim])
    run("systemctl", "kill", "-s", "KILL", unit)
    assert wait_until(lambda: show(unit, "ActiveState") == "failed")
    assert leftovers() == [lives]
    states = {r["id"]: r["state"] for r in rows("SELECT id, state FROM sandbox")}
    assert (states[victim], states[lives]) == ("lost", "running")
    assert not os.path.exists(f"{CGROUP_OF_SLICE}/{unit}")
    assert states_of(victim)[-1]["SBX_STATE"] == "lost"
    assert show(other, "ActiveState") == "active"


def test_out_of_memory_ends_the_command_and_not_the_unit(job):
    unit = job("oom", "profile: none\nscratch: true\nlimit: [memory=32M]\n"
               "command: [python3, -c, 'x = bytearray(200 << 20); print(len(x))']\n")
    run("systemctl", "start", unit)
    assert wait_until(lambda: show(unit, "ActiveState") in ("inactive", "failed"))
    assert show(unit, "ExecMainStatus", "Result") == ["137", "exit-code"] and last()["state"] == "oom_killed"


def test_a_job_reaches_what_it_may(job, world):
    unit = job("net", "profile: fetching\nscratch: true\nallow: [allowed.test]\n"
               "command: [sh, -c, 'for n in allowed denied; do curl -sS -m 20 https://$n.test/ >/dev/null; echo $n $?; "
               "done']\n")
    os.makedirs("/etc/sbx/profiles", exist_ok=True)
    with open("/etc/sbx/profiles/fetching.yaml", "w") as f:
        f.write("network: {mode: fetch}\n")
    try:
        run("systemctl", "start", unit)
        assert wait_until(lambda: show(unit, "ActiveState") in ("inactive", "failed"))
    finally:
        os.unlink("/etc/sbx/profiles/fetching.yaml")
    said = run("journalctl", "-b", "-u", unit, "-o", "cat").stdout
    assert "allowed 0\n" in said and "denied 6\n" in said, said


def keep_line(text, start, keep):
    lines = text.splitlines(True)
    assert any(line.startswith(start) for line in lines)
    return "".join(line for line in lines if keep or not line.startswith(start))


@pytest.mark.parametrize("privileged", [True, False])
def test_a_service_of_ones_own(privileged):
    """systemd/examples/job-runner.service: its hardening leaves sandboxes what they need; what it has the command
    has not; with its capabilities a sandbox has a uid of its own, without the service's."""
    with open(os.path.join(HERE, "job-runner.service")) as f:
        text = keep_line(f.read(), "AmbientCapabilities=", privileged)
    run("useradd", "--system", "job-runner")
    who = pwd.getpwnam("job-runner")
    uid = who.pw_uid
    runner, data = "/usr/local/bin/job-runner", "/srv/job-runner"
    os.mkdir(data)
    os.chown(data, uid, who.pw_gid)
    with open(runner, "w") as f:
        f.write(f"#!/bin/sh\nset -e\ncd {data}\necho in >in.txt\n"
                "echo service $(grep CapEff /proc/self/status)\n"
                f"{PREFIX}/bin/sbx-run --profile none --limit pids=40 -- sh -c 'cat in.txt; echo uid $(id -u); "
                "echo out >out.txt; echo command $(grep CapEff /proc/self/status)'\n"
                "cat out.txt; stat -c 'owner %u' out.txt\n")
    os.chmod(runner, 0o755)
    unit = "/run/systemd/system/job-runner.service"
    with open(unit, "w") as f:
        f.write(text)
    try:
        run("systemctl", "daemon-reload")
        run("systemctl", "start", "job-runner")
        assert wait_until(lambda: show("job-runner", "ActiveState") in ("inactive", "failed"))
        said = run("journalctl", "-b", "-u", "job-runner", "-o", "cat").stdout
        said = said[said.rindex("service CapEff"):]  # of this start
        assert show("job-runner", "Result") == "success", said
        words = dict(line.split(" ", 1) for line in said.splitlines()
                     if line.startswith(("service CapEff", "command CapEff", "uid ", "owner ")))
        assert "in\n" in said and "out\n" in said
        assert words["command"] == "CapEff: 0000000000000000" and words["owner"] == str(uid), said
        assert (words["service"] != words["command"]) == (words["uid"] != str(uid)) == privileged, said
    finally:
        run("systemctl", "stop", "job-runner")
        run("systemctl", "reset-failed", "job-runner")
        for path in (unit, runner):
            os.unlink(path)
        for path in (data, "/var/lib/job-runner"):
            shutil.rmtree(path, ignore_errors=True)
        run("systemctl", "daemon-reload")
        run("userdel", "job-runner")


def test_scopes():
    """sbx-scope's own: a TAP program, so that it can be run by hand."""
    r = run("bash", os.path.join(HERE, "scope.sh"), PREFIX, "tester", timeout=150)
    assert r.returncode == 0 and "not ok" not in r.stdout and "1..18" in r.stdout, r.stdout + r.stderr
