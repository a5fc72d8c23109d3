# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agents need the user's identity for commits, the whole repository, and a home that is made and stays."""
import os
import shutil
import subprocess

import pytest

from workspaces import Workspace, space  # noqa: F401

PROFILES = ["default", "notebook", "none", "install", "build", "vite-preview", "ai-bash", "agent", "full"]


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
    """The twin: a profile that hides the identity, and a user without one."""
    make_repository(sbx)
    sbx.profile("hide", "extends: none\nenvironment: {git_identity: hide}\n")
    r = sbx.run(["--profile", "hide"], COMMIT)
    assert "tell me who you are" in r.err and "Ada" not in r.out + r.err, r
    os.truncate(identity, 0)
    r = sbx.run(["--profile", "none"], COMMIT)
    assert "tell me who you are" in r.err, r


def test_other_identities_come_first(sbx, identity):
    """The identities of the repository, the home and the environment come before the passed one, as on the host."""
    make_repository(sbx)
    outside(sbx.world, "git", "config", "user.email", "work@example.org", cwd=sbx.work)
    assert "Ada \"A\" L work@example.org" in sbx.run(["--profile", "none"], COMMIT).out
    home = ["sh", "-c", "git config --global user.name Home && " + COMMIT[2]]
    assert "Home work@example.org" in sbx.run(["--profile", "none"], home).out
    r = sbx.run(["--profile", "none", "--env", "GIT_AUTHOR_NAME=Var"], COMMIT)
    assert "Var work@example.org" in r.out, r


def test_identity_by_way(space, identity):
    """An existing user has an identity, also in root's sandbox. A user made up for the run has none, and commits with
    variables."""
    space.outside("git", "init", "-q")
    r = space.run(COMMIT[2], ["--profile", "none"])
    if space.way != "pool":
        assert r.out == 'Ada "A" L ada@example.org Ada "A" L ada@example.org\n', r
        return
    assert "tell me who you are" in r.err, r
    variables = ["GIT_AUTHOR_NAME=V", "GIT_AUTHOR_EMAIL=v@e", "GIT_COMMITTER_NAME=V", "GIT_COMMITTER_EMAIL=v@e"]
    assert space.run(COMMIT[2], ["--profile", "none"] + [w for v in variables for w in ("--env", v)]).out == "V v@e V v@e\n"


# --- a subdirectory of a repository ---


def in_subdirectory(space, args=(), script="git rev-parse --show-prefix; touch ../../top.new here.new"):
    """As if started in sub/deep."""
    space.sbx.wrapper = ["env", "-C", space.path("sub/deep")]
    return space.run(script, ["--profile", "none", *args])


def make_tree(space):
    space.outside("git", "init", "-q")
    space.make({"sub/deep/": None, "file": "x"})


def test_subdirectory(space):
    """A run in a subdirectory has the whole repository, and a line says so. The twin has no repository around it."""
    space.make({"sub/deep/": None})
    r = in_subdirectory(space)
    assert "not a git repository" in r.err and " is granted" not in r.err and not os.path.exists(space.path("top.new")), r
    make_tree(space)
    r = in_subdirectory(space)
    assert r.out == "sub/deep/\n" and os.path.exists(space.path("top.new")) and os.path.exists(space.path("sub/deep/here.new")), r
    assert f"'{space.dir}' is granted, the git repository" in r.err and r.err.count("\n") == 1, r


def test_worktree(space):
    """A linked worktree needs the repository that it was made from: a line says which, and that flag makes git work."""
    git = ["git", "-C", "repo", "-c", "user.name=t", "-c", "user.email=t@t"]
    space.outside("git", "init", "-q", "repo")
    space.outside(*git, "commit", "-q", "--allow-empty", "-m", "one")
    space.outside(*git, "worktree", "add", "-q", "../tree")
    space.sbx.wrapper = ["env", "-C", space.path("tree")]
    script = "git log --format=%s; git -c user.name=t -c user.email=t@t commit -q --allow-empty -m two"
    r = space.run(script, ["--profile", "none"])
    git_dir = space.path("repo/.git")
    line = f"is a worktree of '{git_dir}', which is not granted (--bind '{git_dir}' grants it)"
    assert r.out == "" and line in r.err and "not a git repository" in r.err, r
    r = space.run(script, ["--profile", "none", "--bind", git_dir])
    assert (r.rc, r.out) == (0, "one\n") and "worktree of" not in r.err, r
    r = space.run("git log --format=%s", ["--profile", "none", "--bind", space.path("repo")])
    assert (r.rc, r.out) == (0, "two\none\n") and "worktree of" not in r.err, r
    assert space.outside(*git, "log", "--format=%s", "tree").stdout == "two\none\n"


@pytest.mark.parametrize("text", ["gitdir: x/.git/worktrees/a\n", "gitdir: /.git/worktrees/a\n", "gitdir: /x\n", "",
                                  "gitdir: /x'; id; '/.git/worktrees/a\n", "\0" * 9000,
                                  "gitdir: /" + "x" * 9000 + "/.git/worktrees/a"])
def test_a_git_file_that_names_no_worktree(space, text):
    space.make({".git": text})
    r = space.run("echo ran", ["--profile", "none"])
    assert (r.rc, r.out) == (0, "ran\n") and "worktree of" not in r.err, r


def test_subdirectory_by_an_explicit_bind(space):
    make_tree(space)
    r = in_subdirectory(space, ["--bind", space.path("sub/deep")])
    assert r.out == "" and "not a git repository" in r.err and " is granted" not in r.err, r
    assert not os.path.exists(space.path("top.new")) and os.path.exists(space.path("sub/deep/here.new"))


def test_subdirectory_by_policy(sbx):
    """Policy allows only the subdirectory: git finds no repository, and a line says why."""
    space = Workspace(sbx, "user")
    make_tree(space)
    sbx.profile("narrow", f"extends: none\nfilesystem: {{allowed_prefixes: [{space.dir}/sub]}}\n")
    r = in_subdirectory(space)
    assert r.out == "sub/deep/\n", r
    os.unlink(space.path("top.new"))
    sbx.wrapper = ["env", "-C", space.path("sub/deep")]
    r = sbx.run(["--profile", "narrow"], ["sh", "-c", "git rev-parse --show-prefix; touch ../../top.new here.new"])
    assert r.out == "" and "git finds no repository here" in r.err and "not a git repository" in r.err, r
    assert "allowed_prefixes" in r.err and not os.path.exists(space.path("top.new")), r


def test_subdirectory_of_somebody_elses(sbx):
    """A .git that others may have made decides nothing; nor a socket or an empty directory of that name."""
    space = Workspace(sbx, "user")
    make_tree(space)
    for at in [".git", "."]:
        os.chown(space.path(at), 4711, 4711)
        os.chmod(space.path(at), 0o777)
        r = in_subdirectory(space)
        assert " is granted" not in r.err and not os.path.exists(space.path("top.new")), (at, r)
    space.give()
    os.chmod(space.dir, 0o755)
    assert in_subdirectory(space).out == "sub/deep/\n"
    os.unlink(space.path("top.new"))
    os.unlink(space.path(".git/HEAD"))
    r = in_subdirectory(space)
    assert " is granted" not in r.err and not os.path.exists(space.path("top.new")), r


def test_submodule(sbx):
    """A submodule's git directory is in the repository around it."""
    space = Workspace(sbx, "user")
    make_tree(space)
    space.make({".git/modules/": None})
    space.outside("git", "init", "-q", "--separate-git-dir", space.path(".git/modules/sub"), "sub")
    assert os.path.isfile(space.path("sub/.git"))
    r = in_subdirectory(space)
    assert r.out == "deep/\n" and f"'{space.dir}' is granted" in r.err, r


def test_subdirectory_with_overlay(sbx):
    space = Workspace(sbx, "user")
    make_tree(space)
    r = in_subdirectory(space, ["--overlay"])
    assert r.out == "sub/deep/\n" and not os.path.exists(space.path("top.new")), r


# --- a home that is made ---

WRITE, READ = ["sh", "-c", "echo left >~/f"], ["sh", "-c", "cat ~/f; stat -c '%a %u' ~; id -u"]


def test_home_is_made(space):
    """--home makes the directory and its parents for its user alone; --dry-run makes nothing. The twin, a file at the
    home's place, is refused."""
    home = space.sbx.world.user.pw_dir + "/.local/share/sbx-homes/agent"
    shutil.rmtree(space.sbx.world.user.pw_dir + "/.local", ignore_errors=True)
    args = ["--profile", "agent"]
    r = space.sbx.run(space.args(args + ["--dry-run"]), ["true"], root=space.root)
    assert r.rc == 0 and not os.path.exists(home), r
    assert space.sbx.run(space.args(args), WRITE, root=space.root).rc == 0
    r = space.sbx.run(space.args(args), READ, root=space.root)
    if space.way == "pool":
        assert "no home that stays: name a user with --user" in r.err and "No such file" in r.err, r
        assert not os.path.exists(home)
        return
    words = r.out.split()
    assert words[:2] == ["left", "700"] and words[2] == words[3] and r.err == "", r
    made = [os.stat(home), os.stat(os.path.dirname(home))]
    assert all(st.st_uid == space.sbx.world.user.pw_uid and st.st_mode & 0o777 == 0o700 for st in made)
    os.rename(home, home + ".old")
    with open(home, "w") as f:
        f.write("x")
    r = space.sbx.run(space.args(args), READ, root=space.root)
    assert r.rc == 125 and "is no directory" in r.err, r
    shutil.rmtree(space.sbx.world.user.pw_dir + "/.local")


def test_home_that_cannot_be_made(sbx):
    os.mkdir(sbx.tmp + "/closed", 0o755)
    for at in sbx.tmp + "/closed/h", "/etc/h":
        r = sbx.run(["--home", at], ["true"])
        assert r.rc == 125 and r.err.startswith("sbx-run: --home: ") and r.err.count("\n") == 1, r


def test_programs_of_the_home(sbx):
    """Programs of the home are found last: none hides one of the system."""
    home = sbx.tmp + "/h"
    make = "mkdir -p ~/.local/bin; for n in mine true; do printf '#!/bin/sh\\necho %s\\n' $n >~/.local/bin/$n; chmod +x ~/.local/bin/$n; done"
    os.chown(sbx.tmp, sbx.world.user.pw_uid, -1)
    assert sbx.run(["--home", home], ["sh", "-c", make]).rc == 0
    assert sbx.run(["--home", home], ["mine"]).out == "mine\n"
    assert sbx.run(["--home", home], ["true"]).out == ""
    assert sbx.run([], ["mine"]).rc == 127


# --- caches ---

PLACES = [".npm", ".cache/pip", ".cargo/registry", ".cargo/git", "go/pkg/mod", ".cache/go-build"]
FILL = "for d in %s; do mkdir -p ~/$d/credentials ~/$d/.git && echo kept >~/$d/f && echo c >~/$d/credentials/c && echo g >~/$d/.git/config; done" \
    % " ".join(PLACES)
COUNT = "cat %s 2>/dev/null | wc -l" % " ".join(f"~/{d}/f ~/{d}/credentials/c ~/{d}/.git/config" for d in PLACES)


def test_cache(sbx):
    """A cache stays for its profile and for no other one, and nothing of it is in the host's own caches. The twin keeps
    nothing."""
    for args, found in [([], 0), (["--cache"], 18), (["--cache", "--overlay"], 18)]:
        first = sbx.run(args, ["sh", "-ec", FILL])
        assert first.rc == 0 and first.err == "", first
        assert sbx.run(args, ["sh", "-c", COUNT]).out == f"{found}\n"
    assert sbx.run([], ["sh", "-c", COUNT]).out == "0\n"
    assert sbx.run(["--cache", "--profile", "none"], ["sh", "-c", COUNT]).out == "0\n"
    assert not os.path.exists(sbx.world.user.pw_dir + "/.npm")
    assert os.stat(sbx.state + "/cache/by-name/default/npm").st_mode & 0o777 == 0o700
    r = sbx.run(["--cache"], ["sh", "-c", "touch ~/.cache/other ~/.cargo/x ~/go/x && ls " + sbx.state])
    assert "Permission denied" not in r.err and "cache" not in r.out, r


# The files that each tool downloads or makes in the first run, and needs without any network in the second.
GO_PROXY = {"proxy/example.org/dep/@v/list": "v1.0.0\n", "proxy/example.org/dep/@v/v1.0.0.info": '{"Version": "v1.0.0"}',
            "proxy/example.org/dep/@v/v1.0.0.mod": "module example.org/dep\n", "dep/dep.go": "package dep\n\nconst Answer = 421421421\n",
            "dep/go.mod": "module example.org/dep\n", "app/go.mod": "module example.org/app\n\nrequire example.org/dep v1.0.0\n",
            "app/main.go": 'package main\n\nimport "example.org/dep"\n\nfunc main() { println(dep.Answer) }\n'}
NPM = {"dep/package.json": '{"name": "sbx-dep", "version": "1.0.0"}', "dep/index.js": "console.log(421421421)\n",
       "app/package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"sbx-dep": "1.0.0"}}'}
PIP = {"dep/setup.py": 'from setuptools import setup\nsetup(name="sbxdep", version="1.0", py_modules=["sbxdep"])\n',
       "dep/sbxdep.py": "print(421421421)\n"}
LOCK = """const fs = require("fs"), c = require("crypto"), hash = c.createHash("sha512").update(fs.readFileSync("sbx-dep-1.0.0.tgz"));
const app = JSON.parse(fs.readFileSync("app/package.json"));
fs.writeFileSync("app/package-lock.json", JSON.stringify({name: "app", version: "1.0.0", lockfileVersion: 3, packages: {"": app,
    "node_modules/sbx-dep": {version: "1.0.0", resolved: "https://registry.test/sbx-dep/-/sbx-dep-1.0.0.tgz",
    integrity: "sha512-" + hash.digest("base64")}}}));"""
CARGO = {"dep/Cargo.toml": '[package]\nname = "dep"\nversion = "1.0.0"\n', "dep/src/lib.rs": "pub const ANSWER: i32 = 421421421;\n",
         "app/Cargo.toml": '[package]\nname = "app"\nversion = "1.0.0"\n[dependencies]\ndep = {git = "DEP"}\n',
         "app/src/main.rs": 'fn main() { println!("{}", dep::ANSWER); }\n'}
TOOLS = {
    "cargo": (CARGO, "", "cd dep; [ -e .git ] || { git init -q .; git add .; git commit -qm x; }; cd ../app; "
              "sed -i s,DEP,file://$PWD/../dep, Cargo.toml; cargo fetch",
              "cd app; cargo run -q --offline"),
    "go": (GO_PROXY, "import zipfile\nwith zipfile.ZipFile('proxy/example.org/dep/@v/v1.0.0.zip', 'w') as z:\n"
           " for n in 'go.mod', 'dep.go': z.write('dep/' + n, 'example.org/dep@v1.0.0/' + n)",
           "cd app; export GOFLAGS=-mod=mod GOSUMDB=off; GOPROXY=file://$PWD/../proxy go build -o x . && ./x",
           "cd app; export GOFLAGS=-mod=mod GOSUMDB=off; GOPROXY=off go build -o x . && ./x"),
    "npm": (NPM, "", f"npm pack --silent ./dep && npm cache add ./sbx-dep-1.0.0.tgz && node -e '{LOCK}'",
            "cd app; rm -rf node_modules; npm ci --offline --no-audit --no-fund >&2 && node node_modules/sbx-dep"),
    "pip": (PIP, "", "cd dep; python3 setup.py -q sdist; cd ..; pip3 wheel --no-index --no-build-isolation --find-links dep/dist -w w1 sbxdep",
            "pip3 install -v --no-index --no-build-isolation --find-links dep/dist -t w2 sbxdep "
            ">log; grep -q 'Using cached sbxdep' log && python3 w2/sbxdep.py"),
}


IDENTITY = [f"--env=GIT_{who}_{what}=x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]


@pytest.mark.parametrize("tool", TOOLS)
def test_cache_of_tools(sbx, tool):
    """The tools find there what they kept; the twin, without --cache, has nothing."""
    files, prepare, first, second = TOOLS[tool]
    program = {"pip": "pip3"}.get(tool, tool)
    assert shutil.which(program, path="/usr/bin:/bin"), f"{program} is not installed: ./bootstrap check installs it"
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"{sbx.work}/{name}"), exist_ok=True)
        with open(f"{sbx.work}/{name}", "w") as f:
            f.write(text)
    subprocess.run(["python3", "-c", prepare], cwd=sbx.work, check=True)
    sbx.own(sbx.world.user.pw_uid)
    for args, kept in ([], False), (["--cache"], True):
        r = sbx.run([*args, *IDENTITY], ["bash", "-ec", first])
        assert r.rc == 0, r
        r = sbx.run([*args, "--air-gap"], ["bash", "-ec", second])
        assert (r.rc == 0, "421421421" in r.out + r.err.split("sbx-run")[0]) == (kept, kept), (args, r)


def test_cache_of_a_file(sbx):
    """The cache of a profile's file belongs to the file's path: a file of the same name elsewhere has another cache."""
    for d in "a", "b":
        os.mkdir(f"{sbx.tmp}/{d}")
        with open(f"{sbx.tmp}/{d}/p.yaml", "w") as f:
            f.write("name: default\nnetwork: {mode: offline}\n")
    sbx.own(sbx.world.user.pw_uid)
    assert sbx.run(["--cache", "--profile", f"{sbx.tmp}/a/p.yaml"], ["sh", "-ec", FILL]).rc == 0
    assert sbx.run(["--cache", "--profile", "../a/p.yaml"], ["sh", "-c", COUNT]).out == "18\n"
    assert sbx.run(["--cache", "--profile", f"{sbx.tmp}/b/p.yaml"], ["sh", "-c", COUNT]).out == "0\n"
    assert sbx.run(["--cache"], ["sh", "-c", COUNT]).out == "0\n"


def test_cache_and_home(sbx):
    """A home that stays has its own place for each; the cache is seen there, and the home's is below."""
    os.chown(sbx.tmp, sbx.world.user.pw_uid, -1)
    home = ["--home", sbx.tmp + "/h"]
    assert sbx.run(home, ["sh", "-c", "mkdir ~/.npm; echo home >~/.npm/f"]).rc == 0
    assert sbx.run(home + ["--cache"], ["sh", "-ec", "test ! -e ~/.npm/f; echo cache >~/.npm/f"]).rc == 0
    assert sbx.run(home, ["sh", "-c", "cat ~/.npm/f"]).out == "home\n"
    assert sbx.run(["--cache"], ["sh", "-c", "cat ~/.npm/f"]).out == "cache\n"


def test_cache_where_another_grant_is(sbx):
    """A cache at the place of another grant is left out, and a line says so. The other caches are there."""
    os.mkdir(sbx.tmp + "/mine")
    sbx.own(sbx.world.user.pw_uid)
    npm = sbx.world.user.pw_dir + "/.npm"
    r = sbx.run(["--cache", "--bind", f"{sbx.tmp}/mine:{npm}"], ["sh", "-ec", "echo x >~/.npm/f; echo x >~/.cache/pip/f"])
    assert r.rc == 0 and r.err.count("\n") == 1 and f"none at '{npm}'" in r.err, r
    assert os.listdir(sbx.tmp + "/mine") == ["f"]
    assert os.listdir(sbx.state + "/cache/by-name/default/pip") == ["f"]


def test_cache_as_root(space):
    """In the user's own state directory; a user made up for the run can have none."""
    state = space.sbx.world.user.pw_dir + "/.local/state/sbx"
    r = space.run(FILL, ["--cache"])
    if space.way == "pool":
        assert r.rc == 125 and "name a user with --user" in r.err and r.err.count("\n") == 1, r
        return
    assert r.rc == 0 and space.run(COUNT, ["--cache"]).out == "18\n", r
    if space.way == "root":
        assert os.stat(state + "/cache/by-name/default/npm/f").st_uid == space.sbx.world.user.pw_uid
        shutil.rmtree(space.sbx.world.user.pw_dir + "/.local")


def test_cache_is_no_grant(sbx):
    """Nothing else of the state directory is granted, also where a symlink of ours leads elsewhere."""
    os.makedirs(sbx.state + "/cache/by-name/default")
    os.symlink(sbx.tmp, sbx.state + "/cache/by-name/default/npm")
    sbx.own(sbx.world.user.pw_uid)
    r = sbx.run(["--cache"], ["true"])
    assert r.rc == 125 and "--cache: " in r.err and r.err.count("\n") == 1, r
    os.unlink(sbx.state + "/cache/by-name/default/npm")
    assert sbx.run(["--cache"], ["true"]).rc == 0
    assert sbx.run(["--bind", sbx.state + "/cache/by-name/default/npm"], ["true"]).rc == 125
