# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures of the tests that run inside the machine of tests/vm/run."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

import machine

SYSTEM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system")
TEST_SECONDS = 180  # of one test; the slowest that passes takes a sixth of it


def pytest_configure(config):
    if os.environ.get("container") or not os.path.isdir("/run/systemd/system") or \
            not os.path.exists("/dev/virtio-ports/vm.control"):
        pytest.exit("these tests change the machine they run on: tests/vm/run -- python3 -m pytest ...", 2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails where it hangs, and the next one runs."""
    def on_alarm(_signum, _frame):
        signal.alarm(30)
        pytest.fail(f"not done after {TEST_SECONDS} s")

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope="session")
def world():
    """Servers on every address, in the machine's own network."""
    directory = tempfile.mkdtemp(prefix="sbx-world-", dir="/run")
    os.chmod(directory, 0o755)
    proc = subprocess.Popen([sys.executable, os.path.join(SYSTEM, "world.py"), directory],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert proc.stdout.readline().strip() == "READY", "the world did not start"
    yield directory
    proc.stdin.close()
    proc.wait(30)


@pytest.fixture(scope="session")
def installed():
    """As a package's installation does it: users and directories."""
    for argv in (["systemd-sysusers"], ["systemd-tmpfiles", "--create", "sbx.conf"], ["systemctl", "daemon-reload"]):
        subprocess.run(argv, stdin=subprocess.DEVNULL, check=True, timeout=90)


@pytest.fixture
def start():
    """start(WAY): an Sbx. Not below /tmp, which is another one in a sandbox."""
    directories = []

    def make(way):
        tmp = tempfile.mkdtemp(prefix="sbx-test-", dir="/var/tmp")
        directories.append(tmp)
        os.chmod(tmp, 0o755)
        sbx = machine.Sbx(way, tmp)
        shutil.copy(os.path.join(SYSTEM, "inside.py"), sbx.work)
        return sbx

    yield make
    for tmp in directories:
        shutil.rmtree(tmp, ignore_errors=True)
