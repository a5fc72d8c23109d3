# SPDX-License-Identifier: LGPL-2.1-or-later
"""An installation works wherever it was put, with nothing of the build beside it, and can be removed."""
import json
import os
import shutil
import stat
import subprocess
import tempfile

import pytest

BUILD = os.environ.get("SBX_BUILDDIR", ".")
# sbx-scope where libsystemd was there
HELPERS = [name for name in ("sbx-broker", "sbx-init", "sbx-output", "sbx-scope", "sbx-tls")
           if name != "sbx-scope" or os.path.exists(os.path.join(BUILD, "launcher", name))]


def make(target, prefix):
    """With another prefix than configure's, by a make that is not this suite's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    r = subprocess.run(["sh", "-c", 'umask 022 && exec make -C "$1" "$2" "prefix=$3"', "sh", BUILD, target,
                        prefix], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=200)
    assert r.returncode == 0, r.stdout


def tree(root):
    return sorted(os.path.relpath(os.path.join(path, name), root)
                  for path, dirs, files in os.walk(root) for name in dirs + files)


@pytest.fixture(scope="module")
def prefix():
    directory = tempfile.mkdtemp(prefix="sbx-prefix-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    make("install", directory + "/opt")
    yield directory + "/opt"
    shutil.rmtree(directory)


def programs(prefix):
    return {name: os.path.join(prefix, name) for name in
            ["bin/sbx-run", "bin/sbxctl", "bin/sbxd", *("libexec/sbx/" + name for name in HELPERS)]}


def test_what_is_installed(prefix):
    for path in programs(prefix).values():
        mode = os.stat(path).st_mode
        assert stat.S_IMODE(mode) == 0o755, (path, oct(mode))
    files = tree(prefix)
    assert "share/sbx/migrations/0001-initial.sql" in files
    assert {"share/man/man1/sbx-run.1", "share/man/man1/sbxctl.1", "share/man/man8/sbxd.8"} <= set(files) and "share/man/man5/sbx-profile.5" in files
    # Programs for tests only are not installed.
    assert sorted(os.listdir(prefix + "/bin")) == ["sbx-run", "sbxctl", "sbxd"]
    assert sorted(os.listdir(prefix + "/libexec/sbx")) == HELPERS
    profiles = os.listdir(os.path.join(os.environ["SBX_SRCDIR"], "profiles"))
    assert sorted(os.listdir(prefix + "/share/sbx/profiles")) == \
        sorted(p for p in profiles if p.endswith(".yaml"))


@pytest.mark.parametrize("root", [False, True])
def test_it_runs_from_there(sbx, world, prefix, root):
    """Helpers, profiles and migrations are found beside the program, by an ordinary user and by root."""
    if root:
        sbx.own(0)
        os.chown(sbx.work, world.user.pw_uid, -1)
    argv = world.ns(None if root else world.user.pw_name) + ["env", "-C", sbx.work, prefix + "/bin/sbx-run"]
    argv += ["--user", world.user.pw_name] if root else []

    def run(*args):
        return subprocess.run([*argv, *args], env=sbx.env(user=not root), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)

    r = run("--profile", "none", "--", "true")
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")
    assert [s["state"] for s in sbx.sandboxes()] == ["done"]
    r = run("--allow", "allowed.test", "--", "curl", "-fsS", "https://allowed.test/hello")
    assert r.returncode == 0 and '"host": "allowed.test"' in r.stdout, r
    assert run("--allow", "allowed.test", "--", "curl", "-fsS", "https://denied.test/").returncode == 6
    r = run("--dry-run", "--profile", "none", "--", "true")
    assert r.returncode == 0
    assert json.loads(r.stdout)["profile_file"] == prefix + "/share/sbx/profiles/none.yaml"


def test_without_its_helpers_it_says_so(sbx, world, prefix):
    broker = programs(prefix)["libexec/sbx/sbx-broker"]
    os.rename(broker, broker + ".gone")
    try:
        r = subprocess.run(world.ns(world.user.pw_name) + [prefix + "/bin/sbx-run", "--scratch", "--", "true"],
                           env=sbx.env(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    finally:
        os.rename(broker + ".gone", broker)
    assert r.returncode == 125 and "sbx-broker" in r.stderr, r


def bootstrap(*args, **kw):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run([os.path.join(os.environ["SBX_SRCDIR"], "bootstrap"), *args], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, **kw)


def test_bootstrap_install(prefix):
    """`./bootstrap install` installs the same files as make, under a relative name. A prefix that cannot be written is
    refused."""
    directory = tempfile.mkdtemp(prefix="sbx-prefix-", dir="/var/tmp")
    try:
        r = bootstrap("install", "a/new one", cwd=directory)
        there = os.path.join(directory, "a/new one")
        assert r.returncode == 0 and f"installed {there}/bin/sbx-run" in r.stdout and "not in PATH" in r.stdout, r
        assert tree(there) == tree(prefix)
        assert oct(os.stat(there + "/bin/sbx-run").st_mode) == "0o100755"
        r = subprocess.run([there + "/bin/sbx-run", "--version"], capture_output=True, text=True)
        assert r.returncode == 0 and r.stdout.startswith("sbx-run "), r
        r = bootstrap("install", "/etc/passwd/sbx")
        assert r.returncode == 1 and r.stdout.count("\n") == 1 and "/etc/passwd is no directory" in r.stdout, r
        assert bootstrap("install", "/a", "/b").returncode == 1
    finally:
        shutil.rmtree(directory)


def test_uninstall_leaves_nothing():
    """make uninstall leaves nothing but the folders that the prefix shares with others."""
    directory = tempfile.mkdtemp(prefix="sbx-prefix-", dir="/var/tmp")
    try:
        make("install", directory)
        make("uninstall", directory)
        left = tree(directory)
        assert [f for f in left if not os.path.isdir(os.path.join(directory, f))] == []
        assert [d for d in left if "sbx" in d] == []
    finally:
        shutil.rmtree(directory)
