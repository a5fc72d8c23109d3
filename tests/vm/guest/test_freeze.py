# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sandbox that its cgroup freezes: the policy can be changed meanwhile, and it goes on afterwards."""
import json
import os
import select
import subprocess

import pytest

from machine import CGROUP, PREFIX, RUN_SECONDS, cgroups, wait_until

ID = "0123456789ab"

# Keeps a connection, says how it ended, and tries again.
STREAM = """
import errno, socket
def say(*words):
    print(*words, flush=True)
address = socket.getaddrinfo("allowed.test", 7000, socket.AF_INET)[0][4]
def connect():
    return socket.create_connection(address, 20)
s = connect()
say("up")
s.settimeout(None)
try:
    say("cut", s.recv(1))
except OSError as e:
    say("cut", errno.errorcode[e.errno])
try:
    say("again", connect().getpeername()[1])
except OSError as e:
    say("again", errno.errorcode[e.errno])
"""


def ctl(sbx, *args):
    env = {**os.environ, "SBX_STATE_DIR": sbx.state, "SBX_RUNTIME_DIR": sbx.runtime, "SBX_CONFIG_DIR": sbx.config}
    r = subprocess.run([PREFIX + "/bin/sbxctl", *args], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=RUN_SECONDS)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def command_cgroup():
    path, = (path for path in cgroups() if path.endswith(f"/sbx-{ID}/command"))
    return CGROUP + path


def is_frozen(cgroup):
    with open(cgroup + "/cgroup.events") as f:
        return "frozen 1\n" in f.read()


def is_silent(p):
    return not select.select([p.stdout], [], [], 1)[0]


@pytest.mark.parametrize("way", ["root", "delegated", "user-delegated"])
def test_an_air_gap_while_frozen(start, world, way):
    sbx = start(way)
    args = ["--allow", "allowed.test:7000", "--limit", "memory=256M"]
    with sbx.running(args, ["python3", "-c", STREAM], ID) as p:
        cgroup = command_cgroup()
        ctl(sbx, "freeze", ID)
        assert wait_until(lambda: is_frozen(cgroup))
        a = json.loads(ctl(sbx, "net", ID, "--air-gap", "--json"))
        assert (a["cut"], a["air_gapped"]) == (1, True)
        assert is_frozen(cgroup) and is_silent(p)
        ctl(sbx, "thaw", ID)
        assert p.stdout.readline() == "cut ECONNRESET\n"
        assert p.stdout.readline() == "again ECONNREFUSED\n"
        assert p.wait(RUN_SECONDS) == 0, p.stderr.read()
    assert sbx.row(ID)["state"] == "done" and sbx.leftovers() == []


def test_frozen_again_and_killed(start, world):
    """The change is undone while frozen, and nothing of the sandbox is left when it is killed like that."""
    sbx = start("root")
    before = cgroups()
    args = ["--allow", "allowed.test:7000", "--limit", "memory=256M"]
    with sbx.running(args, ["python3", "-c", STREAM + "print('sleeps', flush=True); import time; time.sleep(600)"],
                     ID) as p:
        cgroup = command_cgroup()
        for on in (True, False):
            ctl(sbx, "freeze", ID)
            assert wait_until(lambda: is_frozen(cgroup))
            ctl(sbx, "net", ID, "--air-gap" if on else "--no-air-gap")
            if on:
                ctl(sbx, "thaw", ID)
                assert [p.stdout.readline() for _ in range(3)] == ["cut ECONNRESET\n", "again ECONNREFUSED\n",
                                                                   "sleeps\n"]
        assert is_silent(p)
        ctl(sbx, "kill", ID)
        assert p.wait(RUN_SECONDS) == 137
    assert sbx.row(ID)["state"] == "killed" and sbx.leftovers() == []
    assert wait_until(lambda: cgroups() == before), cgroups() - before
