# SPDX-License-Identifier: LGPL-2.1-or-later
"""With few file descriptors a run is refused, or protected as with many: a file that cannot be opened may exist."""
from test_protect import unprotect
from test_protect_git import GIT_PATHS
from workspaces import space  # noqa: F401

CHAIN = 16  # git directories; each costs three descriptors as long as those behind it are looked at
ENOUGH = 1024


def git_dir(name, common):
    """With all that is protected, so that no placeholder, whose directory stays open, is made."""
    return {f"{name}/HEAD": "ref: refs/heads/main\n", f"{name}/commondir": common + "\n", f"{name}/objects/": None,
            f"{name}/refs/": None, f"{name}/config": "[core]\n", f"{name}/config.worktree": "", f"{name}/hooks": ""}


def limited(space, n, script):
    space.sbx.wrapper = ["prlimit", f"--nofile={n}:{n}", "--"]
    return space.run(script)


def test_a_chain_of_git_directories(space):
    """Each names the next one as its common directory. For git in lib/ the last one's configuration counts, and only the
    chain leads there: a limit that ends it just before must not be taken for the end of it."""
    names = [".git", *(f"c{i}" for i in range(1, CHAIN)), "node_modules/real"]
    tree = {"lib/.git": f"gitdir: ../c{CHAIN - 1}\n"}
    for name, common in zip(names, [*names[1:], "real"]):
        tree.update(git_dir(name, "../" + common))
    space.make(tree)
    attack = "(echo x >>node_modules/real/config) 2>/dev/null && echo wrote; echo ran"
    outcomes = []
    for n in range(50, 72):
        r = limited(space, n, attack)
        assert (r.rc, r.out) in ((0, "ran\n"), (125, "")), (n, r)
        assert r.rc == 0 or "Too many open files" in r.err, (n, r)
        outcomes.append(r.rc)
    assert outcomes[0] == 125 and outcomes[-1] == 0, outcomes
    assert limited(space, ENOUGH, attack).out == "ran\n"
    unprotect(space, GIT_PATHS)
    assert limited(space, ENOUGH, attack).out == "wrote\nran\n"
