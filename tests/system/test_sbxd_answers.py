# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: what it explains, profiles, and figures: of a sandbox, of the list, for Prometheus."""
import concurrent.futures
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import INST
from sbxd import service, wait_for
from test_control import running
from test_sbxd_access import PORT, TCP, new_token

NET = """
name: net
description: two hosts
network:
  mode: fetch
  allow: ["files.test:443", "files.test:80"]
"""
BUSY = ["sh", "-c", "while :; do :; done"]


def explain(s, status=200, **question):
    return s.ask("POST", "/explain", question, status=status).json


# --- explain ---

def test_a_denial_is_an_answer(sbx):
    sbx.profile("net", NET)
    with service(sbx) as s:
        assert explain(s, profile="net", protocol="tcp", host="files.test", port=443)["verdict"] == "allow"
        denied = explain(s, profile="net", protocol="tcp", host="other.test", port=443)
        assert denied["verdict"] == "deny" and denied["changes"] and denied["reason"] == "default_deny"
        assert explain(s, profile="net", protocol="udp", host="files.test", port=443)["verdict"] == "deny"
        assert explain(s, mount="/etc/shadow")["verdict"] == "deny"
        assert explain(s, command="true")["verdict"] == "allow"
        assert explain(s, protocol="tcp", host="x.test", port=1, method="PUT", path="/a", address="192.0.2.1")["verdict"]


@pytest.mark.parametrize("question, field", [
    ({}, "protocol"),
    ({"protocol": "tcp"}, "host"),
    ({"protocol": "tcp", "host": "a.test"}, "port"),
    ({"protocol": "icmp", "host": "a.test", "port": 1}, "protocol"),
    ({"protocol": "tcp", "host": "a.test", "port": 0}, "port"),
    ({"protocol": "tcp", "host": "a.test", "port": 65536}, "port"),
    ({"protocol": "tcp", "host": "--id=000000000000", "port": 1}, "host"),
    ({"protocol": "tcp", "host": "", "port": 1}, "host"),
    ({"protocol": "tcp", "host": "a.test", "port": 1, "mount": "/x"}, "protocol"),
    ({"mount": "/x", "port": 1}, "port"),
    ({"mount": "-x"}, "mount"),
    ({"command": "--help"}, "command"),
    ({"command": "x", "profile": "/etc/passwd"}, "profile"),
    ({"command": "x", "profile": "../x"}, "profile"),
    ({"command": "x", "profile": "--id"}, "profile"),
    ({"command": "x", "workspace": "--id"}, "workspace"),
    ({"command": "x", "profile": "none", "id": "000000000000"}, "id"),
    ({"command": "x", "colour": "red"}, "colour")])
def test_refused_questions(sbx, question, field):
    with service(sbx) as s:
        assert explain(s, 422, **question)["field"] == field


def test_questions_that_cannot_be_answered(sbx):
    with service(sbx) as s:
        assert "nosuch" in explain(s, 422, command="x", profile="nosuch")["detail"]
        assert explain(s, 404, command="x", id="000000000000")["code"] == "unknown"
        assert explain(s, 404, command="x", id="' OR 1=1")["code"] == "unknown"


def test_a_live_sandbox_is_explained_as_it_is_now(sbx):
    sbx.profile("net", NET)
    with service(sbx) as s, running(sbx, args=["--profile", "net"]):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        question = {"id": one, "protocol": "tcp", "host": "files.test", "port": 443}
        assert explain(s, **question)["verdict"] == "allow"
        s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": True}, status=200)
        answer = explain(s, **question)
        assert (answer["verdict"], answer["reason"], answer["generation"]) == ("deny", "air_gap", 2)
        assert explain(s, id=one, mount="/etc/shadow")["verdict"] == "deny"


def test_a_draft_of_a_rule_is_judged_before_it_is_saved(sbx):
    """A draft decides or names what stands above it; it is not stored; a viewer of a workspace asks for its own alone."""
    sbx.profile("net", NET)
    with service(sbx) as s:
        flow = {"profile": "net", "workspace": "w", "protocol": "tcp", "port": 443}
        base = "/workspaces/w/sandbox/rules"
        assert "draft" not in explain(s, **flow, host="files.test")
        a = explain(s, **flow, host="files.test", rule={"action": "deny", "pattern": "files.test", "note": "x"})
        assert (a["verdict"], a["draft"]["decides"], a["draft"]["matches"], a["draft"]["above"]) == ("deny", True, True, None), a
        a = explain(s, **flow, host="ipinfo.io", rule={"action": "allow", "pattern": "ipinfo.io", "priority": 0})
        assert (a["verdict"], a["reason"], a["draft"]["decides"]) == ("deny", "floor", False), a
        assert a["draft"]["above"] == {"layer": "floor", "action": "deny", "text": "ipinfo.io", "origin": "shipped", "decided": True}
        assert s.get(base)["items"] == []
        first = s.ask("POST", base, {"action": "deny", "pattern": "*.test", "priority": 10}, status=201).json["id"]
        allow = {"action": "allow", "pattern": "other.test"}
        a = explain(s, **flow, host="other.test", rule=allow)
        assert (a["verdict"], a["draft"]["above"]["origin"], a["draft"]["matches"]) == ("deny", f"rule {first}", True), a
        for more in {"priority": 9}, {"id": first}:
            a = explain(s, **flow, host="other.test", rule={**allow, **more})
            assert (a["verdict"], a["draft"]["decides"]) == ("allow", True), (more, a)
        assert explain(s, **{**flow, "workspace": "v"}, host="other.test", rule=allow)["verdict"] == "allow"
        a = explain(s, workspace="w", command="true", rule={"action": "deny", "pattern": "true", "type": "tool"})
        assert (a["verdict"], a["draft"]["decides"]) == ("deny", True), a
        assert len(s.get(base)["items"]) == 1 and s.get("/audit")["items"][0]["object"] != "explain"


@pytest.mark.parametrize("question, rule, field", [
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow"}, "rule.pattern"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "drop", "pattern": "a.test"}, "rule.action"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "*"}, "rule.pattern"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": ""}, "rule.pattern"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a.test\n"}, "rule.pattern"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "x" * 5000}, "rule.pattern"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a.test", "is_floor": True}, "rule.action"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a.test", "priority": -1}, "rule.priority"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a.test", "id": 0}, "rule.id"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a.test", "x": {}}, "rule.x"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, {"action": "allow", "pattern": "a", "type": "tool"}, "rule.type"),
    ({"protocol": "tcp", "host": "a.test", "port": 1}, [], "rule"),
    ({"command": "x"}, {"action": "allow", "pattern": "a"}, "rule.type"),
    ({"mount": "/x"}, {"action": "allow", "pattern": "a"}, "rule"),
    ({"id": "0" * 12, "command": "x"}, {"action": "allow", "pattern": "a", "type": "tool"}, "rule")])
def test_refused_drafts(sbx, question, rule, field):
    with service(sbx) as s:
        assert explain(s, 422, **question, rule=rule)["field"] == field


@pytest.fixture
def slow(sbx):
    """slow(TEXT): an installed sbxd beside which sbxctl is this shell script."""
    def make(text):
        inst = os.path.join(sbx.work, "inst")
        os.makedirs(os.path.join(inst, "bin"), exist_ok=True)
        if not os.path.exists(os.path.join(inst, "share")):
            os.symlink(os.path.join(INST, "share"), os.path.join(inst, "share"))
            shutil.copy(os.path.join(INST, "bin/sbxd"), os.path.join(inst, "bin/sbxd"))
        sbx.put("inst/bin/sbxctl", "#!/bin/sh\n" + text, mode=0o755)
        return os.path.join(inst, "bin/sbxd")

    return make


def test_a_child_has_a_clean_environment_and_no_input(sbx, slow):
    program = slow("""
printf '{"matches": [], "verdict": "allow", "subject": "", "reason": "", "generation": 0, "decided": null, "n_more": 0'
printf ', "changes": ["%s", "%s", "%s", "%s"]' "$(env | cut -d= -f1 | sort | tr '\\n' ' ')" "$(pwd)" "$(cat)" "$*"
printf ', "why": "%s"}' "$(ls /proc/self/fd | tr '\\n' ' ')"
""")
    with service(sbx, program=program, env={"SECRET_TOKEN": "x", "NOTIFY_SOCKET": "/nonexistent"}) as s:
        answer = explain(s, command="a b; $(c)")
        names, where, given, words = answer["changes"]
        assert "SBX_STATE_DIR" in names and "SECRET" not in names and "NOTIFY" not in names
        assert (where, given, words) == ("/", "", "--json explain -- command a b; $(c)")
        assert answer["why"].split() == ["0", "1", "2", "3"]  # 3: ls has its directory open


def test_a_child_that_babbles_or_dies_is_a_problem(sbx, slow):
    with service(sbx, program=slow("yes")) as s:
        assert explain(s, 502, command="x")["detail"] == "sbxctl answers more than is taken"
    with service(sbx, program=slow("kill -9 $$")) as s:
        assert explain(s, 502, command="x")["detail"] == "sbxctl was killed"
    with service(sbx, program=slow("exit 3")) as s:
        assert explain(s, 502, command="x")["detail"] == "sbxctl gave no answer"
    with service(sbx, program=slow("echo 'sbxctl: one'; echo 'sbxctl: no such thing' >&2; exit 125")) as s:
        assert explain(s, 422, command="x")["detail"] == "no such thing"


def test_a_child_that_is_late_is_killed_with_its_children(sbx, slow):
    pids = os.path.join(sbx.work, "pids")
    with service(sbx, program=slow(f"sleep 100 & echo $$ $! >>{pids}; wait")) as s:
        assert explain(s, 504, command="x")["code"] == "timed_out"
        assert s.get("/healthz")
        for pid in open(pids).read().split():
            wait_for(lambda pid=pid: not os.path.exists(f"/proc/{pid}") or "Z" in open(f"/proc/{pid}/stat").read())


def test_children_are_few_and_so_are_those_that_wait(sbx, slow):
    """8 run, 64 wait; the rest hears at once that it is too many."""
    log = sbx.put("log", "", mode=0o666)
    program = slow(f"""
echo + >>{log}; sleep 0.5; echo - >>{log}
echo '{{"matches": [], "verdict": "allow", "subject": "", "reason": "", "generation": 0, "decided": null, "n_more": 0,'
echo '"changes": [], "why": ""}}'
""")
    with service(sbx, program=program) as s, concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: s.ask("POST", "/explain", {"command": "x"}, timeout=60), range(100)))
        assert sorted(a.status for a in answers) == [200] * 72 + [503] * 28
        assert {a.json["code"] for a in answers if a.status == 503} == {"busy"}
    n = most = 0
    with open(log, encoding="ascii") as f:
        for line in f:
            n += 1 if line == "+\n" else -1
            most = max(most, n)
    assert (n, most) == (0, 8)


def test_a_caller_does_not_take_all_places(sbx, slow):
    """Of what waits for answers a caller has 64 requests, and another one is answered."""
    hold = sbx.put("hold", "")
    program = slow(f"""
while [ -e {hold} ]; do sleep 0.1; done
echo '{{"matches": [], "verdict": "allow", "subject": "", "reason": "", "generation": 0, "decided": null, "n_more": 0,'
echo '"changes": [], "why": ""}}'
""")
    with service(sbx, TCP, program=program) as s, concurrent.futures.ThreadPoolExecutor(100) as pool:
        greedy, other = (s.tcp(PORT, new_token(sbx, name, "--role", "viewer")) for name in ("greedy", "other"))

        def ask(api):
            return api.ask("POST", "/explain", {"command": "x"}, timeout=60)

        greedy.openapi, other.openapi
        many = [pool.submit(ask, greedy) for _ in range(80)]
        wait_for(lambda: sum(f.done() for f in many) == 16)
        assert {(f.result().status, f.result().json["code"], f.result().headers["Retry-After"]) for f in many if f.done()} == {
            (429, "too_many", "1")}
        one = pool.submit(ask, other)
        assert greedy.ask("GET", "/session").status == 429 and other.get("/session")["name"] == "token other"
        os.unlink(hold)
        assert one.result().status == 200 and sorted(f.result().status for f in many) == [200] * 64 + [429] * 16
        assert ask(greedy).status == 200


def test_children_end_with_the_service(sbx, slow):
    pids = os.path.join(sbx.work, "pids")
    with service(sbx, program=slow(f"echo $$ >>{pids}; exec sleep 100")) as s:
        c = s.connection()
        c.request("POST", "/explain", '{"command": "x"}', {"Content-Type": "application/json"})
        wait_for(lambda: os.path.exists(pids) and open(pids).read())
        c.close()
    wait_for(lambda: not os.path.exists("/proc/" + open(pids).read().strip()))


def test_failures_are_lines_and_not_too_many(sbx, slow):
    """One line each for a request that failed, without anything of the request; then no more."""
    with service(sbx, program=slow("echo x")) as s:
        for i in range(30):
            explain(s, 502, command=f"x{i}")
        s.p.terminate()
        lines = s.p.stderr.read().splitlines()
    assert lines == ["sbxd: POST /explain: sbxctl gave no answer"] * 10


# --- profiles ---

def test_profiles(sbx):
    sbx.profile("net", NET)
    sbx.profile("broken", "colour: red\n")
    with service(sbx) as s:
        rows = {p["name"]: p for p in s.get("/profiles")["items"]}
        assert rows["net"]["description"] == "two hosts" and rows["net"]["error"] is None and rows["default"]["file"]
        assert "colour" in rows["broken"]["error"]
        one = s.get("/profiles/net")
        assert "files.test:443" in one["yaml"] and one["error"] is None
        broken = s.get("/profiles/broken")
        assert broken["yaml"] is None and "colour" in broken["error"]
        for name in ("nosuch", "--help", "-x", "..", ".hidden", "a%2f..", "x" * 65, "'"):
            assert s.get("/profiles/" + name, status=404)["code"] == "unknown"


# --- figures of a sandbox ---

def test_a_sandboxs_metrics(sbx):
    with service(sbx) as s, running(sbx, BUSY) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        path = f"/sandboxes/{one}/metrics"
        before = s.get(path)
        assert before["memory_bytes"] > 100000 and before["pids"] >= 1 and before["flows"] == 0
        wait_for(lambda: s.get(path)["cpu_us"] >= before["cpu_us"] + 200000)
        p.terminate()
        p.wait(20)
        after = wait_for(lambda: (m := s.get(path))["memory_bytes"] is None and m)
        assert after["flows"] is None
        assert s.get("/sandboxes/000000000000/metrics", status=404)


def test_the_list_has_usage(sbx):
    with service(sbx) as s, running(sbx, BUSY):
        wait_for(lambda: s.get("/sandboxes?state=running")["items"])
        row = wait_for(lambda: [r for r in s.get("/sandboxes")["items"] if r["usage"]])[0]
        assert row["usage"]["pids"] >= 1
        wait_for(lambda: s.get("/sandboxes")["items"][0]["usage"]["cpu_us"] > row["usage"]["cpu_us"])
    with service(sbx) as s:
        assert [r["usage"] for r in s.get("/sandboxes")["items"]] == [None]


def test_a_stopped_launcher_delays_no_list(sbx):
    with service(sbx) as s, running(sbx) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        p.send_signal(signal.SIGSTOP)
        try:
            for _ in range(20):
                begun = time.monotonic()
                assert s.get("/sandboxes")["items"] and s.get("/healthz")
                assert time.monotonic() - begun < 1
                time.sleep(0.1)  # it is asked what it uses, and does not answer
            a = s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": True}, status=504, timeout=30)
            assert a.json["code"] == "timed_out"
        finally:
            p.send_signal(signal.SIGCONT)


# --- for Prometheus ---

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def parse(text):
    """{name: {labels: value}}, and the rules of the exposition format held."""
    assert text.endswith("\n")
    out, types, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in types and line.split(" ", 3)[3].endswith("."), line
            types[current] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and types[name] is None and kind in ("counter", "gauge", "histogram"), line
            types[name] = kind
            assert name.endswith("_total") == (kind == "counter"), line
        else:
            m = SAMPLE.fullmatch(line)
            assert m, line
            base = re.sub(r"_(bucket|sum|count)$", "", m[1]) if types[current] == "histogram" else m[1]
            assert base == current, line
            labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
            assert labels not in out.setdefault(m[1], {}), line
            out[m[1]][labels] = math.inf if m[3] == "+Inf" else float(m[3])
    for name, kind in types.items():
        if kind != "histogram":
            continue
        series = {}
        for labels, value in out.get(name + "_bucket", {}).items():
            series.setdefault(labels[:-1], []).append((float(dict(labels)["le"]), value))
        for labels, buckets in series.items():
            assert buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets)
            assert buckets[-1] == (math.inf, out[name + "_count"][labels]) and labels in out[name + "_sum"]
    return out


def metrics(s):
    a = s.ask("GET", "/metrics", status=200)
    assert a.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    if shutil.which("promtool"):  # Debian's package prometheus: it judges, too
        done = subprocess.run(["promtool", "check", "metrics"], input=a.body, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return a.body.decode()


def test_metrics(sbx):
    sbx.profile("net", NET)
    refused = ["python3", "-c", "import socket\ntry: socket.create_connection(('other.test', 80))\nexcept OSError: pass\n"
               "import time; time.sleep(60)"]
    with service(sbx) as s, running(sbx, refused, args=["--profile", "net"]):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        wait_for(lambda: s.get(f"/sandboxes/{one}")["n_events"])
        s.ask("GET", "/no/such/path", status=404)
        s.ask("PUT", f"/sandboxes/{one}/network", {"air_gapped": True}, status=200)
        m = wait_for(lambda: sum((x := parse(metrics(s)))["sbx_denials_total"].values()) and x)
        assert m["sbx_sandboxes"][(("state", "running"),)] == 1
        assert m["sbx_events_total"][(("action", "deny"),)] == sum(m["sbx_denials_total"].values()) > 0
        requests = m["sbx_http_requests_total"]
        assert requests[(("method", "PUT"), ("route", "/sandboxes/{id}/network"), ("status", "2xx"))] == 1
        assert requests[(("method", ""), ("route", ""), ("status", "4xx"))] == 1
        assert m["sbx_http_connections"][(("listener", "unix"),)] >= 1 and m["sbx_followers"][()] == 0
        assert m["process_resident_memory_bytes"][()] > 1e6 and 4 < m["process_open_fds"][()] < 100
        assert abs(m["process_start_time_seconds"][()] - os.stat(f"/proc/{s.p.pid}").st_mtime) < 60
        assert not any(one in str(labels) or ".test" in str(labels) for v in m.values() for labels in v)
        before = sum(m["sbx_events_total"].values())
        assert sum(wait_for(lambda: parse(metrics(s)))["sbx_events_total"].values()) >= before


def test_a_stream_begins_at_once_and_is_counted(sbx):
    """A client hears that it follows before there is an event."""
    def followers():
        return parse(metrics(s))["sbx_followers"][()]

    with service(sbx) as s:
        began = time.monotonic()
        with s.follow("/events"):
            assert time.monotonic() - began < 5
            assert followers() == 1
        wait_for(lambda: followers() == 0, 30)


# --- the documents ---

def test_the_first_steps_of_the_page(sbx):
    with open(os.path.join(os.environ["SBX_SRCDIR"], "docs/SBXD.md"), encoding="utf-8") as f:
        steps = f.read().split("## First steps\n")[1].split("\n## ")[0]
    lines = [line for line in re.sub(r"\\\n +", "", steps).splitlines() if line.startswith("    curl") and "-sN" not in line]
    assert len(lines) == 3
    with service(sbx) as s:
        for line in lines:
            done = subprocess.run(["sh", "-c", line], env={"SOCKET": s.where, "PATH": os.environ["PATH"]}, capture_output=True, text=True)
            assert done.returncode == 0 and "detail" not in json.loads(done.stdout), (line, done)


def test_the_dashboard_knows_the_metrics(sbx):
    with open(os.path.join(os.environ["SBX_SRCDIR"], "docs/grafana-dashboard.json"), encoding="utf-8") as f:
        dashboard = json.load(f)
    ids = [p["id"] for p in dashboard["panels"]]
    assert len(set(ids)) == len(ids) and dashboard["schemaVersion"] >= 36 and dashboard["title"]
    with service(sbx) as s:
        s.get("/healthz")
        told = set(re.findall(r"(?m)^# TYPE (\S+)", metrics(s)))
    taken = set()
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        assert panel["title"] and grid["x"] + grid["w"] <= 24
        for target in panel["targets"]:
            names = set(re.findall(r"\b(?:sbx|process)_[a-z_]+", target["expr"]))
            assert names and {re.sub("_bucket$", "", n) for n in names} <= told, target
            taken |= names
    assert {"sbx_sandboxes", "sbx_denials_total", "sbx_flows_cut_total"} <= taken
