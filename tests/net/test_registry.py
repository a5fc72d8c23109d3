# SPDX-License-Identifier: LGPL-2.1-or-later
"""make check-net: a real registry, through the real broker, with npm's own configuration."""
import fnmatch
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import urllib.parse

import pytest

INST = os.environ["SBX_INST"]
ROOT = os.geteuid() == 0
USER = "sbxtest" if ROOT else pwd.getpwuid(os.getuid()).pw_name
WHO = ["user", "root --user", "root"] if ROOT else ["user"]
NPM = shutil.which("npm", path="/usr/bin:/usr/local/bin:/bin")


def registry():
    out = subprocess.run([NPM, "config", "get", "registry"], capture_output=True, text=True, check=True)
    return out.stdout.strip()


@pytest.fixture
def scratch():
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
        user = pwd.getpwnam(USER)
    directory = tempfile.mkdtemp(prefix="sbx-npm-", dir="/var/tmp")
    os.chown(directory, user.pw_uid, user.pw_gid)
    os.chmod(directory, 0o755)  # the throwaway user of a bare root has to pass
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def extra(name):
    """Flags for npm's configured registry where the profile does not allow that registry."""
    url = registry()
    host = urllib.parse.urlsplit(url).hostname
    if name == "install" and not fnmatch.fnmatch(host, "*.npmjs.org"):
        return ["--allow", host, "--env", "npm_config_registry=" + url]
    return []


def start_of(scratch, profile, who):
    """sbx-run and its options, the environment, and a directory to work in."""
    argv = [os.path.join(INST, "bin", "sbx-run"), "--profile", profile, *extra(profile)]
    state = {"SBX_STATE_DIR": os.path.join(scratch, "state"), "SBX_RUNTIME_DIR": os.path.join(scratch, "run")}
    env = {**{k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.startswith("npm_")},
           **state}
    if who == "user":
        if ROOT:
            argv = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *argv]
        env["HOME"] = pwd.getpwnam(USER).pw_dir
    elif who == "root --user":
        argv += ["--user", USER]
    else:
        argv += ["--scratch"]
    work = os.path.join(scratch, "work")
    os.makedirs(work)
    if who != "root":
        os.chown(work, pwd.getpwnam(USER).pw_uid, -1)
    os.chown(scratch, pwd.getpwnam(USER).pw_uid if who == "user" else 0, -1)
    return argv, env, work


def npm_install(scratch, profile, who):
    argv, env, work = start_of(scratch, profile, who)
    command = ["npm", "install", "is-number@7.0.0"]
    if who == "root":
        command = ["sh", "-c", "npm install is-number@7.0.0 && cat node_modules/is-number/package.json"]
    start = time.monotonic()
    r = subprocess.run([*argv, "--", *command], cwd=work, env=env, capture_output=True, text=True, timeout=300)
    return r, time.monotonic() - start, os.path.join(work, "node_modules", "is-number", "package.json")


@pytest.mark.parametrize("who", WHO)
def test_install(scratch, who):
    assert NPM, "npm is not installed: ./bootstrap check installs it"
    r, _, package = npm_install(scratch, "install", who)
    assert r.returncode == 0, (r.stdout, r.stderr)
    text = r.stdout if who == "root" else open(package).read()
    assert '"7.0.0"' in text


@pytest.mark.parametrize("who", WHO)
def test_none_fails_at_once(scratch, who):
    assert NPM, "npm is not installed: ./bootstrap check installs it"
    r, seconds, package = npm_install(scratch, "none", who)
    assert r.returncode != 0 and not os.path.exists(package)
    # npm by itself tries again after 10 s and after 60 s more; offline sandboxes tell it not to
    assert seconds < 8, seconds


READ_ONLY = "name: read-only\nextends: install\nnetwork: {allow: [{host: HOST, access: read-only}]}\n"


def refusals(scratch):
    with sqlite3.connect(f"file:{scratch}/state/sbx.db?mode=ro", uri=True) as db:
        return db.execute("SELECT fqdn_pinned, reason FROM sandbox_egress_event WHERE action = 'deny' ORDER BY id").fetchall()


def test_read_only(scratch):
    """npm installs from a registry whose entry is read-only, and cannot publish there: the broker's side answers the
    PUT, so the registry, which would have said 401 to this token, is never asked."""
    assert NPM, "npm is not installed: ./bootstrap check installs it"
    argv, env, work = start_of(scratch, "install", "user")
    host = urllib.parse.urlsplit(registry()).hostname
    profile = os.path.join(scratch, "read-only.yaml")
    with open(profile, "w", encoding="utf-8") as f:
        f.write(READ_ONLY.replace("HOST", host))
    argv[argv.index("--profile") + 1] = profile
    argv[argv.index(profile) + 1:argv.index(profile) + 1] = ["--env", "npm_config_registry=" + registry(), "--env", "npm_config_audit=true"]

    def npm(*args):
        return subprocess.run([*argv, "--", "npm", *args], cwd=work, env=env, capture_output=True, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL)
    r = npm("install", "is-number@7.0.0")
    assert r.returncode == 0 and os.path.exists(os.path.join(work, "node_modules/is-number/package.json")), (r.stdout, r.stderr)
    audits = refusals(scratch).count((host, "access_method"))  # npm asks with a POST, and goes on without the answer
    name = f"sbx-read-only-{os.urandom(6).hex()}"
    with open(os.path.join(work, "package.json"), "w", encoding="utf-8") as f:
        f.write(f'{{"name": "{name}", "version": "1.0.0"}}')
    with open(os.path.join(work, ".npmrc"), "w", encoding="utf-8") as f:
        f.write(registry().split(":", 1)[1].rstrip("/") + "/:_authToken=npm_0123456789abcdefghijklmnopqrstuvwxyz\n")
    r = npm("publish")
    assert r.returncode != 0 and f"403 Forbidden - PUT {registry().rstrip('/')}/{name}" in r.stderr, (r.stdout, r.stderr)
    assert refusals(scratch).count((host, "access_method")) > audits
    r = npm("view", name)
    assert r.returncode != 0 and "E404" in r.stderr, (r.stdout, r.stderr)


@pytest.mark.parametrize("who", ["user", "root --user"] if ROOT else ["user"])
def test_npm_create(scratch, who):
    """`npm create vite .` makes its files in the directory, also on the host while a sandbox runs there."""
    assert NPM, "npm is not installed: ./bootstrap check installs it"
    create = ["npm", "create", "--yes", "vite@5", ".", "--", "--template", "vanilla"]
    argv, env, work = start_of(scratch, "install", who)
    home = os.path.join(scratch, "home")
    os.makedirs(home)
    os.chown(home, pwd.getpwnam(USER).pw_uid, -1)
    as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if ROOT else []
    run = subprocess.Popen([*argv, "--", "sh", "-c", "echo up; read x; exec \"$@\"", "sh", *create], cwd=work, env=env, text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline() == "up\n", run.stderr.read()
    outside = subprocess.run([*as_user, *create], cwd=work, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                             env={**env, "HOME": home, "npm_config_registry": registry()})
    made = set(os.listdir(work))
    assert outside.returncode == 0 and {"package.json", "index.html"} <= made, (outside, made)
    subprocess.run(["find", work, "-mindepth", "1", "-delete"], check=True)
    out, err = run.communicate("\n", timeout=300)
    assert run.returncode == 0 and set(os.listdir(work)) == made, (out, err)
    assert "sbx-untrusted" not in err, err


def test_readmes_first_command():
    """As it is printed, in the tree that is tested, by whoever runs the tests: its result is on stdout."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(top, "README.md"), encoding="utf-8") as f:
        line, = re.findall(r"^    (\./bootstrap run .*)$", f.read(), re.M)
    flags = " ".join(f"'{word}'" for word in extra("install"))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "npm_"))}
    r = subprocess.run(["sh", "-c", line.replace("--profile install", "--profile install " + flags)], cwd=top, env=env, text=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    assert r.returncode == 0 and "is-number-7.0.0.tgz" in r.stdout, r
