# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first day's work of a user who has just installed sbx, with everyday tools, unmodified.

In a plain directory, in a repository and in a subdirectory of one, as an ordinary user and as root for a directory of
that user's. The packages are those of `./bootstrap packages test tools npm`; Vite comes from npm's registry once, by
the host's npm, and the sandbox installs from that npm's cache.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import INST, USER
from test_lifecycle import wait_until
from test_tools import need

PLACES = [(root, where) for root in (False, True) for where in ("plain", "repository", "subdirectory")]
IDENTITY = {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@n.test", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@n.test"}
GO = {"go.mod": "module newcomer.test/hello\n\ngo 1.19\n",
      "main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello from go") }\n'}
NOTEBOOK = {"cells": [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "print(6 * 7)"}],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4, "nbformat_minor": 4}


class Day:
    """One of the places: `dir` is where sbx-run is started, `top` what the user granted or cloned."""

    def __init__(self, sbx, root, where):
        self.sbx, self.root, self.where = sbx, root, where
        self.top = sbx.work
        os.unlink(os.path.join(sbx.work, "inside.py"))
        if root:
            sbx.own(0)
            self.own()
        if where != "plain":
            self.outside("git init -q . && git commit -q --allow-empty -m first")
        self.dir = os.path.join(self.top, "packages/app") if where == "subdirectory" else self.top
        os.makedirs(self.dir, exist_ok=True)
        self.own()

    def own(self):
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.top], check=True)

    def put(self, files):
        for name, text in files.items():
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        self.own()

    def argv(self, script, args=("--profile", "none")):
        argv = self.sbx.argv(list(args), ["bash", "-ec", script], root=self.root)
        argv[argv.index("-C") + 1] = self.dir
        return argv

    def sh(self, script, args=("--profile", "none"), timeout=180):
        r = subprocess.run(self.argv(script, args), env=self.sbx.env(None, not self.root), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=timeout, check=False)
        assert r.returncode == 0, f"{r.returncode}\n{r.stdout}\n{r.stderr}"
        return r

    def popen(self, script, args=("--profile", "none")):
        return subprocess.Popen(self.argv(script, args), env=self.sbx.env(None, not self.root), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def outside(self, script, env=None):
        """The user's shell on the host, in the same directory."""
        where = getattr(self, "dir", self.top)
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.sbx.tmp, "GOCACHE": "/tmp/newcomer-" + USER, **IDENTITY, **(env or {})}
        r = subprocess.run(["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "bash", "-ec", script], cwd=where,
                           env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        assert r.returncode == 0, f"{r.returncode}\n{r.stdout}\n{r.stderr}"
        return r.stdout

    def sockets(self):
        """Sockets and moved-aside files that sbx has left behind."""
        return subprocess.run(["find", self.top, "-not", "-path", "*/node_modules/*", "(", "-type", "s", "-o", "-name",
                               "*.sbx-untrusted*", ")"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=PLACES, ids=lambda p: ("root" if p[0] else "user") + "-" + p[1])
def day(sbx, request):
    return Day(sbx, *request.param)


def test_go(day):
    """`go build` asks git about the directory, inside and afterwards outside."""
    need("go", "git")
    day.put(GO)
    assert day.sh("go vet ./... && go build -o hello . && ./hello").stdout == "hello from go\n"
    assert day.outside("rm hello; go build -o hello . && ./hello") == "hello from go\n"
    assert day.sockets() == ""


def test_git(day):
    """A repository of one's own, with the identity that the host has; a clone into the directory itself."""
    need("git")
    day.outside("mkdir -p origin && cd origin && git init -q . && echo one >file && git add file && git commit -q -m one")
    identity = ["--profile", "none"] + [f"--env={name}={value}" for name, value in IDENTITY.items()]
    r = day.sh("""mkdir own copy; cd own; git init -q .; echo work >file; git add file; git commit -q -m work; git log --format=%s
                  cd ../copy; git clone -q ../origin .; cat file; git checkout -q -b topic; git status --short""", identity)
    assert r.stdout == "work\none\n", r.stderr
    assert day.outside("git -C own log --format=%s; git -C copy log --format=%s; git -C own status --short") == "work\none\n"
    assert day.sockets() == ""
    if day.where == "plain":
        assert day.sh("git init -q . && git add origin/file own/file 2>/dev/null; ls -A .git | head -3").stdout
        assert "fatal" not in day.outside("git status --short")


def test_the_host_at_the_same_time(day):
    """While a sandbox runs in it the directory stays the user's."""
    need("git", "go")
    day.put(GO)
    p = day.popen("echo up; sleep 60")
    try:
        assert p.stdout.readline() == "up\n"
        out = day.outside("""mkdir .vscode .idea; echo '{}' >.vscode/settings.json; echo 'use nix' >.envrc
            go build -o hello . && ./hello; mkdir new && cd new && git init -q . && git commit -q --allow-empty -m second
            git log --format=%s""")
        assert out == "hello from go\nsecond\n"
        if day.where == "plain":
            assert day.outside("git init -q . && git status --short >/dev/null && echo made") == "made\n"
    finally:
        p.terminate()
        _, err = p.communicate(timeout=30)
    assert day.outside("cat .vscode/settings.json .envrc") == "{}\nuse nix\n", err


# --- Vite ---

@pytest.fixture(scope="module")
def npm_cache():
    """An npm cache with create-vite and what its project needs, filled through the registry that this machine's npm has."""
    need("npm", "node")
    top = tempfile.mkdtemp(prefix="sbx-newcomer-", dir="/var/tmp")
    env = {**os.environ, "npm_config_cache": top + "/cache", "npm_config_yes": "true", "npm_config_omit_lockfile_registry_resolved": "true"}
    quiet = ["--no-audit", "--no-fund"]
    for argv, at in ((["create", "vite@latest", "app", "--", "--template", "vanilla"], top), (["install", *quiet], top + "/app"),
                     (["ci", *quiet], top + "/app")):  # ci asks for what install does not
        r = subprocess.run(["npm", *argv], cwd=at, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=200, check=False)
        assert r.returncode == 0, f"npm's registry is needed for this test\n{r.stdout}\n{r.stderr}"
    shutil.copy(top + "/app/package-lock.json", top)
    shutil.rmtree(top + "/app")
    os.chmod(top, 0o755)
    yield top
    shutil.rmtree(top)


@pytest.mark.xdist_group("newcomer-npm")  # one cache for all of them
def test_vite(day, npm_cache):
    """`npm create vite .`, `npm ci`, a build, and the preview, which the host's curl reads."""
    cache = os.path.join(day.sbx.tmp, "npm-cache")
    shutil.copytree(npm_cache + "/cache", cache, symlinks=True)
    shutil.copy(npm_cache + "/package-lock.json", day.sbx.tmp)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", cache, day.sbx.tmp + "/package-lock.json"], check=True)
    offline = ["--profile", "none"] + [f"--env=npm_config_{k}={v}" for k, v in {"cache": cache, "offline": "true", "yes": "true", "audit": "false",
                                                         "fund": "false", "update_notifier": "false"}.items()]
    grants = ["--bind", cache, "--ro-bind", day.sbx.tmp + "/package-lock.json"]
    r = day.sh(f"""npm create vite@latest . -- --template vanilla >/dev/null </dev/null; ls package.json index.html
                   cp {day.sbx.tmp}/package-lock.json .
                   sed -i 's/"name": "app"/"name": "'$(node -p 'require("./package.json").name')'"/' package-lock.json
                   npm ci >/dev/null; npm run --silent build >/dev/null; ls dist/index.html""", [*offline, *grants])
    assert r.stdout == "index.html\npackage.json\ndist/index.html\n", r
    assert "<script type=\"module\"" in day.outside("cat dist/index.html")
    port = 20000 + os.getpid() % 10000
    p = day.popen(f"exec npx vite preview --host --port {port} --strictPort", [*offline, *grants, "--publish", f"localhost:{port}"])
    try:
        fetch = [*day.sbx.world.ns(USER), "curl", "-sS", f"http://localhost:{port}/"]
        assert wait_until(lambda: "<script type=\"module\"" in subprocess.run(fetch, capture_output=True, text=True, check=False).stdout, 60)
    finally:
        p.terminate()
        out, err = p.communicate(timeout=30)
    assert day.sockets() == "", (out, err)


# --- notebooks ---

def test_notebook(day):
    need("jupyter")
    day.put({"n.ipynb": json.dumps(NOTEBOOK)})
    day.sh("jupyter nbconvert --to notebook --execute --output done.ipynb n.ipynb")
    with open(os.path.join(day.dir, "done.ipynb")) as f:
        cell, = json.load(f)["cells"]
    assert cell["outputs"][0]["text"] in ("42\n", ["42\n"])
    assert day.sockets() == ""


# --- what is refused ---

def refused(day, script, args=()):
    """A command that cannot work: how long it took, and what its user sees."""
    start = time.monotonic()
    r = subprocess.run(day.argv(script, args), env=day.sbx.env(None, not day.root), stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=120, check=False)
    assert r.returncode not in (0, 125), r
    return time.monotonic() - start, r.stdout + r.stderr


@pytest.mark.xdist_group("newcomer-refused")  # each is compared with its twin that needs no network
@pytest.mark.parametrize("tool", ["pip", "npm"])
def test_package_tools_give_up(day, tool):
    """A refused name does not exist: no tool waits or tries again for long. The twin tries once, at a port that refuses."""
    need("npm", "pip3")
    script, once = {
        "pip": ("pip3 install --user --break-system-packages --index-url {}/simple sbxdemo", " --retries 0"),
        "npm": ("npm view --registry {}/ sbx-demo", " --fetch-retries=0")}[tool]
    for _ in range(3):  # the machine's other work adds to a run's time, and never takes from it
        usual, _ = refused(day, script.format("http://127.0.0.1:9") + once)
        seconds, text = refused(day, script.format("https://denied.test"))
        assert "sbx-run: refused" in text and "denied.test" in text and "--allow denied.test" in text, text
        if seconds < usual + 2:
            break
    assert seconds < usual + 2, text


@pytest.mark.parametrize("tool", ["ssh", "git"])
def test_a_refused_port(day, tool):
    """The name may be used, port 22 may not: the last lines say which port, and how it would be allowed."""
    need("ssh", "git")
    script = {"ssh": "ssh -o BatchMode=yes -o ConnectTimeout=20 -p 22 allowed.test true",
              "git": "GIT_SSH_COMMAND='ssh -o BatchMode=yes' git ls-remote ssh://git@allowed.test/repo.git"}[tool]
    seconds, text = refused(day, script, ["--allow", "allowed.test:443"])
    line, = [line for line in text.splitlines() if line.startswith("sbx-run: refused")]
    assert "allowed.test:22" in line and "--allow" in line, text
    assert seconds < 20, text


def test_root_in_a_clone_that_nobody_else_can_enter(sbx):
    """/root, say. The broker's user can reach nothing there."""
    private = sbx.tmp + "/private"
    shutil.copytree(INST, private + "/inst")
    os.chmod(private, 0o700)
    sbx.own(0)
    for args in (["--scratch"], ["--scratch", "--user", USER]):
        r = sbx.run(args, ["echo", "up"], program=private + "/inst/bin/sbx-run", root=True)
        assert (r.rc, r.out) == (0, "up\n"), r
