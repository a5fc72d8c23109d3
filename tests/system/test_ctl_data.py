# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl's commands of the database: sandboxes, events, refusals, rules, workspaces, tasks."""
import json
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import threading
import time

import pytest

from ctl import (SRC, add_event, add_sandbox, ctl, ctl_json, ctl_lines, database, golden, in_terminal, now_ms, plain)

A, B, C, D = "a" * 12, "ab" + "0" * 10, "c" * 12, "d" * 12


@pytest.fixture
def db(sbx):
    return database(sbx)


# --- an installation where nothing ran ---

FIRST = {  # what each command says first
    ("ps",): "sbx-run -- COMMAND", ("ps", "--all"): "sbx-run -- COMMAND", ("show", A): "sbx-run -- COMMAND",
    ("net", A, "--air-gap"): "sbxctl ps", ("kill", A): "sbxctl ps", ("signal", "HUP", A): "sbxctl ps",
    ("freeze", A): "sbxctl ps", ("thaw", A): "sbxctl ps", ("reload", A): "sbxctl ps", ("publish", A): "sbxctl ps",
    ("events",): "sbx-run -- COMMAND", ("denies",): "sbx-run -- COMMAND", ("rules", "list"): "sbxctl rules add",
    ("rules", "set", "1", "--disable"): "sbxctl rules list", ("rules", "rm", "1"): "sbxctl rules list",
    ("rules", "export"): "sbxctl rules add", ("workspace", "list"): "sbx-run --workspace",
    ("review", "list"): "nothing to review", ("review", "close", "1"): "sbxctl review list",
    ("db", "check"): "the first sbx-run", ("db", "export"): "sbx-run -- COMMAND",
}


@pytest.mark.parametrize("args", FIRST, ids=" ".join)
def test_nothing_ran(sbx, args):
    r = ctl(sbx, *args)
    assert r.rc in (0, 1) and FIRST[args] in r.err and r.err.count("\n") == 1, r
    assert os.listdir(sbx.state) == []  # a look makes no database


# --- ps ---

def fill(db):
    add_sandbox(db, A, command=["python3", "-m", "http.server"], workspace="shop", alive=True)
    add_sandbox(db, B, command=["sh", "-c", "while :; do curl -s https://example.org/a/long/path; sleep 1; done"],
                profile="ai-bash", age_s=7300, alive=True, air_gapped=1, generation=4, allow_out='["example.org"]')
    add_sandbox(db, C, state="preparing", age_s=90000, generation=2)
    add_sandbox(db, D, state="timed_out", status=124, age_s=60, workspace="shop", analysis_id="job-7")


@pytest.mark.parametrize("width", [0, 40, 60, 80, 120])
def test_ps_golden(sbx, db, width):
    fill(db)
    text = ""
    for args in (["ps"], ["ps", "--all"]):
        if width:
            rc, out = in_terminal(sbx, *args, width=width)
            assert max(map(len, [line for line in plain(out).splitlines() if not line.startswith("sbxctl:")])) <= width
            assert "\033[32mrunning\033[0m" in out  # and the word says it too
            assert in_terminal(sbx, *args, width=width, env={"NO_COLOR": "1"})[1] == plain(out)
            out = plain(out)
        else:
            r = ctl(sbx, *args)
            rc, out = r.rc, r.out
            assert "while :; do curl -s https://example.org/a/long/path; sleep 1; done" in out
        assert rc == 0
        text += f"$ sbxctl {' '.join(args)}\n{out}"
    golden(f"ctl-ps-{width or 'pipe'}.txt", text)


def test_ps_wide(sbx, db):
    fill(db)
    rc, out = in_terminal(sbx, "ps", "--wide", width=60)
    assert rc == 0 and "…" not in out and "sleep 1; done" in out


def test_ps_json(sbx, db):
    fill(db)
    live = ctl_json(sbx, "ps")["sandboxes"]
    assert [s["id"] for s in live] == [C, B, A]  # the newest first
    assert [s["launcher_alive"] for s in live] == [False, True, True]
    assert live[1]["air_gapped"] and live[1]["generation"] == 4 and live[1]["allow_out"] == ["example.org"]
    assert live[2]["command"] == ["python3", "-m", "http.server"] and live[2]["workspace"] == "shop"
    ended, *rest = ctl_json(sbx, "ps", "-a")["sandboxes"]
    assert (ended["id"], ended["state"], ended["exit_status"]) == (D, "timed_out", 124) and len(rest) == 3
    assert [s["id"] for s in ctl_json(sbx, "ps", "--all", "--workspace", "shop")["sandboxes"]] == [D, A]
    assert [s["id"] for s in ctl_json(sbx, "ps", "--all", "--analysis-id", "job-7")["sandboxes"]] == [D]
    assert [s["id"] for s in ctl_json(sbx, "ps", "--all", "--max", "2")["sandboxes"]] == [D, C]


def test_ps_pages(sbx, db):
    db.execute("BEGIN")
    for i in range(2500):
        add_sandbox(db, f"{i:012x}")
    db.execute("COMMIT")
    assert len({s["id"] for s in ctl_json(sbx, "ps")["sandboxes"]}) == 2500
    assert len(ctl_json(sbx, "ps", "--all")["sandboxes"]) == 100
    assert len(ctl_json(sbx, "ps", "--all", "--max", "2000")["sandboxes"]) == 2000


def test_show_ended(sbx, db):
    fill(db)
    shown = ctl_json(sbx, "show", "dd")["sandbox"]
    assert (shown["id"], shown["state"], shown["exit_status"]) == (D, "timed_out", 124)
    db.execute("UPDATE sandbox SET selftest = ? WHERE id = ?", ('[["dns_refused",true,"blocked"],["caps",false,"some"]]', D))
    assert ctl_json(sbx, "show", "dd")["sandbox"]["selftest"] == [
        {"probe": "dns_refused", "ok": True, "detail": "blocked"}, {"probe": "caps", "ok": False, "detail": "some"}]
    text = ctl(sbx, "show", D).out
    assert re.search(r"^self-test +caps FAILED \(some\), 1 probe passed$", text, re.M), text
    assert re.search(rf"^sandbox +{D}$", text, re.M) and re.search(r"^state +timed_out$", text, re.M)
    r = ctl(sbx, "show", "a")
    assert r.rc == 1 and "a" in r.err
    for args in (["show", "f" * 12], ["events", "--sandbox", "f"], ["denies", "--sandbox", "f"]):
        r = ctl(sbx, *args)
        assert r.rc == 1 and "sbxctl ps --all" in r.err, r
    assert ctl(sbx, "show", "ab").rc == 0 and ctl(sbx, "show", "aa").rc == 0
    r = ctl(sbx, "net", "dd", "--air-gap")
    assert r.rc == 1 and f"sandbox {D} has ended (timed_out)" in r.err
    for args in (["exec", "dd", "true"], ["explain", "--id", "dd", "tcp", "a.test", "443"]):
        r = ctl(sbx, *args)
        assert r.rc == 125 and f"sandbox {D} has ended (timed_out)" in r.err
    r = ctl(sbx, "net", C, "--air-gap")
    assert r.rc == 1 and "its launcher does not answer" in r.err


# --- text that a sandbox chose ---

HOSTILE = "\033]0;title\a\033[2J‮gnp.exe\n\r" + "é" * 3000 + "́" * 500


def test_hostile(sbx, db):
    """Nothing of it reaches the terminal as it is, and JSON has it unchanged."""
    add_sandbox(db, A, command=[HOSTILE], profile=HOSTILE, workspace=HOSTILE, analysis_id=HOSTILE, alive=True)
    add_event(db, A, fqdn_pinned=HOSTILE, rule=HOSTILE, request=HOSTILE, workspace=HOSTILE)
    db.execute("INSERT INTO sandbox_rule (workspace, rule_type, pattern, action, note, created_by) VALUES (?, 'tool', ?, 'deny', ?, ?)",
               [HOSTILE] * 4)
    db.execute("INSERT INTO workspace (name, changed_by) VALUES (?, ?)", [HOSTILE] * 2)
    db.execute("INSERT INTO egress_review_task (sandbox_id, workspace, cause, n_denies, first_ms, last_ms, note) "
               "VALUES (?, ?, ?, 1, 1, 1, ?)", [A, HOSTILE, HOSTILE, HOSTILE])
    db.execute("UPDATE sandbox_egress_event SET rule = CAST(X'ff1b5b324a' AS TEXT)")
    for args in (["ps"], ["events"], ["denies"], ["denies", "--by", "workspace"], ["rules", "list"], ["workspace", "list"],
                 ["review", "list"], ["show", A], ["rules", "export"]):
        for width in (30, 100):
            rc, out = in_terminal(sbx, *args, width=width)
            assert rc == 0, (args, out)
            out = plain(out)
            assert not set(out) & set("\033\a\r\b‮"), args
            if args[0] != "show" and args[1:] != ["export"]:
                assert max(map(len, [line.replace("́", "") for line in out.splitlines()])) <= width, (args, width)
        r = ctl(sbx, *args)
        assert not set(r.out) & set("\033\a\r‮")
        out = ctl(sbx, *args, "--json").out
        assert out.isascii() and "\033" not in out
    assert ctl_json(sbx, "ps")["sandboxes"][0]["command"] == [HOSTILE]
    assert ctl_lines(sbx, "events")[0]["rule"] == "\\xff\\x1b[2J"


# --- who sees what ---

def test_two_users(sbx, request):
    """The database is its user's: another one sees nothing, and may not look."""
    theirs = database(sbx)
    add_sandbox(theirs, A)
    assert [s["id"] for s in ctl_json(sbx, "ps")["sandboxes"]] == [A]
    mine = tempfile.mkdtemp(prefix="sbx-test-", dir="/var/tmp")  # root takes no directory below another user's
    request.addfinalizer(lambda: shutil.rmtree(mine))
    env = {"SBX_STATE_DIR": mine, "SBX_RUNTIME_DIR": mine, "SBX_CONFIG_DIR": mine}
    assert ctl_json(sbx, "ps", root=True, env=env)["sandboxes"] == []
    assert ctl(sbx, "db", "migrate", root=True, env=env).rc == 0
    with sqlite3.connect(f"{mine}/sbx.db") as own:
        add_sandbox(own, B)
    assert [s["id"] for s in ctl_json(sbx, "ps", root=True, env=env)["sandboxes"]] == [B]
    r = ctl(sbx, "ps", env=env)
    assert r.rc == 125 and B not in r.out
    # an unreadable directory of one's own runtime is no reason to see more
    assert [s["id"] for s in ctl_json(sbx, "ps")["sandboxes"]] == [A]


# --- events ---

def test_events(sbx, db):
    add_sandbox(db, A)
    add_sandbox(db, B)
    add_event(db, A, workspace="shop")
    add_event(db, A, action="allow", reason="list_allow", rule="files.test", fqdn_pinned="files.test", remote_ip="192.0.2.7",
              bytes_out=100, bytes_in=1258291, duration_ms=35, generation=2)
    add_event(db, B, protocol="dns", remote_port=None, raw_pkts=14, ts="2026-11-25T21:00:00.000Z")
    add_event(db, B, fqdn_pinned=None, remote_ip="2001:db8::7", reason="literal_address")
    r = ctl(sbx, "events")
    assert r.out.splitlines() == [
        f"2026-11-25T20:17:41.123Z  {A}  deny   tcp  example.org:443  default_deny",
        f"2026-11-25T20:17:41.123Z  {A}  allow  tcp  files.test:443 (192.0.2.7)  list_allow 'files.test'  out 100 B, in 1.1 MiB, 35 ms",
        f"2026-11-25T21:00:00.000Z  {B}  deny   dns  example.org  default_deny  14x",
        f"2026-11-25T20:17:41.123Z  {B}  deny   tcp  [2001:db8::7]:443  literal_address"]
    rows = ctl_lines(sbx, "events")
    assert [e["id"] for e in rows] == [1, 2, 3, 4]
    assert rows[1]["bytes_in"] == 1258291 and rows[1]["generation"] == 2 and "bytes_in" not in rows[0]

    def ids(*args):
        return [e["id"] for e in ctl_lines(sbx, "events", *args)]
    assert ids("--action", "allow") == [2] and ids("--sandbox", "ab") == [3, 4] and ids("--workspace", "shop") == [1]
    assert ids("--last", "2") == [3, 4] and ids("--reason", "literal_address") == [4]
    assert ids("--since", "2026-11-25T20:30") == [3] and ids("--since", "2026-11-25") == [1, 2, 3, 4]
    assert ctl(sbx, "events", "--action", "denied").rc == 2 and ctl(sbx, "events", "--since", "tomorrow").rc == 2
    assert ctl(sbx, "events", "--sandbox", "ee").rc == 1


def test_events_pages(sbx, db):
    add_sandbox(db, A)
    db.execute("BEGIN")
    for i in range(2345):
        add_event(db, A, remote_port=1 + i % 7)
    db.execute("COMMIT")

    def ids(*args):
        return [e["id"] for e in ctl_lines(sbx, "events", *args)]
    assert ids() == list(range(2246, 2346)) and ids("--since", "2026-01-01") == list(range(1, 2346))
    for n in (1, 999, 1000, 1001, 2345, 9999):
        assert ids("--last", str(n)) == list(range(max(1, 2346 - n), 2346))


def test_events_follow(sbx, db):
    """None is missed and none comes twice, whatever is committed while it looks."""
    add_sandbox(db, A)
    first = add_event(db, A)
    p = sbx.popen(["events", "--follow", "--json", "--last", "100000"], [], program="bin/sbxctl")
    got = []
    reader = threading.Thread(target=lambda: got.extend(json.loads(line)["id"] for line in p.stdout))
    reader.start()
    want, until = [first], time.monotonic() + 3
    while time.monotonic() < until:
        db.execute("BEGIN IMMEDIATE")
        want += [add_event(db, A) for _ in range(1 + len(want) % 5)]
        db.execute("COMMIT")
        time.sleep(0.001 * (len(want) % 40))
    deadline = time.monotonic() + 20
    while len(got) < len(want) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # a doubled one would come now
    p.send_signal(signal.SIGINT)
    p.wait(10)
    reader.join(10)
    assert got == want and len(want) > 300


@pytest.mark.parametrize("flags", [["--sandbox", "ab"], ["--workspace", "shop"], ["--action", "allow"], ["--reason", "floor"],
                                   ["--since", "2026-11-25T20:30"]], ids=lambda f: f[0])
def test_events_follow_filters(sbx, db, flags):
    """Events that match are printed, those from before and those that come; others are not."""
    add_sandbox(db, A)
    add_sandbox(db, B)
    match = {"--sandbox": {"sandbox": B}, "--workspace": {"workspace": "shop"}, "--reason": {"reason": "floor"},
             "--action": {"action": "allow"}, "--since": {"ts": "2026-11-25T20:45:00.000Z"}}[flags[0]]
    other = {"sandbox": A, "workspace": "other", "reason": "port", "action": "deny", "ts": "2026-11-25T20:15:00.000Z"}

    def both():
        add_event(db, other["sandbox"], **{k: v for k, v in other.items() if k != "sandbox"})
        wanted = {**other, **match}
        return add_event(db, wanted.pop("sandbox"), **wanted)
    want = [both()]
    p = sbx.popen(["events", "--follow", "--json", *flags], [], program="bin/sbxctl")
    got = [json.loads(p.stdout.readline())["id"]]
    want += [both(), both()]
    got += [json.loads(p.stdout.readline())["id"] for _ in range(2)]
    p.send_signal(signal.SIGINT)
    assert (got, p.communicate(timeout=10)[0]) == (want, "")


def test_events_follow_ends_with_its_reader(sbx, db):
    add_sandbox(db, A)
    add_event(db, A)
    p = sbx.popen(["events", "--follow"], [], program="bin/sbxctl")
    assert "example.org" in p.stdout.readline()
    p.stdout.close()
    p.wait(10)


def test_events_follow_from_the_beginning(sbx):
    """There is no database yet; then a first run makes it."""
    p = sbx.popen(["events", "--follow", "--json"], [], program="bin/sbxctl")
    time.sleep(0.5)
    assert p.poll() is None and os.listdir(sbx.state) == []
    db = database(sbx)
    add_sandbox(db, A)
    add_event(db, A)
    assert json.loads(p.stdout.readline())["sandbox_id"] == A
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=10)


# --- denies ---

def test_denies(sbx, db):
    for sandbox in (A, B):
        add_sandbox(db, sandbox, workspace="shop")
    for _ in range(3):
        add_event(db, A, workspace="shop", raw_pkts=5)
    add_event(db, B, workspace="shop", fqdn_pinned="other.test", remote_port=8443, reason="port", rule="other.test")
    add_event(db, B, action="allow", reason="list_allow")
    add_event(db, B, fqdn_pinned="ipinfo.io", reason="floor", rule="floor ipinfo.io")
    names = ctl_json(sbx, "denies")["denies"]
    assert [(d["key"], d["count"], d["n_sandboxes"]) for d in names] == [
        ("example.org", 15, 1), ("ipinfo.io", 1, 1), ("other.test", 1, 1)] or \
        sorted((d["key"], d["count"]) for d in names) == [("example.org", 15), ("ipinfo.io", 1), ("other.test", 1)]
    by_name = {d["key"]: d for d in names}
    assert by_name["example.org"]["allow"] == "example.org" and by_name["other.test"]["allow"] == "other.test:8443"
    assert by_name["ipinfo.io"]["allow"] is None  # nothing lifts it
    assert by_name["example.org"]["remedy"] == "sbxctl net ID --allow 'example.org'"
    remedies = {d["key"]: d["remedy"] for d in ctl_json(sbx, "denies", "--workspace", "shop")["denies"]}
    assert remedies["other.test"] == "sbxctl rules add --workspace shop --action allow 'other.test:8443'"
    assert {d["key"]: d["count"] for d in ctl_json(sbx, "denies", "--by", "sandbox")["denies"]} == {A: 15, B: 2}
    assert {d["key"]: d["count"] for d in ctl_json(sbx, "denies", "--by", "workspace")["denies"]} == {"shop": 16, None: 1}
    assert {d["key"]: d["count"] for d in ctl_json(sbx, "denies", "--by", "reason")["denies"]} == {
        "default_deny": 15, "port": 1, "floor": 1}
    assert [d["key"] for d in ctl_json(sbx, "denies", "--max", "1")["denies"]] == ["example.org"]
    assert ctl_json(sbx, "denies", "--since", "2027-01-01")["denies"] == []
    out = ctl(sbx, "denies", "--workspace", "shop").out
    assert re.search(r"^ +15  example.org +1  \d+[smhd] +default_deny  sbxctl rules add", out, re.M), out
    out = ctl(sbx, "denies").out
    assert re.search(r"^ +15  example.org +1  \d+[smhd] +default_deny  --allow 'example.org'$", out, re.M), out


def test_denies_without_name(sbx, db):
    """Each address is a line of its own. An air gap has a remedy, too."""
    add_sandbox(db, A)
    for address in ("203.0.113.9", "203.0.113.10"):
        add_event(db, A, fqdn_pinned=None, remote_ip=address, remote_port=80, reason="literal_address", rule=None)
    add_event(db, A, fqdn_pinned="cut.test", reason="air_gap", rule=None)
    assert {d["key"]: d["remedy"] for d in ctl_json(sbx, "denies")["denies"]} == {
        "203.0.113.9": "sbxctl net ID --allow '203.0.113.9:80'",
        "203.0.113.10": "sbxctl net ID --allow '203.0.113.10:80'",
        "cut.test": "--no-air-gap (nothing lifts mode offline)"}


def test_denies_by_address(sbx, db):
    """Each address with its count and when it was refused last; a name without an address has none."""
    for sandbox in (A, B):
        add_sandbox(db, sandbox, workspace="shop")
    at = "2026-11-25T2{}:00:00.000Z".format
    for sandbox, address, hour, n in ((A, "192.0.2.7", 1, 5), (B, "192.0.2.7", 3, 2), (A, "192.0.2.7", 2, 1), (A, "2001:db8::7", 0, 4),
                                      (B, None, 0, 3)):
        add_event(db, sandbox, fqdn_pinned=None if address else "asked.test", remote_ip=address, ts=at(hour), raw_pkts=n,
                  reason="literal_address" if address else "default_deny", protocol="tcp" if address else "dns")
    document = ctl_json(sbx, "denies", "--by", "address")
    assert document["by"] == "address"
    assert [(d["key"], d["count"], d["n_sandboxes"], d["first_ts"], d["last_ts"]) for d in document["denies"]] == [
        ("192.0.2.7", 8, 2, at(1), at(3)), ("2001:db8::7", 4, 1, at(0), at(0)), (None, 3, 1, at(0), at(0))]
    assert [d["allow"] for d in document["denies"]] == ["192.0.2.7:443", "[2001:db8::7]:443", "asked.test"]
    assert [d["key"] for d in ctl_json(sbx, "denies", "--by", "address", "--sandbox", "ab")["denies"]] == [None, "192.0.2.7"]
    out = ctl(sbx, "denies", "--by", "address").out
    assert re.search(r"^ +8  192\.0\.2\.7 +2 +\S+ +literal_address +--allow '192\.0\.2\.7:443'$", out, re.M), out
    out = ctl(sbx, "denies", "--by", "sandbox").out
    assert re.search(rf"^ +10  {A} +1 +\S+ +literal_address +sbxctl net {A} --allow", out, re.M), out


def test_denies_of_a_question(sbx, db):
    """Its port is the resolver's: the entry that would allow the name has none."""
    add_sandbox(db, A)
    add_event(db, A, protocol="dns", remote_port=53, fqdn_pinned="asked.test")
    add_event(db, A, remote_port=53, fqdn_pinned="dialled.test")
    assert {d["key"]: d["allow"] for d in ctl_json(sbx, "denies")["denies"]} == {
        "asked.test": "asked.test", "dialled.test": "dialled.test:53"}


# --- rules ---

def add(sbx, *args, **kw):
    r = ctl(sbx, "rules", "add", *args, **kw)
    assert r.rc == 0 and re.fullmatch(r"\d+\n", r.out), r
    return int(r.out)


def mine(sbx, *args):
    return [r for r in ctl_json(sbx, "rules", "list", *args)["rules"] if not r["floor"]]


def test_rules(sbx):
    first = add(sbx, "--workspace", "shop", "--action", "allow", "*.example.org:443", "--note", "a mirror", "--priority", "7")
    second = add(sbx, "--workspace", "shop", "--type", "tool", "--action", "deny", "curl")
    third = add(sbx, "--host", "--action", "deny", "198.51.100.0/24")
    assert first < second < third
    rules = {r["id"]: r for r in mine(sbx)}
    assert set(rules) == {first, second, third}
    rule = rules[first]
    assert (rule["workspace"], rule["type"], rule["action"], rule["priority"], rule["pattern"], rule["note"]) == (
        "shop", "network", "allow", 7, "*.example.org:443", "a mirror")
    assert rule["enabled"] and rule["created_by"] == f"uid {sbx.world.user.pw_uid}" and now_ms() - rule["created_ms"] < 60000
    assert rules[third]["workspace"] is None and rules[second]["priority"] == 100
    assert {r["id"] for r in mine(sbx, "--host")} == {third} and {r["id"] for r in mine(sbx, "--type", "tool")} == {second}
    assert {r["id"] for r in mine(sbx, "--workspace", "other")} == {third}
    out = ctl(sbx, "rules", "list").out
    assert re.search(rf"^ *{first}  shop +network  allow +7  \*\.example\.org:443 +a mirror$", out, re.M)
    assert re.search(r"\(host\) +network  deny, floor +0  ipinfo\.io", out)
    r = ctl(sbx, "rules", "set", first, "--disable", "--priority", "0", "--action", "deny")
    assert (r.rc, r.out) == (0, "")
    rule = {r["id"]: r for r in mine(sbx)}[first]
    assert (rule["enabled"], rule["priority"], rule["action"], rule["note"]) == (False, 0, "deny", "a mirror")
    assert rule["changed_by"] and rule["changed_ms"]
    assert ctl_json(sbx, "rules", "rm", first, name="rules-rm") == {
        "id": first, "followed": {"sandboxes": 0, "failed": 0, "cut": 0}}
    assert {r["id"] for r in mine(sbx)} == {second, third}
    r = ctl(sbx, "rules", "rm", first)
    assert r.rc == 1 and f"there is no rule {first}" in r.err
    assert add(sbx, "--workspace", "shop", "--action", "allow", "a.test") > third  # no id comes again


def test_a_rule_below_a_shipped_floor(sbx):
    """The command says that it changes nothing; a deny, a wider name or a command is another matter."""
    for pattern in ("ipinfo.io", "ipinfo.io:443", "*.ipinfo.io", "www.ipinfo.io"):
        r = ctl(sbx, "rules", "add", "--workspace", "w", "--action", "allow", pattern)
        assert r.rc == 0 and f"sbxctl: {pattern} stays refused by the floor" in r.err, r
    for args in (["--action", "deny", "ipinfo.io"], ["--action", "allow", "notipinfo.io"],
                 ["--action", "allow", "--type", "tool", "ipinfo.io"]):
        r = ctl(sbx, "rules", "add", "--workspace", "w", *args)
        assert r.rc == 0 and "floor" not in r.err, r


@pytest.mark.parametrize("args, says", [
    (["--action", "allow", "a.test"], "say --workspace W, or --host"),
    (["--host", "--workspace", "w", "--action", "allow", "a.test"], "exclude each other"),
    (["--workspace", "w", "a.test"], "say --action allow"),
    (["--workspace", "w", "--action", "alow", "a.test"], "it must be allow or deny"),
    (["--workspace", "w", "--action", "allow", "*.com"], "com"),
    (["--workspace", "w", "--action", "allow", "a..test"], "a..test"),
    (["--workspace", "w", "--action", "allow", "a.test:99999"], "99999"),
    (["--workspace", "w", "--action", "allow", ""], "pattern"),
    (["--workspace", "w", "--action", "allow", "x" * 600 + ".test"], "pattern"),
    (["--workspace", "w", "--action", "allow", "--priority", "-1", "a.test"], "from 0 to 1000000"),
    (["--workspace", "w w", "--action", "allow", "a.test"], "--workspace"),
    (["--workspace", "w", "--type", "net", "--action", "allow", "a.test"], "network or tool"),
    (["--workspace", "w", "--action", "allow", "--note", "n" * 2000, "a.test"], "note"),
])
def test_rules_add_refused(sbx, args, says):
    r = ctl(sbx, "rules", "add", *args)
    assert r.rc == 2 and says in r.err and r.out == "" and r.err.count("\n") == 1, r
    assert os.listdir(sbx.state) == []  # nothing was written


def test_rules_set_refused(sbx):
    """A change that planning would not take is none."""
    rule = add(sbx, "--workspace", "shop", "--action", "deny", "*.com")
    before = mine(sbx)
    for args in (["--action", "allow"], ["--pattern", "a..b"], [], ["--enable", "--disable"]):
        assert ctl(sbx, "rules", "set", rule, *args).rc == 2
    assert mine(sbx) == before
    assert ctl(sbx, "rules", "set", rule, "--action", "allow", "--pattern", "*.example.com").rc == 0


def test_rules_export_and_import(sbx):
    add(sbx, "--workspace", "shop", "--action", "allow", "*.example.org:443", "--note", 'a "quoted"\\ note: é')
    add(sbx, "--workspace", "shop", "--type", "tool", "--action", "deny", "curl", "--priority", "5", "--disable")
    add(sbx, "--host", "--action", "deny", "198.51.100.0/24")

    def content(*args):
        return [{k: v for k, v in r.items() if k not in ("id", "created_ms", "created_by", "changed_ms", "changed_by")}
                for r in mine(sbx, *args)]
    before = content()
    for flags in ([], ["--json"]):
        text = ctl(sbx, "rules", "export", "--workspace", "shop", *flags).out
        path = sbx.put("rules", text)
        r = ctl(sbx, "rules", "import", path, "--workspace", "shop", "--replace")
        assert (r.rc, r.out) == (0, "2 rules imported\n"), r
        assert content() == before
        r = ctl(sbx, "rules", "import", "-", input=text)
        assert r.rc == 0 and len(mine(sbx)) == 5
        ctl(sbx, "rules", "import", path, "--workspace", "shop", "--replace")
    host = ctl(sbx, "rules", "export", "--host").out
    assert "ipinfo" not in host and "198.51.100.0/24" in host
    assert ctl(sbx, "rules", "import", "-", "--host", "--replace", input=host).rc == 0 and content() == before
    assert any(r["floor"] for r in ctl_json(sbx, "rules", "list")["rules"])  # a replaced list keeps them
    assert ctl_json(sbx, "rules", "import", "-", "--workspace", "w", input="- pattern: a.test\n  action: allow\n")["imported"] == 1


@pytest.mark.parametrize("text, says", [
    ("- pattern: a.test\n  action: allow\n- pattern: b.test\n  acton: allow\n", ":4:3: unknown key 'acton' (did you mean 'action'?)"),
    ("- pattern: a.test\n  action: allow\n- pattern: b..test\n  action: allow\n", ":3: "),
    ("- pattern: a.test\n  action: allow\n- pattern: b.test\n", ":3: action: it must be allow or deny"),
    ("- pattern: a.test\n  action: allow\n- just text\n", ":3:3: a rule is a mapping"),
    ("pattern: a.test\n", "a file of rules is a list"),
    ("- pattern: a.test\n  action: allow\n  priority: -3\n", "from 0 to 1000000"),
    ("- pattern: a.test\n  action: allow\n  action: deny\n", "action"),
    ("- pattern: [a.test]\n  action: allow\n", "it must be one value"),
    ('{"pattern": "a.test", "action": "allow"}\n{"pattern": "b.test", "action": "alow"}\n', ":2: action"),
    ('{"pattern": "a.test", "action": "allow"}\n{"pattern": \n', ":2: a line is a JSON object"),
    ('{"pattern": "a.test", "action": "allow"}\n[1]\n', ":2: a line is a JSON object"),
    ('{"pattern": "a.test", "action": "allow", "workspace": "other"}\n', "is a rule of workspace 'other'"),
    ('- pattern: "\\x1b[2J"\n  action: allow\n', "a control character"),
])
def test_rules_import_refused(sbx, text, says):
    """The whole file is read before anything is written."""
    add(sbx, "--workspace", "shop", "--action", "allow", "kept.test")
    before = mine(sbx)
    r = ctl(sbx, "rules", "import", "-", "--workspace", "shop", "--replace", input=text)
    assert r.rc == 1 and says in r.err and "nothing was written" in r.err and r.out == "", r
    assert "\033" not in r.err and mine(sbx) == before
    assert ctl(sbx, "rules", "import", "/nonexistent", "--host").rc == 125


def test_rules_test(sbx):
    sbx.profile("empty", "name: empty\n")
    allow = add(sbx, "--workspace", "shop", "--action", "allow", "*.example.org")

    def verdict(*args):
        r = ctl(sbx, "rules", "test", *args, "--profile", "empty")
        document = ctl_json(sbx, "rules", "test", *args, "--profile", "empty", rc=r.rc)
        assert r.out.startswith(document["verdict"]) and r.rc == (0 if document["verdict"] == "allow" else 1)
        return document["verdict"], document["reason"]
    assert verdict("shop", "a.example.org", "443") == ("allow", "rule_allow")
    assert verdict("shop", "example.org", "443") == ("deny", "default_deny")
    assert verdict("other", "a.example.org", "443")[0] == "deny"
    assert verdict("shop", "ipinfo.io", "443") == ("deny", "floor")
    add(sbx, "--host", "--action", "deny", "a.example.org", "--priority", "1")
    assert verdict("shop", "a.example.org", "443") == ("deny", "rule_deny")
    assert verdict("shop", "b.example.org", "443") == ("allow", "rule_allow")
    ctl(sbx, "rules", "set", allow, "--disable")
    assert verdict("shop", "b.example.org", "443") == ("deny", "default_deny")
    assert ctl(sbx, "workspace", "set", "shop", "--network-default", "allow").rc == 0
    assert verdict("shop", "b.example.org", "443") == ("allow", "default_allow")
    assert ctl(sbx, "rules", "test", "shop", "b.example.org", "0").rc == 2
    assert ctl(sbx, "rules", "test", "shop", "not a name", "443").rc == 2


@pytest.mark.parametrize("word", [("rule_type", "maybe"), ("action", "maybe"), ("pattern", "a b")], ids=" ".join)
def test_rules_test_of_a_row_that_is_no_rule(sbx, db, word):
    """A sandbox would not start with it, so there is no verdict."""
    sbx.profile("empty", "name: empty\n")
    rule = add(sbx, "--workspace", "shop", "--action", "deny", "a.example.org")
    db.execute("PRAGMA ignore_check_constraints=1")
    db.execute(f"UPDATE sandbox_rule SET {word[0]} = ? WHERE id = ?", [word[1], rule])
    r = ctl(sbx, "rules", "test", "shop", "b.example.org", "443", "--profile", "empty")
    assert r.rc == 125 and r.out == "" and f"rule {rule} of workspace 'shop'" in r.err and "sbxctl rules rm" in r.err, r


# --- workspaces, tasks ---

def test_workspace(sbx):
    assert ctl(sbx, "workspace", "set", "shop", "--network-default", "deny").rc == 0
    add(sbx, "--workspace", "shop", "--action", "allow", "a.test")
    add(sbx, "--workspace", "new", "--action", "allow", "a.test")
    assert {w["name"]: (w["network_default"], w["n_rules"]) for w in ctl_json(sbx, "workspace", "list")["workspaces"]} == {
        "shop": ("deny", 1), "new": (None, 1)}
    assert ctl_json(sbx, "workspace", "show", "shop")["workspace"]["network_default"] == "deny"
    assert ctl_json(sbx, "workspace", "set", "shop", "--network-default", "unset") == {
        "name": "shop", "network_default": None, "followed": {"sandboxes": 0, "failed": 0, "cut": 0}}
    assert ctl_json(sbx, "workspace", "show", "shop")["workspace"]["network_default"] is None
    assert ctl(sbx, "workspace", "set", "shop").rc == 2 and ctl(sbx, "workspace", "set", "a b", "--network-default", "deny").rc == 2
    assert ctl(sbx, "workspace", "set", "shop", "--network-default", "maybe").rc == 2


def test_review(sbx, db):
    add_sandbox(db, A, workspace="shop")
    for cause in ("denies", "breaker"):
        db.execute("INSERT INTO egress_review_task (sandbox_id, workspace, cause, n_denies, first_ms, last_ms) "
                   "VALUES (?, 'shop', ?, 50, ?, ?)", [A, cause, now_ms() - 60000, now_ms() - 5000])
    tasks = ctl_json(sbx, "review", "list")["tasks"]
    assert [t["cause"] for t in tasks] == ["breaker", "denies"]
    r = ctl(sbx, "review", "close", tasks[0]["id"], "--note", "a mirror was missing")
    assert (r.rc, r.out) == (0, f"{tasks[0]['id']}: closed\n")
    assert [t["cause"] for t in ctl_json(sbx, "review", "list")["tasks"]] == ["denies"]
    closed = ctl_json(sbx, "review", "list", "--all")["tasks"][0]
    assert (closed["state"], closed["note"]) == ("closed", "a mirror was missing")
    assert "denies" in ctl(sbx, "review", "list", "--workspace", "shop").out
    assert ctl_json(sbx, "review", "list", "--workspace", "other")["tasks"] == []
    assert ctl(sbx, "review", "close", "99").rc == 1 and ctl(sbx, "review", "close", "x").rc == 2


# --- the database ---

def test_db(sbx):
    assert ctl_json(sbx, "db", "check")["state"] == "none" and os.listdir(sbx.state) == []
    version = ctl_json(sbx, "db", "migrate")["version"]
    checked = ctl_json(sbx, "db", "check")
    assert (checked["state"], checked["version"], checked["newest"]) == ("good", version, version)
    db = sqlite3.connect(f"{sbx.state}/sbx.db", isolation_level=None)
    db.execute(f"PRAGMA user_version = {version + 1}")
    assert ctl_json(sbx, "db", "check", rc=1)["state"] == "newer"
    r = ctl(sbx, "ps")
    assert r.rc == 125 and "newer" in r.err
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with open(f"{sbx.state}/sbx.db", "r+b") as f:
        f.write(b"no database")
    r = ctl(sbx, "db", "check")
    assert r.rc == 1 and "damaged" in r.out
    r = ctl(sbx, "ps")
    assert r.rc == 125 and r.out == ""


def test_db_of_an_older_version(sbx):
    """It is told, and brought up to date with its rows."""
    files = sorted(os.listdir(os.path.join(SRC, "migrations")))
    files = [f for f in files if f.endswith(".sql")]
    with sqlite3.connect(f"{sbx.state}/sbx.db") as db:
        with open(os.path.join(SRC, "migrations", files[0]), encoding="utf-8") as f:
            db.executescript(f.read())
        add_sandbox(db, A)
        add_event(db, A)
        db.execute("PRAGMA user_version = 1")
    db.close()
    os.chmod(f"{sbx.state}/sbx.db", 0o600)
    sbx.own(sbx.world.user.pw_uid)
    checked = ctl_json(sbx, "db", "check", rc=1)
    assert (checked["state"], checked["version"], checked["newest"]) == ("older", 1, len(files))
    r = ctl(sbx, "db", "check")
    assert r.rc == 1 and "sbxctl db migrate" in r.err, r
    r = ctl(sbx, "db", "migrate")
    assert (r.rc, r.out) == (0, f"{sbx.state}/sbx.db: version {len(files)}\n"), r
    assert ctl_json(sbx, "db", "check")["state"] == "good"
    assert [s["id"] for s in ctl_json(sbx, "ps", "--all")["sandboxes"]] == [A] and len(ctl_lines(sbx, "events")) == 1


# What docs/DATABASE.md asks in SQL, in its order: the rows of it, and a word of the statement.
PAGE_SQL = [("ORDER BY id DESC", 2), ("GROUP BY fqdn_pinned", 1), ("WHERE id >", 0), ("GROUP BY analysis_id", 1), ("INSERT", 0),
            ("DELETE", 0), ("t.state = 'open'", 1), ("UPDATE", 0), ("ended_ms IS NULL", 1)]


def test_the_statements_of_the_page(sbx, db):
    """Each statement of docs/DATABASE.md is executed and finds the rows that it is for."""
    with open(os.path.join(SRC, "docs/DATABASE.md"), encoding="utf-8") as f:
        blocks = re.findall(r"(?:^    .*\n)+", f.read(), re.M)
    statements = [s for s in "".join(blocks).split(";\n") if s.strip()]
    assert len(statements) == len(PAGE_SQL), statements
    add_sandbox(db, A, analysis_id="job-7", workspace="team-a", alive=True)
    add_sandbox(db, B, analysis_id="job-8", state="done", status=0)
    for _ in range(2):
        add_event(db, A, analysis_id="job-7", ts=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()))
    add_event(db, B, analysis_id="job-8", ts="2026-01-01T00:00:00.000Z", fqdn_pinned="old.test")
    add_event(db, B, analysis_id="job-8", action="allow", reason="list_allow", bytes_out=7, bytes_in=9)
    for i in range(3):
        db.execute("INSERT INTO egress_review_task (sandbox_id, workspace, cause, n_denies, first_ms, last_ms, state) "
                   "VALUES (?, 'team-a', ?, 1, 1, 1, ?)", [A, f"cause{i}", "open" if i == 2 else "closed"])
    for statement, (word, n) in zip(statements, PAGE_SQL):
        assert word in statement, statement
        before = mine(sbx, "--workspace", "team-a") if word == "DELETE" else []
        cursor = db.execute(statement)
        assert len(cursor.fetchall()) == n, statement
        if word == "DELETE":
            assert [r["pattern"] for r in before] == ["*.pythonhosted.org:443"] and mine(sbx) == []
    assert ctl_json(sbx, "review", "list")["tasks"] == []


def test_db_export(sbx, db):
    fill(db)
    add_event(db, A)
    lines = ctl_lines(sbx, "db", "export")
    tables = [line["table"] for line in lines]
    assert {t: tables.count(t) for t in set(tables) - {"rule"}} == {"workspace": 1, "sandbox": 4, "event": 1}
    assert any(line["row"].get("pattern") == "ipinfo.io" for line in lines)
