# SPDX-License-Identifier: LGPL-2.1-or-later
"""Git directories in all places where git has them: the configuration and hooks that the host's git obeys stay what they
were, whatever the names of modules are, and over several runs in one workspace."""
import os
import subprocess

import pytest

from conftest import USER
from test_protect import config, repository, unprotect
from workspaces import space  # noqa: F401

MARK = "/var/tmp/sbx-protect-git-mark-" + USER
ME = ["-c", "user.name=x", "-c", "user.email=x@x"]
HOOK = f"rm -f {{0}}; printf '#!/bin/sh\\necho x >{MARK}\\n' >{{0}}; chmod 755 {{0}}"
GIT_PATHS = [".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", "HEAD"]


@pytest.fixture(autouse=True)
def mark():
    subprocess.run(["rm", "-f", MARK], check=True)
    yield
    subprocess.run(["rm", "-f", MARK], check=True)


def submodule(space, name, at=None):
    """A repository at the top with a submodule called @name."""
    repository(space, "source")
    repository(space)
    space.outside("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", "--name", name, "./source", at or name)
    space.outside("rm", "-rf", "source")


def host_uses_git(space, *more):
    for argv in (["git", "status"], *more):
        space.outside(*argv, check=False)
    hit = os.path.exists(MARK)
    subprocess.run(["rm", "-f", MARK], check=True)
    return hit


def attacked(space, runs, *use):
    """Each of @runs in a sandbox of its own, one after the other; then the host uses git. Did it run what they left?"""
    for script in runs:
        space.run(script)
    return host_uses_git(space, *use)


def holds(space, runs, *use):
    """The attack gets nowhere; with the protection taken away it succeeds."""
    assert not attacked(space, runs, *use), "it got through"
    unprotect(space, GIT_PATHS)
    assert attacked(space, runs, *use), "the attack itself does not work"


NAMES = ["lib", "third_party/x/y/z/lib", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/lib", "refs/heads/lib", "objects/ab/lib", "hooks/logs/lib",
         "modules/worktrees/lib"]


@pytest.mark.parametrize("name", NAMES)
def test_a_modules_name(space, name):
    submodule(space, name)
    holds(space, [f"git config -f .git/modules/{name}/config core.fsmonitor 'touch {MARK}; false'"])


@pytest.mark.parametrize("name", NAMES)
def test_a_module_that_is_checked_out_later(space, name):
    """No gitfile leads to it, and `git submodule update` makes one for the directory that is there."""
    submodule(space, name)
    space.outside("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "module")
    space.outside("git", "submodule", "deinit", "-q", "-f", name)
    holds(space, [f"git config -f .git/modules/{name}/config core.fsmonitor 'touch {MARK}; false'"],
          ["git", "submodule", "update", "-q", "--init"], ["git", "-C", name, "status"])


@pytest.mark.parametrize("name", ["third_party/x/lib", "x/refs/lib", "x/worktrees/y/lib", "x/modules/y/lib"])
def test_a_module_below_what_looks_like_one(space, name):
    """Files that one run makes in the directory above do not hide a submodule's git directory from the next run."""
    submodule(space, name)
    top = name.split("/", maxsplit=1)[0]
    plant = f"cd .git/modules/{top}; echo 'ref: refs/heads/main' >HEAD; mkdir objects refs; touch config"
    holds(space, [plant, f"git config -f .git/modules/{name}/config core.fsmonitor 'touch {MARK}; false'"])


SWITCHED_OFF = {
    "module": ("d=.git/modules/lib; mv $d/HEAD $d/x", "d=.git/modules/lib; printf '{config}' >$d/config; mv $d/x $d/HEAD"),
    "module, all that can be moved": (
        "cd .git/modules/lib; mkdir x; for f in HEAD objects refs config hooks index packed-refs logs info; do mv $f x; done",
        "cd .git/modules/lib; printf '{config}' >x/config; printf '{config}' >config; for f in x/*; do mv $f .; done"),
    "worktree": ("d=.git/worktrees/wt; mv $d/HEAD $d/x",
                 "d=.git/worktrees/wt; cp -r .git evil; rm -rf evil/worktrees; printf '{config}' >evil/config; "
                 "echo $PWD/evil >$d/commondir; mv $d/x $d/HEAD"),
    "bare": ("mv x.git/HEAD x.git/x", "printf '{config}' >x.git/config; mv x.git/x x.git/HEAD"),
    "bare, all that can be moved": ("cd x.git; mkdir x; mv HEAD objects refs config hooks x",
                                    "cd x.git; printf '{config}' >x/config; printf '{config}' >config; mv x/* ."),
    "bare, objects elsewhere": (
        "mv x.git/HEAD x.git/x; rm x.git/objects",
        "printf '{config}' >x.git/config; mv x.git/x x.git/HEAD; rm -f x.git/objects; ln -s ../objects x.git/objects"),
    "the bare directory": ("mv x.git y", "printf '{config}' >y/config; mv y x.git"),
}


@pytest.mark.parametrize("attack", SWITCHED_OFF)
def test_two_runs(space, attack):
    """Nothing that one run does keeps the next one from knowing the git directory."""
    use = []
    if attack.startswith("module"):
        submodule(space, "lib")
    elif attack == "worktree":
        repository(space)
        space.outside("git", "worktree", "add", "-q", "wt")
        use = [["git", "-C", "wt", "status"]]
    else:
        space.outside("git", "init", "-q", "--bare", "x.git")
        use = [["git", "-C", "x.git", "config", "-l"], ["git", "-C", "x.git", "--no-pager", "log"],
               ["git", "-C", "x.git", "-p", "config", "-l"]]
        space.outside("git", "-C", "x.git", "config", "core.bare", "false")
        space.outside("git", "-C", "x.git", "config", "core.worktree", "..")
        use.append(["git", "-C", "x.git", "status"])
        if attack == "bare, objects elsewhere":
            space.outside("sh", "-c", "mv x.git/objects .; ln -s ../objects x.git/objects")
    bare = "\\tbare = false\\n\\tworktree = ..\\n"
    holds(space, [s.format(config=config(MARK) + (bare if "x.git" in "".join(SWITCHED_OFF[attack]) else ""))
                  for s in SWITCHED_OFF[attack]], *use)


def test_separate_git_dir_among_packages(space):
    """node_modules is not searched, and a gitfile that leads there is followed all the same."""
    space.make({"node_modules/p/x": ""})
    space.outside("git", "init", "-q", "--separate-git-dir", "node_modules/real", ".")
    holds(space, [f"printf '{config(MARK)}' >>node_modules/real/config"])


LEASE = """import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open("a/.git", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("up", flush=True)
sys.stdin.read()
"""


def test_a_lease_on_a_gitfile(space):
    """A sandbox keeps the next one from reading where the git directory is: that one does not start without it."""
    space.make({"node_modules/p/x": "", "a/x": ""})
    space.outside("git", "init", "-q", "--separate-git-dir", "node_modules/real", "a")
    first = space.sbx.popen(space.args(), ["python3", "-c", LEASE], root=space.root, stdin=subprocess.PIPE)
    assert first.stdout.readline() == "up\n", first.communicate()
    attack = f"printf '{config(MARK)}' >>node_modules/real/config; echo ran"
    r = space.run(attack)
    assert r.rc == 125 and "lease" in r.err and r.err.count("\n") == 1, r
    first.communicate(timeout=60)
    assert space.run(attack).out == "ran\n" and not host_uses_git(space, ["git", "-C", "a", "status"])


def test_a_way_by_a_symlink(space):
    """A gitfile names its git directory by way of a symlink in the workspace."""
    space.outside("git", "init", "-q", "--separate-git-dir", "real", ".")
    space.make({"link": (".",), ".git": "gitdir: link/real\n"})
    holds(space, [f"mkdir evil; cp -r real evil; printf '{config(MARK)}' >>evil/real/config; rm link; ln -s evil link"])


@pytest.mark.parametrize("flag", [["--ro-bind", "{}/lib"], ["--tmpfs", "{}/lib"], ["--ro-bind", "{}/lib:/srv/lib"]])
@pytest.mark.parametrize("kind", ["gitfile", "commondir"])
def test_a_gitfile_that_is_out_of_reach(space, flag, kind):
    """A gitfile or commondir on another mount, which the command cannot write: the git directory that it names is
    protected."""
    space.make({"node_modules/p/x": ""})
    repository(space)
    space.outside("git", "init", "-q", "--separate-git-dir", "node_modules/real", "lib")
    if kind == "commondir":
        space.outside("sh", "-c", "rm lib/.git; mkdir lib/.git; cp node_modules/real/HEAD lib/.git; "
                      "echo ../../node_modules/real >lib/.git/commondir")
    args = [flag[0], flag[1].format(space.dir)]
    attack = f"printf '{config(MARK)}' >>node_modules/real/config"
    space.run(attack, args)
    assert not host_uses_git(space, ["git", "-C", "lib", "status"]), "it got through"
    unprotect(space, GIT_PATHS)
    space.run(attack, args)
    assert host_uses_git(space, ["git", "-C", "lib", "status"]), "the attack itself does not work"


@pytest.mark.parametrize("gone", ["gone/../node_modules/real", "gone/../gone/../node_modules/real", "file/../node_modules/real"])
def test_a_way_that_leads_nowhere(space, gone):
    """The gitfile names a path with a missing directory, and the command cannot make that directory."""
    space.make({"node_modules/p/x": "", "file": ""})
    space.outside("git", "init", "-q", "--separate-git-dir", "node_modules/real", ".")
    space.make({".git": f"gitdir: {gone}\n"})
    holds(space, [f"rm -f file; mkdir -p gone file; printf '{config(MARK)}' >>node_modules/real/config"])


SYMLINKS = {
    "git directory": (".git", "node_modules/real", f"printf '{config(MARK)}' >>node_modules/real/config"),
    "deep git directory": (".git", "a/b/c/d/real", f"printf '{config(MARK)}' >>a/b/c/d/real/config"),
    "configuration": (".git/config", "shared/config", f"printf '{config(MARK)}' >>shared/config"),
    "hooks": (".git/hooks", "tools/hooks", HOOK.format("tools/hooks/pre-commit")),
    "hook": (".git/hooks/pre-commit", "tools/check", HOOK.format("tools/check")),
    "moved": (".git/hooks/pre-commit", "tools/check", "mv tools was; mkdir tools; " + HOOK.format("tools/check")),
}


@pytest.mark.parametrize("name", SYMLINKS)
def test_what_is_a_symlink_into_the_workspace(space, name):
    """git's files are symlinks into the workspace: the files they lead to are protected."""
    link, target, attack = SYMLINKS[name]
    repository(space)
    if name in ("hook", "moved"):
        space.make({link: "#!/bin/sh\n"})
        os.chmod(space.path(link), 0o755)
    os.makedirs(os.path.dirname(space.path(target)))
    os.rename(space.path(link), space.path(target))
    os.symlink(os.path.relpath(target, os.path.dirname(link)), space.path(link))
    space.give()
    holds(space, [attack], ["git", *ME, "commit", "-q", "--allow-empty", "-m", "x"])


def test_a_link_that_stays_writable(space):
    """A symlink that leads to nothing protected, out of the workspace or nowhere holds nothing."""
    repository(space)
    space.make({"d/file": "", "d/link": ("file",), ".git/hooks/a": ("nowhere",), ".git/hooks/b": ("/etc/passwd",)})
    r = space.run("echo x >d/link && mv d e && mv e d && git status -s >/dev/null && echo works")
    assert (r.out, r.rc) == ("works\n", 0), r


@pytest.mark.parametrize("itself", [".", "./", "../.git"])
def test_a_git_directory_that_says_it_is_its_own_common_one(space, itself):
    repository(space)
    space.make({".git/commondir": itself + "\n"})
    holds(space, [f"printf '{config(MARK)}' >>.git/config"])


def test_a_repository_by_its_commondir_alone(space):
    """No HEAD, which a later run could put there, and a commondir that leads to what git obeys."""
    repository(space, "other")
    space.outside("sh", "-c", "cp other/.git/HEAD other/.git/index top_head 2>/dev/null; mkdir top; echo ../other/.git >top/commondir; true")
    assert space.run("echo x >>top/commondir").rc != 0  # held, and not only found when the command has ended
    holds(space, [f"mkdir evil; cp -r other/.git/. evil; printf '{config(MARK)}' >>evil/config; echo ../evil >top/commondir; "
                  "cp other/.git/HEAD top/HEAD"],
          ["git", "--git-dir=top", "--work-tree=.", "status"])


def test_more_modules_than_are_looked_at(space):
    """Read-only as a whole, and a line says so; fewer of them can be written."""
    submodule(space, "lib")
    attack = "touch .git/modules/lib/objects/x && echo wrote"
    assert space.run(attack).out == "wrote\n"
    subprocess.run(["sh", "-c", f"cd {space.dir}/.git/modules && seq -f %05.0f 1 21000 | xargs mkdir"], check=True)
    subprocess.run(["chown", "-R", USER + ":", space.dir], check=True)
    r = space.run(attack)
    assert r.out == "" and "'" + space.dir + "/.git/modules' is read-only" in r.err and r.rc != 125, r
    r = space.run(f"git config -f .git/modules/lib/config core.fsmonitor 'touch {MARK}; false'")
    assert r.rc != 0 and not host_uses_git(space)


def test_git_works_in_a_module(space):
    submodule(space, "third_party/x/lib")
    r = space.run("export HOME=/tmp; git config --global user.name t; git config --global user.email t@t; cd lib; echo 1 >f; "
                  "git add f && git commit -qm two && git checkout -q -b next && git gc -q && git status --porcelain && "
                  "git log --oneline | wc -l")
    assert (r.out, r.rc) == ("2\n", 0), r


@pytest.mark.parametrize("name", ["worktrees", "modules"])
def test_a_directory_of_git_directories_that_is_a_symlink(space, name):
    repository(space)
    space.make({"there/x/file": "", "other/x": ""})
    space.outside("ln", "-s", "../there", f".git/{name}")
    r = space.run(f"rm -f .git/{name}; echo x >there/x/file; echo x >other/x; cat other/x; cat there/x/file")
    assert (r.out, os.readlink(space.path(f".git/{name}"))) == ("x\n", "../there"), r
