# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd killed at any instant: no sandbox is disturbed, no change is without its row, no event is missed."""
import contextlib
import http.client
import itertools
import json
import os
import random
import subprocess
import threading
import time

from conftest import children
from sbxd import service, wait_for
from test_control import running
from test_lifecycle import clean  # noqa: F401
from test_sbxd_core import NET
from test_sbxd_events import database, put, take
from test_sbxd_start import SH, ended, place, start, started, text

KILLS = 20
RULES = "/workspaces/w/sandbox/rules"
COUNT = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.05; done"


class Load:
    """Threads that ask without a break, also while there is no service. @done: what was answered with success; @wrong:
    answers that there may not be."""

    def __init__(self, s, one):
        self.s, self.one, self.done, self.wrong, self.stop = s, one, [], [], threading.Event()
        works = [self.start, self.start, self.exec, self.network, self.rules, self.tokens]
        self.threads = [threading.Thread(target=self.loop, args=[w, n]) for n, w in enumerate(works)]

    def ask(self, method, path, body=None):
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, a, _ = self.s.send(method, path, body, timeout=60)
            if status < 300:
                self.done.append((method, path, body, a.json if a.body else None))
                return a.json if a.body else None
            if status not in (404, 409, 503):  # the object of a request that had no answer; a locked database
                self.wrong.append((method, path, a))
        return None

    def loop(self, work, n):
        for i in itertools.count():
            if self.stop.is_set():
                return
            work(f"{n}-{i}")

    def start(self, name):
        self.ask("POST", "/sandboxes", {"profile": "none", "analysis_id": name, "command": ["sleep", "0.1"]})

    def exec(self, name):
        self.ask("POST", f"/sandboxes/{self.one}/exec", {"command": ["echo", name]})

    def network(self, name):
        self.ask("PUT", f"/sandboxes/{self.one}/network", {"deny_out": [f"n{name}.test"]})

    def rules(self, name):
        rule = self.ask("POST", RULES, {"pattern": f"r{name}.test", "action": "allow"})
        if rule:
            self.ask("PATCH", f"{RULES}/{rule['id']}", {"action": "deny"})
            self.ask("DELETE", f"{RULES}/{rule['id']}")

    def tokens(self, name):
        if self.ask("POST", "/tokens", {"name": name, "role": "viewer"}):
            self.ask("DELETE", f"/tokens/{name}")

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join()


def follow(s, seen, wanted, stop):
    """Every event, over all the ends of the service."""
    while len(seen) < wanted and not stop.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError, StopIteration):
            with s.follow("/events", {"Last-Event-ID": str(seen[-1] if seen else 0)}, timeout=5) as stream:
                for _, i, _ in stream:
                    seen.append(int(i))
                    if len(seen) == wanted:
                        return
        time.sleep(0.02)


@contextlib.contextmanager
def following(s, seen, wanted):
    """A thread that follows, and ends with this block also where an event is missing."""
    stop = threading.Event()
    t = threading.Thread(target=follow, args=[s, seen, wanted, stop])
    t.start()
    try:
        yield t
    finally:
        stop.set()
        t.join()


def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().decode().split("\0")


def outputs(sbx):
    """The sandboxes of which sbx-output is there; "": its sbx-run is not."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            argv = words(pid)
            if argv[0] == "sbx-output" and sbx.state in argv:
                found |= {argv[argv.index("--id") + 1] for argv in map(words, children(pid)) if "--id" in argv} or {""}
    return found


def audit_is_change(sbx):
    """Each row of the audit has its change, and each change its row."""
    audit = sbx.rows("SELECT * FROM api_audit ORDER BY id")

    def objects(action):
        return [a["object"] for a in audit if a["action"] == action]

    for table, key, add, remove in (
            ("sandbox_rule WHERE workspace = 'w'", "'rule ' || id", "POST /workspaces/{workspace}/sandbox/rules",
             "DELETE /workspaces/{workspace}/sandbox/rules/{rule}"), ("api_token", "name", "POST /tokens", "DELETE /tokens/{token}")):
        rows = {r["k"] for r in sbx.rows(f"SELECT {key} AS k FROM {table}")}
        added, removed = objects(add), objects(remove)
        assert len(set(added)) == len(added) > 5 and len(set(removed)) == len(removed) > 5 and set(removed) <= set(added)
        assert rows == set(added) - set(removed)
    for rule in sbx.rows("SELECT * FROM sandbox_rule WHERE workspace = 'w'"):
        last = [a for a in audit if a["object"] == f"rule {rule['id']}"][-1]
        assert json.loads(last["after_json"])["action"] == rule["action"]
    asked = objects("POST /sandboxes")
    assert len(set(asked)) == len(asked)
    ours = {r["sandbox_id"] for r in sbx.rows("SELECT sandbox_id FROM api_sandbox")}
    assert ours == set(asked)
    assert {r["id"] for r in sbx.rows("SELECT id FROM sandbox JOIN api_sandbox ON id = sandbox_id")} <= set(asked)
    return asked


def answered_is_audited(load, sbx):
    """Each: the rows of one kind differ by what they changed to."""
    audit = sbx.rows("SELECT * FROM api_audit")
    rows = {(a["action"].split()[0], a["object"]) for a in audit}
    commands, denied = [], []
    for a in audit:
        if a["action"] == "POST /sandboxes/{id}/exec":
            commands.append(json.loads(a["after_json"])["command"])
        elif a["action"] == "PUT /sandboxes/{id}/network":
            denied.append(json.loads(a["after_json"])["deny_out"])
    for method, path, body, answer in load.done:
        if path.endswith("/exec"):
            assert body["command"] in commands
        elif path.endswith("/network"):
            assert body["deny_out"] in denied
        elif path == "/sandboxes":
            assert (method, answer["id"]) in rows


def test_killed_at_any_instant(sbx, clean):
    sbx.profile("net", NET)
    rnd = random.Random()
    seed = rnd.randrange(1 << 32)
    rnd.seed(seed)
    print("seed", seed)
    with service(sbx) as s, running(sbx, args=["--profile", "net"]) as (own, _), started(s, *SH, COUNT) as one:
        other = next(r["id"] for r in s.get("/sandboxes")["items"] if r["id"] != one)
        s.ask("POST", "/workspaces", {"name": "w"}, status=201)
        db = database(sbx)
        db.execute("DELETE FROM sandbox_egress_event")
        seen, written = [], 0
        with following(s, seen, KILLS * 40) as follower, Load(s, one) as load:
            for n in range(KILLS):
                put(db, 40, name="#.test", start=written)
                written += 40
                time.sleep(rnd.uniform(0.02, 0.6))
                s.p.kill()
                s.p.wait()
                assert os.path.exists(os.path.join(sbx.runtime, one)) and own.poll() is None
                s.start()
                live = {r["id"] for r in s.get("/sandboxes?state=live&limit=1000")["items"]}
                assert {one, other} <= live, n
            time.sleep(1)
            load.stop.set()
            follower.join(60)
        assert load.wrong == []
        kinds = {m + " " + p.split("/")[-1] for m, p, _, _ in load.done}
        assert {"POST sandboxes", "POST exec", "PUT network", "POST rules", "POST tokens"} <= kinds, kinds
        # no event was missed, and none came twice
        assert seen == [r["id"] for r in sbx.rows("SELECT id FROM sandbox_egress_event ORDER BY id")][:len(seen)] and len(seen) == KILLS * 40
        # the sandboxes went on
        assert own.poll() is None and s.ask("POST", f"/sandboxes/{one}/exec", {"command": ["echo", "hi"]}, status=200).json["stdout"] == "hi\n"
        numbers = text(s, one).split()
        assert numbers == [b"%d" % n for n in range(1, len(numbers) + 1)] and len(numbers) > KILLS
        # nothing is left of those that ended, and nothing runs without its row
        wait_for(lambda: outputs(sbx) == {one}, 40)
        wait_for(lambda: {r["id"] for r in s.get("/sandboxes?state=live")["items"]} == {one, other})
        assert not [n for n in os.listdir(sbx.runtime) if n.startswith("api-") and one not in n]
        asked = audit_is_change(sbx)
        answered_is_audited(load, sbx)
        known = {r["id"] for r in sbx.sandboxes()}
        cut = set(os.listdir(os.path.join(sbx.state, "api"))) - known
        print(f"{len(load.done)} answers, {len(asked)} starts, {len(cut)} of them were cut")
        for i in cut:
            subprocess.run(["touch", "-d", "8 days ago", place(s, i)], check=True)
        s.p.kill()
        s.p.wait()
        s.start()
        assert set(os.listdir(os.path.join(sbx.state, "api"))) <= known


def test_left_directories_go_in_their_time(sbx, clean):
    """After seven days; the job of a start that was cut after a minute, as it may have secrets. Those of a process stay."""
    with service(sbx) as s, started(s, "sleep", "100") as live:
        done = [start(s, "true")["id"] for _ in range(2)]
        for i in done:
            ended(s, i)
        s.p.kill()
        s.p.wait()
        user = sbx.world.user
        cut = ["0" * 11 + c for c in "abc"]
        for i in cut:
            os.mkdir(place(s, i), 0o700)
            job = os.path.join(place(s, i), "job.yaml")
            with open(job, "w") as f:
                f.write("secret\n")
            for path in place(s, i), job:
                os.chown(path, user.pw_uid, user.pw_gid)
        ages = {live: "30 days", done[0]: "8 days", done[1]: "6 days", cut[0]: "2 minutes", cut[1]: "50 seconds", cut[2]: "8 days"}
        for i, age in ages.items():
            subprocess.run(["touch", "-d", age + " ago", place(s, i)], check=True)
        s.start()
        assert {i: os.listdir(place(s, i)) for i in os.listdir(os.path.join(sbx.state, "api"))} == {
            live: ["output." + "0" * 16], done[1]: ["output." + "0" * 16], cut[0]: [], cut[1]: ["job.yaml"]}
        assert s.ask("GET", f"/sandboxes/{done[0]}/output").status == 404 and s.get(f"/sandboxes/{done[0]}")["state"] == "done"
        assert s.get(f"/sandboxes/{done[1]}/output")["ended"]
