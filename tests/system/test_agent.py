# SPDX-License-Identifier: LGPL-2.1-or-later
"""What agents need: the user's identity for commits, the whole repository, a home that is made and stays."""
import os
import subprocess

import pytest

from workspaces import space  # noqa: F401

PROFILES = ["default", "notebook", "none", "install", "build", "vite-preview", "ai-bash", "full"]


def outside(world, *argv, cwd, check=True):
    return subprocess.run([*world.ns(world.user.pw_name), "env", "-C", cwd, *argv], capture_output=True, text=True, timeout=30,
                          check=check, env={"PATH": "/usr/bin:/bin", "HOME": world.user.pw_dir})


def make_repository(sbx, at=None):
    top = at or sbx.work
    os.makedirs(top, exist_ok=True)
    sbx.own(sbx.world.user.pw_uid)
    outside(sbx.world, "git", "init", "-q", "-b", "main", cwd=top)
    return top


@pytest.fixture
def identity(sbx):
    path = os.path.join(sbx.world.user.pw_dir, ".gitconfig")
    with open(path, "w") as f:
        f.write('[user]\n\tname = "Ada \\"A\\" L"\n\temail = ada@example.org\n[http]\n\textraHeader = token\n')
    os.chown(path, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    yield path
    os.unlink(path)


# --- git's identity ---

COMMIT = ["sh", "-c", "git commit -q --allow-empty -m x && git log -1 --format='%an %ae %cn %ce'; git config http.extraHeader; true"]


@pytest.mark.parametrize("profile", PROFILES)
def test_commit(sbx, identity, profile):
    make_repository(sbx)
    r = sbx.run(["--profile", profile], COMMIT)
    assert r.out == 'Ada "A" L ada@example.org Ada "A" L ada@example.org\n', r


def test_no_identity(sbx, identity):
    """The twin: a profile that hides it, and a user without one."""
    make_repository(sbx)
    sbx.profile("hide", "extends: none\nenvironment: {git_identity: hide}\n")
    r = sbx.run(["--profile", "hide"], COMMIT)
    assert "tell me who you are" in r.err and "Ada" not in r.out + r.err, r
    os.truncate(identity, 0)
    r = sbx.run(["--profile", "none"], COMMIT)
    assert "tell me who you are" in r.err, r


def test_other_identities_come_first(sbx, identity):
    """The repository's own, the home's, variables: stronger than what is passed, as on the host."""
    make_repository(sbx)
    outside(sbx.world, "git", "config", "user.email", "work@example.org", cwd=sbx.work)
    assert "Ada \"A\" L work@example.org" in sbx.run(["--profile", "none"], COMMIT).out
    home = ["sh", "-c", "git config --global user.name Home && " + COMMIT[2]]
    assert "Home work@example.org" in sbx.run(["--profile", "none"], home).out
    r = sbx.run(["--profile", "none", "--env", "GIT_AUTHOR_NAME=Var"], COMMIT)
    assert "Var work@example.org" in r.out, r


def test_identity_by_way(space, identity):
    """A user that exists has it, as root's sandbox too; one made up for the run has none, and commits with variables."""
    space.outside("git", "init", "-q")
    r = space.run(COMMIT[2], ["--profile", "none"])
    if space.way != "pool":
        assert r.out == 'Ada "A" L ada@example.org Ada "A" L ada@example.org\n', r
        return
    assert "tell me who you are" in r.err, r
    variables = ["GIT_AUTHOR_NAME=V", "GIT_AUTHOR_EMAIL=v@e", "GIT_COMMITTER_NAME=V", "GIT_COMMITTER_EMAIL=v@e"]
    assert space.run(COMMIT[2], ["--profile", "none"] + [w for v in variables for w in ("--env", v)]).out == "V v@e V v@e\n"
