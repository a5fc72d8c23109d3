# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd whose sandboxes are started by units of systemd: the request to sbx-output, and a stand-in for sbx-sandbox.socket.
tests/vm has the same with systemd itself."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import INST
from sbxd import service, wait_for
from test_lifecycle import clean, sandboxes  # noqa: F401
from test_sbxd_start import SH, ended, kill_while_it_starts, place, start, start_at_once, started, text

ID = "0123456789ab"


def output(sbx, stdin, launcher="sbx-run", **kw):
    """sbx-output as the unit has it."""
    return sbx.popen(["stay", sbx.state, sbx.runtime, os.path.join(INST, "bin", launcher)], [],
                     program="libexec/sbx/sbx-output", stdin=stdin, stdout=subprocess.DEVNULL, **kw)


class Manager:
    """sbx-sandbox.socket with Accept=yes: sbx-output for each connection. @answer: what is sent instead; None: nothing."""

    def __init__(self, sbx):
        self.sbx, self.answer, self.units, self.held = sbx, "run", [], []
        self.path = os.path.join(sbx.tmp, "start.sock")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        os.chown(self.path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
        os.chmod(self.path, 0o600)
        self.socket.listen(128)
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while True:
            c, _ = self.socket.accept()
            if self.answer == "end":
                return
            if self.answer == "run":
                self.units.append(output(self.sbx, c, stderr=subprocess.PIPE))
            elif self.answer is not None:
                c.recv(64)
                c.sendall(self.answer)
            if self.answer != "run":
                self.held.append(c)  # systemd has a copy as long as the unit lives
            if self.answer == b"":
                self.held.pop().close()

    def end(self):
        self.answer = "end"
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
            s.connect(self.path)
        self.thread.join()
        self.socket.close()
        os.unlink(self.path)
        for c in self.held:
            c.close()


@pytest.fixture
def manager(sbx):
    m = Manager(sbx)
    yield m
    m.end()
    for unit in m.units:
        unit.communicate(timeout=30)
        assert unit.returncode == 0


def units_service(sbx, manager):
    return service(sbx, env={"SBX_START_SOCKET": manager.path})


def nothing_left(sbx):
    api = os.path.join(sbx.state, "api")
    assert not os.path.exists(api) or os.listdir(api) == []
    assert not [n for n in os.listdir(sbx.runtime) if n.startswith("api-")]
    assert sandboxes(sbx) == []


# --- a start by a unit ---

def test_all_that_a_spawned_one_has(sbx, clean, manager):
    with units_service(sbx, manager) as s:
        with started(s, *SH, "echo out; echo err >&2; sleep 100") as i:
            assert len(manager.units) == 1 and s.get(f"/sandboxes/{i}")["state"] == "running"
            wait_for(lambda: text(s, i) == b"out\n" and text(s, i, "stderr") == b"err\n")
            assert s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["echo", "hi"]}, status=200).json["stdout"] == "hi\n"
            assert s.ask("PUT", f"/sandboxes/{i}/network", {"air_gapped": True}, status=200).json["air_gapped"] is True
            s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 600}, status=200)
        assert s.get(f"/sandboxes/{i}")["state"] == "killed"
        assert not os.path.exists(os.path.join(place(s, i), "job.yaml"))
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["nosuch"]}, status=422).json
        assert a["code"] == "not_found"
        body = {"profile": "none", "command": ["sleep", "100"], "timeout": 1}
        i = s.ask("POST", "/sandboxes", body, status=201).json["id"]
        assert ended(s, i)["state"] == "timed_out"
        a = start(s, "true", network={"allow_out": ["one.test"]})
        assert "the live lists allow nothing: profile 'none' is offline" in a["warnings"] and ended(s, a["id"])


def test_many_at_once(sbx, clean, manager):
    with units_service(sbx, manager) as s:
        ids = start_at_once(s, 24)
        assert len(set(ids)) == len(manager.units) == 24
        for i in ids:
            ended(s, i)


@pytest.mark.parametrize("trap, state, status", [("'echo told; exit 9'", "done", 9), ("''", "killed", 137)])
def test_sigterm_of_the_unit(sbx, clean, manager, trap, state, status):
    """systemctl stop: SIGTERM for sbx-output alone, which the command gets; one that stays is killed."""
    with units_service(sbx, manager) as s:
        i = start(s, *SH, f"trap {trap} TERM; echo up; while :; do sleep 0.1; done")["id"]
        wait_for(lambda: text(s, i) == b"up\n")
        os.kill(manager.units[0].pid, signal.SIGTERM)  # what enters the namespaces executes sbx-output
        row = ended(s, i)
        assert (row["state"], row["exit_status"]) == (state, status)
        assert text(s, i) == (b"up\ntold\n" if status == 9 else b"up\n")


def test_a_unit_that_was_killed(sbx, clean, manager):
    """SIGKILL of sbx-output: its job, which may have secrets, and its socket go with the next start of the service."""
    line = ID.encode() + b"\n"
    directory = job(sbx, body='profile: none\nscratch: true\nwait: true\n')
    with asked(sbx, line) as (c, p):
        assert c.recv(64) == b"0\n"
        try:
            wait_for(lambda: [r["state"] for r in sandboxes(sbx)] == ["running"], 60)
        finally:
            p.kill()
            p.communicate()
            killed = sbx.run(["kill", ID], [], program="bin/sbxctl")  # no sandbox for the tests behind this one
    assert killed.rc == 0, killed
    assert [n for n in os.listdir(sbx.runtime) if n.startswith("api-")]
    wait_for(lambda: [r["state"] for r in sandboxes(sbx)] == ["killed"])
    with open(os.path.join(directory, "job.yaml"), "w"):
        pass  # as if it had been killed earlier
    os.utime(directory, (time.time() - 120, time.time() - 120))
    with service(sbx) as s:
        s.get("/healthz")
        assert [n for n in os.listdir(sbx.runtime) if n.startswith("api-")] == []
        assert [n for n in os.listdir(directory) if not n.startswith("output.")] == []


def test_killed_service_while_it_starts(sbx, clean, manager):
    """SIGKILL of sbxd at some instant of a start: the sandbox is in the list, or there is nothing; later ones start."""
    with units_service(sbx, manager) as s:
        kill_while_it_starts(s, 12)
        ended(s, start(s, "true")["id"])
    for unit in manager.units:
        assert unit.wait(30) in (0, 1)  # 1: nobody waited for it any more
    manager.units.clear()


def test_no_socket(sbx, clean):
    """sbx-sandbox.socket is not active: the answer says so, nothing is left, and it is well when there is one."""
    with service(sbx, env={"SBX_START_SOCKET": os.path.join(sbx.tmp, "start.sock")}) as s:
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, status=503).json
        assert a["code"] == "no_unit" and "systemctl start sbx-sandbox.socket" in a["detail"]
        nothing_left(sbx)
        m = Manager(sbx)
        try:
            ended(s, start(s, "true")["id"])
        finally:
            m.end()


@pytest.mark.parametrize("answer", [b"", b"x\n", b"0", b"12345678\n", b"0\n0\n", b"-1\n"])
def test_answers_of_no_sbx_output(sbx, clean, manager, answer):
    """The end is that of a refused connection or a failed unit."""
    manager.answer = answer
    with units_service(sbx, manager) as s:
        if answer == b"0":  # the rest never comes, but the end
            threading.Timer(0.3, lambda: manager.held[0].shutdown(socket.SHUT_RDWR)).start()
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, status=503).json
        assert a["code"] == "no_unit" and "journalctl -u 'sbx-sandbox*'" in a["detail"], a
        nothing_left(sbx)


def test_silence(sbx, clean, manager):
    """It is answered after its time; a unit that comes then finds nothing to start."""
    manager.answer = None
    with units_service(sbx, manager) as s:
        a = s.ask("POST", "/sandboxes", {"profile": "none", "command": ["true"]}, status=503, timeout=60).json
        assert a["code"] == "no_unit"
        nothing_left(sbx)
        late = output(sbx, manager.held[0])
        assert late.communicate(timeout=30)[1].endswith("No such file or directory\n") and late.returncode == 1
        nothing_left(sbx)


def test_a_relative_path(sbx):
    r = sbx.run([], [], program="bin/sbxd", env={"SBX_START_SOCKET": "x"})
    assert r.rc == 1 and r.err == "sbxd: SBX_START_SOCKET is 'x': it must be an absolute path\n"


# --- the request ---

def job(sbx, i=ID, body='profile: none\nscratch: true\ncommand: ["sleep", "100"]\n'):
    directory = os.path.join(sbx.state, "api", i)
    os.makedirs(directory)
    path = os.path.join(directory, "job.yaml")
    with open(path, "w") as f:
        f.write(body)
    for p, mode in ((os.path.dirname(directory), 0o700), (directory, 0o700), (path, 0o600)):
        os.chmod(p, mode)
        os.chown(p, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    return directory


@contextlib.contextmanager
def asked(sbx, line, close=False, **kw):
    """sbx-output with this request: the connection and the process."""
    ours, its = socket.socketpair()
    ours.settimeout(30)
    ours.sendall(line)
    if close:
        ours.close()
    p = output(sbx, its, **kw)
    its.close()
    try:
        yield ours, p
    finally:
        ours.close()
        p.communicate(timeout=30)


@pytest.mark.parametrize("line", [b"\n", b"x\n", b"0123456789AB\n", b"0123456789abc\n", b"../../../../\n", b"0123456789ab\nx",
                                  b"0123456789ab\n0123456789ab\n", b"0123456\0009ab\n", b"x" * 60000, b"--help\n"])
def test_bad_requests(sbx, clean, line):
    job(sbx)
    with asked(sbx, line) as (c, p):
        assert c.recv(64) == b"74\n"
        assert p.communicate(timeout=30)[1] == "sbx-output: no sandbox's id came: Bad message\n" and p.returncode == 1
    assert os.listdir(os.path.join(sbx.state, "api", ID)) == ["job.yaml"] and sbx.leftovers() == []


def test_no_request(sbx, clean):
    """The end of the connection, and silence."""
    job(sbx)
    with asked(sbx, b"01234", close=True) as (_, p):
        assert "Connection reset" in p.communicate(timeout=30)[1] and p.returncode == 1
    with asked(sbx, b"01234") as (c, p):
        assert c.recv(64) == b"110\n"
        assert "timed out" in p.communicate(timeout=30)[1] and p.returncode == 1
    assert os.listdir(os.path.join(sbx.state, "api", ID)) == ["job.yaml"] and sbx.leftovers() == []


def test_places_that_it_does_not_take(sbx, clean):
    line = ID.encode() + b"\n"
    with asked(sbx, line) as (c, p):
        assert c.recv(64) == b"2\n"
        assert p.communicate(timeout=30)[1] == \
            f"sbx-output: sandbox {ID}: {sbx.state}/api/{ID}: No such file or directory\n" and p.returncode == 1
    directory = job(sbx, "0" * 12)
    link = os.path.join(sbx.state, "api", ID)
    os.symlink(directory, link)
    with asked(sbx, line) as (c, p):
        assert c.recv(64) in (b"20\n", b"40\n")
    os.unlink(link)
    assert os.listdir(directory) == ["job.yaml"] and sbx.leftovers() == []


def test_an_id_twice(sbx, clean):
    """The second is refused while the first lives, and when it has ended."""
    line = ID.encode() + b"\n"
    directory = job(sbx, body='profile: none\nscratch: true\nwait: true\n')
    with asked(sbx, line) as (first, p):
        assert first.recv(64) == b"0\n" and first.recv(64) == b""
        with asked(sbx, line) as (c, other):
            assert c.recv(64) in (b"11\n", b"2\n")
        wait_for(lambda: not os.path.exists(os.path.join(directory, "job.yaml")))
        assert p.poll() is None
        assert [r["state"] for r in sbx.rows("SELECT state FROM sandbox")] == ["running"]
        assert sbx.run(["kill", ID], [], program="bin/sbxctl").rc == 0
        assert p.wait(30) == 0
    with asked(sbx, line) as (c, other):
        assert c.recv(64) == b"2\n"
    assert len(sbx.rows("SELECT * FROM sandbox")) == 1


def test_a_profile_of_the_jobs_own(sbx, clean):
    """Its secrets could be commands, which run outside: a service that was taken over does not get them."""
    marker, path = os.path.join(sbx.state, "made"), os.path.join(sbx.state, "own.yaml")
    with open(path, "w") as f:
        f.write("network: {mode: fetch, allow: [files.test]}\n"
                f"secrets: [{{name: X, hosts: files.test, from: {{command: [sh, -c, 'echo xxxxxxxxxxxxxxxx; touch {marker}']}}}}]\n")
    os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    for profile in path, "own.yaml", "./own":
        directory = job(sbx, body=f"profile: {profile}\nscratch: true\ncommand: ['true']\n")
        with asked(sbx, ID.encode() + b"\n") as (c, p):
            assert c.recv(64) == b"0\n"
            assert p.wait(30) == 0
        with open(os.path.join(directory, "output." + "0" * 16), "rb") as f:
            assert b"--named-profile" in f.read()
        assert not os.path.exists(marker)
        shutil.rmtree(directory)
    r = sbx.run(["--profile", path, "--scratch"], ["true"])
    assert r.rc == 0, r
    assert os.path.exists(marker)  # the twin


def test_nothing_starts_for_nobody(sbx, clean):
    """sbxd has gone when the log begins."""
    directory = job(sbx)
    with asked(sbx, ID.encode() + b"\n", close=True) as (_, p):
        assert p.communicate(timeout=30)[1] == f"sbx-output: sandbox {ID}: sbxd does not wait for it any more\n"
        assert p.returncode == 1
    assert "job.yaml" not in os.listdir(directory) and sbx.leftovers() == []
    assert not os.path.exists(os.path.join(sbx.state, "sbx.db"))
