# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control socket of a sandbox with attach cgroup: what sbxctl does to it, and that nothing inside reaches it."""
import json
import os
import re
import select
import time

import pytest

import control
import test_control
import test_exec
from ctl import ctl, ctl_json
from test_attach import A, B, NAMES, Sandbox, cgroup2_mount, denied, host, sbx, start, wait_until  # noqa: F401

# The cgroups of sandboxes are the machine's.
pytestmark = pytest.mark.xdist_group("cgroups")

CONNECT = """
import socket, sys
for addr in sys.argv[1:]:
    s = socket.socket()
    s.settimeout(10)
    try:
        s.connect((addr, 80))
        print("ok")
    except OSError as e:
        print(e.errno)
"""
ECONNREFUSED = "111"


def path_of(sbx, run):  # noqa: F811
    return control.socket_of(sbx, run.p)


def id_of(path):
    return os.path.basename(os.path.dirname(path))


def test_show_and_net(sbx, start):  # noqa: F811
    run = start()
    i = id_of(path_of(sbx, run))
    assert run("resolve", "a.test") and run("tcp", A, 80, "kept") == "ok"
    s = ctl_json(sbx, "show", i, root=True)["sandbox"]
    control.validator("sandbox").validate(s)
    assert s["network"]["attach"] == "cgroup" and "socket cgroupv2" in s["ruleset"], s
    assert s["selftest"] and all(probe["ok"] for probe in s["selftest"]), s["selftest"]
    assert s["usage"]["cpu_us"] > 0 and re.search(r"^usage +cpu \d+\.\d\ds", ctl(sbx, "show", i, root=True).out, re.M), s["usage"]
    out = ctl(sbx, "net", i, "--air-gap", root=True).out
    assert out == f"{i}: generation 2, air gap, 1 flow cut\n", out
    assert ctl_json(sbx, "show", i, root=True)["sandbox"]["air_gapped"]
    assert ctl_json(sbx, "explain", "--id", i, "tcp", "a.test", "80", root=True, rc=1)["reason"] == "air_gap"
    assert ctl(sbx, "net", i, "--no-air-gap", root=True).rc == 0
    assert ctl_json(sbx, "explain", "--id", i, "tcp", "a.test", "80", root=True)["verdict"] == "allow"
    assert run("tcp", A, 80) == "ok" and run.end()[0] == 0


def test_exec_is_under_the_same_rules(sbx, start):  # noqa: F811
    """A change holds for it as for the first command, and its refusals are recorded."""
    run = start()
    path = path_of(sbx, run)
    assert run("resolve", "a.test")

    def connect():
        r = ctl(sbx, "exec", id_of(path), "--", "/usr/bin/python3", "-c", CONNECT, A, B, root=True)
        assert r.rc == 0, r
        return r.out.split()
    assert connect() == ["ok", ECONNREFUSED]
    assert ctl(sbx, "net", id_of(path), "--air-gap", root=True).rc == 0
    assert connect() == [ECONNREFUSED, ECONNREFUSED]
    assert ctl(sbx, "net", id_of(path), "--no-air-gap", "--allow", "203.0.113.0/24:80", root=True).rc == 0
    assert connect() == ["ok", "ok"]
    assert run.end()[0] == 0
    assert denied(sbx, remote_ip=B, protocol="tcp") and denied(sbx, remote_ip=A, reason="air_gap")


def test_exec_has_all_that_holds_for_the_first_command(sbx):  # noqa: F811
    """The cgroup too, by which the rules know it."""
    sbx.profile("att", NAMES)
    p = sbx.popen(["--profile", "att"], ["/usr/bin/python3", "-c", test_exec.HOLDS + "\nimport sys, time\nsys.stdout.flush()\ntime.sleep(60)\n"],
                  root=True)
    try:
        line = p.stdout.readline()
        assert line, p.communicate()
        path = control.socket_of(sbx, p)
        r = ctl(sbx, "exec", id_of(path), "--", "/usr/bin/python3", "-c", test_exec.HOLDS, root=True)
        assert r.rc == 0 and json.loads(r.out) == json.loads(line), r
    finally:
        p.terminate()
        p.communicate(timeout=20)


def test_a_refusal_is_soon_in_the_database(sbx, start):  # noqa: F811
    run = start()
    for port in (80, 443, 8443):
        at = time.monotonic()
        assert run("tcp", B, port) == "ECONNREFUSED"
        assert wait_until(lambda port=port: denied(sbx, remote_ip=B, remote_port=port), 5)
        assert time.monotonic() - at < 1
    assert run.end()[0] == 0


def test_freeze_signal_and_kill(sbx, start):  # noqa: F811
    run = start()
    path = path_of(sbx, run)
    i = id_of(path)
    group, = [os.path.join(top, d) for top, dirs, _ in os.walk(cgroup2_mount()) for d in dirs if d == f"sbx-{i}"]

    def frozen():
        with open(group + "/command/cgroup.events") as f:
            return "frozen 1" in f.read()
    assert ctl(sbx, "freeze", i, root=True).rc == 0
    try:
        assert wait_until(frozen, 5)
        run.p.stdin.write('["resolve", "a.test"]\n')
        run.p.stdin.flush()
        assert not select.select([run.p.stdout], [], [], 0.5)[0]
    finally:  # a frozen one would not end with the test
        assert ctl(sbx, "thaw", i, root=True).rc == 0 and not frozen()
    assert A in json.loads(run.p.stdout.readline())
    assert ctl(sbx, "kill", i, root=True).rc == 0 and run.p.wait(20) == 137
    assert wait_until(lambda: not os.path.exists(group))


def test_nothing_inside_reaches_the_socket(sbx, start):  # noqa: F811
    """The sandbox is in the host's network namespace: no abstract name leads to it there either."""
    sbx.put("look.py", test_control.INSIDE.replace('"/proc/net/unix"', '"/dev/null"'), own=True)
    run = start()
    path = path_of(sbx, run)
    with open("/proc/net/unix") as f:
        assert not [line for line in f if "@" in line and ("control.sock" in line or id_of(path) in line)]
    look = ["/usr/bin/python3", "look.py", path, "@" + path, "@sbx", "@control.sock"]
    r = ctl(sbx, "exec", id_of(path), "--", *look, root=True)
    assert (r.rc, r.out) == (0, "[]\n"), r
    other = sbx.run(["--profile", "att"], look, root=True)
    assert (other.rc, other.out) == (0, "[]\n"), other
    with control.Client(path) as c:
        assert c.ask("show")
    assert run.end()[0] == 0
