# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: a full disk, starts that never end, too many starts, clients that take nothing."""
import contextlib
import os
import shutil
import socket
import threading
import time

from conftest import INST
from ctl import ctl
from sbxd import service, wait_for
from test_database import FILL, shell, small  # noqa: F401
from test_lifecycle import clean  # noqa: F401
from test_sbxd_audit import locked
from test_sbxd_events import made, put
from test_sbxd_idle import n_fds
from test_sbxd_rules import RULES
from test_sbxd_start import SH, ended, start
from test_sbxd_units import ID, asked, job

START_S, IDLE_S = 30, 60
AT_ONCE, WAITING = 16, 256


def api_dirs(sbx):
    return set(os.listdir(f"/proc/{sbx.world.proc.pid}/root{sbx.state}/api"))


def changes(s):
    """The audit's rows of what is still there, and what is there."""
    audit = [a for a in s.get("/audit?limit=1000")["items"] if a["action"].startswith("POST")]
    return ({a["object"] for a in audit if a["action"] == "POST /tokens"}, {t["name"] for t in s.get("/tokens")["items"]},
            {a["object"] for a in audit if a["action"].endswith("/rules")}, {f"rule {r['id']}" for r in s.get(RULES + "?limit=1000")["items"]},
            {a["object"] for a in audit if a["action"] == "POST /sandboxes"}, {r["id"] for r in s.get("/sandboxes")["items"]})


# --- a full disk ---

def test_a_full_disk_refuses_whole(sbx, clean, small):  # noqa: F811
    small(sbx.state)
    with service(sbx) as s:
        first = start(s, "true")["id"]
        ended(s, first)
        assert shell(sbx, FILL, sbx.state) == (0, "")
        for i in range(200):  # what room the database has
            a = s.ask("POST", RULES, {"pattern": f"n{i}.test", "action": "allow", "note": "n" * 1000})
            if a.status != 201:
                break
        assert (a.status, a.json["code"]) == (507, "full")
        for _ in range(5):
            assert s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}).status == 507
            assert s.ask("POST", "/tokens", {"name": "t", "role": "viewer"}).status == 507
            s.ask("POST", RULES, {"pattern": "x.test", "action": "allow", "note": "n" * 1000}, status=507)
        assert api_dirs(sbx) == {first} and not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")]
        tokens, there, rules, all_rules, starts, sandboxes = changes(s)
        # the row of a start may have found room, and its removal none
        assert tokens == there == set() and rules == all_rules and starts >= sandboxes == {first}
        assert shell(sbx, "rm fill", sbx.state) == (0, "")
        wait_for(lambda: changes(s)[4] == {first})
        ended(s, start(s, "true")["id"])
        s.ask("POST", "/tokens", {"name": "t", "role": "viewer"}, status=201)
        tokens, there, _, _, starts, sandboxes = changes(s)
        assert tokens == there == {"t"} and starts == sandboxes and len(starts) == 2


def test_a_full_disk_keeps_no_sandbox(sbx, clean, small):  # noqa: F811
    """A sandbox could fill the disk: it can be cut off and ended without room for the audit, which comes later."""
    small(sbx.state)
    with service(sbx) as s:
        one = start(s, "sleep", "60")["id"]
        assert shell(sbx, FILL, sbx.state) == (0, "")
        for i in range(200):  # what room the database has
            if s.ask("POST", RULES, {"pattern": f"n{i}.test", "action": "allow", "note": "n" * 1000}).status == 507:
                break
        for i in range(40):
            s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": True, "deny_out": [f"n{i}.test"] * 20}, status=200)
        s.ask("DELETE", "/sandboxes/" + one, status=204)
        assert shell(sbx, "rm fill", sbx.state) == (0, "")
        rows = wait_for(lambda: len(r := s.get(f"/audit?object={one}&limit=100")["items"]) == 42 and r)
        assert {r["outcome"] for r in rows} == {"made"} and rows[0]["action"] == "DELETE /sandboxes/{id}"
        # its launcher could not record the end: what it left tells that it has ended
        assert ctl(sbx, "gc").rc == 0
        wait_for(lambda: not s.get("/sandboxes/" + one)["live"])


# --- readiness ---

def ready(s):
    a = s.ask("GET", "/readyz")
    assert a.status == (200 if a.json["status"] == "ok" else 503) and s.get("/healthz")["status"] == "ok"
    return a.json["database"]


def test_not_ready_on_a_full_disk(sbx, clean, small):  # noqa: F811
    small(sbx.state)
    with service(sbx) as s:
        assert ready(s) == "ok"
        assert shell(sbx, FILL, sbx.state) == (0, "")
        wait_for(lambda: ready(s) == f"database {sbx.state}/sbx.db: its file system is full")
        assert shell(sbx, "rm fill", sbx.state) == (0, "")
        wait_for(lambda: ready(s) == "ok")


def test_not_ready_with_a_database_that_cannot_be_written(sbx, clean):
    with service(sbx) as s:
        assert ready(s) == "ok"
    os.chmod(sbx.state + "/sbx.db", 0o400)
    with service(sbx) as s:
        assert ready(s) == f"database {sbx.state}/sbx.db: this user could not write it when it was opened"
        assert s.ask("POST", RULES, {"pattern": "x.test", "action": "allow"}).status == 503
    os.chmod(sbx.state + "/sbx.db", 0o600)
    with service(sbx) as s:
        assert ready(s) == "ok"


def test_readiness_waits_for_nothing_and_writes_nothing(sbx, clean):
    """It has no token. A writer that takes long is no fault of the database."""
    with service(sbx) as s:
        ready(s)
        before = [os.stat(sbx.state + "/sbx.db" + n) for n in ("", "-wal")]
        with locked(sbx):
            time.sleep(1.1)  # the next one looks again
            begun = time.monotonic()
            assert ready(s) == "ok" and time.monotonic() - begun < 0.2
        for _ in range(60):
            ready(s)
        after = [os.stat(sbx.state + "/sbx.db" + n) for n in ("", "-wal")]
        assert [(a.st_size, a.st_mtime_ns) for a in before] == [(a.st_size, a.st_mtime_ns) for a in after]


LINES = 400


def test_output_on_a_full_disk(sbx, clean, small):  # noqa: F811
    """The command does not wait for room; what was lost is told, to the byte."""
    small(sbx.state)
    with service(sbx) as s:
        body = f"sleep 1; n=0; while [ $n -lt {LINES} ]; do n=$((n+1)); printf '%01000d\\n' $n; sleep 0.01; done; sleep 2; echo end; exit 4"
        i = start(s, *SH, body)["id"]
        assert shell(sbx, FILL, sbx.state) == (0, "")
        begun = time.monotonic()
        with s.follow(f"/sandboxes/{i}/output", timeout=60) as stream:
            wait_for(lambda: s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["pgrep", "-fx", "sleep 2"]}).json.get("status") == 0, 30)
            took = time.monotonic() - begun
            assert shell(sbx, "rm fill", sbx.state) == (0, "")
            seen = list(stream)
        assert took < 20
        kept = "".join(d["text"] for e, _, d in seen if e == "stdout")
        lost = sum(d["bytes"] for e, _, d in seen if e == "lost")
        print(f"{len(kept)} bytes kept, {lost} lost, after {took:.1f} s")
        assert lost > 10000 and len(kept) + lost == LINES * 1001 + 4 and kept.endswith("end\n")
        assert seen[-1][0] == "end" and seen[-1][2] == {"exit_status": 4}
        ended(s, i)


# --- starts ---

def installed(sbx, sbx_run):
    """An installation whose sbx-run is the program @sbx_run."""
    inst = os.path.join(sbx.work, "inst")
    os.makedirs(os.path.join(inst, "bin"))
    for name in "share", "libexec":
        os.symlink(os.path.join(INST, name), os.path.join(inst, name))
    for name in "sbxd", "sbxctl":
        shutil.copy(os.path.join(INST, "bin", name), os.path.join(inst, "bin", name))
    shutil.copy(sbx_run, os.path.join(inst, "bin/sbx-run"))
    os.chmod(os.path.join(inst, "bin/sbx-run"), 0o755)
    return os.path.join(inst, "bin/sbxd")


def test_a_start_that_never_ends(sbx, clean):
    """Its launcher is stopped half way. Another one's as well, and no service waits for that."""
    program, env = installed(sbx, os.path.join(INST, "bin/sbx-run-faults")), {"SBX_FAULT": "stop:control"}
    alone = job(sbx)
    with service(sbx, program=program, env=env) as s, \
            asked(sbx, ID.encode() + b"\n", launcher="sbx-run-faults", env=env) as (_, output):
        begun = time.monotonic()
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, timeout=60, status=504)
        took = time.monotonic() - begun
        assert a.json["code"] == "timed_out" and START_S - 1 < took < START_S + 10, took
        assert output.wait(20) == 0
        assert os.listdir(alone) == ["output." + "0" * 16]
        shutil.rmtree(alone)
        wait_for(lambda: s.get("/sandboxes?state=live")["items"] == [])
        # the log stays, as long as others do, and the job does not
        api = os.path.join(sbx.state, "api")
        wait_for(lambda: [os.listdir(os.path.join(api, n)) for n in os.listdir(api)] == [["output." + "0" * 16]])
        wait_for(lambda: not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")])


def test_more_starts_than_can_wait(sbx, clean):
    hold = sbx.put("hold", "", own=True)
    program = installed(sbx, sbx.put("sbx-run", f"#!/bin/sh\nwhile [ -e {hold} ]; do sleep 0.2; done\necho held >&2\nexit 125\n"))
    with service(sbx, program=program) as s:
        s.openapi
        answers = []

        def ask():
            answers.append(s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, timeout=60))

        threads = [threading.Thread(target=ask) for _ in range(AT_ONCE + WAITING)]
        for t in threads:
            t.start()
        try:
            wait_for(lambda: len(sbx.rows("SELECT 1 FROM api_sandbox")) == AT_ONCE + WAITING)
            a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, status=503)
            assert a.json["code"] == "busy" and int(a.headers["Retry-After"]) > 0
            assert s.get("/healthz") and len(os.listdir(os.path.join(sbx.state, "api"))) == AT_ONCE
        finally:
            os.unlink(hold)
            for t in threads:
                t.join()
        assert [(a.status, a.json["detail"]) for a in answers] == [(422, "held")] * (AT_ONCE + WAITING)
        assert sbx.rows("SELECT 1 FROM api_sandbox UNION SELECT 1 FROM api_audit") == [] and os.listdir(os.path.join(sbx.state, "api")) == []


# --- clients that take nothing ---

def test_a_client_that_takes_nothing_is_cut(sbx):
    """Of a long answer, and of a stream that has something to say. A quiet stream stays."""
    db = made(sbx)
    put(db, 3000, name="#." + "x" * 200 + ".test")
    with service(sbx) as s, contextlib.ExitStack() as stack:
        before = n_fds(s)

        def ask(path, extra=""):
            c = stack.enter_context(socket.socket(socket.AF_UNIX))
            c.connect(s.where)
            c.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{extra}\r\n".encode())

        sse = "Accept: text/event-stream\r\n"
        ask("/events?limit=1000")
        ask("/events?after=0", sse)
        ask("/events", sse)
        begun = time.monotonic()
        wait_for(lambda: n_fds(s) == before + 3)
        time.sleep(IDLE_S - 5)
        assert n_fds(s) == before + 3
        wait_for(lambda: n_fds(s) == before + 1, 20)
        took = time.monotonic() - begun
        assert IDLE_S - 1 < took < IDLE_S + 10, took
        time.sleep(3)
        assert n_fds(s) == before + 1 and s.get("/healthz")
