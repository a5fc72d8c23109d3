# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rules of the database hold from the start of a sandbox; a database that cannot be read starts none."""
import os
import shutil
import sqlite3
import subprocess

import pytest

from conftest import USER
from test_names import reaches

W = ["--workspace", "w"]


def write(sbx, sql, *params):
    """As root, beside the launchers; the files stay the user's."""
    with sqlite3.connect(sbx.state + "/sbx.db", timeout=20) as db:
        db.execute(sql, params)
    user = sbx.world.user
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(sbx.state + "/sbx.db" + suffix):
            os.chown(sbx.state + "/sbx.db" + suffix, user.pw_uid, user.pw_gid)


def rule(sbx, pattern, action, workspace="w", kind="network", priority=100, floor=0):
    write(sbx, "INSERT INTO sandbox_rule (workspace, rule_type, pattern, action, priority, is_floor) VALUES (?, ?, ?, ?, ?, ?)",
          workspace, kind, pattern, action, priority, floor)


@pytest.fixture
def made(sbx):
    assert sbx.run([], ["true"]).rc == 0
    return sbx


def test_allow(made):
    assert not reaches(made, W, "allowed.test")
    rule(made, "allowed.test", "allow")
    assert reaches(made, W, "allowed.test")
    assert not reaches(made, [], "allowed.test") and not reaches(made, ["--workspace", "v"], "allowed.test")
    assert not reaches(made, W, "denied.test")


def test_deny(made):
    args = [*W, "--allow", "allowed.test", "--allow", "v4.test"]
    assert reaches(made, args, "allowed.test")
    rule(made, "allowed.test", "deny")
    assert not reaches(made, args, "allowed.test") and reaches(made, args, "v4.test")
    assert reaches(made, ["--allow", "allowed.test"], "allowed.test")
    event = [e for e in made.events(action="deny", fqdn_pinned="allowed.test", reason="rule_deny")][0]
    assert event["workspace"] == "w" and event["generation"] == 1, event


def test_of_the_host(made):
    rule(made, "allowed.test", "deny", workspace=None)
    assert not reaches(made, ["--allow", "allowed.test"], "allowed.test")
    rule(made, "allowed.test", "allow", priority=50)
    assert reaches(made, W, "allowed.test") and not reaches(made, ["--allow", "allowed.test"], "allowed.test")


def test_floor(made):
    rule(made, "allowed.test", "allow", priority=0)
    assert reaches(made, W, "allowed.test")
    rule(made, "allowed.test", "deny", workspace=None, priority=1000, floor=1)
    assert not reaches(made, W, "allowed.test")
    # the shipped ones hold without their rows
    write(made, "DELETE FROM sandbox_rule WHERE created_by = 'sbx'")
    rule(made, "ipinfo.io", "allow", priority=0)
    assert not made.inside(W, "resolve", "ipinfo.io")["ok"]


def test_default(made):
    write(made, "INSERT INTO workspace (name, network_default_action) VALUES ('w', 'allow')")
    assert reaches(made, W, "allowed.test") and not reaches(made, [], "allowed.test")
    rule(made, "allowed.test", "deny")
    assert not reaches(made, W, "allowed.test") and reaches(made, W, "v4.test")


def test_tools(made):
    made.profile("p", "name: p\nextends: default\ncommands: {deny: [ls]}\n")
    assert made.run([*W, "--profile", "p"], ["ls"]).rc == 126
    rule(made, "ls", "allow", kind="tool")
    assert made.run([*W, "--profile", "p"], ["ls"]).rc == 0 and made.run(["--profile", "p"], ["ls"]).rc == 126
    rule(made, "cat", "deny", kind="tool")
    r = made.run([*W, "--profile", "p"], ["cat", "/etc/hostname"])
    assert r.rc == 126 and "rule" in r.err and "workspace 'w'" in r.err, r
    # a program that the command starts
    assert made.run([*W, "--profile", "p"], ["sh", "-c", "cat /etc/passwd >/dev/null"]).rc == 126
    assert made.run(["--profile", "p"], ["sh", "-c", "cat /etc/passwd >/dev/null"]).rc == 0


def refused(sbx, part, args=(), **kw):
    r = sbx.run([*args], ["sh", "-c", "echo ran"], **kw)
    assert (r.rc, r.out) == (125, "") and part in r.err and r.err.count("\n") == 1, r
    return r


def test_a_row_that_does_not_parse(made):
    rule(made, "*.com", "allow")
    refused(made, "sbxctl rules rm", W)
    r = made.run([*W, "--dry-run"], ["true"])
    assert r.rc == 125 and "rule 24 of workspace 'w'" in r.err, r
    assert made.run([], ["true"]).rc == 0
    write(made, "UPDATE sandbox_rule SET enabled = 0 WHERE pattern = '*.com'")
    assert made.run(W, ["true"]).rc == 0


@pytest.mark.parametrize("how", ["not a database", "cut", "no rights", "a newer sbx", "no table"])
def test_no_store(made, how):
    path = made.state + "/sbx.db"
    if how == "no table":
        write(made, "DROP TABLE sandbox_rule")
        refused(made, "no such table")
        return
    if how == "a newer sbx":
        write(made, "PRAGMA user_version = 99")
        refused(made, "newer")
        return
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            with sqlite3.connect(path) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            break
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    shutil.copy(path, path + ".good")
    if how == "no rights":
        os.chown(path, 0, 0)
        os.chmod(path, 0o600)
    elif how == "cut":
        os.truncate(path, 3000)
    else:
        with open(path, "r+b") as f:
            f.write(b"not a database at all")
    refused(made, "rules of sandboxes cannot be read")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    shutil.copy(path + ".good", path)
    os.chown(path, made.world.user.pw_uid, made.world.user.pw_gid)
    assert made.run([], ["true"]).rc == 0


def test_dry_run(made):
    rule(made, "allowed.test", "allow")
    r = made.run([*W, "--dry-run"], ["true"])
    assert r.rc == 0 and '"pattern": "allowed.test"' in r.out, r
    shutil.rmtree(made.state)
    subprocess.run([*made.world.ns(USER), "true"], check=True)
    os.mkdir(made.state)
    made.own(made.world.user.pw_uid)
    r = made.run([*W, "--dry-run"], ["true"])
    assert r.rc == 0 and os.listdir(made.state) == [], r  # planning makes nothing
    assert made.run(W, ["true"]).rc == 0 and "sbx.db" in os.listdir(made.state)
