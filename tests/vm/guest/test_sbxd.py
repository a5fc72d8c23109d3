# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd under systemd: the system's service and a user's, by their sockets; its watchdog; what its end leaves alone."""
import contextlib
import http.client
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import time

import pytest

from machine import PREFIX, TESTER, wait_until

SYSTEM = "/run/sbxd/api.sock"
USER = f"/run/user/{TESTER.pw_uid}/sbx/api.sock"
AS_USER = ["setpriv", "--reuid=tester", "--regid=tester", "--init-groups", "env", f"HOME={TESTER.pw_dir}",
           f"XDG_RUNTIME_DIR=/run/user/{TESTER.pw_uid}"]
pytestmark = pytest.mark.usefixtures("installed")


def run(*argv, timeout=90):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("sbx", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, where, method="GET", body=None):
    c = Connection(path)
    with contextlib.closing(c):
        c.request(method, where, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        r = c.getresponse()
        text = r.read()
        return r.status, json.loads(text) if text[:1] == b"{" else text.decode()


def show(unit, what, *manager):
    return run(*manager, "systemctl", *(["--user"] if manager else []), "show", unit, "-P", what).stdout.strip()


@pytest.fixture
def system():
    """The system's service, which starts with the first connection."""
    assert run("systemctl", "start", "sbxd.socket").returncode == 0
    yield SYSTEM
    run("systemctl", "stop", "sbxd.socket", "sbxd.service")
    run("systemctl", "reset-failed", "sbxd.service")


@pytest.fixture
def user():
    """The same of a user's manager."""
    run("systemctl", "start", f"user@{TESTER.pw_uid}.service")
    assert wait_until(lambda: os.path.exists(f"/run/user/{TESTER.pw_uid}/bus"))
    started = run(*AS_USER, "systemctl", "--user", "start", "sbxd.socket")
    assert started.returncode == 0, started
    yield USER
    run(*AS_USER, "systemctl", "--user", "stop", "sbxd.socket", "sbxd.service")


def test_the_socket_starts_it(system):
    assert show("sbxd.service", "ActiveState") == "inactive"
    assert stat.S_IMODE(os.stat(system).st_mode) == 0o666
    assert ask(system, "/healthz")[0] == 200
    assert show("sbxd.service", "ActiveState") == "active"
    pid = int(show("sbxd.service", "MainPID"))
    assert os.stat(f"/proc/{pid}").st_uid == pwd.getpwnam("sbx").pw_uid
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = f.read()
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    assert ask(system, "/readyz") == (200, {"status": "ok", "database": "ok", "runtime": "ok"})
    assert ask(system, "/session")[1]["role"] == "admin"


def test_its_hardening_leaves_it_its_work(system):
    answer = ask(system, "/explain", "POST", {"profile": "build", "protocol": "tcp", "host": "pypi.org", "port": 443})
    assert answer[0] == 200 and answer[1]["verdict"] in ("allow", "deny"), answer
    assert ask(system, "/explain", "POST", {"command": "true"})[0] == 200
    assert [p["name"] for p in ask(system, "/profiles")[1]["items"] if p["name"] == "default"]
    assert "sbx_build_info" in ask(system, "/metrics")[1]


def test_another_user_may_connect_and_sees_nothing_of_others(system):
    def look(path, *options):
        return run(*AS_USER, "curl", "-s", "--unix-socket", system, *options, "http://sbx" + path).stdout

    status, answer = ask(system, "/sandboxes", "POST", {"profile": "none", "command": ["sleep", "600"]})
    assert status == 201, answer
    path = "/sandboxes/" + answer["id"]
    try:
        assert json.loads(look("/session"))["own_only"] is True
        assert json.loads(look("/sandboxes"))["items"] == []
        assert json.loads(look(path))["status"] == json.loads(look(path, "-X", "DELETE"))["status"] == 404
        assert ask(system, path)[1]["live"] is True
    finally:
        assert ask(system, path, "DELETE")[0] == 204


def test_security_is_what_the_document_says(system):
    out = run("systemd-analyze", "security", "--no-pager", "sbxd.service").stdout
    figure = float(out.split("exposure level for sbxd.service:")[1].split()[0])
    assert figure <= 2.0, out


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_its_end_disturbs_no_sandbox(user, how):
    """A sandbox of the user's, and one that the service started: found again by the next service."""
    status, started = ask(user, "/sandboxes", "POST", {"profile": "none", "command": ["sleep", "600"]})
    assert status == 201, started
    sandbox = subprocess.Popen([*AS_USER, f"{PREFIX}/bin/sbx-run", "--scratch", "--profile", "none", "--", "sleep", "600"])
    try:
        def running():
            return [s["id"] for s in ask(user, "/sandboxes?state=running")[1]["items"] if s["id"] != started["id"]]

        assert wait_until(running)
        one, = running()
        pid = show("sbxd.service", "MainPID", *AS_USER)
        if how == "stop":
            run(*AS_USER, "systemctl", "--user", "stop", "sbxd.service")
        else:
            os.kill(int(pid), signal.SIGKILL)
        assert wait_until(lambda: show("sbxd.service", "MainPID", *AS_USER) != pid)
        for i in one, started["id"]:
            assert ask(user, f"/sandboxes/{i}")[1]["live"] is True
        hello = ask(user, f"/sandboxes/{started['id']}/exec", "POST", {"command": ["echo", "hi"]})
        assert hello[0] == 200 and hello[1]["stdout"] == "hi\n", hello
        assert sandbox.poll() is None
        assert ask(user, f"/sandboxes/{one}", "DELETE")[0] == 204
        assert sandbox.wait(60) == 137
    finally:
        ask(user, f"/sandboxes/{started['id']}", "DELETE")
        sandbox.kill()
        sandbox.wait()


def test_a_loop_that_does_not_turn_is_started_again(user):
    """The watchdog, with a shorter time: SIGSTOP stops the loop."""
    drop_in = f"/run/user/{TESTER.pw_uid}/systemd/user/sbxd.service.d"
    os.makedirs(drop_in)
    with open(drop_in + "/watchdog.conf", "w", encoding="ascii") as f:
        f.write("[Service]\nWatchdogSec=5s\n")
    run(*AS_USER, "systemctl", "--user", "daemon-reload")
    sandbox = subprocess.Popen([*AS_USER, f"{PREFIX}/bin/sbx-run", "--scratch", "--profile", "none", "--", "sleep", "600"])
    try:
        assert wait_until(lambda: ask(user, "/sandboxes?state=running")[1]["items"])
        pid = show("sbxd.service", "MainPID", *AS_USER)
        time.sleep(12)  # more than twice the time: it says that it turns
        assert show("sbxd.service", "MainPID", *AS_USER) == pid
        os.kill(int(pid), signal.SIGSTOP)
        assert wait_until(lambda: show("sbxd.service", "MainPID", *AS_USER) not in (pid, "0"), 60)
        assert show("sbxd.service", "NRestarts", *AS_USER) == "1"
        assert ask(user, "/sandboxes?state=running")[1]["items"] and sandbox.poll() is None
    finally:
        os.unlink(drop_in + "/watchdog.conf")
        os.rmdir(drop_in)
        run(*AS_USER, "systemctl", "--user", "daemon-reload")
        sandbox.terminate()
        sandbox.wait()
