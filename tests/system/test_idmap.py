# SPDX-License-Identifier: LGPL-2.1-or-later
"""Root's grants to a sandbox with a uid of its own are id-mapped: a file's owner is its owner on both sides."""
import os
import shutil
import subprocess

import pytest

from conftest import INST

OWNER, GROUP, OTHER = 41001, 41002, 41003


@pytest.fixture
def fs(sbx, world, request):
    """A directory on the file system that the parameter names, in the world's mount namespace."""
    sbx.own(0)
    path = os.path.join(sbx.tmp, "fs")
    os.mkdir(path)
    kind = getattr(request, "param", "disk")
    if kind != "disk":
        subprocess.run(world.ns() + ["mount", "-t", kind, "none", path], check=True)
    yield path
    if kind != "disk":
        subprocess.run(world.ns() + ["umount", path], check=True)


def in_world(sbx, script):
    r = subprocess.run(sbx.world.ns() + ["sh", "-ec", script], capture_output=True, text=True, timeout=20)
    assert r.returncode == 0, r
    return r.stdout


def make(sbx, fs):
    """A job's directory, with somebody else's files in it; closed to all but its owner."""
    in_world(sbx, f"""
        chmod 755 {fs}; umask 022; cd {fs}; mkdir job; cd job
        echo mine >mine; chmod 600 mine
        echo others >others; chmod 666 others
        mkdir shared; chmod 777 shared
        echo halves >halves; chmod 666 halves
        echo secret >secret; chmod 600 secret
        mkdir bin; cp /usr/bin/id bin/id; cp /usr/bin/id bin/idother  # below: at the top they are not granted writable
        printf '#!/bin/sh\\necho ran\\n' >run; chmod 700 run
        chown -R {OWNER}:{GROUP} .; chown {OTHER}:{OTHER} others shared secret bin/idother; chown {OWNER}:{OTHER} halves
        chmod 4755 bin/id bin/idother; chmod 700 .""")
    return fs + "/job"


def listing(sbx, path):
    return {line.split()[-1]: tuple(line.split()[:3]) for line in
            in_world(sbx, f"cd {path}; stat -c '%u %g %a %n' *").splitlines()}


KINDS = pytest.mark.parametrize("fs", ["disk", "tmpfs"], indirect=True)


@KINDS
def test_the_owner_stays_the_owner(sbx, fs):
    job = make(sbx, fs)
    r = sbx.run(["--bind", job + ":/job"], ["sh", "-c", """
        cd /job; id -u; id -g; stat -c '%u %g %a' . mine others; cat mine
        echo new >new; mkdir dir; echo x >dir/deep; echo more >>mine; ln -s new link; chmod 640 new; mv run ran"""], root=True)
    lines = r.out.splitlines()
    assert (r.rc, r.err) == (0, ""), r
    uid, gid = lines[:2]
    assert lines[2:] == [f"{uid} {gid} 700", f"{uid} {gid} 600", "65534 65534 666", "mine"], r
    outside = listing(sbx, job)
    owner = (str(OWNER), str(GROUP))
    assert outside["new"] == owner + ("640",) and outside["dir"] == owner + ("755",)
    assert outside["mine"] == owner + ("600",) and outside["ran"] == owner + ("700",)
    assert in_world(sbx, f"cat {job}/mine {job}/dir/deep") == "mine\nmore\nx\n"


@KINDS
def test_others_below_stay_unwritable(sbx, fs):
    """World-writable files and directories of somebody else too; the twin is the same file of the owner."""
    job = make(sbx, fs)
    script = """cd /job; for f in mine others halves; do (echo x >>$f) 2>&- && echo wrote $f; done
        (echo x >shared/x) 2>&- && echo wrote shared; (cat others); (cat secret) 2>&-
        chmod 777 others 2>&- && echo changed; rm -f others 2>&- && echo removed; mv secret s2 2>&- && echo moved; true"""
    r = sbx.run(["--bind", job + ":/job"], ["sh", "-c", script], root=True)
    assert r.out == "wrote mine\nothers\n", r  # not even the names, though the directory is the owner's
    in_world(sbx, f"chown -R {OWNER}:{GROUP} {job}")
    r = sbx.run(["--bind", job + ":/job"], ["sh", "-c", script], root=True)
    assert r.out == "wrote mine\nwrote others\nwrote halves\nwrote shared\nothers\nx\nsecret\nchanged\nremoved\nmoved\n", r


@KINDS
def test_setuid_files_give_nothing(sbx, fs):
    job = make(sbx, fs)
    r = sbx.run(["--bind", job + ":/job"], ["sh", "-c", "id -u; /job/bin/id -u; /job/bin/idother -u; grep -c nosuid /proc/self/mountinfo"],
                root=True)
    a, b, c, _ = r.out.split()
    assert a == b == c, r
    # looked for as the owner: the directory is closed to everybody else
    in_world(sbx, f"mv {job}/bin/id {job}/id")
    r = sbx.run(["--bind", job + ":/job"], ["true"], root=True)
    assert r.rc == 125 and "set-id program" in r.err and r.err.count("\n") == 1, r
    assert sbx.run(["--ro-bind", job + ":/job"], ["true"], root=True).rc == 0


@KINDS
def test_read_only(sbx, fs):
    job = make(sbx, fs)
    r = sbx.run(["--ro-bind", job + ":/job"], ["sh", "-c", "cat /job/mine; (echo x >/job/new) 2>&- || echo refused"], root=True)
    assert r.out == "mine\nrefused\n", r


def test_the_command_may_be_in_a_closed_directory(sbx, fs):
    job = make(sbx, fs)
    assert sbx.run(["--bind", job], [job + "/run"], root=True).out == "ran\n"
    assert sbx.run(["--bind", job, "--chdir", job], ["./run"], root=True).out == "ran\n"
    os.chown(job + "/run", OTHER, OTHER)  # 0700 of somebody else
    assert sbx.run(["--bind", job], [job + "/run"], root=True).rc == 126
    os.chown(job + "/run", OWNER, GROUP)
    os.chmod(job, 0o755)
    assert sbx.run(["--bind", job + "/run:/srv/it"], ["/srv/it"], root=True).out == "ran\n"  # one file


def test_two_sandboxes_share_a_directory_as_its_owner(sbx, fs):
    job = make(sbx, fs)
    a = sbx.popen(["--bind", job + ":/job"], ["sh", "-c", "id -u; echo a >/job/a; chmod 600 /job/a; read x"], root=True,
                  stdin=subprocess.PIPE)
    uid = a.stdout.readline()
    while not os.path.exists(job + "/a"):
        pass
    b = sbx.run(["--bind", job + ":/job"], ["sh", "-c", "id -u; cat /job/a"], root=True)
    a.communicate("\n", timeout=20)
    assert b.out.split()[1] == "a" and b.out.split()[0] != uid.strip(), b


def test_the_current_directory(sbx, fs):
    job = make(sbx, fs)
    argv = sbx.world.ns() + ["env", "-C", job, INST + "/bin/sbx-run", "--", "sh", "-c", "pwd; echo x >made"]
    r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(user=False), timeout=30)
    assert (r.returncode, r.stdout, r.stderr) == (0, job + "\n", ""), r
    assert os.stat(job + "/made").st_uid == OWNER
    os.chown(job, 0, 0)
    r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(user=False), timeout=30)
    assert (r.returncode, r.stdout) == (125, "") and "belongs to user root" in r.stderr and "--scratch" in r.stderr, r
    r = subprocess.run([*argv[:-4], "--scratch", *argv[-4:]], capture_output=True, text=True, env=sbx.env(user=False), timeout=30)
    assert (r.returncode, r.stdout) == (0, "/home/sandbox\n") and r.stderr.startswith("sbx-run: 1 file of the scratch "), r


@pytest.mark.parametrize("uid,gid,flag,rc", [(0, 0, "--bind", 125), (OWNER, 0, "--bind", 125), (0, GROUP, "--bind", 125),
                                             (OWNER, GROUP, "--bind", 0), (0, 0, "--ro-bind", 0)])
def test_never_root(sbx, fs, uid, gid, flag, rc):
    job = make(sbx, fs)
    os.chown(job, uid, gid)
    os.chmod(job, 0o755)
    r = sbx.run([flag, job + ":/job"], ["sh", "-c", "cat /job/secret 2>&-; echo x 2>&- >/job/new; true"], root=True)
    assert r.rc == rc and r.out == "", r
    if rc:
        assert "root" in r.err and r.err.count("\n") == 1, r
        assert not os.path.exists(job + "/new")


@pytest.mark.parametrize("fs,rc", [("ramfs", 125), ("tmpfs", 0)], indirect=["fs"])
def test_a_file_system_without_id_maps(sbx, fs, rc):
    job = make(sbx, fs)
    r = sbx.run(["--bind", job + ":/job"], ["sh", "-c", "echo x >/job/new"], root=True)
    assert r.rc == rc, r
    if rc:
        assert r.err.count("\n") == 1 and fs + " (ramfs)" in r.err, r


def test_a_mount_below_is_named(sbx, fs):
    job = make(sbx, fs)
    in_world(sbx, f"mkdir '{job}/a b'; mount -t ramfs none '{job}/a b'")
    try:
        r = sbx.run(["--bind", job + ":/job"], ["true"], root=True)
    finally:
        in_world(sbx, f"umount '{job}/a b'")
    assert r.rc == 125 and f"{job}/a b (ramfs)" in r.err and r.err.count("\n") == 1, r
    assert sbx.run(["--bind", job + ":/job"], ["true"], root=True).rc == 0


@pytest.mark.parametrize("fs", ["ramfs"], indirect=True)
@pytest.mark.parametrize("idmap,rc", [("read-only", 0), ("required", 125)])
def test_read_only_instead(sbx, fs, idmap, rc):
    job = make(sbx, fs)
    in_world(sbx, f"chmod 755 {job}")
    name = sbx.profile("p", f"extends: none\nfilesystem:\n  mounts:\n    - {{source: {job}, target: /job, writable: true, "
                            f"idmap: {idmap}}}\n")
    r = sbx.run(["--profile", name], ["sh", "-c", "cat /job/others; (echo x >>/job/others) 2>&- || echo refused"], root=True)
    assert r.rc == rc, r
    if rc == 0:
        assert r.out == "others\nrefused\n" and "mounted read-only" in r.err, r


def test_the_way_must_be_the_owners(sbx, fs):
    """A symlink or a directory of a third user may not lead root's launcher to the owner's files."""
    job = make(sbx, fs)
    in_world(sbx, f"cd {fs}; mkdir mine theirs open; ln -s {job} mine/link; ln -s {job} theirs/link; ln -s {job} open/link; "
                  f"ln -s {job} link; chown -h {OWNER} mine mine/link; chown -h {OTHER} theirs theirs/link; chmod 777 open")
    for way, rc in (("link", 0), ("mine/link", 0), ("theirs/link", 125), ("open/link", 125)):
        r = sbx.run(["--bind", f"{fs}/{way}:/job"], ["true"], root=True)
        assert r.rc == rc, (way, r)
        assert rc == 0 or "can change what is at that path" in r.err, r


def test_dry_run_shows_it(sbx, fs):
    job = make(sbx, fs)
    r = sbx.run(["--dry-run", "--bind", job + ":/job"], ["true"], root=True)
    assert f'"uid": {OWNER}' in r.out and f'"gid": {GROUP}' in r.out, r
    r = sbx.run(["--dry-run", "--user", str(OWNER), "--bind", job + ":/job"], ["true"], root=True)
    assert r.rc == 0 and '"idmap"' not in r.out, r


def test_named_users_need_no_map(sbx, fs):
    job = make(sbx, fs)
    os.chown(job, OWNER, OWNER)
    r = sbx.run(["--user", str(OWNER), "--bind", job + ":/job"], ["sh", "-c", "id -u; cat /job/mine; echo x >/job/new"],
                root=True)
    assert r.out == f"{OWNER}\nmine\n" and os.stat(job + "/new").st_uid == OWNER, r


def test_many(sbx, fs):
    """As many as one plan may have."""
    args = []
    for i in range(60):
        d = f"{fs}/d{i}"
        os.mkdir(d)
        os.chown(d, OWNER + i, OWNER + i)
        args += ["--bind", f"{d}:/m/{i}"]
    r = sbx.run(args, ["sh", "-c", "for i in $(seq 0 59); do echo x >/m/$i/f || exit 1; done; echo done"], root=True)
    assert r.out == "done\n", r
    assert [os.stat(f"{fs}/d{i}/f").st_uid for i in range(60)] == [OWNER + i for i in range(60)]
    shutil.rmtree(fs + "/d0")


def passwd_entry(sbx, uid, gid, home):
    """A user in the world only, until end_passwd()."""
    with open("/etc/passwd") as src, open(sbx.tmp + "/passwd", "w") as dst:
        dst.write(f"jobowner:x:{uid}:{gid}::{home}:/bin/sh\n" + src.read())
    os.chmod(sbx.tmp + "/passwd", 0o644)
    in_world(sbx, f"mount --bind {sbx.tmp}/passwd /etc/passwd")


def end_passwd(sbx):
    in_world(sbx, "umount /etc/passwd")


@pytest.fixture
def home(sbx, fs):
    """A job's directory that is its owner's home, with one below it."""
    job = make(sbx, fs)
    in_world(sbx, f"mkdir {job}/work; chown {OWNER}:{GROUP} {job}/work; chmod 755 {job}; ln -s {job} {fs}/alias")
    passwd_entry(sbx, OWNER, GROUP, fs + "/alias")
    yield job
    end_passwd(sbx)


def test_the_home_of_the_owner(sbx, fs, home):
    """By its real name, though the user database has it by a symlink; with what is above it, and as the current directory."""
    in_world(sbx, f"chown {OWNER}:{GROUP} {fs}")
    for source, what in ((home, "is the home directory"), (fs, "above the home directory")):
        r = sbx.run(["--bind", source + ":/job"], ["true"], root=True)
        assert r.rc == 125 and what in r.err and r.err.count("\n") == 1, r
    assert sbx.run(["--bind", home + "/work:/job"], ["sh", "-c", "echo x >/job/new"], root=True).rc == 0
    assert sbx.run(["--ro-bind", home + ":/job"], ["cat", "/job/mine"], root=True).out == "mine\n"
    for where, out in ((home, ""), (home + "/work", home + "/work\n")):
        argv = sbx.world.ns() + ["env", "-C", where, INST + "/bin/sbx-run", "--", "pwd"]
        r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(user=False), timeout=30)
        assert r.stdout == out and ("home directory" in r.stderr) == (where == home), r
    argv = sbx.world.ns() + ["env", "-C", home + "/work", INST + "/bin/sbx-run", "--keep", home, "--", "true"]
    r = subprocess.run(argv, capture_output=True, text=True, env=sbx.env(user=False), timeout=30)
    assert r.returncode == 125 and "--keep: " in r.stderr and "is the home directory" in r.stderr, r
    end_passwd(sbx)
    try:  # nobody's home: what is refused is that, not the directory
        assert sbx.run(["--bind", home + ":/job"], ["true"], root=True).rc == 0
    finally:
        passwd_entry(sbx, OWNER, GROUP, home)


def test_the_agents_of_the_owner(sbx, fs, home):
    """Read-only too: a read-only mount keeps nobody from connecting. Closed to all but the owner."""
    in_world(sbx, f"mkdir -m 700 {home}/.1password; touch {home}/.1password/agent.sock; chown -R {OWNER}:{GROUP} {home}/.1password")
    for source, rc in ((home, 125), (home + "/.1password", 125), (home + "/work", 0)):
        r = sbx.run(["--ro-bind", source + ":/job"], ["true"], root=True)
        assert r.rc == rc and (rc == 0 or "key agent" in r.err), (source, r)
    os.unlink(home + "/.1password/agent.sock")
    assert sbx.run(["--ro-bind", home + ":/job"], ["true"], root=True).rc == 0


@pytest.mark.parametrize("below,own,flag,rc", [
    (".local/state/sbx/x", ".local/state/sbx", "--ro-bind", 125), (".local", ".local/state/sbx", "--ro-bind", 125),
    (".local", ".local/state/sbx", "--bind", 125), (".local", ".local/other", "--ro-bind", 0),
    (".local", ".local/state/sbx-other", "--ro-bind", 0), (".config/sbx", ".config/sbx", "--bind", 125),
    (".config", ".config/other", "--bind", 125),  # its sbx directory could be made
    (".config/sbx", ".config/sbx", "--ro-bind", 0), (".config/other", ".config/other", "--bind", 0)])
def test_the_own_files_of_the_owners_sbx(sbx, fs, home, below, own, flag, rc):
    in_world(sbx, f"cd {home}; mkdir -p {own}/x .local/state; chown -R {OWNER}:{GROUP} .[a-z]*; chmod 755 .[a-z]*")
    if below == ".local":
        in_world(sbx, f"chmod 700 {home}/.local/state")  # only its owner can look
    r = sbx.run([flag, f"{home}/{below}:/job"], ["true"], root=True)
    assert r.rc == rc and (rc == 0 or "owner's sbx" in r.err and r.err.count("\n") == 1), r


def test_a_home_that_is_not_clear(sbx, fs):
    job = make(sbx, fs)
    for home, rc in ((fs + "/x/../job", 125), ("", 0), ("/nonexistent", 0)):
        passwd_entry(sbx, OWNER, GROUP, home)
        r = sbx.run(["--bind", job + ":/job"], ["true"], root=True)
        end_passwd(sbx)
        assert r.rc == rc and (rc == 0 or "is not clear" in r.err), (home, r)


def test_a_user_database_that_cannot_be_asked(sbx, fs):
    """--bind of a number's directory needs getent only where nsswitch.conf names more than files."""
    job = make(sbx, fs)
    slow = sbx.tmp + "/getent"  # knows what root's run asks first, and fails for the owner
    with open(slow, "w") as f:
        f.write(f"#!/bin/sh\ncase \" $* \" in *' {OWNER} '*) exit 5;; esac\nexit 2\n")
    os.chmod(slow, 0o755)
    in_world(sbx, f"mount --bind {slow} /usr/bin/getent")
    try:
        for services, rc in (("files systemd", 125), ("files", 0)):
            with open(sbx.tmp + "/nsswitch", "w") as f:
                f.write(f"passwd: {services}\n")
            in_world(sbx, f"mount --bind {sbx.tmp}/nsswitch /etc/nsswitch.conf")
            r = sbx.run(["--bind", job + ":/job"], ["true"], root=True)
            in_world(sbx, "umount /etc/nsswitch.conf")
            assert r.rc == rc and (rc == 0 or "cannot be asked" in r.err), (services, r)
    finally:
        in_world(sbx, "umount /usr/bin/getent")


@pytest.mark.parametrize("gid,primary,rc", [(42, GROUP, 125), (999, GROUP, 125), (1000, GROUP, 0), (GROUP, 42, 0),
                                            (42, 42, 0), (42, None, 125)])
@pytest.mark.parametrize("flag", ["--bind", "--ro-bind"])
def test_groups_of_the_system(sbx, fs, flag, gid, primary, rc):
    """Outside a setgid file would give them to anybody; the owner's own group he could give himself."""
    job = make(sbx, fs)
    os.chown(job, OWNER, gid)
    if primary is not None:
        passwd_entry(sbx, OWNER, primary, "/nonexistent")
    r = sbx.run([flag, job + ":/job"], ["sh", "-c", "cp /usr/bin/id /job/i && chmod 6755 /job/i; true"], root=True)
    if primary is not None:
        end_passwd(sbx)
    assert r.rc == rc and os.path.exists(job + "/i") == (rc == 0 and flag == "--bind"), r
    if rc:
        assert r.err.count("\n") == 1 and "chgrp" in r.err and (gid != 42 or "group shadow" in r.err), r
    elif flag == "--bind":
        assert (os.stat(job + "/i").st_uid, os.stat(job + "/i").st_gid) == (OWNER, gid)
