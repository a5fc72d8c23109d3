# SPDX-License-Identifier: LGPL-2.1-or-later
"""The basics: a command runs, reaches an allowed name, and is refused any other."""


def test_true(sbx):
    r = sbx.run(["--profile", "none"], ["true"])
    assert (r.rc, r.out, r.err) == (0, "", "")
    assert sbx.leftovers() == []
    assert [s["state"] for s in sbx.sandboxes()] == ["done"]


def test_allowed_and_denied_by_name(sbx):
    allowed = sbx.inside(["--allow", "allowed.test"], "tls", "allowed.test", 443, "allowed.test")
    assert allowed["ok"], allowed
    assert '"host": "allowed.test"' in allowed["data"]
    denied = sbx.inside(["--allow", "allowed.test"], "tls", "denied.test", 443, "denied.test")
    assert not denied["ok"]
    assert sbx.events(action="allow", fqdn_pinned="allowed.test")
    assert sbx.events(action="deny", fqdn_pinned="denied.test")


def test_status_is_the_commands(sbx):
    assert sbx.run([], ["sh", "-c", "exit 7"]).rc == 7
    assert sbx.run([], ["sh", "-c", "kill -TERM $$"]).rc == 143
    assert sbx.run([], ["/nonexistent"]).rc == 127
    assert sbx.run([], ["sudo", "id"]).rc == 126
    assert sbx.run(["--frobnicate"], ["true"]).rc == 125
