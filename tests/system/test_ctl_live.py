# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl's commands of running sandboxes, with launchers that answer as the test says (test_control.py has real ones)."""
import re

import pytest

from ctl import Launcher, add_sandbox, ctl, ctl_json, database, in_terminal, now_ms, plain

A, B, C = "a" * 12, "ab" + "0" * 10, "c" * 12

CHANGED = {"ok": True, "generation": 4, "cut": 2, "air_gapped": True, "allow_out": ["a.test"], "deny_out": []}
REFUSED = {"ok": False, "code": "invalid", "error": "deny_out[0]: '*.com' is a public suffix\033[2J", "field": "deny_out[0]"}


def shown(sandbox_id):
    return {"ok": True, "sandbox": {
        "id": sandbox_id, "state": "running", "profile": "default", "workspace": "shop", "analysis_id": None,
        "command": ["curl", "https://example.org/"], "pid": 4711, "started_ms": now_ms() - 200000, "wall_left_ms": 60000,
        "generation": 4, "air_gapped": True, "allow_out": ["a.test"], "deny_out": ["\033[2J.test"],
        "network": {"mode": "fetch", "attach": "netns"},
        "policy": [{"entry": "a.test", "action": "allow", "layer": "live", "origin": "flag"},
                   {"entry": "*.example.org:443", "action": "allow", "layer": "profile", "origin": "default.yaml:12"}],
        "flows": [{"name": "example.org", "ip": "192.0.2.7", "port": 443, "protocol": "tcp", "bytes_out": 2048,
                   "bytes_in": 1258291, "since_ms": now_ms() - 65000, "rule": "*.example.org:443"}],
        "limits": {"pids": 1024}, "usage": {"cpu_us": 250000, "memory_peak_bytes": 3145728, "pids_peak": 7, "pids_refused": 0, "oom_kills": 2}, "ruleset": "table inet sbx {\n}\n",
        "selftest": [], "execs": [], "published": ["127.0.0.1:8080:80"]}}


def test_net(sbx):
    with Launcher(sbx, A, lambda _: CHANGED) as launcher, Launcher(sbx, C, lambda _: CHANGED) as other:
        r = ctl(sbx, "net", "aa", "--air-gap", "--allow", "a.test", "--allow", "b.test", "--deny", "c.test")
        assert (r.rc, r.out) == (0, f"{A}: generation 4, air gap, 2 flows cut\n")
        changed = ctl_json(sbx, "net", A, "--no-air-gap", "--replace", "--deny", "c.test")
        assert changed == {"id": A, **{k: v for k, v in CHANGED.items() if k != "ok"}}
        assert ctl(sbx, "net", "aa", "--rule", "allow a.test GET").rc == 0
        assert ctl(sbx, "reload", A).rc == 0
    assert launcher.requests == [
        {"v": 1, "op": "network", "air_gapped": True, "add_allow": ["a.test", "b.test"], "add_deny": ["c.test"]},
        {"v": 1, "op": "network", "air_gapped": False, "allow_out": [], "deny_out": ["c.test"], "rules": []},
        {"v": 1, "op": "network", "rules": ["allow a.test GET"]},
        {"v": 1, "op": "reload", "what": "all"}]
    assert other.requests == []


def test_net_below_a_shipped_floor(sbx):
    with Launcher(sbx, A, lambda _: CHANGED):
        r = ctl(sbx, "net", A, "--allow", "ipinfo.io", "--allow", "a.test")
        assert r.rc == 0 and r.err == "sbxctl: ipinfo.io stays refused by the floor ipinfo.io: the entry changes nothing\n", r
        assert ctl(sbx, "net", A, "--deny", "ipinfo.io").err == ""


def test_net_refused(sbx):
    with Launcher(sbx, A, lambda _: REFUSED) as launcher, Launcher(sbx, B, lambda _: CHANGED):
        r = ctl(sbx, "net", "aa", "--deny", "*.com")
        assert r.rc == 1 and r.out == "" and "'*.com' is a public suffix" in r.err and "\033" not in r.err
        assert ctl(sbx, "net", "ab", "--deny", "*.com").rc == 0  # the twin
        assert ctl(sbx, "net", "a", "--deny", "*.com").rc == 1  # which of the two?
        n = len(launcher.requests)
        for args in (["net", A], ["net", A, "--air-gap", "--no-air-gap"], ["net", A, "--allow", ""], ["net"]):
            assert ctl(sbx, *args).rc == 2
        assert len(launcher.requests) == n  # nothing was sent
        assert ctl(sbx, "net", "cc", "--air-gap").rc == 1


def test_show(sbx):
    with Launcher(sbx, A, lambda _: shown(A)):
        assert ctl_json(sbx, "show", "aa")["sandbox"]["flows"][0]["bytes_in"] == 1258291
        out = ctl(sbx, "show", "aa").out
        assert "\033" not in out and "\\x1b[2J.test" in out
        assert re.search(r"^policy +generation 4, air gap$", out, re.M) and re.search(r"^published +127.0.0.1:8080:80$", out, re.M)
        assert re.search(r"^\*\.example\.org:443  allow +profile +default.yaml:12$", out, re.M)
        assert re.search(r"^example\.org +192\.0\.2\.7 +443 +tcp +2\.0 KiB  1\.1 MiB +1m  \*\.example", out, re.M)
        assert re.search(r"^usage +cpu 0\.25s, memory at most 3\.0 MiB, processes at most 7, OOM kills 2$", out, re.M), out
        assert "table inet" not in out
        assert "table inet sbx {\n}\n" in ctl(sbx, "show", "aa", "--ruleset").out
        rc, text = in_terminal(sbx, "show", "aa", width=60)
        assert rc == 0 and "example.org" in plain(text)


def test_show_falls_back(sbx):
    """The launcher does not answer; the database has the row."""
    db = database(sbx)
    add_sandbox(db, A, alive=True)
    assert ctl_json(sbx, "show", "aa")["sandbox"]["state"] == "running"
    with Launcher(sbx, A, lambda _: {"ok": False, "code": "gone", "error": "the sandbox is ending"}):
        assert ctl_json(sbx, "show", "aa")["sandbox"]["launcher_alive"]


def test_signals(sbx):
    def answer(_):
        return {"ok": True}
    with Launcher(sbx, A, answer) as first, Launcher(sbx, C, answer) as second:
        assert ctl(sbx, "kill", "aa", "cc").out == f"{A}: killed\n{C}: killed\n"
        for word in ("HUP", "SIGHUP", "hup", "1"):
            assert ctl(sbx, "signal", word, "aa").rc == 0
        assert ctl(sbx, "kill", "--signal", "TERM", "aa").rc == 0
        assert ctl(sbx, "freeze", "aa").rc == 0 and ctl(sbx, "thaw", "aa").rc == 0
        assert ctl(sbx, "signal", "NONE", "aa").rc == 2 and ctl(sbx, "kill", "-s", "99", "aa").rc == 2
        r = ctl(sbx, "kill", "aa", "ee", "cc")
        assert r.rc == 1 and r.out == f"{A}: killed\n{C}: killed\n" and "ee" in r.err and r.err.count("\n") == 1
        done = ctl_json(sbx, "kill", "aa", "ee", rc=1)["sandboxes"]
        assert [(s["id"], s["done"]) for s in done] == [(A, True), ("ee", False)]
    ops = [{k: v for k, v in r.items() if k != "v"} for r in first.requests]
    assert ops[:8] == [{"op": "kill"}] + 4 * [{"op": "signal", "signal": "HUP"}] + [
        {"op": "signal", "signal": "TERM"}, {"op": "freeze", "frozen": True}, {"op": "freeze", "frozen": False}]
    assert len(second.requests) == 2


def test_publish(sbx):
    with Launcher(sbx, A, lambda r: {"ok": True, "published": r.get("ports", [])}) as launcher:
        assert ctl(sbx, "publish", "aa", "8080", "127.0.0.1:0:8081").out == "8080\n127.0.0.1:0:8081\n"
        assert ctl_json(sbx, "publish", "aa")["published"] == []
    assert launcher.requests[0]["ports"] == ["8080", "127.0.0.1:0:8081"] and "ports" not in launcher.requests[1]


# --- launchers follow rules ---

@pytest.mark.parametrize("change", [
    ["rules", "add", "--workspace", "shop", "--action", "allow", "a.test"],
    ["workspace", "set", "shop", "--network-default", "deny"]], ids=lambda c: c[0])
def test_followed(sbx, change):
    db = database(sbx)
    for sandbox, workspace in ((A, "shop"), (B, "shop"), (C, "other")):
        add_sandbox(db, sandbox, workspace=workspace)
    with Launcher(sbx, A, lambda _: CHANGED) as a, Launcher(sbx, B, lambda _: CHANGED) as b, \
            Launcher(sbx, C, lambda _: CHANGED) as other:
        r = ctl(sbx, *change)
        assert r.rc == 0 and r.err == "sbxctl: 2 sandboxes follow, 4 flows cut\n"
        assert a.requests == b.requests == [{"v": 1, "op": "reload", "what": "rules"}] and other.requests == []
        assert ctl(sbx, "rules", "add", "--host", "--action", "deny", "b.test").err == "sbxctl: 3 sandboxes follow, 6 flows cut\n"
        assert len(other.requests) == 1


def test_one_does_not_follow(sbx):
    """It is named, and the exit status is 1; the rule is there."""
    db = database(sbx)
    for sandbox in (A, B, C):
        add_sandbox(db, sandbox, workspace="shop")
    with Launcher(sbx, A, lambda _: CHANGED), Launcher(sbx, B, lambda _: REFUSED):
        r = ctl(sbx, "rules", "add", "--workspace", "shop", "--action", "allow", "a.test")
        assert r.rc == 1 and r.out.strip().isdigit()
        assert f"sandbox {B} does not follow" in r.err and A not in r.err
        assert C not in r.err  # it has no launcher: there is nobody to follow
        assert "1 sandbox does not follow" in r.err
    added = [x for x in ctl_json(sbx, "rules", "list")["rules"] if not x["floor"]]
    assert [x["pattern"] for x in added] == ["a.test"]
    with Launcher(sbx, C, lambda _: {"ok": False, "code": "gone", "error": "it ends"}):
        followed = ctl_json(sbx, "rules", "rm", added[0]["id"], name="rules-rm")["followed"]
    assert followed == {"sandboxes": 0, "failed": 0, "cut": 0}
