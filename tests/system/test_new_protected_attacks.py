# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks on filesystem.new_protected: check: files that git reads in another way than the check, special files, floods, and
files that the check must leave alone. The host's git is the judge: it must not run a planted program."""
import os
import subprocess

import pytest

import workspaces
from test_lifecycle import wait_until
from test_new_protected import ASIDE, EVIL, HOOK, ID, MARK, SEEN, TREE, aside, hit, keeping, mark, meanwhile  # noqa: F401
from workspaces import space  # noqa: F401

NEWLINE = "N='\n'; "
DEEP = "a/b/c/d/e/f/g"
DEEPER = "/".join("abcdefghijklmnopqrst")
GITLINK = ("git init -q .; git init -q {0}; echo 1 >{0}/f; git -C {0} add f; "
           "git -C {0} -c user.name=t -c user.email=t@t commit -qm x; git add {0} 2>/dev/null; " + EVIL + " >>{0}/.git/config")

BARE_EVIL = f"{SEEN} config; {{ {EVIL}; {TREE}; }} >>config"

# {name: (what the command does, where git is used on the host; None: nothing happens there even unchecked)}
PLANTS = {
    "NUL in commondir": (NEWLINE + f"git init -q .; git init -q good; git init -q evil; {EVIL} >>evil/.git/config; mv evil/.git \"g$N\"; "
                         "mv good/.git g; printf '../g\\n\\0x' >.git/commondir", []),
    "NUL in a gitfile": (NEWLINE + f"git init -q good; git init -q evil; {EVIL} >>evil/.git/config; mv evil/.git \"g$N\"; mv good/.git g; "
                         "printf 'gitdir: g\\n\\0x' >.git", []),
    "gitfile with many lines": (f"git init -q {DEEP}; {EVIL} >>{DEEP}/.git/config; {{ echo 'gitdir: {DEEP}/.git'; yes '' | head -5000; }} "
                                ">.git", []),
    "key before a section": (f"git init -q .; {{ echo x; {EVIL}; cat .git/config; }} >c; mv c .git/config", []),
    "section without a name": (f"git init -q .; {{ printf '[ \"x\"]\\n'; {EVIL}; cat .git/config; }} >c; mv c .git/config", []),
    "NUL in a value": (f"git init -q .; {{ printf '[user]\\nname = a\\0b\\n'; {EVIL}; cat .git/config; }} >c; mv c .git/config", []),
    "NUL in a section": (f"git init -q .; {{ printf '[remote \"\\0\"]\\nfetch = b\\n'; {EVIL}; cat .git/config; }} >c; mv c .git/config", []),
    "backslash at the end": (f"git init -q .; printf '[core]\\nfsmonitor = touch {MARK}; false;\\\\' >>.git/config", None),
    "huge": (f"git init -q .; {EVIL} >>.git/config; yes '# xxxxxxxxxxxxxxxx' | head -c 3000000 >>.git/config", []),
    "nested bare": (f"git init -q --bare a.git; git init -q --bare a.git/b.git; cd a.git/b.git; {SEEN} config; {{ {EVIL}; {TREE}; }} >>config",
                    [["git", "-C", "a.git/b.git", "status"]]),
    "aside is a directory": (f"git init -q .; mkdir .git/config{ASIDE}; {EVIL} >>.git/config", []),
    "gitfile to what is called aside": (f"git init -q x; {EVIL} >>x/.git/config; mv x/.git .git{ASIDE}; echo 'gitdir: .git{ASIDE}' >.git", []),
    "module that is called aside": (f"git init -q .; mkdir .git/modules; git init -q x; {EVIL} >>x/.git/config; "
                                    f"mv x/.git .git/modules/x{ASIDE}; mkdir y; echo 'gitdir: ../.git/modules/x{ASIDE}' >y/.git",
                                    [["git", "-C", "y", "status"]]),
    "module called aside, not checked out": (
        f"git init -q .; git init -q --bare .git/modules/x{ASIDE}; cd .git/modules/x{ASIDE}; {BARE_EVIL}",
        [["git", "-C", f".git/modules/x{ASIDE}", "status"]]),
    "module in a module": (f"git init -q .; git init -q --bare .git/modules/x; git init -q --bare .git/modules/x/z; cd .git/modules/x; {BARE_EVIL.replace('config', 'z/config')}; "
                           "rm -r z/refs z/objects; ln -s ../refs ../objects z; mv z y",
                           [["git", "-C", ".git/modules/x/y", "status"]]),
    "module in a module, by commondir": (
        f"git init -q .; git init -q --bare .git/modules/x; git init -q --bare .git/z; mkdir .git/modules/x/y; cd .git/z; {BARE_EVIL}; "
        "cp HEAD ../modules/x/y; echo ../../../z >../modules/x/y/commondir",
        [["git", "--git-dir=.git/modules/x/y", "--work-tree=.", "status"]]),
    "filter": (f"git init -q .; git config filter.x.clean 'touch {MARK}'; echo '* filter=x' >.gitattributes; echo a >a",
               [["git", "add", "a"]]),
    "many hooks": ("git init -q .; git config core.hooksPath .git/hooks; cd .git/hooks; for i in $(seq 1200); do echo >$i.sample; done; "
                   f"{HOOK} >pre-commit; chmod +x pre-commit", []),
    "module in a module, by a symlink": (
        f"git init -q .; git init -q --bare .git/modules/x; git init -q --bare .git/z; cd .git/z; {BARE_EVIL}; ln -s ../../z ../modules/x/y",
        [["git", "-C", ".git/modules/x/y", "status"], ["git", "-C", f".git/modules/x/y{ASIDE}", "status"]]),
}
# Found when the sandbox has ended: they are where nothing is watched.
LATE = {
    "deep": (f"git init -q {DEEP}; {EVIL} >>{DEEP}/.git/config", [["git", "-C", DEEP, "status"]]),
    "deeper": (f"git init -q {DEEPER}; {EVIL} >>{DEEPER}/.git/config", [["git", "-C", DEEPER, "status"]]),
    "deep and closed": (f"git init -q {DEEP}; {EVIL} >>{DEEP}/.git/config; chmod 0311 a/b/c/d/e", [["git", "-C", DEEP, "status"]]),
    "not to be entered": (f"git init -q a; {EVIL} >>a/.git/config; chmod 0600 a", [["chmod", "755", "a"], ["git", "-C", "a", "status"]]),
    "deep and not to be entered": (f"git init -q {DEEP}; {EVIL} >>{DEEP}/.git/config; chmod 0600 {DEEP} a/b/c/d",
                                   [["chmod", "755", "a/b/c/d"], ["chmod", "755", DEEP], ["git", "-C", DEEP, "status"]]),
    "git directory not to be entered": (f"git init -q .; {EVIL} >>.git/config; chmod 0600 .git", [["chmod", "755", ".git"], ["git", "status"]]),
    "worktree not to be entered": (
        f"git init -q .; mkdir -p .git/worktrees/w wt; git init -q evil; {EVIL} >>evil/.git/config; mv evil/.git .git/evil; cd .git/worktrees/w; "
        "cp ../../HEAD .; echo ../../evil >commondir; cd ../../../wt; echo $PWD/.git >../.git/worktrees/w/gitdir; "
        "echo gitdir: $PWD/../.git/worktrees/w >.git; chmod 0600 ../.git/worktrees/w",
        [["chmod", "755", ".git/worktrees/w"], ["git", "-C", "wt", "status"]]),
    "deep hook": (f"git init -q {DEEP}; cd {DEEP}/.git/hooks; {HOOK} >pre-commit; chmod +x pre-commit",
                  [["git", "-C", DEEP, "commit", "-q", "--allow-empty", "-m", "x"]]),
    "deep bare": (f"git init -q --bare {DEEP}; cd {DEEP}; {SEEN} config; {{ {EVIL}; {TREE}; }} >>config", [["git", "-C", DEEP, "status"]]),
    "deep submodule": (GITLINK.format(DEEP), []),
    "in node_modules": (GITLINK.format("node_modules/e"), []),
}


@pytest.mark.parametrize("plant", {**PLANTS, **LATE})
def test_plants(space, plant):
    script, use = {**PLANTS, **LATE}[plant]
    r = space.run(script + "; true")
    assert r.rc == 0 and not hit(space, *use or []), r
    assert any(n.endswith(ASIDE) for n in aside(space)), r
    subprocess.run(["sh", "-c", "find . -mindepth 1 -delete"], cwd=space.dir, check=True)
    r = space.run(script, keeping(space))
    assert r.rc == 0 and (use is None or hit(space, *use)), "the attack itself does not work"


@pytest.mark.parametrize("plant", PLANTS)
def test_plants_while_it_runs(space, plant):
    script, use = PLANTS[plant]
    p = meanwhile(space, script)
    called_so = ("aside is a directory", "gitfile to what is called aside", "module that is called aside", "module called aside, not checked out")
    known = 2 if plant in called_so else 1
    assert wait_until(lambda: sum(ASIDE in n.rpartition("/")[2] for n in space.snapshot()) >= known, 5), aside(space)
    assert not hit(space, *use or []), "it got through"
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0, err


# A file that was there before the sandbox, innocent under its name, and the command that puts it where git reads it unchanged.
CONFIG = f"{{ printf '[core]\\n\\trepositoryformatversion = 0\\n'; {EVIL}; }} >"
HEAD = "echo ref: refs/heads/m >"
PLACED = {
    "git directory": (f"mkdir -p {DEEP}/x; {CONFIG}{DEEP}/x/config", f"cd {DEEP}; mv x .git; cd .git; mkdir objects refs; {HEAD}HEAD",
                      [["git", "-C", DEEP, "status"]]),
    "in node_modules": (f"mkdir -p node_modules/x; {CONFIG}node_modules/x/config",
                        f"cd node_modules; mv x .git; cd .git; mkdir objects refs; {HEAD}HEAD", [["git", "-C", "node_modules", "status"]]),
    "whole git directory": (f"git init -q {DEEP}; cd {DEEP}; mv .git x; rm x/HEAD; {EVIL} >>x/config", f"cd {DEEP}; {HEAD}x/HEAD; mv x .git",
                            [["git", "-C", DEEP, "status"]]),
    "hooks": (f"git init -q {DEEP}; cd {DEEP}; mkdir h; {HOOK} >h/pre-commit; chmod +x h/pre-commit",
              f"cd {DEEP}; rm -r .git/hooks; mv h .git/hooks", [["git", "-C", DEEP, "commit", "-q", "--allow-empty", "-m", "x"]]),
    "commondir": (f"git init -q {DEEP}; cd {DEEP}; cp -r .git x; rm x/HEAD; {EVIL} >>x/config", f"echo ../x >{DEEP}/.git/commondir",
                  [["git", "-C", DEEP, "status"]]),
    "gitfile": (f"git init -q {DEEP}; cd {DEEP}; mv .git x; rm x/HEAD; {EVIL} >>x/config", f"cd {DEEP}; {HEAD}x/HEAD; echo gitdir: x >.git",
                [["git", "-C", DEEP, "status"]]),
    "bare": (f"git init -q --bare {DEEP}; cd {DEEP}; rm HEAD; {BARE_EVIL}", f"{HEAD}{DEEP}/HEAD", [["git", "-C", DEEP, "status"]]),
    "module": (f"git init -q {DEEP}; cd {DEEP}; git init -q --bare m; cd m; rm HEAD; {BARE_EVIL}",
               f"cd {DEEP}; mkdir .git/modules s; mv m .git/modules/m; {HEAD}.git/modules/m/HEAD; echo gitdir: ../.git/modules/m >s/.git",
               [["git", "-C", DEEP + "/s", "status"]]),
}


@pytest.mark.parametrize("place", PLACED)
def test_old_files_in_new_places(sbx, place):
    """Files that are older than the sandbox are the user's only where they were."""
    space = workspaces.Workspace(sbx, "user")  # noqa: F811
    before, script, use = PLACED[place]
    space.give()
    r = space.run(before)
    assert r.rc == 0 and aside(space) == [] and not hit(space, *use), r
    wait_until(lambda: False, 2.5)  # st_ctime cannot be set
    r = space.run(script)
    assert r.rc == 0 and not hit(space, *use) and aside(space), r
    assert "sbx-run: notice: " in r.err, r
    subprocess.run(["sh", "-c", "find . -mindepth 1 -delete"], cwd=space.dir, check=True)
    r = space.run(f"{before}; cd {space.dir}; {script}", keeping(space))
    assert r.rc == 0 and hit(space, *use), "the attack itself does not work"


WORKTREES = {
    "hooks": (".git/hooks", "mkdir -p d/.git"),
    "hooks of a bare repository": ("b.git/hooks", "git init -q --bare a/b.git"),
    "hooks to be": (".git/new/hooks", "true"),
}


@pytest.mark.parametrize("tree", WORKTREES)
def test_a_worktree_in_a_git_directory(space, tree):
    """A repository whose worktree is a directory of hooks: git would execute the files that it checks out there."""
    where, first = WORKTREES[tree]
    r = space.run(f"{first}; git init -q a; cd a; {HOOK} >post-checkout; chmod +x post-checkout; git add .; {ID} git commit -qm x; "
                  f"git config core.worktree $PWD/{where}")
    assert r.rc == 0 and aside(space) == ["a/.git/config" + ASIDE], r
    subprocess.run(["sh", "-c", "find . -mindepth 1 -delete"], cwd=space.dir, check=True)


ODD = {
    "FIFO": ("git init -q .; rm .git/config; mkfifo .git/config", [".git/config"]),
    "directory": ("git init -q .; rm .git/config; mkdir .git/config", [".git/config"]),
    "link": ("git init -q .; mv .git/config c; ln -s ../c .git/config", [".git/config"]),
    "loop": ("echo 'gitdir: b/.git' >.git; mkdir b; echo 'gitdir: ../.git' >b/.git", [".git", "b/.git"]),
    "itself": ("echo 'gitdir: .git' >.git", [".git"]),
    "commondir is a directory": ("git init -q .; mkdir .git/commondir", [".git/commondir"]),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files(space, odd):
    script, moved = ODD[odd]
    r = space.run(script)
    assert r.rc == 0 and set(aside(space)) == {n + ASIDE for n in moved}, (r, aside(space))


def test_other_case(space):
    """.GIT is not .git on a file system with case, but it is a repository by itself."""
    r = space.run(f"git init -q x; mv x/.git .GIT; {EVIL} >>.GIT/config; {HOOK} >.GIT/hooks/pre-commit; chmod +x .GIT/hooks/pre-commit; true")
    assert r.rc == 0 and not hit(space), r


@pytest.mark.parametrize("where", ["modules", "modules/a/b", "modules/x"])
def test_symlinks_in_modules(space, where):
    """Any name there is a submodule's, also the one of what was moved aside: so that is moved elsewhere."""
    r = space.run(f"git init -q .; mkdir -p .git/{where}; git init -q --bare .git/modules/x; git init -q --bare .git/z; "
                  f"mkdir .git/m{ASIDE}; chmod 0500 .git; ln -s $PWD/.git/z .git/{where}/m")
    assert r.rc == 0 and f"'{space.dir}/.git/m{ASIDE}.2'" in r.err, r
    assert [n for n in space.snapshot() if os.path.islink(space.path(n))] == [f".git/m{ASIDE}.2"]
    assert os.stat(space.path(".git")).st_mode & 0o777 == 0o500


# --- what must stay as it is ---

def test_a_path_that_is_too_long(sbx):
    """It is said, and what comes after it is searched."""
    space = workspaces.Workspace(sbx, "user")
    long = "for i in $(seq 25); do mkdir {0}; cd -P {0}; done".format("n" * 200)
    r = space.run(f"git init -q {DEEP}; {EVIL} >>{DEEP}/.git/config; mkdir 0 z; (cd 0; {long}); cd z; {long}")
    subprocess.run(["rm", "-rf", space.path("0"), space.path("z")], check=True)
    assert r.rc == 0 and "File name too long" in r.err and aside(space) == [f"{DEEP}/.git/config{ASIDE}"], r


def test_read_only_directories_are_left_alone(space):
    """A gitfile that leads to a read-only directory is moved aside. The files of that directory stay."""
    space.make({"ro/x": "1"})
    space.outside("git", "init", "-q", "ro")
    space.outside("git", "-C", "ro", "config", "core.pager", "less")
    before = space.snapshot()
    r = space.run("echo 'gitdir: ro/.git' >.git; git init -q y; echo ../../ro/.git >y/.git/commondir", ["--ro-bind", space.path("ro")])
    after = space.snapshot()
    assert r.rc == 0 and {k: v for k, v in after.items() if k in before} == before, r
    assert aside(space) == [".git" + ASIDE, "y/.git/commondir" + ASIDE], r


def test_deep_repositories_of_the_user(space):
    """They are not held; what did not change is the user's."""
    for name in (DEEP, "node_modules/e"):
        space.make({name + "/x": "1"})
        space.outside("git", "init", "-q", name)
        space.outside("git", "-C", name, "config", "core.pager", "less")
        space.make({name + "/.git/hooks/post-commit": "#!/bin/sh\n"})
    for name in space.snapshot():  # long ago
        os.utime(space.path(name), (1, 1))
    wait_until(lambda: False, 2.5)  # st_ctime cannot be set
    before = space.snapshot()
    r = space.run(f"for d in {DEEP} node_modules/e; do git -C $d status >&2; done")
    names = {n for n in space.snapshot() if not n.endswith("/index")}
    assert r.rc == 0 and names == set(before) and aside(space) == [], r
    r = space.run(f"{ID} for d in {DEEP} node_modules/e; do cd {space.dir}/$d; echo 2 >x; git add x; git commit -qm x; git checkout -qb y; done")
    assert r.rc == 0 and aside(space) == [], r
    r = space.run(f"for d in {DEEP} node_modules/e; do git -C $d config core.fsmonitor x; done")
    assert r.rc == 0 and aside(space) == [f"{DEEP}/.git/config{ASIDE}", f"node_modules/e/.git/config{ASIDE}"], r


def test_a_deep_gitfile_of_the_user(space):
    """It is changed in place, so nothing came or went where it lies; what it leads to now is found."""
    space.make({DEEP + "/x": "1"})
    space.outside("git", "init", "-q", ".")
    space.outside("git", "init", "-q", "--separate-git-dir", ".git/mine", DEEP)
    wait_until(lambda: False, 2.5)  # st_ctime cannot be set
    r = space.run(f"cp -r .git/mine .git/evil; {EVIL} >>.git/evil/config; echo gitdir: $PWD/.git/evil >{DEEP}/.git")
    assert r.rc == 0 and not hit(space, ["git", "-C", DEEP, "status"]), r
    assert aside(space) == [".git/evil/config" + ASIDE], r


def test_symlinks_of_the_user(space):
    """Protected paths that were symlinks at the start, also those that lead to nothing."""
    space.make({"conf/npmrc": "x", "real/settings.json": "{}", "real/git/config": "x", "conf/config.toml": "x"})
    for repo in ("other", "linked"):
        space.outside("git", "init", "-q", repo)
    for name in ("config", "hooks", "refs", "objects"):
        subprocess.run(["rm", "-rf", space.path("linked/.git/" + name)], check=True)
        os.symlink("../../other/.git/" + name, space.path("linked/.git/" + name))
    for name, to in {".npmrc": "conf/npmrc", ".bashrc": "nowhere", ".vscode": "real", ".profile": "/etc/hostname", ".git": "other/.git",
                     ".config": "real", ".envrc": "/nonexistent/x", ".cargo": "conf"}.items():
        os.symlink(to, space.path(name))
    space.give()
    before = space.snapshot()
    r = space.run("true")
    assert (r.rc, r.err) == (0, "") and space.snapshot() == before, r


def test_a_held_directory_that_the_host_replaced(space):
    """Files that the command makes in a directory that replaced a held one are checked."""
    space.make({"real/x": "1"})
    os.symlink("real", space.path(".vscode"))
    space.give()
    p = space.popen("echo up; read x; mkdir -p real; echo evil >real/.npmrc", stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"
    space.outside("mv", "real", "old")
    _out, err = p.communicate("\n", timeout=30)
    assert p.returncode == 0 and not os.path.exists(space.path("real/.npmrc")), err


def test_two_sandboxes_at_once(sbx):
    """Each looks at the end; what one made and the other found is judged once."""
    space = workspaces.Workspace(sbx, "user")
    first, second = meanwhile(space, "true"), meanwhile(space, f"git init -q .; {EVIL} >>.git/config; echo x >.npmrc")
    assert wait_until(lambda: aside(space) == [".git/config" + ASIDE], 5), aside(space)
    for p in (second, first):
        _out, err = p.communicate("\n", timeout=30)
        assert p.returncode == 0, err
        assert aside(space) == [".git/config" + ASIDE, ".npmrc" + ASIDE], err


# --- again and again ---

AGAIN = {
    "one hook": f"git init -q .; while :; do {HOOK} >.git/hooks/pre-commit; done",
    "many repositories": f"i=0; while [ $i -lt 400 ]; do i=$((i+1)); git init -q $i; {EVIL} >>$i/.git/config; done; sleep 5",
}


@pytest.mark.parametrize("again", AGAIN)
def test_again_and_again(space, again):
    r = space.run(AGAIN[again])
    assert r.rc == 137 and "again and again" in r.err, r


RACE = r"""
import os, sys, time
evil = "[core]\n\tfsmonitor = touch %s; false\n" % sys.argv[1]
os.system("git init -q r; git init -q s; mkdir t")
def replace():
    with open("r/c", "w") as f: f.write(evil)
    os.rename("r/c", "r/.git/config")
def swap():
    os.rename("r", "u"); os.rename("s", "r"); os.rename("u", "s")
def link():
    os.symlink("../s/.git", "t/l"); os.rename("t/l", "t/.git")
def write():
    with open("r/.git/config", "a") as f: f.write(evil)
end = time.time() + 2
while time.time() < end:
    for act in (replace, swap, link, write):
        try: act()
        except OSError: pass
        time.sleep(0.002)
"""


def test_races(space):
    """Directories are swapped, files replaced and symlinks made while all that is judged; it is ended, and nothing is left."""
    r = space.sbx.run(space.args(), ["python3", "-c", RACE, MARK], root=space.root)
    assert r.rc in (0, 137), r
    for name in "rstu":
        assert not hit(space, ["git", "-C", name, "status"]), (name, r)


# --- keeping the helper busy ---

FLOOD = """
import os
def work(i, names):
    os.makedirs(f"f/{i}", exist_ok=True)
    while True:
        for n in names:
            os.close(os.open(f"f/{i}/{n}", os.O_CREAT | os.O_WRONLY))
            os.unlink(f"f/{i}/{n}")
for i in range(4):
    if os.fork() == 0:
        work(i, [".envrc", ".npmrc", ".bashrc", ".yarnrc.yml", ".zshrc"])
"""


def test_flood(sbx):
    """A command that makes and removes other protected names does not put off what git executes."""
    space = workspaces.Workspace(sbx, "user")
    p = meanwhile(space, f"git init -q r; python3 -c '{FLOOD}'; sleep 1; {EVIL} >>r/.git/config")
    try:
        assert wait_until(lambda: os.path.exists(space.path("r/.git/config" + ASIDE)), 0.3)
    finally:
        p.communicate("\n", timeout=30)


def test_start_in_a_large_tree(sbx):
    """Watches cost little: a bound for what grows with the square of the directories."""
    space = workspaces.Workspace(sbx, "user")
    for i in range(60):
        for k in range(60):
            os.makedirs(space.path(f"d{i}/e{k}"))
    space.give()
    unwatched = min(space.run("true", keeping(space)).seconds for _ in range(3))
    assert min(space.run("true").seconds for _ in range(3)) < 0.5 + 10 * unwatched
