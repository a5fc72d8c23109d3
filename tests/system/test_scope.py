# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-scope where there is no systemd: what it refuses, and that it ends. With one: tests/vm."""
import os
import signal
import socket
import subprocess
import time

import pytest

from conftest import INST

SCOPE = os.path.join(INST, "libexec/sbx/sbx-scope")

pytestmark = pytest.mark.skipif(not os.path.exists(SCOPE), reason="sbx-scope was not built: no libsystemd")


def argv(manager="--user", name="sbx-test.scope", slice="sbx.slice", pid=None, description="a test"):
    return [SCOPE, manager, name, slice, str(pid or os.getpid()), description]


def run(args, env=None, **kw):
    r = subprocess.run(args, env=env or {}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                       **kw)
    assert r.stdout == "" and r.stderr.startswith("sbx-scope: ") and r.stderr.count("\n") == 1, r
    return r


@pytest.fixture
def silent_bus(tmp_path):
    """A bus that takes connections and says nothing."""
    path = str(tmp_path / "bus")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        yield path


@pytest.mark.parametrize("change", [{"manager": "--global"}, {"name": "a.service"}, {"name": "a/b.scope"},
                                    {"slice": "a.scope"}, {"pid": "1"}, {"description": "a\nb"}])
def test_bad_arguments(change):
    assert run(argv(**change)).returncode == 1


def test_no_bus():
    assert "bus" in run(argv()).stderr
    r = run(argv(), {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent/bus"})
    assert r.returncode == 1 and "No such file" in r.stderr


def test_only_a_unix_socket_is_a_bus(tmp_path):
    witness = str(tmp_path / "witness")
    r = run(argv(), {"DBUS_SESSION_BUS_ADDRESS": f"unixexec:path=/usr/bin/touch,argv1={witness}"})
    assert r.returncode == 1 and "DBUS_SESSION_BUS_ADDRESS" in r.stderr
    assert not os.path.exists(witness)


@pytest.mark.parametrize("variable, manager, reached", [
    ("DBUS_SESSION_BUS_ADDRESS", "--user", True), ("DBUS_SESSION_BUS_ADDRESS", "--system", False),
    ("DBUS_SYSTEM_BUS_ADDRESS", "--system", False), ("DBUS_SYSTEM_BUS_ADDRESS", "--user", False)])
def test_the_environment_names_the_users_bus_only(silent_bus, variable, manager, reached):
    p = subprocess.Popen(argv(manager), env={variable: "unix:path=" + silent_bus}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        p.communicate(timeout=3)
        assert not reached and p.returncode == 1
    except subprocess.TimeoutExpired:
        assert reached
    finally:
        p.kill()
        p.communicate()


def test_a_silent_bus_is_given_up(silent_bus):
    """Also where the caller blocks every signal, and with nothing of the caller's open but 0-2."""
    extra, other = os.pipe()
    os.set_inheritable(extra, True)
    start = time.monotonic()
    p = subprocess.Popen(argv(), env={"XDG_RUNTIME_DIR": os.path.dirname(silent_bus)}, close_fds=False,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals()))
    time.sleep(1)
    fds = {fd: os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{p.pid}/fd")}
    assert len(fds) <= 4 and os.readlink(f"/proc/self/fd/{extra}") not in fds.values(), fds
    out, err = p.communicate(timeout=30)
    os.close(extra)
    os.close(other)
    assert (p.returncode, out, err) == (1, "", "sbx-scope: systemd did not answer in 10 s\n")
    assert 9 < time.monotonic() - start < 25


def test_closed_stdio():
    r = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *argv()], env={}, timeout=30)
    assert r.returncode == 1
