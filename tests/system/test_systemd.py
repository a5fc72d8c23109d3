# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of a run to the service manager and the journal; sockets of this test receive them."""
import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from test_database import held

JOURNAL_DIR = "/run/systemd/journal"
# Made where there is none, and removed, in the machine's /run.
pytestmark = pytest.mark.xdist_group("journal")


class Receiver:
    """A datagram socket that anybody may send to."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(path)
        os.chmod(path, 0o777)

    def messages(self, timeout=5.0, until=None):
        """(pid of the sender, bytes), until @until says of one that it was the last, or there are no more."""
        found = []
        self.socket.settimeout(timeout)
        while True:
            try:
                data, ancillary, _flags, _addr = self.socket.recvmsg(65536, 64)
            except TimeoutError:
                return found
            pid = struct.unpack("3i", ancillary[0][2][:12])[0]
            found.append((pid, data))
            if until and until(data):
                self.socket.settimeout(0.2)


@pytest.fixture
def notify(sbx):
    path = os.path.join(sbx.tmp, "notify")
    return Receiver(path)


@pytest.fixture
def journal(sbx, world):
    """/run/systemd/journal of the world is a directory of the test's."""
    directory = os.path.join(sbx.tmp, "journal")
    os.mkdir(directory)
    os.chmod(directory, 0o755)
    made = not os.path.isdir(JOURNAL_DIR)
    os.makedirs(JOURNAL_DIR, exist_ok=True)
    subprocess.run([*world.ns(), "mount", "--bind", directory, JOURNAL_DIR], check=True)
    yield Receiver(os.path.join(directory, "socket"))
    subprocess.run([*world.ns(), "umount", JOURNAL_DIR], check=True)
    if made:
        with contextlib.suppress(OSError):
            os.rmdir(JOURNAL_DIR)


def fields(entry):
    """An entry of the journal's native protocol as a dict."""
    found = {}
    while entry:
        line, _, rest = entry.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (n,) = struct.unpack("<Q", rest[:8])
            value, rest = rest[8:8 + n], rest[9 + n:]
        found[name.decode()] = value.decode()
        entry = rest
    return found


def until_stopping(data):
    return data.startswith(b"STOPPING=1")


@pytest.mark.parametrize("root", [False, True])
def test_ready_when_the_command_is_released(sbx, notify, root):
    if root:
        sbx.own(0)
    p = sbx.popen(["--profile", "none", "--id", "0123456789ab"], ["cat"], root=root, stdin=subprocess.PIPE,
                  env={"NOTIFY_SOCKET": notify.path})
    ready = notify.messages(timeout=20, until=lambda data: True)
    assert [data for _, data in ready] == \
        [b"READY=1\nSTATUS=sandbox 0123456789ab runs its command (profile none)"]
    assert p.poll() is None  # it is ready while the command runs, and says nothing more
    p.communicate("", timeout=20)
    assert p.returncode == 0
    stopping = notify.messages(timeout=5, until=until_stopping)
    assert [data for _, data in stopping] == [b"STOPPING=1\nSTATUS=sandbox 0123456789ab ends"]
    # NotifyAccess=main: both from the process that the manager started, not from a child of it
    assert ready[0][0] == stopping[0][0] == p.pid


def test_published_ports_are_named(sbx, notify):
    args = ["--profile", "none", "--id", "0123456789ab", "--publish", "0:80", "--publish", "[::1]:0:80"]
    r = sbx.run(args, ["true"], env={"NOTIFY_SOCKET": notify.path})
    assert r.rc == 0
    ports = [line.split()[2] for line in r.err.splitlines() if line.startswith("sbx-run: published ")]
    assert len(ports) == 2 and ports[1].startswith("[::1]:")
    assert notify.messages(timeout=5, until=until_stopping)[0][1].decode() == \
        f"READY=1\nSTATUS=sandbox 0123456789ab runs its command (profile none), at {ports[0]}, {ports[1]}"
    args = ["--profile", "none"] + [a for i in range(16) for a in ("--publish", f"[::1]:0:{80 + i}")]
    r = sbx.run(args, ["true"], env={"NOTIFY_SOCKET": notify.path})
    assert r.rc == 0
    assert notify.messages(timeout=5, until=until_stopping)[0][1].count(b"[::1]:") == 16


@pytest.mark.parametrize("args, cmd", [([], ["/nonexistent"]), (["--frobnicate"], ["true"]),
                                       (["--profile", "nosuch"], ["true"])])
def test_never_ready_when_nothing_runs(sbx, notify, args, cmd):
    r = sbx.run(args, cmd, env={"NOTIFY_SOCKET": notify.path})
    assert r.rc in (125, 127)
    assert not [data for _, data in notify.messages(timeout=0.5) if b"READY" in data]


def test_never_ready_when_a_step_fails(sbx, notify):
    env = {"NOTIFY_SOCKET": notify.path}
    r = sbx.run([], ["true"], env={**env, "SBX_FAULT": "fail:selftest"}, program="bin/sbx-run-faults")
    assert r.rc == 125
    data = [data for _, data in notify.messages(timeout=0.5)]
    assert len(data) == 1 and data[0].startswith(b"STATUS=sandbox ") and b"selftest" in data[0]
    r = sbx.run([], ["true"], env=env, program="bin/sbx-run-faults")
    assert r.rc == 0 and notify.messages(timeout=0.5)[0][1].startswith(b"READY=1\n")


def test_a_status_is_one_line(sbx, notify):
    """Line breaks in a profile's name add no line to the READY message."""
    path = os.path.join(sbx.tmp, "a\nERRNO=5\n.yaml")
    with open(path, "w") as f:
        f.write("network: {mode: offline}\n")
    os.chmod(path, 0o644)
    r = sbx.run(["--profile", path], ["true"], env={"NOTIFY_SOCKET": notify.path})
    assert r.rc == 0
    ready = notify.messages(timeout=0.5)[0][1].split(b"\n")
    assert ready[0] == b"READY=1" and len(ready) == 2 and b"ERRNO=5" in ready[1]


def test_the_command_does_not_hear_of_it(sbx, notify):
    env = {"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "1", "LISTEN_FDS": "1", "JOURNAL_STREAM": "1:2",
           "NOTICE": "seen"}
    sbx.profile("greedy", "environment: {pass: ['N*', 'WATCHDOG*', LISTEN_FDS, JOURNAL_STREAM]}\n")
    r = sbx.run(["--profile", "greedy"], ["env"], env=env)
    assert r.rc == 0 and "NOTICE=seen" in r.out.split()
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "JOURNAL_STREAM"):
        assert name + "=" not in r.out
    r = sbx.run(["--env", "NOTIFY_SOCKET"], ["env"], env=env)
    assert r.rc == 125 and "NOTIFY_SOCKET" in r.err
    assert sbx.run(["--env", "NOTICE"], ["env"], env=env).rc == 0


@pytest.mark.parametrize("address", ["/nonexistent/notify", "@sbx-nobody", "nonsense", ""])
def test_nobody_listens(sbx, address):
    r = sbx.run(["--profile", "none"], ["true"], env={"NOTIFY_SOCKET": address})
    assert (r.rc, r.out, r.err) == (0, "", "")


def test_a_manager_that_does_not_read(sbx, notify):
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        for _ in range(100000):
            sender.sendto(b"x", notify.path)
    r = sbx.run(["--profile", "none"], ["true"], env={"NOTIFY_SOCKET": notify.path})
    assert (r.rc, r.err) == (0, "") and r.seconds < 10


# --- the journal ---

def states(entries):
    return [e["SBX_STATE"] for e in entries]


def entries_of(journal, timeout=1.0):
    return [fields(data) for _, data in journal.messages(timeout=timeout)]


@pytest.mark.parametrize("variable", ["INVOCATION_ID", "JOURNAL_STREAM"])
def test_the_journal_gets_each_state(sbx, journal, variable):
    r = sbx.run(["--profile", "none", "--id", "0123456789ab", "--workspace", "w", "--analysis-id", "a7"],
                ["sh", "-c", "exit 3"], env={variable: "1:2"})
    assert r.rc == 3
    entries = entries_of(journal)
    assert states(entries) == ["preparing", "running", "done"]
    for e in entries:
        assert (e["SBX_ID"], e["SBX_PROFILE"], e["SBX_WORKSPACE"], e["SBX_ANALYSIS_ID"], e["PRIORITY"],
                e["SYSLOG_IDENTIFIER"]) == ("0123456789ab", "none", "w", "a7", "6", "sbx-run")
        assert len(e["MESSAGE_ID"]) == 32
    assert "SBX_EXIT_STATUS" not in entries[1] and entries[2]["SBX_EXIT_STATUS"] == "3"
    assert entries[2]["MESSAGE"] == "sandbox 0123456789ab: done, exit status 3"


def test_no_journal_without_systemd(sbx, journal):
    assert sbx.run(["--profile", "none"], ["true"]).rc == 0
    assert entries_of(journal, 0.3) == []
    assert sbx.run(["--profile", "none"], ["true"], env={"INVOCATION_ID": "x"}).rc == 0
    assert len(entries_of(journal, 0.3)) == 3


def test_the_journal_says_what_went_wrong(sbx, journal):
    env = {"INVOCATION_ID": "x"}
    assert sbx.run(["--profile", "nosuch"], ["true"], env=env).rc == 125
    (e,) = entries_of(journal)
    assert (e["SBX_STATE"], e["PRIORITY"], e["SBX_EXIT_STATUS"]) == ("failed_policy", "4", "125")
    assert "nosuch" in e["MESSAGE"] and "nosuch" in e["SBX_REASON"]
    r = sbx.run([], ["true"], env={**env, "SBX_FAULT": "fail:selftest"}, program="bin/sbx-run-faults")
    assert r.rc == 125
    entries = entries_of(journal)
    e = entries[-1]
    assert (e["SBX_STATE"], e["PRIORITY"]) == ("failed_safety_setup", "3")
    assert not any("SBX_ACTION" in e for e in entries)  # the self-test's refusals are none of the command


def test_the_cleanup_process_tells_the_journal(sbx, journal):
    p = sbx.popen(["--profile", "none"], ["sleep", "60"], env={"INVOCATION_ID": "x"})
    seen = journal.messages(timeout=20, until=lambda data: b"SBX_STATE=running" in data)
    os.kill(p.pid, signal.SIGKILL)
    p.communicate()
    seen += journal.messages(timeout=10, until=lambda data: b"SBX_STATE=lost" in data)
    assert states([fields(data) for _, data in seen]) == ["preparing", "running", "lost"]


def test_a_journal_that_does_not_read(sbx, journal):
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        for _ in range(100000):
            sender.sendto(b"x", journal.path)
    r = sbx.run(["--profile", "none"], ["true"], env={"INVOCATION_ID": "x"})
    assert (r.rc, r.err) == (0, "")


# --- events in the journal ---

def events_of(journal, timeout=1.0):
    return [e for e in entries_of(journal, timeout) if "SBX_ACTION" in e]


COLUMNS = {"SBX_ACTION": "action", "SBX_REASON": "reason", "SBX_PROTOCOL": "protocol", "SBX_COUNT": "raw_pkts",
           "SBX_NAME": "fqdn_pinned", "SBX_REMOTE_IP": "remote_ip", "SBX_REMOTE_PORT": "remote_port", "SBX_RULE": "rule",
           "SBX_REQUEST": "request", "SBX_GENERATION": "generation", "SBX_BYTES_OUT": "bytes_out", "SBX_BYTES_IN": "bytes_in",
           "SBX_DURATION_MS": "duration_ms", "SBX_ID": "sandbox_id", "SBX_WORKSPACE": "workspace", "SBX_ANALYSIS_ID": "analysis_id"}


def as_entry(row):
    return {name: str(row[column]) for name, column in COLUMNS.items() if row[column] is not None}


def test_the_journal_gets_each_event(sbx, journal):
    """One entry for each row, with the same values."""
    script = "getent hosts denied.test; curl -sSk -m 20 https://allowed.test/ https://allowed.test:81/; curl -m 3 http://10.0.0.9/"
    args = ["-q", "--allow", "allowed.test", "--workspace", "w", "--analysis-id", "a7"]
    sbx.run(args, ["sh", "-c", script], env={"INVOCATION_ID": "x"})
    entries = events_of(journal)
    rows = [as_entry(row) for row in sbx.events()]
    assert {(row["SBX_ACTION"], row["SBX_REASON"]) for row in rows} >= {("deny", "default_deny"), ("allow", "list_allow")}
    assert [{k: v for k, v in e.items() if k in COLUMNS} for e in entries] == rows
    for e in entries:
        assert e["SBX_PROFILE"] == "default" and e["SYSLOG_IDENTIFIER"] == "sbx-run" and "SBX_STATE" not in e
        assert e["PRIORITY"] == ("6" if e["SBX_ACTION"] == "allow" else "5") and len(e["MESSAGE_ID"]) == 32
        assert e["MESSAGE"].startswith(f"sandbox {e['SBX_ID']}: {e['SBX_ACTION']} ") and e["SBX_REASON"] in e["MESSAGE"]
    sbx.run(args, ["sh", "-c", script])
    assert entries_of(journal, 0.5) == []  # systemd did not start it


def test_events_in_the_journal_are_folded(sbx, journal):
    """A thousand tries are a few entries, also while the database is locked."""
    script = "import socket\nfor _ in range(1000):\n    s = socket.socket()\n    s.connect_ex(('203.0.113.77', 443))\n    s.close()\n"
    p = sbx.popen(["-q"], ["/usr/bin/python3", "-c", "print('up', flush=True); input()\n" + script + "input()"],
                  env={"INVOCATION_ID": "x"}, stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    with held(sbx):
        p.stdin.write("\n")
        p.stdin.flush()
        entries = events_of(journal, 3)
        assert sbx.events() == []
    p.communicate("\n", timeout=20)
    entries += events_of(journal)
    assert sum(int(e["SBX_COUNT"]) for e in entries) == sum(e["raw_pkts"] for e in sbx.events()) >= 1000
    assert len(entries) == len(sbx.events()) < 50


def test_a_slow_journal_gets_the_end(sbx, journal):
    """Events come faster than it reads: some are lost, and the end is not."""
    found = []

    def read():
        journal.socket.settimeout(20)
        while not found or b"SBX_STATE=done" not in found[-1]:
            found.append(journal.socket.recv(65536))
            time.sleep(0.005)

    reader = threading.Thread(target=read)
    reader.start()
    script = "import socket\nfor i in range(400):\n    s = socket.socket()\n    s.connect_ex(('203.0.113.77', 1000 + i))\n    s.close()\n"
    r = sbx.run(["-q"], ["/usr/bin/python3", "-c", script], env={"INVOCATION_ID": "x"})
    reader.join(20)
    assert r.rc == 0 and not reader.is_alive() and fields(found[-1])["SBX_EXIT_STATUS"] == "0"
    n = sum(b"SBX_ACTION" in data for data in found)
    assert 0 < n < len(sbx.events())
