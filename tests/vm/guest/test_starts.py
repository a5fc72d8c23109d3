# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-run does what it does everywhere: as root, in a session, as a unit of the system's and of a user's
manager, with and without a delegated cgroup."""
import json
import os
import sqlite3
import subprocess

import pytest

from machine import PREFIX, TESTER, UNIT, USER_MANAGER, WAYS, wait_until


@pytest.mark.parametrize("way", WAYS)
def test_it_starts_and_the_self_test_passes(start, way):
    """The command runs, and the exit status is its own."""
    sbx = start(way)
    r = sbx.run(["--profile", "none"], ["sh", "-c", "python3 inside.py status && exit 7"])
    assert (r.rc, r.err) == (7, "")
    status = json.loads(r.out)
    row = sbx.last()
    assert status["uid"] == row["uid"] == (row["uid"] if sbx.is_root else TESTER.pw_uid) != 0
    assert {status["fields"][k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (row["state"], row["exit_status"]) == ("done", 7)
    verdicts = json.loads(row["selftest"])
    assert len(verdicts) >= 10 and all(ok for _, ok, _ in verdicts), verdicts
    assert sbx.leftovers() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_name_and_an_allowed_one(start, world, way):
    sbx = start(way)
    script = "import json; from inside import resolve, tls; " \
        "print(*(json.dumps(tls(n, 443, n)) for n in ('allowed.test', 'denied.test')), sep='\\n'); " \
        "print(json.dumps(resolve('denied.test')))"
    allowed, denied, resolved = sbx.run(["--allow", "allowed.test"], ["python3", "-c", script]).lines()
    assert allowed["ok"] and '"host": "allowed.test"' in allowed["data"], allowed
    assert not denied["ok"], denied
    # A resolver that is not answered takes ten seconds to give up.
    assert not resolved["ok"] and resolved["ms"] < 5000, resolved
    assert sbx.events(action="allow", fqdn_pinned="allowed.test", remote_port=443)
    assert {e["reason"] for e in sbx.events(action="deny", fqdn_pinned="denied.test")} == {"default_deny"}
    assert not sbx.events(action="allow", fqdn_pinned="denied.test")
    assert not sbx.events(action="panic")


@pytest.mark.parametrize("way", WAYS)
def test_killed_by_the_clock_and_by_itself(start, way):
    sbx = start(way)
    assert sbx.run(["--limit", "wall_time=1s"], ["sleep", "600"]).rc == 124
    assert sbx.last()["state"] == "timed_out"
    assert sbx.run(["--limit", "wall_time=600s"], ["sh", "-c", "kill -KILL $$"]).rc == 137
    assert sbx.last()["state"] == "done"
    assert sbx.leftovers() == []


@pytest.mark.parametrize("way", ["unit", "user-unit"])
def test_exit_statuses_of_what_did_not_run(start, way):
    sbx = start(way)
    assert sbx.run(["--profile", "nosuch"], ["true"]).rc == 125
    assert sbx.run([], ["no-such-command"]).rc == 127
    assert sbx.leftovers() == []


@pytest.mark.parametrize("manager,state,runtime", [
    (UNIT, "/var/lib/sbx", "/run/sbx"),
    (USER_MANAGER, TESTER.pw_dir + "/.local/state/sbx", f"/run/user/{TESTER.pw_uid}/sbx")])
def test_a_units_own_places(manager, state, runtime):
    """The default places of state and runtime files: a unit has no home directory's variables unless its manager
    has."""
    r = subprocess.run([*manager, "--", os.path.join(PREFIX, "bin/sbx-run"), "--scratch", "--id", "0123456789ab",
                        "--", "sh", "-c", "exit 5"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=60)
    assert r.returncode == 5, r
    with sqlite3.connect(f"file:{state}/sbx.db?mode=ro", uri=True) as db:
        assert db.execute("SELECT state, exit_status FROM sandbox WHERE id = '0123456789ab'").fetchall() == \
            [("done", 5)]
    assert os.path.isdir(runtime) and "0123456789ab" not in os.listdir(runtime)


@pytest.mark.parametrize("way", ["unit", "user-unit"])
def test_a_unit_that_is_stopped(start, way):
    """systemd sends SIGTERM to every process of the unit; nothing stays, and the row has its end."""
    sbx = start(way)
    name = "sbx-test-" + way
    at = sbx.argv(["--id", "0123456789ac"], ["sh", "-c", "sleep 600"])
    i = at.index("--")
    manager = at[:at.index("systemd-run")] + ["systemctl"] + (["--user"] if way == "user-unit" else [])
    p = subprocess.Popen([*at[:i], "--unit", name, *at[i:]], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def running():
        try:
            return sbx.row("0123456789ac")["state"] == "running"
        except (sqlite3.OperationalError, IndexError):
            return False
    assert wait_until(running)
    subprocess.run([*manager, "stop", name], check=True, timeout=60)
    p.communicate(timeout=60)
    assert p.returncode != 0
    row = sbx.row("0123456789ac")
    assert row["state"] not in ("preparing", "running") and row["ended_ms"], row
    assert sbx.leftovers() == []
