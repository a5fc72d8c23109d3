# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sandboxes that the system's sbxd starts: each a unit of systemd, by sbx-sandbox.socket."""
import contextlib
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import threading
import time

import pytest

from machine import CGROUP, PREFIX, wait_until
from test_sbxd import AS_USER, ask, run, show, system  # noqa: F401

STATE, RUNTIME, SOCKET = "/var/lib/sbxd", "/run/sbxd", "/run/sbxd/start.sock"
AS_SBX = ["runuser", "-u", "sbx", "--", "env", f"SBX_STATE_DIR={STATE}", f"SBX_RUNTIME_DIR={RUNTIME}"]
SH = ["sh", "-c"]
pytestmark = pytest.mark.usefixtures("installed", "nothing_left")


def units():
    out = run("systemctl", "list-units", "--all", "--plain", "--no-legend", "sbx-sandbox@*").stdout
    return [line.split()[0] for line in out.splitlines()]


def unit_of(sandbox):
    found = [u for u in units() if show(u, "StatusText") == f"sandbox {sandbox}"]
    assert len(found) == 1, (units(), sandbox)
    return found[0]


def start(where, *command, status=201, **body):
    got, answer = ask(where, "/sandboxes", "POST", {"profile": "none", **({"command": list(command)} if command else {}), **body})
    assert got == status, answer
    return answer["id"] if status == 201 else answer


def row(sandbox):
    with contextlib.closing(sqlite3.connect(f"file:{STATE}/sbx.db?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        return dict(db.execute("SELECT * FROM sandbox WHERE id = ?", (sandbox,)).fetchone())


def ends(sandbox):
    """Its row, when it and its unit have ended."""
    assert wait_until(lambda: row(sandbox)["ended_ms"], 60), row(sandbox)
    assert wait_until(lambda: not [u for u in units() if show(u, "StatusText") == f"sandbox {sandbox}"]), units()
    return row(sandbox)


def text(where, sandbox, stream="stdout"):
    return "".join(i["text"] for i in ask(where, f"/sandboxes/{sandbox}/output?stream={stream}")[1]["items"])


def delete(where, *sandboxes):
    for i in sandboxes:
        assert ask(where, f"/sandboxes/{i}", "DELETE")[0] == 204
    for i in sandboxes:
        assert ends(i)["state"] == "killed"


def journal(unit):
    run("journalctl", "--sync")
    return run("journalctl", "-b", "-o", "cat", "-u", unit).stdout


@pytest.fixture
def nothing_left():
    yield
    run("systemctl", "stop", "sbx-sandbox@*", "sbx-sandbox.socket")
    assert wait_until(lambda: units() == [])
    assert [n for n in os.listdir(RUNTIME) if n not in ("etc", "uids", "api.sock", "start.sock")] == []
    assert not [p for p, _, _ in os.walk(CGROUP + "/sbx.slice") if "sbx-sandbox@" in p]


def test_a_unit_of_the_services_user(system):
    sbx = pwd.getpwnam("sbx").pw_uid
    i = start(system, *SH, "id -u; echo err >&2; sleep 600")
    unit = unit_of(i)
    pid = int(show(unit, "MainPID"))
    assert show(unit, "ControlGroup").startswith("/sbx.slice/") and show(unit, "ControlGroup").endswith("/" + unit)
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = f.read()
    assert f"Uid:\t{sbx}\t{sbx}\t{sbx}\t{sbx}\n" in status and "NoNewPrivs:\t1" in status
    assert "CapBnd:\t0000000000000000" in status and "CapEff:\t0000000000000000" in status
    with open(CGROUP + show("sbxd.service", "ControlGroup") + "/cgroup.procs", encoding="ascii") as f:
        assert f.read().split() == [show("sbxd.service", "MainPID")]
    assert ask(system, f"/sandboxes/{i}")[1]["state"] == "running"
    assert wait_until(lambda: text(system, i) == f"{sbx}\n" and text(system, i, "stderr") == "err\n")
    got = ask(system, f"/sandboxes/{i}/exec", "POST", {"command": ["echo", "hi"]})
    assert got[0] == 200 and got[1]["stdout"] == "hi\n"
    assert ask(system, f"/sandboxes/{i}/network", "PUT", {"air_gapped": True})[1]["air_gapped"] is True
    assert ask(system, f"/sandboxes/{i}/timeout", "POST", {"timeout": 3600})[0] == 200
    delete(system, i)
    assert row(i)["exit_status"] == 137
    i = start(system, *SH, "exit 3")
    r = ends(i)
    assert (r["state"], r["exit_status"]) == ("done", 3) and "failed" not in journal("sbx-sandbox@*")
    i = start(system, "sleep", "600", timeout=4)
    assert ends(i)["state"] == "timed_out"
    assert start(system, "nosuch", status=422)["code"] == "not_found"


def test_limits_hold(system):
    i = start(system, "sleep", "600", limits={"memory": "64M", "pids": "40"})
    group = CGROUP + show(unit_of(i), "ControlGroup")
    command = [p for p, _, _ in os.walk(group) if p.endswith("/command")]
    assert len(command) == 1
    for name, low, high in (("memory.max", 64 << 20, 64 << 20), ("pids.max", 40, 48)):  # and the sandbox's own processes
        with open(os.path.join(command[0], name), encoding="ascii") as f:
            assert low <= int(f.read()) <= high
    assert ask(system, f"/sandboxes/{i}/metrics")[1]["memory_bytes"] > 0
    delete(system, i)
    i = start(system, "python3", "-c", "x = bytearray(200 << 20)", limits={"memory": "32M"})
    assert ends(i)["state"] == "oom_killed"
    i = start(system, *SH, "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; wait; echo $n", limits={"pids": "8"})
    ends(i)
    assert "Cannot fork" in text(system, i, "stderr")


def test_it_reaches_what_it_may(system, world):
    profile = "/etc/sbx/profiles/fetching.yaml"
    os.makedirs(os.path.dirname(profile), exist_ok=True)
    with open(profile, "w", encoding="ascii") as f:
        f.write("network: {mode: fetch, allow: [allowed.test]}\n")
    try:
        i = start(system, profile="fetching")

        def fetch(name):
            command = ["curl", "-sS", "-m", "20", f"https://{name}.test/"]
            return ask(system, f"/sandboxes/{i}/exec", "POST", {"command": command})[1]["status"]
        assert (fetch("allowed"), fetch("denied")) == (0, 6)
        assert ask(system, f"/sandboxes/{i}/network", "PUT", {"air_gapped": True})[0] == 200
        assert fetch("allowed") != 0
        assert ask(system, f"/sandboxes/{i}/network", "PUT", {"air_gapped": False})[0] == 200
        assert fetch("allowed") == 0
        assert [e for e in ask(system, f"/sandboxes/{i}/events")[1]["items"] if e["name"] == "denied.test"]
        delete(system, i)
    finally:
        os.unlink(profile)


@pytest.mark.parametrize("how", ["stop", "restart", "kill"])
def test_the_services_end_leaves_them(system, how):
    ids = [start(system, *SH, "n=0; while :; do n=$((n+1)); echo $n; sleep 0.2; done") for _ in range(2)]
    pid = show("sbxd.service", "MainPID")
    if how == "kill":
        os.kill(int(pid), signal.SIGKILL)
    else:
        assert run("systemctl", how, "sbxd.service").returncode == 0
    assert wait_until(lambda: show("sbxd.service", "MainPID") != pid)
    assert len(units()) == 2
    before = len(text(system, ids[0]))
    assert wait_until(lambda: len(text(system, ids[0])) > before)
    assert {s["id"] for s in ask(system, "/sandboxes?state=live")[1]["items"]} == set(ids)
    delete(system, *ids)


def test_killed_in_the_middle_of_ten_starts(system):
    """Each is in the list, or is not there: no unit and no directory's job without a row."""
    def blindly():
        with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
            start(system, "sleep", "600")

    ask(system, "/healthz")
    threads = [threading.Thread(target=blindly) for _ in range(10)]
    for t in threads:
        t.start()
    time.sleep(1.5)
    os.kill(int(show("sbxd.service", "MainPID")), signal.SIGKILL)
    for t in threads:
        t.join()

    def live():
        return {s["id"] for s in ask(system, "/sandboxes?state=running")[1]["items"]}
    assert wait_until(lambda: len(live()) == len(units()) and not ask(system, "/sandboxes?state=preparing")[1]["items"], 60)
    assert {show(u, "StatusText").split()[-1] for u in units()} == live()
    for i in os.listdir(STATE + "/api"):
        assert i in live() or not run("pgrep", "-f", i).stdout
    print("of 10 starts", len(live()), "run")
    delete(system, *live())
    delete(system, start(system))


@pytest.mark.parametrize("script, state, exit_status", [
    ("sleep 600", "done", 143),
    ("trap 'echo told; exit 9' TERM; while :; do sleep 0.1; done", "done", 9),
    ("trap '' TERM; while :; do sleep 0.1; done", "killed", 137)])
def test_stop_of_a_unit(system, script, state, exit_status):
    i, other = start(system, *SH, script), start(system)
    unit = unit_of(i)
    assert run("systemctl", "stop", unit).returncode == 0
    r = ends(i)
    assert (r["state"], r["exit_status"]) == (state, exit_status)
    assert unit not in units() and ask(system, f"/sandboxes/{other}")[1]["live"] is True
    delete(system, other)


def test_a_whole_unit_is_killed(system):
    i = start(system, "sleep", "600")
    run("systemctl", "kill", "-s", "KILL", unit_of(i))
    assert ends(i)["state"] == "lost"
    assert ask(system, f"/sandboxes/{i}/output")[1]["ended"] is True
    # Its socket goes when the service tidies, at its start and each hour, some time after.
    left, place = f"{RUNTIME}/api-{i}.sock", f"{STATE}/api/{i}"
    assert os.path.exists(left)
    os.utime(place, (time.time() - 120, time.time() - 120))
    run("systemctl", "restart", "sbxd.service")
    assert ask(system, "/healthz")[0] == 200 and not os.path.exists(left)


def doctor():
    """The row of sbx-sandbox.socket, from systemd's own answers, as another user sees it."""
    report = json.loads(run("runuser", "-u", "tester", "--", f"{PREFIX}/bin/sbxctl", "doctor", "--json").stdout)
    return next(c for c in report["checks"] if c["check"] == "sbx-sandbox.socket")


def test_without_the_socket(system):
    i = start(system)
    assert doctor()["state"] == "ok"
    assert run("systemctl", "stop", "sbx-sandbox.socket").returncode == 0
    answer = start(system, "true", status=503)
    assert answer["code"] == "no_unit" and "systemctl start sbx-sandbox.socket" in answer["detail"]
    assert ask(system, f"/sandboxes/{i}")[1]["live"] is True
    assert os.listdir(STATE + "/api").count(i) == 1
    row = doctor()
    assert row["state"] == "problem" and row["remedy"] == "as root: systemctl enable --now sbx-sandbox.socket"
    assert run("systemctl", "start", "sbx-sandbox.socket").returncode == 0
    delete(system, i, start(system))


TRY = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect(sys.argv[1])\n    print('connected')\n"
       "except OSError as e:\n    print(e.strerror)\n")


def test_who_may_connect(system):
    ask(system, "/healthz")
    st = os.stat(SOCKET)
    assert (st.st_uid, st.st_mode & 0o777) == (pwd.getpwnam("sbx").pw_uid, 0o600)
    assert run(*AS_USER, "python3", "-c", TRY, SOCKET).stdout == "Permission denied\n"
    i = start(system)
    got = ask(system, f"/sandboxes/{i}/exec", "POST", {"command": ["python3", "-c", TRY, SOCKET]})[1]
    assert got["stdout"] == "No such file or directory\n", got
    # a process beside the sandbox, in its unit
    pid = show(unit_of(i), "MainPID")
    for path in (SOCKET, system):
        out = run("nsenter", "-t", pid, "-m", *AS_SBX, "python3", "-c", TRY, path).stdout
        assert out in ("Connection refused\n", "Permission denied\n"), out
    assert run(*AS_SBX, "python3", "-c", TRY, SOCKET).stdout == "connected\n"
    delete(system, i)


@pytest.mark.parametrize("line, said", [(b"../../../../\n", "no sandbox's id came: Bad message"),
                                        (b"0123456789ab\n", "/var/lib/sbxd/api/0123456789ab: No such file or directory"),
                                        (b"0123456789ab --help\n", "no sandbox's id came: Bad message")])
def test_a_request_that_is_none(system, line, said):
    ask(system, "/healthz")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.settimeout(60)
        s.connect(SOCKET)
        s.sendall(line)
        assert int(s.recv(64)) > 0
    assert wait_until(lambda: units() == [])
    assert said in journal("sbx-sandbox@*")


def test_the_units_are_what_systemd_takes(system):
    for unit in ("sbx-sandbox@x.service", "sbx-sandbox.socket", "sbxd.service", "sbxd.socket"):
        r = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        assert (r.returncode, r.stdout, r.stderr) == (0, "", ""), r
    out = run("systemd-analyze", "security", "--no-pager", "sbx-sandbox@x.service").stdout
    figure = float(out.split("exposure level for sbx-sandbox@x.service:")[1].split()[0])
    assert figure <= 5.0, out


def test_no_more_than_there_may_be(system):
    drop_in = "/run/systemd/system/sbx-sandbox.socket.d"
    os.makedirs(drop_in)
    with open(drop_in + "/max.conf", "w", encoding="ascii") as f:
        f.write("[Socket]\nMaxConnections=2\n")
    run("systemctl", "daemon-reload")
    try:
        assert run("systemctl", "restart", "sbx-sandbox.socket").returncode == 0
        one, two = start(system), start(system)
        answer = start(system, status=503)
        assert answer["code"] == "no_unit" and "too many run" in answer["detail"], answer
        delete(system, one)
        delete(system, two, start(system))
    finally:
        shutil.rmtree(drop_in)
        run("systemctl", "daemon-reload")


def test_another_user(system):
    """What docs/SBXD.md says has to agree."""
    services = ["sbxd.service", "sbxd.socket", "sbx-sandbox.socket"]
    texts = {"sbxd.service": "[Service]\nUser=sbx-two\n", "sbx-sandbox@.service": "[Service]\nUser=sbx-two\n",
             "sbx-sandbox.socket": "[Socket]\nSocketUser=sbx-two\n"}
    assert run("useradd", "--system", "--no-create-home", "sbx-two").returncode == 0
    run("systemctl", "stop", *services)
    try:
        for unit, content in texts.items():
            os.makedirs(f"/run/systemd/system/{unit}.d")
            with open(f"/run/systemd/system/{unit}.d/user.conf", "w", encoding="ascii") as f:
                f.write(content)
        run("systemctl", "daemon-reload")
        run("chown", "-R", "sbx-two", STATE, RUNTIME)
        assert run("systemctl", "start", "sbxd.socket").returncode == 0
        i = start(system, *SH, "id -u; sleep 600")
        assert wait_until(lambda: text(system, i) == f"{pwd.getpwnam('sbx-two').pw_uid}\n")
        delete(system, i)
        # the service's start changes the owner of what is in its directories, the socket too; not that of a new one
        assert run("systemctl", "restart", "sbx-sandbox.socket").returncode == 0
        delete(system, start(system))
    finally:
        run("systemctl", "stop", *services)
        for unit in texts:
            shutil.rmtree(f"/run/systemd/system/{unit}.d", ignore_errors=True)
        run("systemctl", "daemon-reload")
        run("chown", "-R", "sbx", STATE, RUNTIME)
        run("userdel", "sbx-two")


def test_tokens(system):
    """The database is the service's user's, who makes the tokens: before the service's first start, too."""
    run("systemctl", "stop", "sbxd.service")
    for name in os.listdir(STATE):
        path = os.path.join(STATE, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    sbxctl = [f"{PREFIX}/bin/sbxctl", "token"]
    made = run(*AS_SBX, *sbxctl, "add", "ci", "--role", "viewer")
    assert made.returncode == 0 and made.stdout, made
    assert [t["name"] for t in ask(system, "/tokens")[1]["items"]] == ["ci"]
    for name in os.listdir(STATE):
        assert os.stat(os.path.join(STATE, name)).st_uid == pwd.getpwnam("sbx").pw_uid
    for argv in ["add", "x", "--role", "viewer"], ["list"], ["rm", "ci"]:
        r = run(*sbxctl, *argv)
        assert r.returncode == 1 and r.stdout == "" and "runuser -u sbx -- env SBX_STATE_DIR=/var/lib/sbxd" in r.stderr, r
    r = run("env", *AS_SBX[5:], *sbxctl, "add", "x", "--role", "viewer")
    assert r.returncode != 0 and "run this as that user" in r.stderr, r
    assert ask(system, "/tokens", "POST", {"name": "root", "role": "viewer"})[0] == 201
    assert run(*AS_SBX, *sbxctl, "rm", "ci").returncode == 0
    assert run("env", "SBX_STATE_DIR=/var/lib/sbx", *sbxctl, "list").returncode == 0
