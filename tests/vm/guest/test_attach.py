# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attach cgroup under a real systemd, in each way that sbx-run has rights for it: what is allowed is reached and
nothing else, limits hold, and what a SIGKILL leaves refuses until it is removed.

The machine is the host, its own network namespace the one with the rules; the world is another, at the end of a cable
(tests/system/attach_world.py)."""
import collections
import contextlib
import json
import os
import pwd
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from machine import CGROUP, PREFIX, TESTER, UNIT, WAYS, Sbx, cgroups, wait_until

SYSTEM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system")
sys.path.append(SYSTEM)
from attach_world import DNS_PORT, WORLD4, AttachWorld  # noqa: E402

A, B = "203.0.113.10", "203.0.113.66"
RUNNER = "attach-runner"
FOUR = "CAP_SETUID CAP_SETGID CAP_SYS_ADMIN CAP_KILL"
SEVEN = FOUR + " CAP_NET_ADMIN CAP_NET_BIND_SERVICE CAP_DAC_READ_SEARCH"
MIB = 1 << 20
ANSWER_SECONDS = 30

PROFILE = f"""
network:
  attach: cgroup
  dns: {{resolvers: ["{WORLD4}:{DNS_PORT}"]}}
  allow:
    - {{host: a.test, ports: [80]}}
    - {{host: a.test, ports: [8080], protocol: udp}}
limits: {{enforce: best-effort}}
"""


def systemctl(*args):
    return subprocess.run(["systemctl", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)


def nft(*args):
    return subprocess.run(["nft", *args], check=True, capture_output=True, text=True, timeout=30).stdout


def cgroup_of(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return f.read().strip().removeprefix("0::")


def read(*parts):
    with open(os.path.join(*parts)) as f:
        return f.read().strip()


def dying():
    return int(dict(line.split() for line in read(CGROUP, "cgroup.stat").splitlines())["nr_dying_descendants"])


class Host(Sbx):
    """sbx-run in one of these ways, which is not all that machine.WAYS has.

    root: asks systemd for a scope. delegated: a unit of one's own. job: sbx@.service. service: a service's user, alone
    in the unit's cgroup. runner: the same, with the service's own process beside it."""

    WAYS = ("root", "delegated", "job", "service", "runner")

    def __init__(self, way, tmp, caps=SEVEN):
        super().__init__("root", tmp)
        self.way = way
        owner = pwd.getpwnam(RUNNER) if way in ("service", "runner") else pwd.getpwnam("root")
        self.of_service = owner.pw_uid != 0
        if way == "job":
            self.state, self.runtime, self.config = "/var/lib/sbx", "/run/sbx", "/etc/sbx"
        else:
            for path in (self.state, self.runtime, self.config):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        os.makedirs(self.config + "/profiles", exist_ok=True)
        self.user = owner if self.of_service else TESTER  # whom the workspace belongs to: root's is granted to nobody
        os.chown(self.work, self.user.pw_uid, self.user.pw_gid)
        shutil.copy(os.path.join(SYSTEM, "attached.py"), self.work)
        self.properties = {"delegated": ["Delegate=yes"]}.get(way, []) if not self.of_service else [
            f"User={RUNNER}", f"Group={RUNNER}", "Slice=sbx.slice", "Delegate=yes", "KillMode=mixed",
            "OOMPolicy=continue", "NoNewPrivileges=yes", f"AmbientCapabilities={caps}", f"CapabilityBoundingSet={caps}",
            f"ExecStopPost={PREFIX}/bin/sbx-run --gc"]

    def places(self):
        return {"SBX_STATE_DIR": self.state, "SBX_RUNTIME_DIR": self.runtime, "SBX_CONFIG_DIR": self.config}

    def profile(self, text=PROFILE, name="attached"):
        path = f"{self.config}/profiles/{name}.yaml"
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return name

    def argv(self, args, cmd, program="bin/sbx-run", env=None):
        sbx_run = [os.path.join(PREFIX, program), *args, *(["--", *cmd] if cmd else [])]
        places = [f"{k}={v}" for k, v in self.places().items()]
        if self.way == "runner":
            sbx_run = ["sh", "-c", '"$@"; exit $?', "sh", *sbx_run]
        if self.way == "root":
            return ["env", "-C", self.work, *places, *sbx_run]
        return [*UNIT, *(word for p in self.properties for word in ("-p", p)), *(f"--setenv={p}" for p in places),
                f"--working-directory={self.work}", "--", *(word.replace("$", "$$") for word in sbx_run)]

    def gc(self):
        """As who started it; a service's ExecStopPost was that."""
        if not self.of_service:
            subprocess.run([PREFIX + "/bin/sbx-run", "--gc"], env={**os.environ, **self.places()}, check=True,
                           timeout=60)

    def state_of_machine(self):
        return nft("list", "ruleset"), cgroups(), self.leftovers()


class Sandbox:
    """A sandbox that does what it is told, by two fifos in its workspace: the same in every way."""

    def __init__(self, host, number, limits):
        self.host, self.id = host, f"{number:012x}"
        fifos = [os.path.join(host.work, f"{name}-{number}") for name in ("in", "out")]
        for path in fifos:
            os.mkfifo(path)
            os.chown(path, host.user.pw_uid, host.user.pw_gid)
        self.input, self.output = (os.open(path, os.O_RDWR) for path in fifos)
        self.rest = b""
        script = ["sh", "-c", f"exec python3 attached.py <{fifos[0]} >{fifos[1]}"]
        self.p = None
        if host.way == "job":
            self.start_job(script, limits)
        else:
            self.p = host.popen(["--id", self.id, "--profile", "attached", "--bind", host.work, "--chdir", host.work,
                                 *(word for limit in limits for word in ("--limit", limit))], script)
        assert self.line() == "up"

    def start_job(self, script, limits):
        """Its id is its own."""
        name = f"attached-{self.id}"
        self.unit, path = f"sbx@{name}.service", f"/etc/sbx/jobs/{name}.yaml"
        with open(path, "w") as f:
            json.dump({"profile": "attached", "bind": [self.host.work], "chdir": self.host.work, "limit": limits,
                       "command": script}, f)
        r = systemctl("start", self.unit)
        journal = subprocess.run(["journalctl", "-b", "-u", self.unit], capture_output=True, text=True)
        assert r.returncode == 0, journal.stdout
        self.id = self.host.last()["id"]

    def line(self):
        end = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self.rest:
            if not select.select([self.output], [], [], 0.5)[0]:
                assert time.monotonic() < end, "no answer"
                assert not self.p or self.p.poll() is None, self.p.communicate()
                continue
            self.rest += os.read(self.output, 65536)
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def tell(self, *op):
        os.write(self.input, json.dumps(op).encode() + b"\n")

    def __call__(self, *op):
        self.tell(*op)
        return self.line()

    def row(self):
        return self.host.row(self.id)

    def command_cgroup(self):
        [path] = {cgroup_of(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if self.is_its_command(pid)}
        return CGROUP + path

    def is_its_command(self, pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read() == b"python3\0attached.py\0" and f"/sbx-{self.id}/" in cgroup_of(pid)
        return False

    def close(self):
        self.input, self.output = (fd if fd < 0 else os.close(fd) or -1 for fd in (self.input, self.output))

    def wait(self):
        """Its exit status, and what it said; a job's is in the journal."""
        if self.p:
            _, err = self.p.communicate(timeout=60)
            return self.p.returncode, err
        assert wait_until(lambda: self.property("ActiveState") in ("inactive", "failed"))
        return int(self.property("ExecMainStatus")), ""

    def property(self, name):
        return systemctl("show", "-P", name, self.unit).stdout.strip()

    def end(self):
        self.close()
        return self.wait()

    def kill(self, whole=False):
        """SIGKILL of the launcher; or of all that the cgroup has that it is in: its cleanup process, too."""
        launcher = self.row()["pid"]
        for pid in read(CGROUP + cgroup_of(launcher), "cgroup.procs").split() if whole else [launcher]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def forget(self):
        self.close()
        if self.p and self.p.poll() is None:
            with contextlib.suppress(Exception):
                os.kill(self.row()["pid"], signal.SIGTERM)
            self.p.communicate(timeout=60)
        if not self.p:
            systemctl("stop", self.unit)
            systemctl("reset-failed", self.unit)
            os.unlink(f"/etc/sbx/jobs/{self.unit[4:-8]}.yaml")


@pytest.fixture(scope="module")
def cable(installed):
    route = subprocess.run(["ip", "route", "get", A], capture_output=True, text=True)
    assert " dev lo " not in route.stdout, "the world of other tests answers in this machine's own network"
    subprocess.run(["useradd", "--system", RUNNER], check=True)
    w = AttachWorld(own=True)
    assert w.servers("dns") == "ok"
    assert w.servers("zone", "a.test", [A]) == "ok"
    for way in ("delegated", "session"):  # what systemd starts for the first who asks
        subprocess.run([*WAYS[way], "true"], check=True, stdin=subprocess.DEVNULL, timeout=60)
    yield w
    w.close()
    subprocess.run(["userdel", RUNNER], check=True)


@pytest.fixture
def host(cable):
    """host(WAY): nothing is left of what it ran."""
    made, tmp = [], tempfile.mkdtemp(prefix="sbx-test-", dir="/var/tmp")
    os.chmod(tmp, 0o755)

    def make(way, **kw):
        path = os.path.join(tmp, str(len(made)))
        os.mkdir(path)
        h = Host(way, path, **kw)
        h.profile()
        made.append((h, h.state_of_machine()))
        return h

    yield make
    for h, before in made:
        assert wait_until(lambda: h.gc() or h.state_of_machine() == before, 10), \
            [(was, now) for was, now in zip(before, h.state_of_machine()) if was != now]
    shutil.rmtree(tmp)


@pytest.fixture
def begin(host):
    started = []

    def go(h, *limits):
        started.append(None)
        started[-1] = Sandbox(h, secrets.randbits(48), limits)
        return started[-1]

    yield go
    for s in filter(None, started):
        s.forget()


@pytest.mark.parametrize("way", Host.WAYS)
def test_names_are_reached_and_nothing_else(host, begin, way):
    h = host(way)
    run = begin(h)
    assert run("tcp", A, 80) == "ECONNREFUSED", "before the name was asked for"
    assert run("resolve", "a.test") == [A]
    assert run("tcp", A, 80) == "ok"
    assert run("tcp", A, 8080) == "ECONNREFUSED"
    for _ in range(3):
        assert run("tcp", B, 80) == "ECONNREFUSED"
    assert run("udp", A, 8080) == "ok" and run("udp", B, 8080) == "EPERM"
    assert isinstance(run("resolve", "b.test"), str)
    status, said = run.end()
    assert status == 0 and ("Linux 6.12" in said or way == "job"), said
    assert run.row()["state"] == "done"
    events = h.rows("SELECT * FROM sandbox_egress_event WHERE sandbox_id = ?", run.id)
    packets = collections.Counter()  # the first packet of a burst is told at once, so it may have a row of its own
    for e in events:
        packets[e["action"], e["remote_ip"], e["remote_port"], e["protocol"]] += e["raw_pkts"] or 0
    assert packets["deny", B, 80, "tcp"] == 3 and packets["deny", B, 8080, "udp"] == 1, events
    assert packets["deny", A, 8080, "tcp"] == 1
    assert any(e["action"] == "allow" and e["fqdn_pinned"] == "a.test" and e["remote_ip"] == A for e in events)
    assert any(e["action"] == "deny" and e["fqdn_pinned"] == "b.test" and e["protocol"] == "dns" for e in events)
    assert not any(e["action"] == "panic" for e in events)


@pytest.mark.parametrize("way", Host.WAYS)
def test_limits_hold(host, begin, way):
    """The limits are set above the cgroup that the command is in."""
    h = host(way)
    run = begin(h, "memory=64M", "pids=40")
    cgroup = run.command_cgroup()
    assert cgroup.endswith(f"/sbx-{run.id}/command/run"), cgroup
    assert run("processes", 20) == [20, None]
    n, error = run("processes", 60)
    assert error == "EAGAIN" and 20 < n < 40
    if way != "runner":
        above = os.path.dirname(cgroup)
        assert read(above, "memory.max") == str(64 * MIB) and 40 <= int(read(above, "pids.max")) <= 45
        assert read(above, "cgroup.subtree_control") == "" and not os.path.exists(cgroup + "/memory.max")
    assert run("memory", 16) == "ok"
    run.tell("memory", 256)
    if way == "runner":  # somebody else in the unit's cgroup: no controllers below it
        assert run.line() == "ok"
        status, said = run.end()
        assert status == 0 and "limits.memory is not enforced" in said
        return
    status, said = run.wait()
    assert status == 137 and run.row()["state"] == "oom_killed", said


def ctl(run, *args):
    r = subprocess.run([PREFIX + "/bin/sbxctl", args[0], run.id, *args[1:]], env={**os.environ, **run.host.places()},
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


@pytest.mark.parametrize("way", Host.WAYS)
def test_an_air_gap_while_frozen(host, begin, way):
    run = begin(host(way))
    assert run("resolve", "a.test") == [A] and run("tcp", A, 80, "kept") == "ok"
    ctl(run, "freeze")
    assert wait_until(lambda: "frozen 1" in read(run.command_cgroup(), "cgroup.events"))
    assert json.loads(ctl(run, "net", "--air-gap", "--json"))["cut"] == 1
    run.tell("kept", "kept")
    assert not select.select([run.output], [], [], 1)[0]
    ctl(run, "thaw")
    assert run.line() == "ECONNABORTED"
    assert run("tcp", A, 80) == "ECONNREFUSED"
    assert run.end()[0] == 0 and run.row()["state"] == "done"


@pytest.mark.parametrize("way", Host.WAYS)
def test_two_beside_each_other(host, begin, cable, way):
    """Each sandbox has its own pins. The end or a SIGKILL of one changes nothing for the other."""
    h = host(way)
    one, two, three = begin(h), begin(h), begin(h)
    for run in (one, two):
        assert run("tcp", A, 80) == "ECONNREFUSED"
        assert run("resolve", "a.test") == [A] and run("tcp", A, 80) == "ok"
    assert three("tcp", A, 80) == "ECONNREFUSED", "another one's pin"
    assert one.end()[0] == 0
    two.kill()
    two.wait()
    assert wait_until(lambda: f"sb-{two.id}" not in nft("list", "ruleset"))
    assert three("tcp", B, 80) == "ECONNREFUSED" and three("tcp", A, 80) == "ECONNREFUSED"
    assert three("resolve", "a.test") == [A] and three("tcp", A, 80) == "ok"
    assert three.end()[0] == 0


# --- ends ---

@pytest.mark.parametrize("way", Host.WAYS)
def test_sigkill_of_the_launcher(host, begin, way):
    """Its cleanup process takes the rules away, once nothing is left that they judge: nobody has to call --gc."""
    h = host(way)
    run = begin(h)
    assert run("resolve", "a.test") == [A] and run("tcp", A, 80) == "ok"
    run.kill()
    run.wait()
    assert wait_until(lambda: not has_rules(run) and h.leftovers() == [], 20), (has_rules(run), h.leftovers())
    assert run.row()["state"] == "lost"


def has_rules(run):
    return f"sb-{run.id}" in nft("list", "ruleset")


@pytest.mark.parametrize("way", ["job", "service", "runner"])
def test_sigkill_of_all_and_a_unit_that_sweeps(host, begin, way):
    """The cleanup process too: ExecStopPost= comes while the unit's cgroup is there."""
    h = host(way)
    run = begin(h)
    assert run("resolve", "a.test") == [A] and run("tcp", A, 80) == "ok"
    run.kill(whole=True)
    run.wait()
    assert wait_until(lambda: not has_rules(run)) and h.leftovers() == []


def give_up_the_rules():
    """Remove the rules by hand, as the host's owner may do when nothing runs: a test must leave nothing behind."""
    nft("delete", "table", "inet", "sbx")


@pytest.mark.parametrize("way", ["root", "delegated"])
def test_sigkill_of_all_and_nobody_sweeps(host, begin, way):
    """systemd removes the cgroup. Whether a socket of it is left can then be told of no cgroup alone: only where no
    removed one of the host is held by anything do the rules go."""
    h = host(way)
    run = begin(h)
    assert run("resolve", "a.test") == [A] and run("tcp", A, 80) == "ok"
    run.kill(whole=True)
    run.wait()
    assert wait_until(lambda: not any(run.id in path for path in cgroups()))
    h.gc()
    assert h.leftovers() == [] and run.row()["state"] == "lost"
    assert has_rules(run) or dying() == 0
    if has_rules(run):
        give_up_the_rules()


def pass_out(h, run):
    """A socket of the sandbox, received by this process."""
    path = os.path.join(h.work, "door")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        os.chown(path, h.user.pw_uid, h.user.pw_gid)
        s.listen()
        s.settimeout(20)
        assert run("pass", path, "udp") == "ok"
        c, _ = s.accept()
        with c:
            _, fds, _, _ = socket.recv_fds(c, 1, 1)
    os.unlink(path)
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM, fileno=fds[0])


@pytest.mark.parametrize("way,end", [("root", "normal"), *((way, "killed") for way in Host.WAYS)])
def test_a_socket_that_was_passed_out_is_never_free(host, begin, way, end):
    """With a scope its cleanup process waits for the socket. A unit's cgroup goes with the unit: what is said above."""
    h = host(way)
    run = begin(h)
    assert run("resolve", "a.test") == [A]

    def refused():
        with pytest.raises(PermissionError):
            s.sendto(b"secret", (B, 8080))
        return has_rules(run)

    with pass_out(h, run) as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        assert ours.sendto(b"ours", (B, 8080)) == 4
        assert s.sendto(b"pinned", (A, 8080)) == 6 and refused()
        if end == "killed":
            run.kill()
            run.wait()
        else:
            assert run.end()[0] == 0
        assert refused()
        assert wait_until(lambda: h.leftovers() == [])
        time.sleep(2)  # longer than a sweep waits
        h.gc()
        assert refused(), "after gc"
    if way == "root":
        assert wait_until(lambda: not has_rules(run)), cgroups()
    elif has_rules(run):
        h.gc()
        assert not has_rules(run) if dying() == 0 else has_rules(run)
        if has_rules(run):
            give_up_the_rules()


# --- what is refused ---

def said(h, args, **kw):
    r = h.run(["--profile", "attached", *args], ["echo", "ran"], **kw)
    return r.rc, r.out, r.err.splitlines()


def test_strict_needs_a_newer_kernel(host):
    h = host("root")
    rc, out, err = said(h, [])
    assert (rc, out, len(err)) == (0, "ran\n", 1) and "abstract unix sockets" in err[0]
    rc, out, err = said(h, ["--limit", "enforce=strict"])
    assert (rc, out, len(err)) == (125, "", 1) and "Linux 6.12" in err[0] and "attach netns" in err[0]


def test_a_service_without_the_three(host):
    """A service with the four capabilities is a privileged launcher, and may have any profile but one with attach
    cgroup."""
    h = host("service")
    assert said(h, [])[:2] == (0, "ran\n")
    h = host("service", caps=FOUR)
    rc, out, err = said(h, [])
    assert (rc, out, len(err)) == (125, "", 1) and "CAP_NET_ADMIN" in err[0]
    h.profile(PROFILE.replace("attach: cgroup", "attach: netns"))
    assert said(h, [])[:2] == (0, "ran\n")


@pytest.mark.parametrize("way", ["session", "user-delegated"])
def test_an_ordinary_user(start, way):
    sbx = start(way)
    os.makedirs(sbx.config + "/profiles", exist_ok=True)
    for attach, expected in (("cgroup", (125, "")), ("netns", (0, "ran\n"))):
        with open(sbx.config + "/profiles/attached.yaml", "w") as f:
            f.write(PROFILE.replace("attach: cgroup", f"attach: {attach}"))
        rc, out, err = said(sbx, [])
        assert (rc, out) == expected, err
        assert attach == "netns" or (len(err) == 1 and "attach netns" in err[0]), err
