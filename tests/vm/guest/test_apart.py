# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two sandboxes at once: neither sees, signals, traces or reads the other; nor do they reach the managers that
started them."""
import json
import os
import signal
import subprocess

import pytest

from machine import TESTER, WAYS

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"

# To everybody's processes and to one by the number it has outside; prints what worked.
ATTACK = r"""
import ctypes, errno, json, os, signal, subprocess, sys, time
outside, word = int(sys.argv[1]), "marker" + "-of-a"
libc = ctypes.CDLL(None, use_errno=True)

def attempt(function, *args):
    try:
        function(*args)
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]

def ptrace(pid):
    if libc.ptrace(16, pid, 0, 0) < 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "")

def words(word):
    seen = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    if word.encode() in f.read():
                        seen.append(pid)
            except OSError:
                pass
    return seen

child = subprocess.Popen(["sleep", "600"], env={"TWIN": "marker-of-child"})
end = time.monotonic() + 20
while not words("marker-of-child") and time.monotonic() < end:
    time.sleep(0.1)  # the kernel says that it runs before it has its environment
result = {"own seen": words("marker-of-child") == [str(child.pid)], "other seen": words(word),
          "other by number": attempt(os.kill, outside, 0), "read": attempt(open, f"/proc/{outside}/environ"),
          "ptrace": attempt(ptrace, outside), "own": attempt(os.kill, child.pid, 0)}
signal.signal(signal.SIGTERM, signal.SIG_IGN)
result["everybody"] = attempt(os.kill, -1, signal.SIGTERM)
result["own ended"] = child.wait() == -signal.SIGTERM
print(json.dumps(result))
"""


CONNECT = r"""
import errno, json, socket, sys
def connect(path):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
print(json.dumps([connect(path) for path in sys.argv[1:]]))
"""


def pid_of(word):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                environ = f.read()
            with open(f"/proc/{pid}/comm") as f:
                if f"MARKER={word}".encode() in environ and f.read() == "sleep\n":
                    return int(pid)
        except OSError:
            pass
    raise AssertionError(f"nobody has {word}")


@pytest.mark.parametrize("way", ["root", "session", "user-delegated"])
def test_two_side_by_side(start, way):
    sbx = start(way)
    with open(os.path.join(sbx.work, "attack.py"), "w", encoding="ascii") as f:
        f.write(ATTACK)
    with sbx.running(["--env", "MARKER=marker-of-a"], ["sh", "-c", "echo up; exec sleep 600"], A) as a:
        # Found and signalled with ease by who is no sandbox.
        pid = pid_of("marker-of-a")
        os.kill(pid, 0)
        [seen] = sbx.run(["--id", B], ["python3", "attack.py", str(pid)]).lines()
        assert a.poll() is None
        assert pid_of("marker-of-a") == pid
        uids = [sbx.row(sandbox)["uid"] for sandbox in (A, B)]
    assert seen == {"own seen": True, "own": "done", "own ended": True, "everybody": "done", "other seen": [],
                    "other by number": "ESRCH", "read": "ENOENT", "ptrace": "EPERM"}
    assert (uids[0] != uids[1]) if sbx.is_root else uids == [TESTER.pw_uid] * 2, uids
    assert sbx.row(A)["state"] == "done" and sbx.row(A)["exit_status"] == 128 + signal.SIGTERM


@pytest.mark.parametrize("way", ["root", "session", "user-delegated"])
def test_the_managers_are_out_of_reach(start, way):
    """A process that may talk to one leaves the sandbox, and its limits, with one call."""
    sbx = start(way)
    sockets = [f"/run/user/{TESTER.pw_uid}/bus", "/run/dbus/system_bus_socket", f"/run/user/{TESTER.pw_uid}/systemd/private",
               "/run/systemd/private"]
    probe = ["python3", "-c", CONNECT, *sockets]
    outside = subprocess.run([*WAYS[way], *probe], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=60, check=True)
    assert json.loads(outside.stdout) == ["done"] * 3 + ["done" if sbx.is_root else "EACCES"]
    assert sbx.run([], probe).lines() == [["ENOENT"] * 4]
