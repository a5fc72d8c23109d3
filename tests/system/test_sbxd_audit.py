# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: each change has a row that says who made it, when, what it was before and after, and its outcome; tokens by the API."""
import contextlib
import http.client
import json
import os
import signal
import sqlite3
import threading
import time

import pytest

from ctl import ctl
from sbxd import service, wait_for
from test_control import running
from test_sbxd_access import PORT, TCP, new_token
from test_sbxd_core import NET
from test_sbxd_rules import at_once


@contextlib.contextmanager
def locked(sbx):
    """The database, in the hands of a writer."""
    with contextlib.closing(sqlite3.connect(sbx.state + "/sbx.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


def test_changes_of_a_sandbox(sbx):
    sbx.profile("net", NET)
    with service(sbx, TCP) as s, running(sbx, args=["--profile", "net"]) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        tcp = s.tcp(PORT, new_token(sbx, "ci", "--role", "operator"))
        path = f"/sandboxes/{one}/network"
        tcp.ask("PUT", path, {"air_gapped": True, "allow_out": ["files.test"]}, status=200)
        tcp.ask("PUT", path, {"air_gapped": False}, {"If-Match": '"g2"'}, status=200)
        tcp.ask("PUT", path, {"air_gapped": False}, {"If-Match": '"g2"'}, status=412)
        tcp.ask("PUT", path, {"allow_out": ["a b"]}, status=422)
        s.ask("DELETE", "/sandboxes/" + one, status=204)
        assert p.wait(20) == 137
        killed, second, first = s.get("/audit")["items"]
        assert (first["principal"], first["action"], first["object"]) == ("token ci", "PUT /sandboxes/{id}/network", one)
        assert abs(time.mktime(time.strptime(first["at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone - time.time()) < 60
        assert {r["outcome"] for r in (killed, second, first)} == {"made"}
        assert first["before"] == {"generation": 1, "air_gapped": False, "allow_out": [], "deny_out": [], "rules": []}
        assert first["after"] == {"generation": 2, "air_gapped": True, "allow_out": ["files.test"], "deny_out": [], "rules": []}
        assert second["before"] == first["after"] and second["after"]["air_gapped"] is False
        assert (killed["action"], killed["before"], killed["after"]) == ("DELETE /sandboxes/{id}", {"live": True}, {"live": False})
        assert killed["principal"].startswith("uid ")
        # pages and filters
        page = s.get("/audit?limit=2")
        assert page["items"] == [killed, second] and s.get("/audit?cursor=" + page["next_cursor"])["items"] == [first]
        assert s.get("/audit?principal=token%20ci")["items"] == [second, first]
        assert s.get("/audit?object=nothing")["items"] == []
        assert tcp.ask("GET", "/audit", status=403)


def changes_of(s, one):
    """Each changes the sandbox, or the service, and not the database."""
    path = f"/sandboxes/{one}"
    return [lambda: s.ask("PUT", path + "/network", {"air_gapped": True}),
            lambda: s.ask("PUT", path + "/network", {"air_gapped": True}, {"If-Match": '"g0"'}),
            lambda: s.ask("POST", path + "/timeout", {"timeout": 100}),
            lambda: s.ask("POST", path + "/exec", {"command": ["touch", "/tmp/made"]}),
            lambda: s.ask("POST", "/session/links"),
            lambda: s.ask("DELETE", path)]


def test_no_change_waits_for_its_row(sbx):
    """An operator can cut and end a sandbox that has made the database useless. The rows come when it is free."""
    sbx.profile("net", NET)
    with service(sbx, TCP) as s, running(sbx, args=["--profile", "net"]) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        network, late, timeout, execute, link, kill = changes_of(s, one)
        with locked(sbx):
            begun = time.monotonic()
            assert network().json["air_gapped"] is True
            assert late().status == 412
            assert timeout().status == 200 and execute().json["status"] == 0
            assert time.monotonic() - begun < 4
            assert kill().status == 204 and p.wait(20) == 137
            assert link().json["code"] == "busy"  # a change of the service, with its row
            assert s.get("/audit")["items"] == []
        rows = wait_for(lambda: len(r := s.get("/audit")["items"]) >= 4 and r)
        assert [(r["action"].split()[0], r["outcome"]) for r in rows] == [
            ("DELETE", "made"), ("POST", "made"), ("POST", "made"), ("PUT", "made")]
        assert rows[3]["before"]["air_gapped"] is False and rows[3]["after"]["air_gapped"] is True and rows[3]["object"] == one


def test_rows_that_wait_are_written_at_the_end(sbx):
    sbx.profile("net", NET)
    with service(sbx) as s, running(sbx, args=["--profile", "net"]):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        with locked(sbx):
            s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": True}, status=200)
        assert s.end() == 0
        s.start()
        row, = s.get("/audit")["items"]
        assert row["outcome"] == "made" and row["after"]["air_gapped"] is True


def ask_stopped(s, sbx, p, ask):
    """The row of a change that the stopped launcher @p is asked for, and the thread that waits for the answer."""
    os.kill(p.pid, signal.SIGSTOP)
    n = len(sbx.rows("SELECT id FROM api_audit"))
    thread = threading.Thread(target=ask)
    thread.start()
    wait_for(lambda: len(sbx.rows("SELECT id FROM api_audit")) > n)
    return sbx.rows("SELECT * FROM api_audit ORDER BY id")[-1], thread


def test_an_outcome_waits_for_the_database(sbx):
    """The launcher has made the change: that is in its row when the database is free, or when the service ends."""
    sbx.profile("net", NET)
    with service(sbx) as s, running(sbx, args=["--profile", "net"]) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        for n, gap in enumerate((True, False)):
            answers = []
            row, thread = ask_stopped(s, sbx, p, lambda gap=gap: answers.append(
                s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": gap})))
            assert (row["outcome"], json.loads(row["after_json"])) == (None, {"air_gapped": gap})
            with locked(sbx):
                os.kill(p.pid, signal.SIGCONT)
                thread.join()
                assert answers[0].status == 200
                first = s.get("/audit")["items"][0]
                assert (first["outcome"], first["after"], first["before"]["air_gapped"]) == (None, {"air_gapped": gap}, not gap)
            if n:
                assert s.end() == 0
                s.start()
            made = wait_for(lambda: (r := s.get("/audit")["items"][0])["outcome"] and r)
            assert (made["id"], made["outcome"]) == (row["id"], "made")
            assert (made["after"]["air_gapped"], made["after"]["generation"]) == (gap, n + 2)


def test_killed_before_the_answer(sbx):
    """Each change that the launcher was asked for has its row."""
    sbx.profile("net", NET)
    with service(sbx, TCP) as s, running(sbx, args=["--profile", "net"]) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        network, _, timeout, execute, _, kill = changes_of(s, one)
        caller = s.get("/session")["name"]
        for ask, action, wanted in ((network, "PUT /sandboxes/{id}/network", {"air_gapped": True}),
                                    (timeout, "POST /sandboxes/{id}/timeout", {"timeout": 100}),
                                    (execute, "POST /sandboxes/{id}/exec", {"command": ["touch", "/tmp/made"]}),
                                    (kill, "DELETE /sandboxes/{id}", {"live": False})):
            def blindly(ask=ask):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    ask()
            row, thread = ask_stopped(s, sbx, p, blindly)
            s.p.kill()
            s.p.wait()
            thread.join()
            os.kill(p.pid, signal.SIGCONT)
            s.start()
            left = s.get("/audit")["items"][0]
            assert (left["id"], left["principal"], left["action"], left["object"]) == (row["id"], caller, action, one)
            assert (left["outcome"], left["after"]) == (None, wanted), left


def test_a_change_of_rows_and_its_row_are_one(sbx):
    with service(sbx) as s:
        with locked(sbx):
            assert s.ask("POST", "/tokens", {"name": "t", "role": "viewer"}, status=503)
        assert s.get("/tokens")["items"] == [] and s.get("/audit")["items"] == []


def test_tokens(sbx):
    with service(sbx, TCP) as s:
        made = s.ask("POST", "/tokens", {"name": "t", "role": "operator", "workspace": "w", "expires_s": 3600}, status=201).json
        tcp = s.tcp(PORT, made["token"])
        assert tcp.get("/session")["workspace"] == "w"
        listed, = s.get("/tokens")["items"]
        assert listed["last_used_at"] and {**made, "last_used_at": listed["last_used_at"]} == {**listed, "token": made["token"]}
        assert s.ask("POST", "/tokens", {"name": "t", "role": "viewer"}, status=409).json["field"] == "name"
        for body, field in (({"name": "a/b", "role": "viewer"}, "name"), ({"name": "x", "role": "root"}, "role"),
                            ({"name": "x", "role": "admin", "workspace": "w"}, "workspace"),
                            ({"name": "x", "role": "viewer", "expires_s": 0}, "expires_s"),
                            ({"name": "x", "role": "viewer", "workspace": "w" * 129}, "workspace"), ({"role": "viewer"}, "name")):
            assert s.ask("POST", "/tokens", body, status=422).json["field"] == field
        assert tcp.ask("GET", "/tokens", status=403) and tcp.ask("POST", "/tokens", {"name": "y", "role": "admin"}, status=403)
        s.ask("DELETE", "/tokens/t", status=204)
        assert tcp.ask("GET", "/session", status=401)
        s.ask("DELETE", "/tokens/t", status=404)
        removed, added = s.get("/audit?object=t")["items"]
        assert (added["before"], removed["after"]) == (None, None) and removed["before"]["role"] == added["after"]["role"]
        assert made["token"] not in json.dumps([removed, added])


# --- streams ---

def ended(stream):
    """The stream ends by itself. A comment that keeps it alive comes later than the connection's timeout."""
    return list(stream) == []


def test_a_stream_ends_with_its_token(sbx):
    with service(sbx, TCP) as s:
        for name, args, end in (("removed", [], lambda: ctl(sbx, "token", "rm", "removed")),
                                ("short", ["--expires", "2s"], lambda: None)):
            tcp = s.tcp(PORT, new_token(sbx, name, "--role", "viewer", *args))
            kept = s.tcp(PORT, new_token(sbx, "kept-" + name, "--role", "viewer"))
            with tcp.follow("/events", timeout=8) as stream, kept.follow("/events", timeout=6) as other:
                end()
                assert ended(stream)
                with pytest.raises(TimeoutError):
                    next(other)


def test_a_stream_ends_with_its_session(sbx):
    with service(sbx, TCP) as s:
        link = s.ask("POST", "/session/links", status=201).json["url"]
        cookie = s.tcp(PORT).ask("GET", link.partition(f":{PORT}")[2], status=303).headers["Set-Cookie"].split(";")[0]
        b = s.tcp(PORT, headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
        with b.follow("/events", timeout=8) as stream:
            b.ask("POST", "/session/logout", status=204)
            assert ended(stream)


def test_streams_are_limited_by_caller(sbx):
    with service(sbx, TCP) as s, contextlib.ExitStack() as stack:
        one, two = (s.tcp(PORT, new_token(sbx, n, "--role", "viewer")) for n in ("one", "two"))
        for _ in range(64):
            stack.enter_context(one.follow("/events"))
        assert one.ask("GET", "/events", headers={"Accept": "text/event-stream"}, status=429, timeout=8).headers["Retry-After"]
        assert one.get("/events")["items"] == []
        with two.follow("/events"):
            pass
        stack.close()

        def again():
            return one.send("GET", "/sandboxes")[0] == 200
        wait_for(again)


def test_a_start_an_exec_and_a_timeout(sbx):
    with service(sbx) as s:
        one = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["sleep", "60"], "env": {"K": "hidden-value"}},
                    status=201).json["id"]
        s.ask("POST", f"/sandboxes/{one}/exec", {"command": ["cat"], "stdin": "hidden-value"}, status=200)
        s.ask("POST", f"/sandboxes/{one}/timeout", {"timeout": 100}, status=200)
        s.ask("POST", f"/sandboxes/{one}/exec", {"command": ["nosuch"]}, status=422)  # no change, no row
        s.ask("DELETE", f"/sandboxes/{one}", status=204)
        rows = s.get(f"/audit?object={one}")["items"][::-1]
        assert [r["action"] for r in rows] == ["POST /sandboxes", "POST /sandboxes/{id}/exec", "POST /sandboxes/{id}/timeout",
                                               "DELETE /sandboxes/{id}"]
        assert rows[0]["after"]["command"] == ["sleep", "60"] and rows[1]["after"] == {"command": ["cat"]}
        assert "hidden-value" not in json.dumps(rows)
        wait_for(lambda: s.get(f"/sandboxes/{one}")["state"] == "killed")


# --- all of them ---

# They change nothing that others see: an answer, the end of the caller's own session.
NO_CHANGE = {"explain", "postSessionLogout"}
KILLED = ({"live": True}, {"live": False})


def some(v):
    return bool(v)


def test_each_route_that_writes_leaves_a_row(sbx):
    """The routes come from the document: a new one needs a line here."""
    sbx.profile("net", NET)
    with service(sbx, TCP) as s:
        one = s.ask("POST", "/sandboxes", {"profile": "net", "command": ["sleep", "60"]}, status=201).json["id"]
        with contextlib.closing(sqlite3.connect(sbx.state + "/sbx.db")) as db:
            db.execute("INSERT INTO egress_review_task (id, sandbox_id, workspace, cause, n_denies, first_ms, last_ms) "
                       "VALUES (7, ?, 'w', 'denies', 5, 1, 2)", [one])
            db.commit()
        rule, change = {"pattern": "a.test", "action": "allow"}, {"action": "deny"}
        # operation, values of the path, body, object, before, after; a function judges what is there
        made = {}
        cases = [
            ("postSessionLink", {}, None, None, None, None),
            ("createSandbox", {}, {"profile": "none", "command": ["true"]}, "id", None, {"profile": "none", "command": ["true"]}),
            ("postTimeout", {"id": one}, {"timeout": 100}, one, None, some),
            ("postExec", {"id": one}, {"command": ["true"]}, one, None, {"command": ["true"]}),
            ("putNetwork", {"id": one}, {"air_gapped": True}, one, lambda v: v["air_gapped"] is False,
             lambda v: v["air_gapped"] is True),
            ("deleteSandbox", {"id": one}, None, one, *KILLED),
            ("addToken", {}, {"name": "t", "role": "viewer"}, "t", None, lambda v: v["role"] == "viewer" and "token" not in v),
            ("deleteToken", {"token": "t"}, None, "t", lambda v: v["role"] == "viewer", None),
            ("addWorkspace", {}, {"name": "w", "network_default_action": "deny"}, "w", some,
             lambda v: v["network_default_action"] == "deny"),
            ("putSettings", {"workspace": "w"}, {"network_default_action": "allow"}, "w",
             lambda v: v["network_default_action"] == "deny", lambda v: v["network_default_action"] == "allow"),
            ("addRule", {"workspace": "w"}, rule, "rule", None, lambda v: v["pattern"] == "a.test"),
            ("setRule", {"workspace": "w", "rule": "addRule"}, change, "rule", lambda v: v["action"] == "allow",
             lambda v: v["action"] == "deny"),
            ("deleteRule", {"workspace": "w", "rule": "addRule"}, None, "rule", lambda v: v["action"] == "deny", None),
            ("addSystemRule", {}, rule, "rule", None, lambda v: v["pattern"] == "a.test"),
            ("setSystemRule", {"rule": "addSystemRule"}, change, "rule", lambda v: v["action"] == "allow",
             lambda v: v["action"] == "deny"),
            ("deleteSystemRule", {"rule": "addSystemRule"}, None, "rule", lambda v: v["action"] == "deny", None),
            ("setReviewTask", {"task": 7}, {"state": "closed"}, "task 7", lambda v: v["state"] == "open",
             lambda v: v["state"] == "closed"),
        ]
        routes = {op["operationId"]: (method.upper(), path) for path, item in s.openapi["paths"].items()
                  for method, op in item.items() if method != "get"}
        assert {c[0] for c in cases} | NO_CHANGE == set(routes)
        caller = s.get("/session")["name"]
        for name, values, body, *wanted in cases:
            method, template = routes[name]
            path = template
            for k, v in values.items():
                path = path.replace("{" + k + "}", str(made.get(v, v)))
            last = s.get("/audit?limit=1")["items"][0]["id"]
            a = s.ask(method, path, body)
            assert a.status < 300, (name, a)
            made[name] = a.json.get("id") if a.body else None
            rows = [r for r in s.get("/audit")["items"] if r["id"] > last]
            assert len(rows) == 1, (name, rows)
            row, = rows
            assert (row["principal"], row["action"], row["outcome"]) == (caller, f"{method} {template}", "made"), (name, row)
            assert abs(time.mktime(time.strptime(row["at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone - time.time()) < 60
            wanted[0] = {"id": made[name], "rule": f"rule {made[name]}"}.get(wanted[0], wanted[0])
            for key, want in zip(("object", "before", "after"), wanted):
                assert want(row[key]) if callable(want) else row[key] == want, (name, key, row)
