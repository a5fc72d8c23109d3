# SPDX-License-Identifier: LGPL-2.1-or-later
"""Old events leave the database: some at a run's end, all with --gc, as system.yaml says."""
import os

from test_rules_start import made, write  # noqa: F401

DENIED = ["sh", "-c", "getent hosts denied.test; true"]


def old_events(sbx, n, days):
    """Of a sandbox that has ended."""
    sandbox = sbx.sandboxes()[0]["id"]
    write(sbx, "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, reason, raw_pkts) "
          "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
          "SELECT ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?), 'deny', 'tcp', 'floor', 1 FROM n", n, sandbox, f"-{days} days")


def policy(sbx, text):
    path = os.path.join(sbx.config, "system.yaml")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)


def count(sbx, reason="floor"):
    return len(sbx.events(reason=reason))


def test_days(made):
    old_events(made, 1300, 10)
    assert made.run([], DENIED).rc == 0 and count(made) == 1300
    policy(made, "events: {keep_days: 5}\n")
    assert made.run([], ["true"]).rc == 0 and count(made) == 1300  # it wrote none
    assert made.run([], DENIED).rc == 0 and count(made) == 800
    r = made.run(["--gc", "-v"], [])
    assert r.rc == 0 and "800 old events are removed" in r.err and count(made) == 0, r
    assert count(made, "default_deny") > 0  # the new ones
    r = made.run(["--gc", "-v"], [])
    assert r.rc == 0 and "old events" not in r.err, r


def test_rows(made):
    old_events(made, 2500, 1)
    policy(made, "events: {max_rows: 1000}\n")
    assert made.run([], DENIED).rc == 0 and count(made) == 2000
    # beside a command, step by step
    assert made.run([], ["sh", "-c", "getent hosts denied.test; sleep 2"]).rc == 0
    assert len(made.events()) == 1000
    policy(made, "events: {max_rows: 999}\n")
    r = made.run([], ["true"])
    assert r.rc == 125 and "events.max_rows" in r.err, r
