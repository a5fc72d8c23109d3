# SPDX-License-Identifier: LGPL-2.1-or-later
"""
The owners of configuration: a privileged sbx-run reads only files that no other user can change or replace; an ordinary
user's sbx-run reads only files of root or of that user. The twin of each refusal differs by one owner or mode.
"""
import json
import os
import shutil
import tempfile

import pytest

from conftest import USER

OTHER = 42003
PROFILE = "extends: none\nlimits: {wall_time: 17s}\n"


@pytest.fixture
def root(sbx):
    """Root's configuration, and a directory of the user's beside it."""
    sbx.own(0)
    os.chown(sbx.work, sbx.world.user.pw_uid, -1)
    return sbx


@pytest.fixture
def theirs():
    """A directory in a place where everybody may make things."""
    directory = tempfile.mkdtemp(prefix="sbx-trust-", dir="/tmp")
    os.chmod(directory, 0o755)
    yield directory
    shutil.rmtree(directory)


def write(path, text, uid=0, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chown(path, uid, uid)
    os.chmod(path, mode)
    return path


def taken(sbx, args, root=True, **kw):
    """The wall time in the plan, or None and the one line that says why not."""
    r = sbx.run([*args, "--dry-run"], [] if "--job" in args else ["true"], root=root, **kw)
    if r.rc == 0:
        return json.loads(r.out)["limits"]["wall_time_ms"]["asked"] // 1000
    assert r.rc == 125 and r.err.count("\n") <= 2, r  # what extends it says so, too
    assert any(word in r.err for word in ("change it", "another user's symlink")) and "copy it" in r.err, r.err


# Changes to a profile that root would take, or to the way to it: (how, of whom).
def spoil(how, directory, file, uid):
    if how == "file of theirs":
        os.chown(file, uid, -1)
    elif how == "file for the group":
        os.chmod(file, 0o664)
    elif how == "file for all":
        os.chmod(file, 0o646)
    elif how == "directory of theirs":
        os.chown(directory, uid, -1)
    elif how == "directory for the group":
        os.chmod(directory, 0o775)
    elif how == "directory for all":
        os.chmod(directory, 0o777)


SPOILT = ["file of theirs", "file for the group", "file for all", "directory of theirs", "directory for the group",
          "directory for all"]


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("kind", ["path", "relative path", "name", "extended", "job", "job by name", "system policy",
                                  "user's configuration"])
def test_root(root, theirs, kind, how):
    sbx, uid = root, root.world.user.pw_uid
    env, directory = {}, theirs
    if kind in ("path", "relative path"):
        file = write(theirs + "/p.yaml", PROFILE)
        os.chown(sbx.work, 0, -1)
        args = ["--profile", file if kind == "path" else os.path.relpath(file, sbx.work)]
    elif kind in ("name", "extended"):
        directory = sbx.config + "/profiles"
        file = write(directory + "/p.yaml", PROFILE)
        args = ["--profile", "p"]
        if kind == "extended":
            args = ["--profile", write(theirs + "/q.yaml", "extends: p\n")]
    elif kind in ("job", "job by name"):
        directory = theirs if kind == "job" else sbx.config + "/jobs"
        file = write(directory + "/j.yaml", "profile: none\ncommand: [true]\nlimit: [wall_time=17s]\n")
        args = ["--job", file if kind == "job" else "j"]
    elif kind == "system policy":
        directory = sbx.config
        file = write(directory + "/system.yaml", "ceilings: {memory: 1T}\n")
        args = ["--profile", write(theirs + "/p.yaml", PROFILE)]
    else:
        directory = theirs + "/sbx/profiles"
        file = write(directory + "/p.yaml", PROFILE)
        args, env = ["--profile", "p"], {"XDG_CONFIG_HOME": theirs}
    assert taken(sbx, args, env=env) == 17
    spoil(how, directory, file, uid)
    assert taken(sbx, args, env=env) is None
    assert taken(sbx, ["--user", USER, *args], env=env) is None


def test_a_sticky_directory_is_no_obstacle(root, theirs):
    """/tmp is one, too; but a name that another has made in it is."""
    os.chmod(theirs, 0o1777)
    file = write(theirs + "/p.yaml", PROFILE)
    assert taken(root, ["--profile", file]) == 17


@pytest.mark.parametrize("where", ["sticky", "plain"])
def test_symlinks(root, theirs, where):
    os.mkdir(theirs + "/links")
    os.chmod(theirs + "/links", 0o1777 if where == "sticky" else 0o755)
    file, link = write(theirs + "/p.yaml", PROFILE), theirs + "/links/q.yaml"
    for owner, target in ((0, file), (root.world.user.pw_uid, file)):
        os.symlink(target, link)
        os.lchown(link, owner, owner)
        assert taken(root, ["--profile", link]) == (17 if owner == 0 else None)
        os.unlink(link)
    os.symlink(theirs, theirs + "/links/d")  # on the way
    for owner in (0, root.world.user.pw_uid):
        os.lchown(theirs + "/links/d", owner, owner)
        assert taken(root, ["--profile", theirs + "/links/d/p.yaml"]) == (17 if owner == 0 else None)


def test_what_is_installed_beside_the_program(root):
    """A user who could change it could change the program."""
    r = root.run(["--profile", "none", "--dry-run"], ["true"], root=True)
    assert r.rc == 0, r


def test_in_a_directory_of_the_caller_of_sudo(root):
    """sudo sbx-run refuses a profile that the calling user owns, in one line that says what to do."""
    env = {"SUDO_UID": str(root.world.user.pw_uid), "SUDO_GID": str(root.world.user.pw_gid)}
    file = write(root.work + "/p.yaml", PROFILE, root.world.user.pw_uid)
    r = root.run(["--profile", "./p.yaml"], ["true"], root=True, env=env)
    assert r.rc == 125 and r.err.count("\n") == 1 and "copy it" in r.err and "/etc/sbx" in r.err, r
    shutil.copy(file, root.config + "/profiles/p.yaml")
    r = root.run(["--profile", "p"], ["id", "-u"], root=True, env=env)
    assert (r.rc, r.out) == (0, f"{root.world.user.pw_uid}\n"), r


@pytest.mark.parametrize("variable", ["SBX_STATE_DIR", "SBX_RUNTIME_DIR"])
@pytest.mark.parametrize("how", ["directory of theirs", "directory for the group", "directory for all", "symlink"])
def test_the_way_to_our_own_directories(root, theirs, variable, how):
    """Root's sbx-run refuses a directory whose path another user can change: it would write elsewhere as root."""
    uid = root.world.user.pw_uid
    on_the_way, place = theirs + "/d", theirs + "/d/sbx"
    os.mkdir(on_the_way)
    for made in (False, True):
        assert root.run([], ["true"], root=True, env={variable: place}).rc == 0
        if not made:
            shutil.rmtree(place)
        if how == "symlink":
            os.chmod(theirs, 0o1777)
            os.symlink(on_the_way, theirs + "/link")
            os.lchown(theirs + "/link", uid, uid)
            place = theirs + "/link/sbx"
        else:
            spoil(how, on_the_way, None, uid)
        for args in (["--", "true"], ["--gc"]):
            r = root.run(args, [], root=True, env={variable: place})
            assert r.rc == 125 and r.err.count("\n") == 1 and f"set {variable}" in r.err, r
        assert os.path.exists(theirs + "/d/sbx") == made
        if how == "symlink":
            os.unlink(theirs + "/link")
            place = theirs + "/d/sbx"
        else:
            os.chown(on_the_way, 0, 0)
            os.chmod(on_the_way, 0o755)


@pytest.mark.parametrize("how", [None, *SPOILT])
def test_bwrap_in_another_place(root, theirs, how):
    """PATH is searched for bwrap where /usr/bin has none that can be taken."""
    bad, good = write(theirs + "/bad", ""), theirs + "/bin/bwrap"
    os.mkdir(theirs + "/bin")
    shutil.copy("/usr/bin/bwrap", good)
    spoil(how, theirs + "/bin", good, root.world.user.pw_uid)
    root.wrapper = ["unshare", "--mount", "sh", "-c", f'mount --bind {bad} /usr/bin/bwrap && exec "$@"', "sh"]
    r = root.run(["--profile", "none", "--dry-run"], ["true"], root=True, env={"PATH": f"{theirs}/bin:/usr/bin:/bin"})
    assert (r.rc, "bwrap was not found" in r.err) == ((125, True) if how else (0, False)), r


@pytest.mark.parametrize("how,uid,rc", [
    ("file of theirs", OTHER, 125), ("file for all", 0, 125), ("directory of theirs", OTHER, 125),
    ("directory for all", 0, 125), ("file for the group", 0, 0), ("directory for the group", 0, 0),
    ("file of theirs", None, 0), ("directory of theirs", None, 0)])
@pytest.mark.parametrize("kind", ["path", "name", "job"])
def test_an_ordinary_user(sbx, theirs, kind, how, uid, rc):
    """None: the user's own. The group is the user's business, as often it is a group of one."""
    uid = sbx.world.user.pw_uid if uid is None else uid
    if kind == "path":
        args = ["--profile", write(theirs + "/p.yaml", PROFILE)]
    elif kind == "name":
        write(theirs + "/sbx/profiles/p.yaml", PROFILE)
        args = ["--profile", "p"]
    else:
        args = ["--job", write(theirs + "/p.yaml", "profile: none\ncommand: [true]\nlimit: [wall_time=17s]\n")]
    file = theirs + ("/sbx/profiles/p.yaml" if kind == "name" else "/p.yaml")
    env = {"XDG_CONFIG_HOME": theirs}
    assert taken(sbx, args, root=False, env=env) == 17
    spoil(how, os.path.dirname(file), file, uid)
    assert taken(sbx, args, root=False, env=env) == (17 if rc == 0 else None)
