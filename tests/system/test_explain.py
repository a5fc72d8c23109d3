# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl explain and a real run agree: for each row, the answer is what happens when a sandbox of the same profile, in the
same directory, tries it."""
import json
import os
import sqlite3

import pytest

import ctl

PROFILE = """extends: none
network:
  mode: fetch
  allow:
    - allowed.test
    - "*.wild.test:443"
    - {host: api.test, access: read-only}
    - {host: private.test, private: true}
    - 198.51.100.0/24:80
  deny:
    - deep.sub.wild.test
"""


@pytest.fixture
def profile(sbx):
    return sbx.profile("p", PROFILE)


def explain(sbx, *args, rc=None, **kw):
    r = ctl.ctl(sbx, "explain", "--json", *args, **kw)
    assert r.rc in (0, 1), r
    o = ctl.validate(json.loads(r.out), "explain")
    assert (o["verdict"] == "allow") == (r.rc == 0), r
    if rc is not None:
        assert r.rc == rc, r
    return o


# url, the question, the expected status: what curl meets is compared with the answer
FLOWS = [
    ("https://allowed.test/", ["tcp", "allowed.test", 443], 0),
    ("http://allowed.test/", ["tcp", "allowed.test", 80], 0),
    ("https://allowed.test:8443/", ["tcp", "allowed.test", 8443], 1),
    ("https://denied.test/", ["tcp", "denied.test", 443], 1),
    ("https://sub.wild.test/", ["tcp", "sub.wild.test", 443], 0),
    ("http://sub.wild.test/", ["tcp", "sub.wild.test", 80], 1),
    ("https://wild.test/", ["tcp", "wild.test", 443], 1),
    ("https://deep.sub.wild.test/", ["tcp", "deep.sub.wild.test", 443], 1),
    ("https://ipinfo.io/", ["tcp", "ipinfo.io", 443], 1),
    ("http://198.51.100.7/", ["tcp", "198.51.100.7", 80], 0),
    ("http://203.0.113.10/", ["tcp", "203.0.113.10", 80], 1),
    ("http://169.254.169.254/", ["tcp", "169.254.169.254", 80], 1),
    ("https://meta.test/", ["--address", "169.254.169.254", "tcp", "meta.test", 443], 1),
]


def test_connections(sbx, world, profile):
    for url, question, rc in FLOWS:
        r = sbx.run(["--profile", profile], ["curl", "-fksS", "-m", "10", "-o", "/dev/null", url])
        assert (r.rc == 0) == (rc == 0), (url, r)
        assert ("refused" in r.err) == (rc != 0), (url, r)
        o = explain(sbx, "--profile", profile, *question, rc=rc)
        if rc and "--address" not in question:
            reasons = {e["reason"] for e in sbx.events(action="deny", sandbox_id=sbx.sandboxes()[-1]["id"])}
            assert o["reason"] in reasons, (o, reasons)


@pytest.mark.parametrize("method,path,rc", [("GET", "/a", 0), ("HEAD", "/a", 0), ("POST", "/a", 1), ("DELETE", "/a", 1)])
def test_requests(sbx, profile, method, path, rc):
    r = sbx.run(["--profile", profile], ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", "-X", method,
                                         *(["-I"] if method == "HEAD" else []), "https://api.test" + path])
    assert (r.out == "200") == (rc == 0), r
    o = explain(sbx, "--profile", profile, "--method", method, "--path", path, "tcp", "api.test", 443, rc=rc)
    assert rc == 0 or o["reason"] == "access_method", o


def test_the_changes_that_are_proposed_work(sbx, profile):
    """Each flag that explain proposes turns the verdict; so does the entry, when it is written."""
    o = explain(sbx, "--profile", profile, "tcp", "v4.test", 443, rc=1)
    flags = [c for c in o["changes"] if c.startswith("--allow")]
    assert flags, o
    for flag in flags:
        r = sbx.run(["--profile", profile, *flag.replace("'", "").split()], ["curl", "-ksS", "-o", "/dev/null", "https://v4.test/"])
        assert r.rc == 0, (flag, r)
    r = sbx.run(["--profile", profile], ["curl", "-ksS", "-o", "/dev/null", "https://v4.test/"])
    assert r.rc != 0, r


def test_the_changes_are_for_what_was_refused(sbx, profile):
    """A name that is not allowed, whatever its address; a protocol; an address that no flag can allow."""
    o = explain(sbx, "--profile", profile, "--address", "203.0.113.10", "tcp", "v4.test", 443, rc=1)
    assert o["changes"] == explain(sbx, "--profile", profile, "tcp", "v4.test", 443, rc=1)["changes"], o
    assert o["changes"][0] == "--allow v4.test", o
    o = explain(sbx, "--profile", profile, "udp", "v4.test", 5353, rc=1)
    assert o["changes"][0] == "--allow v4.test:5353/udp" and o["why"].endswith("pass --allow v4.test:5353/udp"), o
    o = explain(sbx, "--profile", profile, "tcp", "10.0.0.1", 443, rc=1)
    assert o["changes"] == ["an entry of network.allow with `private: true` for this address"], o


def test_where_the_rule_is(sbx, profile):
    o = explain(sbx, "--profile", profile, "tcp", "deep.sub.wild.test", 443, rc=1)
    assert o["decided"]["text"] == "deep.sub.wild.test" and o["decided"]["layer"] == "profile", o
    line = 1 + PROFILE.splitlines().index("    - deep.sub.wild.test")
    assert o["decided"]["origin"].endswith(f"p.yaml:{line}"), o
    assert [m["text"] for m in o["matches"]] == ["deep.sub.wild.test", "*.wild.test:443"], o
    floor = explain(sbx, "--profile", profile, "tcp", "ipinfo.io", 443, rc=1)
    assert floor["decided"]["layer"] == "floor" and floor["changes"] == [], floor


# --- mounts ---

def mounts(sbx):
    """[(what --bind gets, expected status)]"""
    tmp, home = sbx.tmp, sbx.world.user.pw_dir
    for name in ("data", "data/sub", "data/.ssh", "secrets", "roots"):
        os.makedirs(os.path.join(tmp, name))
    for name in ("data", "data/sub", "data/.ssh", "secrets"):
        os.chown(os.path.join(tmp, name), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    os.symlink(tmp + "/data", tmp + "/link")
    os.symlink("/etc", tmp + "/out")
    os.mkfifo(tmp + "/fifo")
    return [(tmp + "/data", 0), (tmp + "/data:ro", 0), (tmp + "/data:/inside", 0), (tmp + "/data:/inside:ro", 0),
            (tmp + "/data/sub", 0), (tmp + "/data/.ssh", 1), (tmp + "/secrets", 1), (tmp + "/missing", 1),
            (tmp + "/link", 0), (tmp + "/out", 1), (tmp + "/fifo", 1), ("/etc", 1), ("/", 1), (home, 1), (home + ":ro", 0),
            ("/proc", 1), ("/usr", 1), (sbx.state, 1), (sbx.config, 1), ("relative", 1), (tmp + "/data/../data", 1),
            (tmp + "/data:/proc/x", 1), (tmp + "/data:/", 1)]


@pytest.mark.parametrize("root", [False, True], ids=["user", "root"])
def test_mounts(sbx, profile, root):
    if root:
        sbx.own(0)
    for what, rc in mounts(sbx):
        r = sbx.run(["--profile", profile, "--scratch", "--bind", what], ["true"], root=root)
        assert r.rc in (0, 125), (what, r)
        o = explain(sbx, "--profile", profile, "mount", what, root=root)
        assert (o["verdict"] == "allow") == (r.rc == 0), (what, o, r)
        if not root:
            assert (r.rc == 0) == (rc == 0), (what, r)
        if r.rc:
            assert o["why"].split(": ", 1)[-1] in r.err, (o, r)


def test_what_a_mount_has_below(sbx, profile):
    mounts(sbx)
    o = explain(sbx, "--profile", profile, "mount", sbx.tmp + "/data", rc=0)
    assert o["decided"]["action"] == "writable" and o["decided"]["text"] == sbx.tmp + "/data", o
    assert [sbx.tmp + "/data/.ssh", "masked"] in [[m["text"], m["action"]] for m in o["matches"]], o
    o = explain(sbx, "--profile", profile, "mount", sbx.world.user.pw_dir, rc=1)
    assert any("read-only" in c for c in o["changes"]), o


# --- commands ---

@pytest.mark.parametrize("lists", ["", "commands: {deny: [cat, 'py*', /usr/bin/env]}\n", "commands: {allow: [sh, cat, /usr/bin/env]}\n",
                                   "commands: {allow: [cat, bash], deny: [cat]}\n"], ids=["none", "deny", "allow", "both"])
def test_commands(sbx, lists):
    sbx.profile("c", "extends: none\n" + lists)
    sbx.put("script", "#!/usr/bin/python3\n", 0o755)
    sbx.put("shell", "#!/bin/sh\n", 0o755)
    sbx.put("plain", "x", 0o644)
    for command in ("cat", "env", "/usr/bin/env", "sh", "python3", "/usr/bin/python3", "true", "no-such-thing", "./script", "./shell",
                    "./plain", "./missing", "sudo", "/etc/passwd", "bash"):
        r = sbx.run(["--profile", "c"], [command, *(["-c", "true"] if command in ("sh", "bash") else [])])
        o = explain(sbx, "--profile", "c", "command", command)
        refused = r.rc in (126, 127) and "sbx-run: command" in r.err
        assert (o["verdict"] == "deny") == refused, (command, o, r)
        if refused:
            assert o["why"] in r.err and o["reason"] == ("refused" if r.rc == 126 else "not_found"), (command, o, r)


def test_which_entry_decides_about_a_command(sbx):
    sbx.profile("c", "extends: none\ncommands: {allow: [sh, cat]}\n")
    o = explain(sbx, "--profile", "c", "command", "cat", rc=0)
    assert o["decided"]["text"] == "cat" and o["decided"]["origin"].endswith("c.yaml"), o
    o = explain(sbx, "--profile", "c", "command", "env", rc=1)
    assert o["changes"] and "commands.allow: ['env']" in o["changes"][0], o


# --- usage ---

@pytest.mark.parametrize("args,word", [
    (["tcp", "a.test"], "HOST PORT"), (["tcp", "a.test", "0"], "a port is"), (["tcp", "a.test", "https"], "a port is"),
    (["tcp", "a.test", "65536"], "a port is"), (["ftp", "a", "1"], "the first word"), (["tcp", "a..b", "1"], "no name"),
    (["mount", "/a", "/b"], "one PATH"), (["--method", "GET", "mount", "/a"], "for connections"),
    (["--method", "GET", "udp", "a.test", "53"], "for tcp"), (["mount"], ""),
])
def test_usage(sbx, args, word):
    r = ctl.ctl(sbx, "explain", *args)
    assert r.rc == 2 and r.out == "" and word in r.err and r.err.count("\n") == 1, r


def test_no_answer(sbx):
    r = ctl.ctl(sbx, "explain", "--profile", "missing", "tcp", "a.test", "443")
    assert r.rc == 125 and r.out == "" and "missing" in r.err, r
    sbx.profile("bad", "network: {mode: [}\n")
    r = ctl.ctl(sbx, "explain", "--profile", "bad", "tcp", "a.test", "443")
    assert r.rc == 125 and r.out == "", r


def test_on_a_terminal(sbx, profile):
    rc, text = ctl.in_terminal(sbx, "explain", "--profile", profile, "tcp", "deep.sub.wild.test", "443")
    assert rc == 1 and "\033[" in text and "decided" in text and "p.yaml:" in text, text
    assert ctl.plain(text).startswith("deny tcp deep.sub.wild.test port 443 (list_deny)\n"), text
    rc, text = ctl.in_terminal(sbx, "explain", "--profile", profile, "tcp", "allowed.test", "443", env={"NO_COLOR": "1"})
    assert rc == 0 and "\033[" not in text and text.startswith("allow tcp allowed.test port 443 (list_allow)\n"), text


# --- a running sandbox ---

def test_a_running_sandbox(sbx, profile):
    """The launcher answers, by the policy in force: flags and changes of the sandbox hold, and not what the files say now."""
    p = sbx.popen(["--profile", profile, "--scratch", "--id", "0123456789ab", "--allow", "v4.test", "--workspace", "w"],
                  ["sh", "-c", "echo ready; read x"], stdin=-1)
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    sbx.profile("p", PROFILE.replace("    - allowed.test\n", ""))
    for name, rc in (("v4.test", 0), ("allowed.test", 0), ("denied.test", 1), ("ipinfo.io", 1)):
        o = explain(sbx, "--id", "0123", "tcp", name, 443, rc=rc)
        assert o["generation"] >= 1 and o["subject"] == f"tcp {name} port 443", o
    assert explain(sbx, "--id", "0123456789ab", "--method", "POST", "tcp", "api.test", 443, rc=1)["reason"] == "access_method"
    explain(sbx, "--id", "0123456789ab", "command", "true", rc=0)
    explain(sbx, "--profile", profile, "tcp", "allowed.test", 443, rc=1)
    for args, rc, word in ((["--id", "0123", "tcp", "a..b", "443"], 2, "no name"), (["--id", "ffff", "tcp", "a.test", "443"], 125, "ffff"),
                           (["--id", "0123", "--profile", "none", "tcp", "a.test", "443"], 2, "--id has")):
        r = ctl.ctl(sbx, "explain", *args)
        assert r.rc == rc and r.out == "" and word in r.err and r.err.count("\n") == 1, r
    p.communicate("x\n", 60)
    r = ctl.ctl(sbx, "explain", "--id", "0123456789ab", "tcp", "v4.test", "443")
    assert r.rc == 125 and r.err.count("\n") == 1, r


# --- rules of a workspace ---

def test_rules_of_a_workspace(sbx, profile):
    """Stored rules decide in both, and the row that decided is named."""
    assert sbx.run(["--profile", profile, "--scratch"], ["true"]).rc == 0
    with sqlite3.connect(sbx.state + "/sbx.db") as db:
        for workspace, pattern, action in (("w", "denied.test:443", "allow"), ("w", "allowed.test", "deny"), ("w", "ipinfo.io", "allow"),
                                           ("other", "v4.test", "allow")):
            db.execute("INSERT INTO sandbox_rule (workspace, rule_type, pattern, action) VALUES (?, 'network', ?, ?)",
                       (workspace, pattern, action))
        db.execute("INSERT INTO sandbox_rule (workspace, rule_type, pattern, action) VALUES ('w', 'tool', 'env', 'deny')")
        ids = dict(db.execute("SELECT pattern, id FROM sandbox_rule WHERE workspace = 'w'"))
    db.close()
    for name, rc in (("denied.test", 0), ("allowed.test", 1), ("ipinfo.io", 1), ("v4.test", 1)):
        r = sbx.run(["--profile", profile, "--workspace", "w"], ["curl", "-fksS", "-m", "10", "-o", "/dev/null", f"https://{name}/"])
        assert (r.rc == 0) == (rc == 0), (name, r)
        o = explain(sbx, "--profile", profile, "--workspace", "w", "tcp", name, 443, rc=rc)
        if name in ("denied.test", "allowed.test"):
            assert o["decided"]["layer"] == "rule" and o["decided"]["origin"] == f"rule {ids.get(name, ids.get(name + ':443'))}", o
    assert explain(sbx, "--profile", profile, "tcp", "denied.test", 443, rc=1)["decided"] is None
    for args, rc in ((["--workspace", "w"], 1), ([], 0)):
        r = sbx.run(["--profile", profile, *args], ["env"])
        assert (r.rc == 0) == (rc == 0), r
        explain(sbx, "--profile", profile, *args, "command", "env", rc=rc)


# --- drafts of rules ---


def draft(sbx, profile, text, *question, rc, more=()):
    o = explain(sbx, "--profile", profile, "--workspace", "w", "--draft", text, *more, *question, rc=rc)
    return o["draft"], o


def test_a_draft_decides_as_the_stored_rule_does(sbx, profile):
    """For each draft: the verdict with it is that after it was stored, and nothing was stored by asking."""
    rows = [("allow:denied.test", ["tcp", "denied.test", 443], 0), ("deny:allowed.test", ["tcp", "allowed.test", 443], 1),
            ("deny:*.wild.test:443", ["tcp", "sub.wild.test", 443], 1), ("allow:203.0.113.0/24:80", ["tcp", "203.0.113.10", 80], 0)]
    for text, question, rc in rows:
        before = explain(sbx, "--profile", profile, "--workspace", "w", *question)
        assert "draft" not in before
        d, o = draft(sbx, profile, text, *question, rc=rc)
        assert d["decides"] and d["matches"] and d["above"] is None and d["why"] == "the draft decides", d
        assert o["decided"]["origin"] == "draft" and o["decided"]["layer"] == "rule", o
        assert "leave out the draft" in o["changes"], o
        assert o["verdict"] != before["verdict"]
        assert not [x for x in ctl.ctl_json(sbx, "rules", "list", "--workspace", "w")["rules"] if x["workspace"]]
        action, pattern = text.split(":", 1)
        row = json.loads(ctl.ctl(sbx, "rules", "add", "--json", "--workspace", "w", "--type", "network", "--action", action,
                                 pattern).out)
        stored = explain(sbx, "--profile", profile, "--workspace", "w", *question, rc=rc)
        assert stored["reason"] == o["reason"] and stored["decided"]["origin"] == f"rule {row['id']}"
        assert ctl.ctl(sbx, "rules", "rm", row["id"]).rc == 0


def test_a_draft_says_what_stands_above_it(sbx, profile):
    d, o = draft(sbx, profile, "allow:ipinfo.io", "tcp", "ipinfo.io", 443, rc=1)
    assert d["matches"] and not d["decides"] and d["above"]["layer"] == "floor" and o["reason"] == "floor", o
    assert "the floor 'ipinfo.io' comes first" in d["why"]
    d, o = draft(sbx, profile, "allow:meta.test", "--address", "169.254.169.254", "tcp", "meta.test", 443, rc=1)
    assert d["matches"] and not d["decides"] and o["reason"] == "floor", o
    d, _ = draft(sbx, profile, "allow:other.test", "tcp", "denied.test", 443, rc=1)
    assert not d["matches"] and not d["decides"] and d["above"] is None and "does not match" in d["why"], d
    d, _ = draft(sbx, profile, "allow:denied.test:8443", "tcp", "denied.test", 443, rc=1)
    assert not d["decides"] and not d["matches"], d
    row = json.loads(ctl.ctl(sbx, "rules", "add", "--json", "--workspace", "w", "--type", "network", "--action", "deny",
                             "--priority", "50", "*.test").out)
    d, _ = draft(sbx, profile, "allow:denied.test", "tcp", "denied.test", 443, rc=1)
    assert not d["decides"] and d["above"]["origin"] == f"rule {row['id']}" and d["above"]["action"] == "deny", d
    assert f"rule {row['id']}, deny '*.test', comes first" in d["why"]
    d, _ = draft(sbx, profile, "allow:denied.test", "tcp", "denied.test", 443, rc=0, more=["--draft-priority", "49"])
    assert d["decides"], d
    d, _ = draft(sbx, profile, "allow:denied.test", "tcp", "denied.test", 443, rc=0, more=["--draft-replaces", row["id"]])
    assert d["decides"], d
    d, _ = draft(sbx, profile, "floor:allowed.test", "tcp", "allowed.test", 443, rc=1)
    assert d["decides"], d


def test_a_draft_of_a_tool_rule(sbx, profile):
    d, o = draft(sbx, profile, "deny:curl", "command", "curl", rc=1)
    assert d["decides"] and "denied by the draft" in o["why"], o
    d, _ = draft(sbx, profile, "deny:wget", "command", "curl", rc=0)
    assert not d["decides"] and not d["matches"], d
    ctl.ctl(sbx, "rules", "add", "--workspace", "w", "--type", "tool", "--action", "deny", "--priority", "50", "curl")
    d, _ = draft(sbx, profile, "allow:curl", "command", "curl", rc=1)
    assert d["matches"] and not d["decides"], d
    d, _ = draft(sbx, profile, "allow:curl", "command", "curl", rc=0, more=["--draft-priority", "1"])
    assert d["decides"], d


@pytest.mark.parametrize("args,says", [
    (["--draft", "drop:x.test", "tcp", "x.test", "443"], "allow:PATTERN, deny:PATTERN or floor:PATTERN"),
    (["--draft", "allow:*", "tcp", "x.test", "443"], "every name"),
    (["--draft", "allow:", "tcp", "x.test", "443"], "--draft"),
    (["--draft", "allow:https://x.test/", "tcp", "x.test", "443"], "--draft"),
    (["--draft", "deny:x.test", "--draft-priority", "-1", "tcp", "x.test", "443"], "0 to 1000000"),
    (["--draft", "deny:x.test", "--draft-replaces", "0", "tcp", "x.test", "443"], "no rule's number"),
    (["--draft-priority", "1", "tcp", "x.test", "443"], "are for --draft"),
    (["--draft", "deny:/etc", "mount", "/etc"], "connections and commands"),
    (["--draft", "deny:x.test", "--id", "000000000000", "tcp", "x.test", "443"], "without --id"),
])
def test_a_draft_that_is_none(sbx, args, says):
    r = ctl.ctl(sbx, "explain", *args)
    assert r.rc == 2 and says in r.err and r.out == "" and r.err.count("\n") == 1, r
