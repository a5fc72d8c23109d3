# SPDX-License-Identifier: LGPL-2.1-or-later
"""The path to a mount inside a writable grant, and the path to a file that configures a run, cannot be changed."""
import os
import subprocess

import pytest

import workspaces
from conftest import USER
from workspaces import space  # noqa: F401

TREE = {"x/y/.git/HEAD": "ref: refs/heads/main\n", "x/y/.git/config": "was\n", "x/y/.git/hooks/": None, "x/y/.git/objects/": None,
        "x/y/.git/refs/": None, "x/y/file": "was\n", "x/z/file": "was\n", "free/y/file": "was\n"}


@pytest.mark.parametrize("inner", ["x/y", "x/y/file"])
@pytest.mark.parametrize("attack", ["mv x x2 && mkdir x && cp -r x2/y x/", "mv x/y x/w", "rename x x2", "rename x free"])
def test_inner_grant(space, inner, attack):
    """A mount inside a writable grant makes nothing less protected: no directory on the way to it can be moved."""
    space.make(TREE)
    before = space.snapshot()
    args = ["--ro-bind", space.path(inner)]
    script = attack.replace("rename", "perl -e 'rename($ARGV[0], $ARGV[1]) or die qq($!\\n)'")
    r = space.run(script + " 2>&1 && echo moved", args)
    assert "moved" not in r.out, r
    assert {n: v for n, v in space.snapshot().items() if not n.startswith("x2")} == before
    twin = space.run("mv free f2 && mkdir free && cp -r f2/y free/ && echo moved", args)
    assert twin.out == "moved\n", twin


@pytest.mark.parametrize("flag", [["--tmpfs", "{}/x/y"], ["--bind", "{}/free:{}/x/y"], ["--bind", "{}/x/y"]])
def test_other_inner_mounts(space, flag):
    space.make(TREE)
    args = [flag[0], flag[1].format(space.dir, space.dir)]
    r = space.run("mv x x2 2>&1 && echo moved", args)
    assert "moved" not in r.out and os.path.exists(space.path("x/y/file")), r


PROFILE = "extends: none\nnetwork: {mode: offline}\n"
EVIL = "extends: full\n"


@pytest.fixture
def mine(sbx):
    """The user's: root reads no configuration that another user can write."""
    return workspaces.Workspace(sbx, "user")


def run_with(space, profile, script, args=()):
    argv = space.sbx.argv(["--profile", profile, *args], ["sh", "-c", script])
    return subprocess.run(argv, env=space.sbx.env(), capture_output=True, text=True, timeout=60, check=False)


REWRITES = ["echo '{evil}' >{p}", "rm -f {p} && echo '{evil}' >{p}", "echo '{evil}' >n && mv -f n {p}", "ln -sf /etc/passwd {p}",
            "chmod 777 {p}; echo '{evil}' >{p}", "truncate -s 0 {p}"]
MOVES = ["mv conf moved && mkdir -p conf/deep && echo '{evil}' >{p}", "mv conf/deep moved && mkdir conf/deep && echo '{evil}' >{p}",
         "rm -rf conf"]


@pytest.mark.parametrize("where,attack", [(w, a) for w in ("agent.yaml", "conf/deep/agent.yaml") for a in REWRITES] +
                         [("conf/deep/agent.yaml", a) for a in MOVES])
def test_a_profile_in_the_workspace(mine, where, attack):
    """The command does not write what the next run obeys."""
    mine.make({where: PROFILE, "other/x": ""})
    r = run_with(mine, "./" + where, attack.format(p=where, evil=EVIL.strip()) + "; true")
    assert r.returncode == 0, r
    with open(mine.path(where)) as f:
        assert f.read() == PROFILE
    r = run_with(mine, "./" + where, f"cat {where} >/dev/null && touch other/y && echo beside >$(dirname {where})/new && echo wrote")
    assert r.stdout == "wrote\n", r
    assert mine.run(attack.format(p=where, evil=EVIL.strip()) + "; true").rc == 0
    assert not os.path.exists(mine.path(where)) or open(mine.path(where)).read() != PROFILE, "the attack itself does not work"


@pytest.mark.parametrize("where,args", [("agent.yaml", ()), ("conf/deep/agent.yaml", ("--user", USER)), ("link.yaml", ())])
def test_root_takes_no_profile_of_a_workspace(sbx, where, args):
    """It is the user's, who can change it whatever a sandbox may: also by a symlink, or from a child of it in /etc."""
    space = workspaces.Workspace(sbx, "root")
    space.make({"agent.yaml": PROFILE, "conf/deep/agent.yaml": PROFILE, "link.yaml": ("conf/deep/agent.yaml",)})
    for profile in ("./" + where, space.path(where)):
        r = sbx.run([*args, "--profile", profile], ["echo", "ran"], root=True)
        assert r.rc == 125 and r.out == "" and r.err.count("\n") == 1 and "who can change" in r.err and where in r.err, r
    os.symlink(space.path(where), os.path.join(sbx.config, "profiles", "agent.yaml"))
    sbx.profile("child", "extends: agent\n")
    r = sbx.run([*args, "--profile", "child"], ["echo", "ran"], root=True)
    assert r.rc == 125 and r.out == "" and "who can change" in r.err, r
    # the same text, root's own
    os.unlink(os.path.join(sbx.config, "profiles", "agent.yaml"))
    sbx.profile("agent", PROFILE)
    assert sbx.run(["--user", USER, "--profile", "child"], ["echo", "ran"], root=True).out == "ran\n"


def test_a_profile_by_a_symlink(mine):
    mine.make({"real/agent.yaml": PROFILE, "agent.yaml": ("link/agent.yaml",), "link": ("real",)})
    before = mine.snapshot()
    for attack in ("rm agent.yaml; echo evil >agent.yaml", "rm link; mkdir link; echo evil >link/agent.yaml", "ln -sfn evil link",
                   "mv real r2", "echo evil >real/agent.yaml"):
        r = run_with(mine, "./agent.yaml", attack)
        assert {n: v for n, v in mine.snapshot().items() if n in before} == before, attack
        assert r.returncode != 125, r


def test_a_profile_with_another_name(mine):
    """A hard link of it can be written; it is refused."""
    conf = os.path.join(mine.sbx.tmp, "conf")
    mine.make({"agent.yaml": PROFILE})
    os.mkdir(conf)
    os.chown(conf, mine.sbx.world.user.pw_uid, -1)
    assert run_with(mine, conf + "/../work/agent.yaml", "true").returncode == 0
    os.link(mine.path("agent.yaml"), conf + "/agent.yaml")
    for profile in (conf + "/agent.yaml", "./agent.yaml"):
        r = run_with(mine, profile, "echo evil >agent.yaml")
        assert r.returncode == 125 and "2 names" in r.stderr and r.stderr.count("\n") == 1, r
    with open(mine.path("agent.yaml")) as f:
        assert f.read() == PROFILE


def test_a_profile_of_the_users_that_leads_to_the_workspace(mine):
    """~/.config/sbx/profiles/agent.yaml is a symlink into a repository of settings; the grant is that repository."""
    mine.make({"dots/agent.yaml": PROFILE})
    os.symlink(mine.path("dots/agent.yaml"), os.path.join(mine.sbx.config, "profiles", "agent.yaml"))
    mine.sbx.profile("child", "extends: agent\n")
    for profile in ("agent", "child"):
        r = run_with(mine, profile, "echo evil >dots/agent.yaml; mv dots d2; true")
        assert r.returncode == 0, r
        with open(mine.path("dots/agent.yaml")) as f:
            assert f.read() == PROFILE


def test_a_profile_that_is_granted_itself(mine):
    mine.make({"sub/agent.yaml": PROFILE})
    profile = mine.path("sub/agent.yaml")
    r = run_with(mine, profile, "echo evil >/tmp/p.yaml", ["--bind", profile + ":/tmp/p.yaml"])
    assert r.returncode == 125 and "configures this run" in r.stderr, r
    assert run_with(mine, profile, "cat /tmp/p.yaml", ["--ro-bind", profile + ":/tmp/p.yaml"]).returncode == 0


def test_a_job_in_the_workspace(mine):
    job = "profile: none\ncommand: [sh, -c, 'echo evil >job.yaml; rm -f job.yaml; echo ran']\n"
    mine.make({"job.yaml": job})
    argv = mine.sbx.argv(["--job", "./job.yaml"], [], root=False)
    r = subprocess.run(argv, env=mine.sbx.env(), capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 0 and r.stdout == "ran\n", r
    with open(mine.path("job.yaml")) as f:
        assert f.read() == job
