# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program or a directory that is not in the sandbox: the message says where it is on the host and how to grant it."""
import os
import re
import shlex
import shutil

import pytest

from conftest import USER


@pytest.fixture
def tools(sbx):
    """Programs below the home: of a prefix with a lib, in ~/bin, and by symlinks that lead elsewhere."""
    home = sbx.world.user.pw_dir
    made = [home + "/" + d for d in (".cargo", ".nvm", "bin", ".local")]
    for path, text in {".cargo/bin/direct": "direct", ".nvm/v20/lib/cli.sh": "cli", "bin/plain": "plain",
                       ".local/share/app/1.0/real": "app"}.items():
        os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
        with open(f"{home}/{path}", "w") as f:
            f.write(f"#!/bin/sh\necho {text}\n")
        os.chmod(f"{home}/{path}", 0o755)
    for path, target in {".nvm/v20/bin/within": "../lib/cli.sh", ".local/bin/app": f"{home}/.local/share/app/1.0/real"}.items():
        os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
        os.symlink(target, f"{home}/{path}")
    for d in made:
        for at, dirs, files in os.walk(d):
            for name in [at] + [f"{at}/{n}" for n in dirs + files]:
                os.lchown(name, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    yield home
    for d in made:
        shutil.rmtree(d)


@pytest.mark.parametrize("by_path", [False, True])
@pytest.mark.parametrize("at,grants,out", [
    (".cargo/bin/direct", [".cargo"], "direct"), ("bin/plain", ["bin"], "plain"), (".nvm/v20/bin/within", [".nvm/v20"], "cli"),
    (".local/bin/app", [".local/bin", ".local/share/app/1.0"], "app")])
def test_program_below_the_home(sbx, tools, at, grants, out, by_path):
    """Refused with the flags that grant it; with exactly those it runs."""
    path = f"{tools}/{at}"
    command = [path if by_path else os.path.basename(path)]
    env = {"PATH": f"{os.path.dirname(path)}:/usr/bin:/bin"}
    r = sbx.run([], command, env=env)
    assert r.rc == 127 and r.err.count("\n") == 1 and f"'{path}'" in r.err, r
    flags = shlex.split(re.search(r"--ro-bind .*", r.err).group(0))
    assert flags == [w for g in grants for w in ("--ro-bind", f"{tools}/{g}")], r
    assert sbx.run(flags, command, env=env).out == out + "\n"


def test_program_that_is_nowhere(sbx, tools):
    r = sbx.run([], ["no-such-tool"])
    assert r.rc == 127 and "was not found in the sandbox's PATH" in r.err, r


def test_link_out_of_the_grant(sbx, tools):
    os.symlink(f"{tools}/.cargo/bin/direct", sbx.work + "/link")
    r = sbx.run([], ["./link"])
    assert r.rc == 127 and f"{tools}/.cargo/bin/direct" in r.err, r


def test_root_in_a_closed_directory(sbx):
    """The directory that is closed is named, with its mode; opened, the twin works there."""
    sbx.own(0)
    os.makedirs(sbx.tmp + "/closed/tree")
    for at in "closed", "closed/tree":
        os.chmod(f"{sbx.tmp}/{at}", 0o700)
    os.chown(sbx.tmp + "/closed/tree", sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    sbx.wrapper = ["env", "-C", sbx.tmp + "/closed/tree"]
    sbx.adds_scratch = False
    r = sbx.run(["--ro-bind", sbx.tmp + "/closed/tree"], ["true"], root=True)
    assert r.rc == 125 and f"in {sbx.tmp}/closed: Permission denied: that directory has mode 0700" in r.err, r
    os.chmod(sbx.tmp + "/closed", 0o701)
    r = sbx.run([], ["touch", "x"], root=True)
    assert r.rc == 0 and os.path.exists(sbx.tmp + "/closed/tree/x"), r


@pytest.mark.parametrize("user", [[], ["--user", USER]])
def test_workspace_of_root(sbx, user):
    """One message with what to do once; done, the run writes there."""
    sbx.own(0)
    sbx.adds_scratch = False
    r = sbx.run(user, ["touch", "x"], root=True)
    ours = [line for line in r.err.splitlines() if line.startswith("sbx-run: ")]
    assert len(ours) == 1 and f"'{sbx.work}' belongs to" in ours[0] and "chown -R" in ours[0], r
    assert not os.path.exists(sbx.work + "/x")
    os.chown(sbx.work, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    r = sbx.run(user, ["touch", "x"], root=True)
    assert r.rc == 0 and r.err == "" and os.path.exists(sbx.work + "/x"), r
