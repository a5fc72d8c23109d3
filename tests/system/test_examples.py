# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every example of the manuals, and those of README.md that test_readme.py does not compare: run as it is printed.

The files, the user and the server of an example are made beside it. An example that is in no table here fails the
test that counts them.
"""
import json
import os
import re
import shutil
import subprocess
import textwrap

import pytest

from conftest import INST, USER
from test_lifecycle import wait_until

TOP = os.environ["SBX_SRCDIR"]
ROFF = {r"\(dq": '"', r"\(aq": "'", r"\e": "\\", r"\-": "-", r"\&": ""}
SERVER = "#!/usr/bin/python3\nimport http.server, sys\nhttp.server.HTTPServer(('127.0.0.1', {}), http.server.SimpleHTTPRequestHandler)" \
    ".serve_forever()\n"

# Of a Makefile, a script, a lock file: what each example needs, and a file that is there afterwards.
NPM_CI = {"package.json": '{"name": "p", "version": "1.0.0"}', "package-lock.json": '{"name": "p", "version": "1.0.0", "lockfileVersion": 3,'
          ' "requires": true, "packages": {"": {"name": "p", "version": "1.0.0"}}}'}
ANALYSIS = {"analysis.py": "open('result', 'w').write('42')\n", "report.py": "open('result', 'w').write('42')\n"}
MAKE = {"Makefile": "all:\n\techo made >result\n"}
RUNS = {
    "sbx-run --profile notebook -- python3 analysis.py": (ANALYSIS, "result"),
    "sbx-run --profile install -- npm ci": (NPM_CI, "package.json"),
    "sbx-run --allow data.example.org --limit wall_time=10m -- python3 analysis.py": (ANALYSIS, "result"),
    "sbx-run --profile none --ro-bind /srv/data -- ./untrusted": ({"untrusted": "#!/bin/sh\ncat /srv/data/fact >result\n"}, "result"),
    "sbx-run --keep out -- make": (MAKE, "out/files/result"),
    "sbx-run --user build --profile build -- make": (MAKE, "result"),
}
SERVERS = {  # the address and port that answer; jupyter and vite are stand-ins here, test_newcomer.py has the real ones
    "sbx-run --publish 8888 -- jupyter lab --no-browser --port 8888": 8888,
    "sbx-run --publish 8888 --profile notebook -- jupyter lab --no-browser": 8888,
    "sbx-run --publish 0:5173 --profile vite-preview -- npx vite": None,
}
ELSEWHERE = {  # by which test
    "xargs -0r rm -rf -- < DIR/removed && cp -a DIR/files/. .": "test_kept",
    "journalctl -o verbose SBX_ID=0123456789ab": "tests/vm/guest/test_units.py",
    "sqlite3 ~/.local/state/sbx/sbx.db \"SELECT * FROM sandbox_egress_event WHERE action = 'deny'\"": "test_refusals_by_sql",
}
README_ELSEWHERE = {  # but for those of "Sixty seconds", which test_readme.py has
    "./bootstrap run -- --scratch --profile install -- npm view is-number@7.0.0 dist": "tests/net/test_registry.py",
    "./bootstrap install": "test_install.py", "./bootstrap check": ".ci/run",
    "sbx-run --secret GITHUB_TOKEN@api.github.com -- sh -c 'curl -sH \"Authorization: Bearer $GITHUB_TOKEN\" "
    "https://api.github.com/user'": "test_secrets_page.py",
    "sudo sbx-run --profile bulk -- ./copy-from data.example.com": "test_attach.py", "sudo nft list table inet sbx": "test_attach.py",
    "autoreconf -i && ./configure && make && make check && sudo make install": ".ci/run",
}


def text_of(name):
    with open(os.path.join(TOP, name)) as f:
        return f.read()


def manual_lines():
    """[(as root, command)]"""
    found = []
    for name in ("man/sbx-run.1", "man/sbx-profile.5"):
        for prompt, line in re.findall(r"^\.Dl ([$#]) (.*)$", text_of(name), re.M):
            assert not re.search(r" [.,:;()?!\[\]]$", line), f"mdoc joins the last mark to the word before it: {line}"
            for escape, char in ROFF.items():
                line = line.replace(escape, char)
            found.append((prompt == "#", line))
    return found


def literals(name):
    return [text + "\n" for text in re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed", text_of(name), re.M)]


class Login:
    """A shell of the test user, or of root, with what the examples take for granted; nothing else is set."""

    def __init__(self, sbx, root=False):
        self.sbx, self.root, user = sbx, root, sbx.world.user
        os.unlink(os.path.join(sbx.work, "inside.py"))
        self.home = os.path.join(sbx.tmp, "home")
        for directory in (self.home, sbx.tmp + "/data", sbx.tmp + "/etc", sbx.tmp + "/srv", sbx.tmp + "/srv/data"):
            os.makedirs(directory, exist_ok=True)
            os.chown(directory, user.pw_uid, user.pw_gid)
        with open(sbx.tmp + "/srv/data/fact", "w") as f:
            f.write("7\n")
        with open(sbx.tmp + "/passwd", "w") as f:
            f.write(text_of("/etc/passwd") + f"build:x:{user.pw_uid}:{user.pw_gid}::{self.home}:/bin/sh\n"
                    f"analysis:x:{user.pw_uid}:{user.pw_gid}::{self.home}:/bin/sh\n")

    def put(self, files):
        for name, text in files.items():
            path = os.path.join(self.sbx.work, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o755)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.sbx.work], check=True)

    def argv(self, script):
        tmp, user = self.sbx.tmp, self.sbx.world.user
        become = "" if self.root else f"setpriv --reuid {USER} --regid {USER} --clear-groups "
        mounts = f"mount --bind {tmp}/home {'/root' if self.root else user.pw_dir}; mount --bind {tmp}/passwd /etc/passwd; " \
            f"mount --bind {tmp}/srv /srv; cd {self.sbx.work}; exec {become}bash -c \"$1\""
        return self.sbx.world.ns() + ["unshare", "--mount", "sh", "-ec", mounts, "sh", script]

    def env(self):
        return {"HOME": "/root" if self.root else self.sbx.world.user.pw_dir, "PATH": f"{INST}/bin:/usr/sbin:/usr/bin:/bin",
                "LANG": "C.UTF-8", "SBX_STATE_DIR": self.sbx.state, "SBX_RUNTIME_DIR": self.sbx.runtime}

    def run(self, script, rc=0):
        r = subprocess.run(self.argv(script), env=self.env(), text=True, capture_output=True, stdin=subprocess.DEVNULL,
                           timeout=120, check=False)
        assert r.returncode == rc, r
        return r


@pytest.fixture
def login(sbx):
    return Login(sbx)


def test_all_of_them(sbx):
    commands = {command for _, command in manual_lines()}
    assert commands <= {*RUNS, *SERVERS, *ELSEWHERE}, "an example that nothing runs"
    readme = text_of("README.md")
    assert commands | {c for c in (*RUNS, *SERVERS) if c in re.sub(r"\s+", " ", readme)} == {*RUNS, *SERVERS, *ELSEWHERE}
    shown = set(re.findall(r"^    (?:\$ )?((?:sbx-run|\./bootstrap|sudo|autoreconf) .*?)(?: +#.*)?$", readme, re.M))
    sixty = {line for _, part in [readme.split("\n## Sixty seconds\n")] for line in shown if f"    $ {line}" in part.split("\n## ")[0]}
    assert shown - sixty - set(RUNS) == set(README_ELSEWHERE), "an example that nothing runs"
    assert len(literals("man/sbx-profile.5")) == 3 and len(literals("man/sbx-run.1")) == 1


@pytest.mark.parametrize("command", RUNS)
def test_run(sbx, command):
    root = "--user build" in command
    if root:
        sbx.own(0)
    login = Login(sbx, root)
    files, made = RUNS[command]
    login.put(files)
    login.run(command)
    assert os.path.exists(os.path.join(sbx.work, made))


@pytest.mark.parametrize("command", SERVERS)
def test_server(login, command):
    login.put({"node_modules/.bin/vite": SERVER.format(5173), "index.html": "served\n"})
    port = SERVERS[command]
    with open(login.sbx.tmp + "/jupyter", "w") as f:
        f.write(SERVER.format(8888))
    os.chmod(login.sbx.tmp + "/jupyter", 0o755)
    have = "" if os.path.exists("/usr/bin/jupyter") else "exit 99; "
    script = have + f"mount --bind {login.sbx.tmp}/jupyter $(readlink -f /usr/bin/jupyter); "
    argv = login.argv(f"exec {command}")
    argv[argv.index("-ec") + 1] = script + argv[argv.index("-ec") + 1]
    p = subprocess.Popen(argv, env=login.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while port is None:
            line = p.stderr.readline()
            assert line, p.communicate()
            port = int(m[1]) if (m := re.search(r"127\.0\.0\.1:(\d+)", line)) else None
        fetch = [*login.sbx.world.ns(USER), "curl", "-sS", f"http://127.0.0.1:{port}/"]
        assert wait_until(lambda: subprocess.run(fetch, capture_output=True, text=True, check=False).stdout == "served\n", 60)
    finally:
        p.terminate()
        p.communicate(timeout=30)


def test_kept(login):
    """The files that --keep left, put into the workspace by the line that the manual prints."""
    command, = [c for _, c in manual_lines() if c.startswith("xargs")]
    login.put({"gone": "x", "dir/gone": "x", "Makefile": "all:\n\trm -r gone dir; echo made >result\n"})
    login.run("sbx-run --keep out -- make")
    assert os.path.exists(login.sbx.work + "/gone")
    login.run(command.replace("DIR", "out"))
    assert sorted(os.listdir(login.sbx.work)) == ["Makefile", "out", "result"]


def test_refusals_by_sql(login):
    command, = [c for _, c in manual_lines() if c.startswith("sqlite3")]
    login.run("sbx-run -- curl -s https://denied.test", 6)
    out = login.run(command.replace("~/.local/state/sbx", login.sbx.state)).stdout
    assert "denied.test" in out and "default_deny" in out


def test_profiles(login):
    """The example of sbx-profile(5), the agent of README.md, and the system policy. test_secrets_page.py has secrets."""
    profile, secrets, policy = literals("man/sbx-profile.5")
    assert secrets.startswith("secrets:")
    readme = [textwrap.dedent(text) for text in re.findall(r"(?:^    .*\n)+", text_of("README.md"), re.M)]
    agent, = [text for text in readme if text.startswith("name: my-agent")]
    os.makedirs(login.sbx.tmp + "/srv/images/trixie/usr/bin")
    shutil.copy("/usr/bin/true", login.sbx.tmp + "/srv/images/trixie/usr/bin")
    for name, text in (("lab", profile), ("my-agent", agent)):
        login.sbx.profile(name, text)
    with open(login.sbx.config + "/system.yaml", "w") as f:
        f.write(policy)
    login.put({"x": ""})
    config = f"SBX_CONFIG_DIR={login.sbx.config} "
    refused = login.run(config + "sbx-run --profile lab -- true", 125).stderr
    assert "data" in refused and login.sbx.work in refused, refused  # the policy's prefixes hold
    os.unlink(login.sbx.config + "/system.yaml")
    plan = json.loads(login.run(config + "sbx-run --dry-run --profile lab -- true").stdout)
    assert {"data.example.org", "*.cdn.example.org"} <= set(plan["policy"]["allow"]) and plan["limits"]["wall_time_ms"]["asked"] == 7200000
    plan = login.run(config + "sbx-run --dry-run --profile my-agent -- true")
    assert "/srv/images/trixie" in plan.stdout and "/sandboxes/my-agent" in plan.stdout


def test_job(login):
    job, = literals("man/sbx-run.1")
    os.makedirs(login.sbx.tmp + "/srv/data/nightly")
    os.chown(login.sbx.tmp + "/srv/data/nightly", login.sbx.world.user.pw_uid, -1)
    with open(login.sbx.tmp + "/srv/data/nightly/report.py", "w") as f:
        f.write(ANALYSIS["report.py"])
    os.makedirs(login.sbx.config + "/jobs")
    with open(login.sbx.config + "/jobs/nightly.yaml", "w") as f:
        f.write(job)
    sbx = login.sbx
    sbx.own(0)
    root = Login.__new__(Login)
    root.__dict__.update(login.__dict__, root=True)
    for directory, _, files in os.walk(sbx.tmp + "/srv"):
        for path in [directory, *(os.path.join(directory, f) for f in files)]:
            os.chown(path, sbx.world.user.pw_uid, -1)
    root.run(f"SBX_CONFIG_DIR={sbx.config} sbx-run --job nightly")
    assert os.path.exists(sbx.tmp + "/srv/data/nightly/result")
