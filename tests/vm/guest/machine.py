# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-run in the machine that tests/vm/run boots, in every way it is started there.

The machine itself is the world of tests/system/world.py: it has no interface but lo, so its own network
can be the one that answers on every address, and a unit or a session needs no arrangement to be in it.
"""
import contextlib
import dataclasses
import json
import os
import pwd
import signal
import sqlite3
import subprocess
import time

import pytest

PREFIX = os.environ.get("SBX_INST", "/usr/local")
CGROUP = "/sys/fs/cgroup"
TESTER = pwd.getpwnam("tester")
RUN_SECONDS = 60  # of one run; one takes 2 s, more when the machine under this one is busy

UNIT = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect"]
SESSION = ["su", "-l", "-c", 'exec "$@"', "--", "tester", "sh"]
USER_MANAGER = ["setpriv", "--reuid=tester", "--regid=tester", "--init-groups", "env",
                f"HOME={TESTER.pw_dir}", f"XDG_RUNTIME_DIR=/run/user/{TESTER.pw_uid}",
                "systemd-run", "--user", *UNIT[1:]]

# The words before sbx-run, which give it its user and its cgroup.
WAYS = {
    "root": [],                                            # a service's cgroup that is not delegated
    "unit": [*UNIT, "--"],                                 # the same, alone in it
    "delegated": [*UNIT, "-p", "Delegate=yes", "--"],      # root's own subtree
    "session": SESSION,                                    # session-N.scope, which belongs to root
    "user-unit": [*USER_MANAGER, "--"],                    # a unit of the user's manager
    "user-delegated": [*USER_MANAGER, "-p", "Delegate=yes", "--"],
}
ROOT_WAYS = ("root", "unit", "delegated")


@dataclasses.dataclass
class Result:
    rc: int
    out: str
    err: str

    def lines(self):
        """The output of a probe of inside.py or of `python3 -c`: a JSON value per line."""
        assert self.rc == 0, self
        return [json.loads(line) for line in self.out.splitlines()]


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def cgroups():
    """Every cgroup there is, but what systemd keeps: sessions, and the slice that scopes were in."""
    return {path[len(CGROUP):] for path, _, _ in os.walk(CGROUP)
            if "/session-c" not in path and not path.endswith("/sbx.slice")}


class Sbx:
    """sbx-run started in one way, with a database and a runtime directory of the test's own."""

    def __init__(self, way, tmp):
        self.way, self.tmp = way, tmp
        self.is_root = way in ROOT_WAYS
        self.work, self.state, self.runtime, self.config = (
            os.path.join(tmp, d) for d in ("work", "state", "run", "config"))
        for path in (self.work, self.state, self.runtime, self.config):
            os.mkdir(path)
            os.chmod(path, 0o755)
            if not self.is_root:
                os.chown(path, TESTER.pw_uid, TESTER.pw_gid)

    def argv(self, args, cmd, program="bin/sbx-run", env=None):
        places = {"SBX_STATE_DIR": self.state, "SBX_RUNTIME_DIR": self.runtime,
                  "SBX_CONFIG_DIR": self.config, **(env or {})}
        before = WAYS[self.way]
        if "systemd-run" in before:
            cmd = [word.replace("$", "$$") for word in cmd]  # systemd's own expansion
        return [*before, "env", "-C", self.work, *(f"{k}={v}" for k, v in places.items()),
                os.path.join(PREFIX, program), "--ro-bind", self.work, "--chdir", self.work, *args,
                "--", *cmd]

    def popen(self, args, cmd, program="bin/sbx-run", env=None):
        return subprocess.Popen(self.argv(args, cmd, program, env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, args, cmd, timeout=RUN_SECONDS, **kw):
        p = self.popen(args, cmd, **kw)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            pytest.fail(f"timed out after {timeout} s: {args} {cmd}\n{out}\n{err}")
        return Result(p.returncode, out, err)

    @contextlib.contextmanager
    def running(self, args, cmd, sandbox):
        """A run whose command has said `up`; what is left of it at the end is ended."""
        p = self.popen(["--id", sandbox, *args], cmd)
        line = p.stdout.readline()
        if line != "up\n":
            p.kill()
            pytest.fail(f"no start: {line!r} {p.communicate()}")
        try:
            yield p
        finally:
            if p.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.row(sandbox)["pid"], signal.SIGTERM)
                try:
                    p.communicate(timeout=RUN_SECONDS)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.communicate()
                    pytest.fail(f"{sandbox} did not end")

    def rows(self, query, *params):
        with contextlib.closing(sqlite3.connect(f"file:{self.state}/sbx.db?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(r) for r in db.execute(query, params)]

    def row(self, sandbox):
        return self.rows("SELECT * FROM sandbox WHERE id = ?", sandbox)[0]

    def last(self):
        return self.rows("SELECT * FROM sandbox ORDER BY rowid DESC LIMIT 1")[0]

    def events(self, **match):
        rows = self.rows("SELECT * FROM sandbox_egress_event ORDER BY id")
        return [r for r in rows if all(r[k] == v for k, v in match.items())]

    def leftovers(self):
        """In the runtime directory, but for what every run shares."""
        return [name for name in os.listdir(self.runtime) if name not in ("etc", "uids")]
