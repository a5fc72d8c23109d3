# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: workspaces, their rules and settings, and the rules of the host. Running sandboxes follow."""
import concurrent.futures
import json
import os
import signal
import subprocess
import time

import pytest

from ctl import ctl
from sbxd import service, wait_for
from test_control import running
from test_database import FILL, held, shell, small  # noqa: F401
from test_sbxd_access import PORT, TCP, new_token

RULES = "/workspaces/w/sandbox/rules"
SETTINGS = "/workspaces/w/sandbox/settings"
SYSTEM = "/sandbox/system-rules"

# Says once a line whether a connection is there, and whether one that it holds was cut.
TRIES = """
import socket, sys, time
def connect():
    try:
        return socket.create_connection(("allowed.test", 7000), timeout=5)
    except OSError:
        return None
held = None
for line in sys.stdin:
    if line.strip() == "try":
        s = connect()
        print("open" if s else "refused", flush=True)
        if s:
            s.close()
    elif line.strip() == "hold":
        held = connect()
        print("held" if held else "refused", flush=True)
    else:
        held.settimeout(5)
        try:
            print("cut" if held.recv(1) == b"" else "data", flush=True)
        except ConnectionError:
            print("cut", flush=True)
        except TimeoutError:
            print("open", flush=True)
"""


def asks(p, word):
    p.stdin.write(word + "\n")
    p.stdin.flush()
    return p.stdout.readline().strip()


def test_a_running_sandbox_follows(sbx):
    with service(sbx) as s, running(sbx, ["/usr/bin/python3", "-c", TRIES], ["--workspace", "w"], stdin=subprocess.PIPE) as (p, _):
        assert asks(p, "try") == "refused"
        a = s.ask("POST", RULES, {"pattern": "allowed.test:7000", "action": "allow", "note": "a test"}, status=201)
        rule = a.json
        assert rule["followed"] == {"sandboxes": 1, "failed": 0, "cut": 0, "failures": []}
        assert (rule["workspace"], rule["type"], rule["priority"], rule["enabled"], rule["is_floor"]) == ("w", "network", 100, True, False)
        assert rule["created_by"] == s.get("/session")["name"] and rule["changed_at"] is None
        assert asks(p, "try") == "open" and asks(p, "hold") == "held"
        one = s.get("/sandboxes?state=running")["items"][0]["id"]
        wait_for(lambda: len(s.get(f"/sandboxes/{one}")["flows"]) == 1)  # the one that was tried is over
        off = s.ask("PATCH", f"{RULES}/{rule['id']}", {"enabled": False}, {"If-Match": a.headers["ETag"]}, status=200)
        # once a second a launcher looks by itself, and then has cut it before it is told
        assert off.json["followed"]["cut"] in (0, 1) and off.json["enabled"] is False
        assert asks(p, "cut?") == "cut" and asks(p, "try") == "refused"
        assert s.ask("PATCH", f"{RULES}/{rule['id']}", {"enabled": True}, status=200).json["changed_by"] == rule["created_by"]
        assert asks(p, "hold") == "held"
        gone = s.ask("DELETE", f"{RULES}/{rule['id']}", status=200).json
        assert gone["id"] == rule["id"] and gone["followed"]["sandboxes"] == 1
        assert asks(p, "cut?") == "cut" and asks(p, "try") == "refused"
        s.ask("GET", f"{RULES}/{rule['id']}", status=404)
        cuts = []
        for _ in range(4):
            again = s.ask("POST", RULES, {"pattern": "allowed.test:7000", "action": "allow"}, status=201).json["id"]
            assert asks(p, "hold") == "held"
            cuts.append(s.ask("DELETE", f"{RULES}/{again}", status=200).json["followed"]["cut"])
            assert asks(p, "cut?") == "cut"
        assert 1 in cuts and set(cuts) <= {0, 1}
        # the workspace's default, and a rule of the host over it
        assert s.ask("PUT", SETTINGS, {"network_default_action": "allow"}, status=200).json["followed"]["sandboxes"] == 1
        assert asks(p, "try") == "open"
        host = s.ask("POST", SYSTEM, {"pattern": "allowed.test", "action": "deny", "is_floor": True}, status=201).json
        assert host["workspace"] is None and host["is_floor"] and host["followed"]["sandboxes"] == 1, host["followed"]
        assert asks(p, "try") == "refused"
        s.ask("DELETE", f"{SYSTEM}/{host['id']}", status=200)
        assert asks(p, "try") == "open"
        # another workspace has nothing to do with it
        other = s.ask("POST", "/workspaces/v/sandbox/rules", {"pattern": "allowed.test", "action": "deny"}, status=201).json
        assert other["followed"]["sandboxes"] == 0 and asks(p, "try") == "open"


def test_tags(sbx):
    with service(sbx) as s:
        one = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201)
        path = f"{RULES}/{one.json['id']}"
        got = s.ask("GET", path, status=200)
        assert got.headers["ETag"] == one.headers["ETag"]
        for header in (got.headers["ETag"], "W/" + got.headers["ETag"], f'"x", {got.headers["ETag"]}', "*"):
            same = s.ask("GET", path, headers={"If-None-Match": header}, status=304)
            assert same.body == b"" and same.headers["ETag"] == got.headers["ETag"]
        s.ask("PATCH", path, {"priority": 7}, {"If-Match": '"x"'}, status=412)
        s.ask("PATCH", path, {"priority": 7}, {"If-Match": "W/" + got.headers["ETag"]}, status=412)
        assert s.get(path)["priority"] == 100
        changed = s.ask("PATCH", path, {"priority": 7}, {"If-Match": got.headers["ETag"]}, status=200)
        assert changed.json["priority"] == 7 and changed.headers["ETag"] != got.headers["ETag"]
        s.ask("GET", path, headers={"If-None-Match": got.headers["ETag"]}, status=200)
        # sbxctl's changes count as well
        assert ctl(sbx, "rules", "set", str(one.json["id"]), "--note", "by hand").rc == 0
        s.ask("DELETE", path, headers={"If-Match": changed.headers["ETag"]}, status=412)
        s.ask("DELETE", path, headers={"If-Match": "*"}, status=200)
        for where in (RULES, SETTINGS, SYSTEM):
            tag = s.ask("GET", where, status=200).headers["ETag"]
            s.ask("GET", where, headers={"If-None-Match": tag}, status=304)
        first = s.ask("GET", SETTINGS, status=200).headers["ETag"]
        set_ = s.ask("PUT", SETTINGS, {"network_default_action": "deny"}, {"If-Match": first}, status=200)
        s.ask("PUT", SETTINGS, {"network_default_action": "allow"}, {"If-Match": first}, status=412)
        assert s.ask("GET", SETTINGS, status=200).headers["ETag"] == set_.headers["ETag"]
        assert s.get(SETTINGS)["network_default_action"] == "deny"
        s.ask("PUT", SETTINGS, {"network_default_action": None}, status=200)
        assert s.get(SETTINGS)["network_default_action"] is None


HOSTILE = ["' OR 1=1 --", "x'); DROP TABLE sandbox_rule; --", "*", "..", "-1", "0", "1.0", "1e1", "99999999999999999999", "%00", "%0a",
           "%2e%2e%2f", "\u202e1", "1;", "+1"]


@pytest.mark.parametrize("body, field", [
    ({"action": "allow"}, "pattern"),
    ({"pattern": "a.test"}, "action"),
    ({"pattern": "", "action": "allow"}, "pattern"),
    ({"pattern": "a b", "action": "allow"}, "pattern"),
    ({"pattern": "a.test:99999", "action": "allow"}, "pattern"),
    ({"pattern": "a\n.test", "action": "allow"}, "pattern"),
    ({"pattern": "a\x00.test", "action": "allow"}, "body"),
    ({"pattern": "'; DROP TABLE sandbox_rule; --", "action": "allow"}, "pattern"),
    ({"pattern": "a" * 513, "action": "allow"}, "pattern"),
    ({"pattern": "a.test", "action": "maybe"}, "action"),
    ({"pattern": "a.test", "action": "allow", "type": "mount"}, "type"),
    ({"pattern": "a.test", "action": "allow", "priority": -1}, "priority"),
    ({"pattern": "a.test", "action": "allow", "priority": 1000001}, "priority"),
    ({"pattern": "a.test", "action": "allow", "priority": 1.5}, "priority"),
    ({"pattern": "a.test", "action": "allow", "enabled": 1}, "enabled"),
    ({"pattern": "a.test", "action": "allow", "note": "n" * 1025}, "note"),
    ({"pattern": "a.test", "action": "allow", "is_floor": True}, "is_floor"),
    ({"pattern": "a.test", "action": "allow", "workspace": "v"}, "workspace"),
    ({"pattern": "../tool", "action": "allow", "type": "tool"}, "pattern")])
def test_refused_rules(sbx, body, field):
    with service(sbx) as s:
        a = s.ask("POST", RULES, body)
        assert a.status in (400, 422) and a.json["field"] == field, a
        assert s.get(RULES)["items"] == []


def test_hostile_ids_and_names(sbx):
    with service(sbx) as s:
        rule = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201).json
        before = sbx.rows("SELECT * FROM sandbox_rule")
        for word in HOSTILE:
            quoted = word if word.startswith("%") else "".join(f"%{b:02x}" for b in word.encode())
            for method, body in (("GET", None), ("PATCH", {"action": "deny"}), ("DELETE", None)):
                assert s.ask(method, f"{RULES}/{quoted}", body).status == 404
                assert s.ask(method, f"{SYSTEM}/{quoted}", body).status == 404
        # a rule belongs to its workspace, and to no other
        for place in ("/workspaces/v/sandbox/rules", SYSTEM):
            assert s.ask("PATCH", f"{place}/{rule['id']}", {"action": "deny"}).status == 404
            assert s.ask("DELETE", f"{place}/{rule['id']}").status == 404
        assert s.ask("DELETE", f"{RULES}/{s.get(SYSTEM)['items'][0]['id']}").status == 404
        for name in ("a b", "a/b", "", "x" * 129, "\u00e9"):
            assert s.ask("POST", "/workspaces", {"name": name}, status=422).json["field"] == "name"
        name = "x');DROP-TABLE-workspace;--"
        assert s.ask("POST", "/workspaces", {"name": name}, status=201).json["name"] == name
        assert name in [w["name"] for w in s.get("/workspaces")["items"]]
        assert sbx.rows("SELECT * FROM sandbox_rule") == before
        s.ask("POST", RULES, {"pattern": "a" * 63 + ".test", "action": "deny", "note": "'); DELETE FROM sandbox_rule; --"}, status=201)
        assert s.get(RULES)["items"][-1]["note"] == "'); DELETE FROM sandbox_rule; --"


def test_floors_are_shown_and_stay(sbx):
    with service(sbx) as s:
        rules = s.get(SYSTEM)["items"]
        floor = next(r for r in rules if r["pattern"] == "ipinfo.io")
        assert floor["is_floor"] and floor["note"] == "shipped" and floor["workspace"] is None
        a = s.ask("DELETE", f"{SYSTEM}/{floor['id']}", status=409)
        assert a.json["code"] == "floor" and "enforces" in a.json["detail"]
        s.ask("PATCH", f"{SYSTEM}/{floor['id']}", {"enabled": False}, status=409)
        assert s.get(SYSTEM)["items"] == rules
        assert s.ask("POST", SYSTEM, {"pattern": "a.test", "action": "allow", "is_floor": True}, status=422).json["field"] == "action"
        own = s.ask("POST", SYSTEM, {"pattern": "a.test", "action": "deny", "is_floor": True}, status=201).json
        assert s.ask("PATCH", f"{SYSTEM}/{own['id']}", {"action": "allow"}, status=422)
        s.ask("DELETE", f"{SYSTEM}/{own['id']}", status=200)
        assert s.get(SYSTEM)["items"] == rules


def test_pages_and_workspaces(sbx):
    with service(sbx) as s:
        made = [s.ask("POST", RULES, {"pattern": f"h{i}.test", "action": "allow", "priority": 50 - i}, status=201).json["id"] for i in range(5)]
        s.ask("POST", "/workspaces/v/sandbox/rules", {"pattern": "ls", "action": "allow", "type": "tool"}, status=201)
        ids, cursor = [], ""
        while True:
            page = s.get(f"{RULES}?limit=2{cursor}")
            ids += [r["id"] for r in page["items"]]
            if not page["next_cursor"]:
                break
            cursor = "&cursor=" + page["next_cursor"]
        assert ids == made[::-1]
        s.ask("POST", "/workspaces", {"name": "new", "network_default_action": "allow"}, status=201)
        s.ask("POST", "/workspaces", {"name": "new"}, status=409)
        assert [(w["name"], w["network_default_action"], w["n_rules"]) for w in s.get("/workspaces")["items"]] == [
            ("new", "allow", 0), ("v", None, 1), ("w", None, 5)]
        assert s.get("/workspaces/nothing/sandbox/rules")["items"] == []


LOCKED_S = 5


def at_once(asks):
    """Calls each in a thread of its own; what they return, in their order."""
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
        return list(pool.map(lambda ask: ask(), asks))


def test_a_locked_database(sbx):
    """A change waits some seconds for it. The service serves others meanwhile."""
    assert sbx.run([], ["true"]).rc == 0
    with service(sbx) as s:
        rule = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201).json
        asks = [lambda: s.ask("POST", RULES, {"pattern": "b.test", "action": "allow"}),
                lambda: s.ask("PATCH", f"{RULES}/{rule['id']}", {"action": "deny"}),
                lambda: s.ask("DELETE", f"{RULES}/{rule['id']}"),
                lambda: s.ask("PUT", SETTINGS, {"network_default_action": "deny"}),
                lambda: s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]})]
        with held(sbx):
            assert s.get(RULES)["items"] and s.get("/workspaces")["items"] and s.get("/sandboxes")["items"]
            start = time.monotonic()
            answers = at_once([lambda ask=ask: (ask(), time.monotonic() - start) for ask in asks])
            for a, seconds in answers:
                assert a.status == 503 and a.json["code"] == "busy" and LOCKED_S <= seconds < LOCKED_S + 2, (a, seconds)
            assert len(s.get(RULES)["items"]) == 1
        s.ask("POST", RULES, {"pattern": "b.test", "action": "allow"}, status=201)
        assert len(s.get(RULES)["items"]) == 2 and len(s.get("/sandboxes")["items"]) == 1


def test_many_changes_wait_for_a_locked_database(sbx):
    """Each is made once, when it is free; questions are answered at once."""
    with service(sbx) as s, concurrent.futures.ThreadPoolExecutor(1) as pool:
        asks = [lambda n=n: s.ask("POST", RULES, {"pattern": f"a{n}.test", "action": "allow"}).status for n in range(60)]
        asks += [lambda n=n: s.ask("POST", "/tokens", {"name": f"t{n}", "role": "viewer"}).status for n in range(20)]
        asks += [lambda: s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}).status for _ in range(20)]
        with held(sbx):
            statuses = pool.submit(at_once, asks)
            end, slowest = time.monotonic() + 2, 0
            while time.monotonic() < end:
                start = time.monotonic()
                s.get("/sandboxes?state=live")
                slowest = max(slowest, time.monotonic() - start)
            assert not statuses.done() and s.get(RULES)["items"] == []
        assert statuses.result(30) == [201] * 100
        print(f"slowest question {slowest:.3f} s")
        assert slowest < 2
        rules, tokens = s.get(RULES + "?limit=1000")["items"], s.get("/tokens")["items"]
        assert sorted(r["pattern"] for r in rules) == sorted(f"a{n}.test" for n in range(60)) and len(tokens) == 20
        assert len(s.get("/audit?limit=1000")["items"]) == 100 and len(s.get("/sandboxes")["items"]) == 20


def test_a_stopped_launcher_is_named(sbx):
    with service(sbx) as s, running(sbx, args=["--profile", "none", "--workspace", "w"]) as (p, _):
        os.kill(p.pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            a = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201, timeout=30)
            assert time.monotonic() - start < 15
            assert a.json["followed"]["failed"] == 1 and a.json["followed"]["failures"][0]["detail"]
        finally:
            os.kill(p.pid, signal.SIGCONT)
        wait_for(lambda: s.get(RULES)["items"])


def test_a_token_of_a_workspace_changes_no_other(sbx):
    with service(sbx, TCP) as s:
        there = s.ask("POST", "/workspaces/v/sandbox/rules", {"pattern": "v.test", "action": "allow"}, status=201).json["id"]
        w = s.tcp(PORT, new_token(sbx, "w", "--role", "operator", "--workspace", "w"))
        rule = w.ask("POST", RULES, {"pattern": "w.test", "action": "allow"}, status=201).json
        assert rule["created_by"] == "token w" and [x["name"] for x in w.get("/workspaces")["items"]] == ["w"]
        before = sbx.rows("SELECT * FROM sandbox_rule"), sbx.rows("SELECT * FROM workspace")
        for method, path, body in (
                ("GET", "/workspaces/v/sandbox/rules", None),
                ("POST", "/workspaces/v/sandbox/rules", {"pattern": "a.test", "action": "allow"}),
                ("GET", f"/workspaces/v/sandbox/rules/{there}", None),
                ("GET", f"{RULES}/{there}", None),
                ("PATCH", f"{RULES}/{there}", {"action": "deny"}),
                ("DELETE", f"{RULES}/{there}", None),
                ("DELETE", f"/workspaces/v/sandbox/rules/{there}", None),
                ("GET", "/workspaces/v/sandbox/settings", None),
                ("PUT", "/workspaces/v/sandbox/settings", {"network_default_action": "allow"}),
                ("POST", "/workspaces", {"name": "v"})):
            w.ask(method, path, body, status=404)
        assert len(w.get(SYSTEM)["items"]) == len(s.get(SYSTEM)["items"])
        w.ask("POST", SYSTEM, {"pattern": "a.test", "action": "deny"}, status=403)
        view = s.tcp(PORT, new_token(sbx, "view", "--role", "viewer"))
        for method, path, body in (("POST", RULES, {"pattern": "a.test", "action": "allow"}), ("DELETE", f"{RULES}/{rule['id']}", None),
                                   ("PATCH", f"{RULES}/{rule['id']}", {"action": "deny"}), ("POST", "/workspaces", {"name": "x"}),
                                   ("PUT", SETTINGS, {"network_default_action": "allow"}), ("POST", SYSTEM, {"pattern": "a.test", "action": "deny"})):
            view.ask(method, path, body, status=403)
        assert before == (sbx.rows("SELECT * FROM sandbox_rule"), sbx.rows("SELECT * FROM workspace"))


def test_each_change_leaves_an_audit_row(sbx):
    with service(sbx) as s:
        rule = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201).json
        s.ask("PATCH", f"{RULES}/{rule['id']}", {"action": "deny"}, status=200)
        s.ask("PATCH", f"{RULES}/{rule['id']}", {"action": "allow"}, {"If-Match": '"x"'}, status=412)
        s.ask("DELETE", f"{RULES}/{rule['id']}", status=200)
        s.ask("PUT", SETTINGS, {"network_default_action": "deny"}, status=200)
        s.ask("POST", "/workspaces", {"name": "new"}, status=201)
        rows = sbx.rows("SELECT * FROM api_audit ORDER BY id")
        assert [(r["action"], r["object"]) for r in rows] == [
            ("POST /workspaces/{workspace}/sandbox/rules", f"rule {rule['id']}"),
            ("PATCH /workspaces/{workspace}/sandbox/rules/{rule}", f"rule {rule['id']}"),
            ("DELETE /workspaces/{workspace}/sandbox/rules/{rule}", f"rule {rule['id']}"),
            ("PUT /workspaces/{workspace}/sandbox/settings", "w"), ("POST /workspaces", "new")]
        added, changed, removed, setting, made = ([json.loads(r[k]) if r[k] else None for k in ("before_json", "after_json")] for r in rows)
        assert added[0] is None and added[1]["action"] == "allow"
        assert (changed[0]["action"], changed[1]["action"]) == ("allow", "deny") and changed[1] == removed[0]
        assert removed[1] is None and setting[1]["network_default_action"] == "deny" and made[1]["name"] == "new"
        assert {r["principal"] for r in rows} == {s.get("/session")["name"]}


def test_a_full_disk(sbx, small):  # noqa: F811
    small(sbx.state)
    with service(sbx) as s:
        rule = s.ask("POST", RULES, {"pattern": "a.test", "action": "allow"}, status=201).json
        assert shell(sbx, FILL, sbx.state) == (0, "")
        failed = None
        for i in range(200):
            a = s.ask("POST", RULES, {"pattern": f"n{i}.test", "action": "allow", "note": "n" * 1000})
            if a.status != 201:
                failed = a
                break
        assert failed and failed.status == 507 and failed.json["code"] == "full", failed
        rules = s.get(RULES + "?limit=1000")["items"]
        assert rule["id"] in [r["id"] for r in rules] and s.get("/events")["items"] == []
        s.ask("GET", "/readyz", status=503)
        assert shell(sbx, "rm fill", sbx.state) == (0, "")
        s.ask("POST", RULES, {"pattern": "later.test", "action": "allow"}, status=201)
        assert len(s.get(RULES + "?limit=1000")["items"]) == len(rules) + 1
