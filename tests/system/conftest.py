# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures of the system tests: the hermetic world, a test user, and sbx-run in it."""
import contextlib
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
INST = os.environ.get("SBX_INST", "")
# One for each worker: its home is changed, and its processes are counted.
USER = os.environ.get("SBX_TEST_USER", "sbxtest") + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
TEST_SECONDS = 240   # of one test; the slowest that passes takes a tenth of it
TEARDOWN_SECONDS = 30  # of its fixtures after that


def pytest_configure(config):
    if os.geteuid() != 0:
        pytest.exit("the system tests need root (they make namespaces and another user)", 2)
    if not os.path.exists(os.path.join(INST, "bin", "sbx-run")):
        pytest.exit("set SBX_INST to an installed tree (make check-system does)", 2)
    # A command inherits signals that nohup or a shell's background ignores, and sh then sets no trap for them.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails where it hangs, and the next one runs."""
    def on_alarm(_signum, _frame):
        signal.alarm(TEARDOWN_SECONDS)
        # No Exception: a test that expects those would take it for one of its own.
        pytest.fail(f"not done after {TEST_SECONDS} s")

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def step_names():
    """The names of a run's steps, in their order, as the program prints them."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as d:
        os.mkdir(os.path.join(d, "work"))
        env = {"PATH": "/usr/bin:/bin", "HOME": d, "SBX_STATE_DIR": d + "/state", "SBX_RUNTIME_DIR": d + "/run",
               "SBX_CONFIG_DIR": d + "/config"}
        r = subprocess.run([os.path.join(INST, "bin/sbx-run"), "--dry-run", "--scratch", "--profile", "none", "--", "true"],
                           cwd=os.path.join(d, "work"), env=env, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)["steps"]


def test_user():
    with open("/etc/passwd") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # useradd does not wait for another one
        try:
            return pwd.getpwnam(USER)
        except KeyError:
            subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
            return pwd.getpwnam(USER)


@dataclasses.dataclass
class Result:
    rc: int
    out: str
    err: str
    seconds: float


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def descendants(pid):
    """Descendants of a living process. A descendant that ends during the look counts as having none."""
    below = children(pid)
    for child in list(below):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # before the open, or after it
            below += descendants(child)
    return below


def statuses(pid):
    """The status of each descendant, except of those that end during the look."""
    seen = {}
    for below in descendants(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            seen[below] = status(below)
    return seen


def named(pid, *names):
    """The descendants that have one of these names."""
    return [below for below, s in statuses(pid).items() if s["Name"] in names]


class World:
    """The running world and what it logged."""

    def __init__(self, directory, proc):
        self.dir, self.proc = directory, proc
        self.user = test_user()
        self.log_path = os.path.join(directory, "log.jsonl")

    def ns(self, user=None):
        argv = ["nsenter", "-t", str(self.proc.pid), "-n", "-m", f"--wd={os.getcwd()}"]
        if user:
            argv += ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
        return argv

    def log(self, kind=None, **match):
        with open(self.log_path) as f:
            entries = [json.loads(line) for line in f]
        return [e for e in entries if (kind is None or e["kind"] == kind) and
                all(e.get(k) == v for k, v in match.items())]

    def mark(self):
        """Forget what was logged: later calls of log() see only what comes after."""
        with open(self.log_path, "r+") as f:
            f.truncate(0)


@pytest.fixture(scope="session")
def world():
    directory = tempfile.mkdtemp(prefix="sbx-world-")
    os.chmod(directory, 0o755)
    proc = subprocess.Popen(
        ["unshare", "--net", "--mount", sys.executable, os.path.join(HERE, "world.py"), directory],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert proc.stdout.readline().strip() == "READY", "the world did not start"
    yield World(directory, proc)
    proc.stdin.close()
    try:
        proc.wait(10)
    except subprocess.TimeoutExpired:
        proc.kill()
        proc.wait()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def www(world):
    """A git repository, a Python package index and an npm registry, as files."""
    root = os.path.join(world.dir, "www")
    os.makedirs(root, exist_ok=True)
    git = os.path.join(root, "repo.git")
    work = os.path.join(world.dir, "repo")
    env = {**os.environ, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
           "GIT_COMMITTER_EMAIL": "t@t", "HOME": world.dir}
    for argv in (["init", "-q", work], ["-C", work, "commit", "-q", "--allow-empty", "-m", "first"],
                 ["clone", "-q", "--bare", work, git], ["-C", git, "update-server-info"]):
        subprocess.run(["git", *argv], check=True, env=env)
    # pip: one wheel
    wheel = os.path.join(root, "simple", "sbxdemo")
    os.makedirs(wheel)
    name = "sbxdemo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel, name), "w") as z:
        z.writestr("sbxdemo.py", "value = 42\n")
        z.writestr("sbxdemo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sbxdemo\nVersion: 1.0\n")
        z.writestr("sbxdemo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                   "Tag: py3-none-any\n")
        z.writestr("sbxdemo-1.0.dist-info/RECORD", "")
    with open(os.path.join(wheel, "index.html"), "w") as f:
        f.write(f'<a href="/simple/sbxdemo/{name}">{name}</a>')
    # npm: one package
    tgz = io.BytesIO()
    with tarfile.open(fileobj=tgz, mode="w:gz") as t:
        for path, text in (("package/package.json", '{"name":"sbx-demo","version":"1.0.0"}'),
                           ("package/index.js", "module.exports = 42\n")):
            info = tarfile.TarInfo(path)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    os.makedirs(os.path.join(root, "sbx-demo"), exist_ok=True)
    with open(os.path.join(root, "sbx-demo", "sbx-demo-1.0.0.tgz"), "wb") as f:
        f.write(tgz.getvalue())
    with open(os.path.join(root, "sbx-demo", "index.html"), "w") as f:
        json.dump({"name": "sbx-demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "sbx-demo", "version": "1.0.0", "dist": {
                "tarball": "https://files.test/sbx-demo/sbx-demo-1.0.0.tgz",
                "shasum": hashlib.sha1(tgz.getvalue()).hexdigest()}}}}, f)
    return root


class Sbx:
    """sbx-run in the world: as the test user (default), or as root."""

    def __init__(self, world, tmp):
        self.world, self.tmp = world, tmp
        self.wrapper = []  # what runs sbx-run, if something does
        self.adds_scratch = True  # where root's run would be refused
        self.state, self.runtime, self.config = (os.path.join(tmp, d) for d in
                                                 ("state", "run", "config"))
        self.work = os.path.join(tmp, "work")
        for d in (self.state, self.runtime, self.config, os.path.join(self.config, "profiles"),
                  self.work):
            os.makedirs(d, exist_ok=True)
        self.own(world.user.pw_uid)
        shutil.copy(os.path.join(HERE, "inside.py"), self.work)
        os.chmod(os.path.join(self.work, "inside.py"), 0o644)  # a clone made with umask 077

    def own(self, uid):
        for root, dirs, files in os.walk(self.tmp):
            for name in [root] + [os.path.join(root, n) for n in dirs + files]:
                os.lchown(name, uid, uid if uid else 0)

    def profile(self, name, text):
        path = os.path.join(self.config, "profiles", name + ".yaml")
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return name

    def put(self, name, text, mode=0o644, own=False):
        """Write a file in the working directory: root's, or with @own the user's. Returns its path."""
        path = os.path.normpath(os.path.join(self.work, name))
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)  # a clone made with umask 077
        if own:
            os.chown(path, self.world.user.pw_uid, self.world.user.pw_gid)
        return path

    def copy(self, name):
        """Copy a program of this directory into the working directory, where everyone can read it."""
        shutil.copy(os.path.join(HERE, name), self.work)
        os.chmod(os.path.join(self.work, name), 0o644)

    def env(self, extra=None, user=True):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
               "HOME": self.world.user.pw_dir if user else "/root",
               "SBX_STATE_DIR": self.state, "SBX_RUNTIME_DIR": self.runtime,
               "SBX_CONFIG_DIR": self.config}
        env.update(extra or {})
        return env

    def argv(self, args, cmd, program="bin/sbx-run", root=False):
        # Root's own directory is granted to nobody: a run there says where it works instead.
        where = {"--user", "--scratch", "--overlay", "--keep", "--home", "--chdir"}
        if root and (cmd or "--job" in args) and self.adds_scratch and not where & set(args) and 0 in os.stat(self.work)[4:6]:
            args = ["--scratch", *args]
        return (self.world.ns(None if root else USER) + ["env", "-C", self.work] +
                [*self.wrapper, os.path.join(INST, program)] + list(args) + (["--", *cmd] if cmd else []))

    def popen(self, args, cmd, *, root=False, env=None, program="bin/sbx-run", **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.argv(args, cmd, program, root), text=True,
                                env=self.env(env, not root), **kw)

    def run(self, args, cmd, *, timeout=60, input=None, **kw):
        start = time.monotonic()
        if input is not None:
            kw["stdin"] = subprocess.PIPE
        p = self.popen(args, cmd, **kw)
        try:
            out, err = p.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            pytest.fail(f"timed out after {timeout} s: {args} {cmd}\n{out}\n{err}")
        return Result(p.returncode, out, err, time.monotonic() - start)

    def inside(self, args, *script, **kw):
        """Run a probe of inside.py; returns its JSON."""
        r = self.run(args, ["/usr/bin/python3", "inside.py", *map(str, script)], **kw)
        assert r.rc == 0, f"{r.rc}: {r.err}{r.out}"
        return json.loads(r.out)

    def rows(self, query, *params):
        with sqlite3.connect(f"file:{self.state}/sbx.db?mode=ro", uri=True) as db:
            db.row_factory = sqlite3.Row
            return [dict(r) for r in db.execute(query, params)]

    def events(self, **match):
        rows = self.rows("SELECT * FROM sandbox_egress_event ORDER BY id")
        return [r for r in rows if all(r[k] == v for k, v in match.items())]

    def sandboxes(self):
        return self.rows("SELECT * FROM sandbox ORDER BY rowid")

    def leftovers(self):
        return [d for d in os.listdir(self.runtime) if d not in ("etc", "uids", "api.sock")]


@pytest.fixture
def sbx(world):
    # not below pytest's tmp_path: its ancestors are closed to the test user
    tmp = tempfile.mkdtemp(prefix="sbx-test-", dir="/var/tmp")
    os.chmod(tmp, 0o755)
    yield Sbx(world, tmp)
    shutil.rmtree(tmp, ignore_errors=True)
