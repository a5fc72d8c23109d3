# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxctl rules and workspace, end to end: a rule that was added holds in the sandboxes of its workspace (docs/RULES.md)."""
import json

import pytest

from control import Client
from ctl import ctl, ctl_json
from test_control import running
from test_lifecycle import clean, processes, wait_until  # noqa: F401
from test_names import reaches

W = ["--workspace", "w"]
PROFILE = """
name: p
extends: none
network:
  mode: fetch
  allow: ["v4.test", "*.example.org"]
  deny: ["denied.test"]
"""


def add(sbx, action, pattern, *more, workspace="w"):
    """The id that rules add prints, and nothing else."""
    where = ["--workspace", workspace] if workspace else ["--host"]
    r = ctl(sbx, "rules", "add", *where, "--type", "network", "--action", action, *more, pattern)
    assert r.rc == 0 and r.out.endswith("\n") and r.out[:-1].isdigit(), r
    return r.out[:-1]


def test_a_rule_comes_and_goes(sbx, clean):
    assert not reaches(sbx, W, "allowed.test")
    rule = add(sbx, "allow", "allowed.test")
    assert reaches(sbx, W, "allowed.test") and not reaches(sbx, ["--workspace", "v"], "allowed.test")
    assert sbx.events(action="allow", fqdn_pinned="allowed.test")[0]["rule"] == f"rule {rule} allowed.test"
    assert ctl(sbx, "rules", "set", rule, "--disable").rc == 0
    assert not reaches(sbx, W, "allowed.test")
    assert ctl(sbx, "rules", "set", rule, "--enable").rc == 0
    assert reaches(sbx, W, "allowed.test")
    assert ctl(sbx, "rules", "rm", rule).rc == 0
    assert not reaches(sbx, W, "allowed.test")
    r = ctl(sbx, "rules", "rm", rule)
    assert r.rc == 1 and "sbxctl rules list" in r.err


def test_the_workspaces_default(sbx, clean):
    assert ctl(sbx, "workspace", "set", "w", "--network-default", "allow").rc == 0
    assert reaches(sbx, W, "allowed.test") and not reaches(sbx, ["--workspace", "v"], "allowed.test")
    with running(sbx, args=["--profile", "none", *W]) as (p, path), Client(path) as c:
        policy = c.ask("show")["sandbox"]["policy"]
        assert policy[-1] == {"entry": "*", "action": "allow", "layer": "default", "origin": "sbxctl workspace"}
    for name in ("ipinfo.io", "metadata.google.internal"):
        assert not sbx.inside(W, "resolve", name)["ok"]
    assert ctl(sbx, "workspace", "set", "w", "--network-default", "deny").rc == 0
    assert not reaches(sbx, W, "allowed.test")


# (rules: action, pattern and priority; the workspace's default; flags; {name: is it reached})
CASES = {
    "the profile alone": ([], None, [], {"v4.test": True, "denied.test": False, "allowed.test": False}),
    "a rule over the profile's lists": (
        [("deny", "v4.test", 100), ("allow", "denied.test", 100)], None, [],
        {"v4.test": False, "denied.test": True}),
    "a rule over flags": ([("deny", "allowed.test", 100)], None, ["--allow", "allowed.test"], {"allowed.test": False}),
    "flags over the default": ([], "allow", ["--deny", "allowed.test"], {"allowed.test": False, "files.test": True}),
    "the profile's deny over the workspace's default": ([], "allow", [], {"denied.test": False, "allowed.test": True}),
    "a lower number first": (
        [("deny", "*.example.com", 10), ("allow", "packages.example.com", 20)], None, [], {"packages.example.com": False}),
    "the most specific of equals": (
        [("deny", "*.example.com", 10), ("allow", "packages.example.com", 10)], None, [], {"packages.example.com": True}),
    "a tie denies": ([("allow", "allowed.test", 10), ("deny", "allowed.test", 10)], None, [], {"allowed.test": False}),
    "another port does not count": ([("deny", "allowed.test:22", 1), ("allow", "allowed.test", 9)], None, [], {"allowed.test": True}),
    "no rule lifts a floor": (
        [("allow", "ipinfo.io", 0), ("allow", "*.ipinfo.io", 0), ("allow", "allowed.test", 0)],
        "allow", ["--allow", "example.org"], {"ipinfo.io": False, "www.ipinfo.io": False, "allowed.test": True}),
    "an air gap is over allowing rules": ([("allow", "allowed.test", 0)], "allow", ["--air-gap"], {"allowed.test": False}),
}


@pytest.mark.parametrize("case", CASES)
def test_precedence(sbx, case):
    rules, default, flags, want = CASES[case]
    sbx.profile("p", PROFILE)
    for action, pattern, priority in rules:
        add(sbx, action, pattern, "--priority", priority)
    if default:
        assert ctl(sbx, "workspace", "set", "w", "--network-default", default).rc == 0
    args = ["--profile", "p", *W, *flags]
    assert {name: reaches(sbx, args, name) for name in want} == want
    if "--air-gap" not in flags and not flags:  # and the answer of explain is the same
        for name, ok in want.items():
            r = ctl(sbx, "explain", "--profile", "p", *W, "tcp", name, "443", "--json")
            assert (json.loads(r.out)["verdict"] == "allow") == ok == (r.rc == 0), r


def test_the_metadata_address(sbx, clean):
    """A network around it and the default allow it; it stays refused, and an address beside it is let through."""
    r = ctl(sbx, "rules", "add", *W, "--action", "allow", "169.254.169.254")
    assert r.rc == 2 and "metadata addresses are never reached" in r.err
    add(sbx, "allow", "160.0.0.0/4:443")
    add(sbx, "allow", "203.0.113.10:443")
    assert ctl(sbx, "workspace", "set", "w", "--network-default", "allow").rc == 0
    sbx.profile("p", PROFILE)
    args = ["--profile", "p", *W]
    assert not sbx.inside(args, "tls", "169.254.169.254", 443, "allowed.test")["ok"]
    assert sbx.inside(args, "tls", "203.0.113.10", 443, "allowed.test")["ok"]


def test_tool_rules(sbx, clean):
    def tool(action, pattern):
        r = ctl(sbx, "rules", "add", *W, "--type", "tool", "--action", action, pattern)
        assert r.rc == 0, r
        return r.out.strip()

    sbx.profile("p", "name: p\nextends: none\ncommands: {deny: [ls]}\n")
    args = ["--profile", "p", *W]
    assert sbx.run(args, ["ls"]).rc == 126 and sbx.run(args, ["id"]).rc == 0
    allow, deny = tool("allow", "ls"), tool("deny", "id")
    assert sbx.run(args, ["ls"]).rc == 0
    r = sbx.run(args, ["id"])
    assert r.rc == 126 and f"rule {deny}" in r.err and "workspace 'w'" in r.err, r
    assert sbx.run(["--profile", "p"], ["id"]).rc == 0
    for rule in (allow, deny):
        assert ctl(sbx, "rules", "rm", rule).rc == 0
    assert sbx.run(args, ["ls"]).rc == 126 and sbx.run(args, ["id"]).rc == 0


def test_a_running_sandbox_follows(sbx, clean):
    """rules add waits for it; rules of another workspace are not its own."""
    sbx.profile("p", PROFILE)
    with running(sbx, args=["--profile", "p", *W]) as (p, path):
        i = path.split("/")[-2]

        def entries():
            return {e["entry"]: e["action"] for e in ctl_json(sbx, "show", i)["sandbox"]["policy"] if e["layer"] == "rule"}

        assert entries() == {}
        r = ctl(sbx, "rules", "add", *W, "--action", "allow", "allowed.test")
        rule = r.out.strip()
        assert r.rc == 0 and r.err == "sbxctl: 1 sandbox follows, 0 flows cut\n", r
        add(sbx, "deny", "v4.test", workspace="v")
        assert entries() == {"allowed.test": "allow"}
        r = ctl(sbx, "exec", i, "--", "curl", "-sS", "-o", "/dev/null", "https://allowed.test/")
        assert r.rc == 0, r
        assert ctl(sbx, "rules", "rm", rule).rc == 0 and entries() == {}
        assert ctl(sbx, "exec", i, "--", "curl", "-sS", "-o", "/dev/null", "https://allowed.test/").rc != 0
        assert ctl(sbx, "workspace", "set", "w", "--network-default", "allow").rc == 0
        assert ctl(sbx, "exec", i, "--", "curl", "-sS", "-o", "/dev/null", "https://allowed.test/").rc == 0
