# SPDX-License-Identifier: LGPL-2.1-or-later
"""Views that are not the host's: scratch directories, homes, devices, roots. As an ordinary user and as root's."""
import contextlib
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import INST
from workspaces import space  # noqa: F401


@pytest.fixture(params=[False, True], ids=["user", "root"])
def root(sbx, request):
    """For an ordinary user, and for root, whose sandbox has a uid of its own."""
    if request.param:
        sbx.own(0)
    return request.param


def in_world(sbx, script):
    r = subprocess.run(sbx.world.ns() + ["sh", "-ec", script], capture_output=True, text=True, timeout=20)
    assert r.returncode == 0, r
    return r.stdout


# --- --tmpfs ---

def test_tmpfs(sbx, root):
    """Empty, writable, of its size, gone afterwards; nothing else of the view changes."""
    script = """ls -A /scratch; echo x >/scratch/f && cat /scratch/f; stat -f -c %T /scratch
        dd if=/dev/zero of=/scratch/big bs=1M count=12 2>/dev/null && echo fits; mkdir /other 2>&- || echo read-only"""
    r = sbx.run(["--tmpfs", "/scratch:8M"], ["sh", "-c", script], root=root)
    assert r.out == "x\ntmpfs\nread-only\n", r
    r = sbx.run(["--tmpfs", "/scratch:16M"], ["sh", "-c", script], root=root)
    assert r.out == "x\ntmpfs\nfits\nread-only\n", r
    assert not os.path.exists("/scratch")
    assert sbx.run([], ["sh", "-c", "ls /scratch"], root=root).rc == 2


def test_tmpfs_over_a_grant(sbx):
    """A tmpfs hides the files of a grant, and writes to it do not reach the host. Without it the same writes do."""
    os.mkdir(sbx.work + "/cache")
    with open(sbx.work + "/cache/old", "w") as f:
        f.write("old")
    sbx.own(sbx.world.user.pw_uid)
    script = "cat cache/old; echo new >cache/new; ls cache"
    assert sbx.run(["--tmpfs", sbx.work + "/cache"], ["sh", "-c", script]).out == "new\n"
    assert os.listdir(sbx.work + "/cache") == ["old"]
    assert sbx.run([], ["sh", "-c", script]).out == "oldnew\nold\n"
    assert sorted(os.listdir(sbx.work + "/cache")) == ["new", "old"]


def test_tmpfs_over_what_is_closed_to_us(sbx, image, root):
    """A mount hides what nobody of ours may enter, or read; the twin is refused it."""
    os.chmod(image + "/root", 0o700)
    os.chmod(image + "/opt/app", 0o700)
    for closed in "/root", "/opt/app":
        os.chown(image + closed, 4711, 4711)
    args = ["--scratch", "--root", image, "--tmpfs", "/root"]
    r = sbx.run(args, ["touch", "/root/new", "/opt/app/new"], root=root)
    assert [line.split(": ")[1] for line in r.out.splitlines()] == ["made", "Permission denied"], r


def test_tmpfs_within_limits_disk(sbx):
    """Two that ask for no size fill the one that limits.disk bounds; the twin has room for both."""
    script = "for d in /a /b; do dd if=/dev/zero of=$d/f bs=1M count=12 2>/dev/null && echo fits; done; true"
    args = ["--tmpfs", "/a", "--tmpfs", "/b", "--limit", "enforce=best-effort"]
    sbx.profile("small", "limits: {disk: 20M}\n")
    sbx.profile("large", "limits: {disk: 40M}\n")
    assert sbx.run(["--profile", "small"] + args, ["sh", "-c", script]).out == "fits\n"
    assert sbx.run(["--profile", "large"] + args, ["sh", "-c", script]).out == "fits\nfits\n"


# --- homes ---

OWNER = 41001


def make_home(sbx, owner):
    path = sbx.tmp + "/kept"
    os.mkdir(path, 0o700)
    os.chown(path, owner, owner)
    return path


@pytest.fixture
def kept(sbx, root, world):
    """A directory for a home: the user's, or for root's sandbox somebody's."""
    return make_home(sbx, OWNER if root else world.user.pw_uid)


def test_home_stays(sbx, root, kept):
    """A --home directory keeps its files from one run to the next. Without --home nothing stays."""
    write, read = ["sh", "-c", "echo left >$HOME/f; mkdir $HOME/d"], ["sh", "-c", "cat $HOME/f; stat -c %u $HOME; id -u"]
    assert sbx.run(["--home", kept], write, root=root).rc == 0
    r = sbx.run(["--home", kept], read, root=root)
    out = r.out.split()
    assert out[0] == "left" and out[1] == out[2], r
    assert os.stat(kept + "/f").st_uid == os.stat(kept).st_uid  # it is its owner's outside
    assert sbx.run([], write, root=root).rc == 0
    assert "left" not in sbx.run([], read, root=root).out


def test_home_has_start_up_files_of_its_own(sbx, root, kept):
    """Protected paths are files that the host executes later. In a home the command may write them; in a grant it may
    not."""
    script = ["sh", "-c", "cd $0; for f in .bashrc .git/config; do mkdir -p .git; echo x 2>&- >$f && echo wrote $f; done; true"]
    home = sbx.world.user.pw_dir if not root else "/home/sandbox"
    assert sbx.run(["--home", kept], script + [home], root=root).out == "wrote .bashrc\nwrote .git/config\n"
    assert sbx.run(["--home", kept], script + [home], root=root).out == "wrote .bashrc\nwrote .git/config\n"
    assert sbx.run(["--bind", kept + ":/x"], script + ["/x"], root=root).out == ""


def test_blocked_names_in_a_home(sbx, root, kept):
    """Blocked names that a sandbox made in its --home stay readable there. The same directory as an ordinary grant is
    searched."""
    make = ["sh", "-c", "mkdir -p ~/.ssh ~/.sshx && echo s >~/.ssh/id && echo s >~/.sshx/id; cat ~/.ssh/id ~/.sshx/id"]
    assert sbx.run(["--home", kept], make, root=root).out == "s\ns\n"
    r = sbx.run(["--home", kept], ["sh", "-c", "cat ~/.sshx/id ~/.ssh/id 2>&-"], root=root)
    assert r.out == "s\ns\n" and "notice" not in r.err, r
    r = sbx.run(["--bind", kept + ":/g"], ["sh", "-c", "cat /g/.sshx/id /g/.ssh/id 2>&-"], root=root)
    assert r.out == "s\n", r


def test_home_of_somebody_else(sbx, root, kept):
    if root:
        os.chown(kept, 0, 0)
    else:
        os.chown(kept, OWNER, OWNER)
        os.chmod(kept, 0o777)
    r = sbx.run(["--home", kept], ["true"], root=root)
    assert r.rc == 125 and r.err.startswith("sbx-run: --home: ") and r.err.count("\n") == 1, r
    assert ("belongs to user root" if root else "a home must be its user's own") in r.err


def test_home_with_the_current_directory_in_it(sbx, world):
    """The place for what is mounted below the home is made in it, and belongs to its owner."""
    home, kept = world.user.pw_dir, make_home(sbx, world.user.pw_uid)
    project = home + "/project"
    shutil.rmtree(project, ignore_errors=True)
    os.mkdir(project)
    with open(home + "/.sbxtestrc", "w") as f:
        f.write("configured\n")
    for p in (project, home + "/.sbxtestrc"):
        os.chown(p, world.user.pw_uid, world.user.pw_gid)
    sbx.profile("p", "extends: none\nfilesystem: {home_read: [.sbxtestrc, .sbxtest-missing]}\n")
    script = """pwd; cat ~/.sbxtestrc; echo x 2>&- >~/.sbxtestrc || echo refused; echo in >f; echo home >~/h; ls -A ~"""

    def run(*args):
        argv = sbx.argv(["--profile", "p", *args], ["sh", "-c", script])
        argv[argv.index("-C") + 1] = project
        return subprocess.run(argv, env=sbx.env(), capture_output=True, text=True, timeout=30)
    try:
        r = run("--home", kept)
        assert r.stdout == f"{project}\nconfigured\nrefused\n.sbxtestrc\nh\nproject\n", r
        assert os.path.exists(project + "/f") and not os.path.exists(home + "/h")
        assert sorted(os.listdir(kept)) == [".sbxtestrc", "h", "project"] and os.listdir(kept + "/project") == []
        assert os.stat(kept + "/project").st_uid == world.user.pw_uid
        os.unlink(project + "/f")
        # A run that left something else there does not choose where the next one mounts.
        os.rmdir(kept + "/project")
        os.symlink("/usr/bin", kept + "/project")
        r = run("--home", kept)
        assert r.returncode == 125 and "in the sandbox's home is no directory" in r.stderr, r
    finally:
        shutil.rmtree(project)
        os.unlink(home + "/.sbxtestrc")


@pytest.mark.parametrize("home,args", [
    (".", []), ("sub", []), ("sub/deep", []), (".", ["--overlay"]), ("sub", ["--overlay"]),
    (".", ["--ro-bind", "{}:/other"]), ("sub", ["--bind", "{}/sub/deep:/other"])])
def test_home_that_is_granted_twice(space, home, args):
    """A home is not protected: it must not be a second path to a protected directory."""
    space.make({".git/config": "was\n", ".git/HEAD": "ref: refs/heads/main\n", "sub/.envrc": "was\n", "sub/deep/.envrc": "was\n",
                "sub/deep/.ssh/id": "secret\n"})
    beside = make_home(space.sbx, space.sbx.world.user.pw_uid)
    before = space.snapshot()
    script = "cd; for f in .git/config .envrc deep/.envrc; do echo evil 2>&- >$f; done; cat .ssh/id deep/.ssh/id 2>&-; echo ran"
    args = [a.format(space.dir) for a in args]
    r = space.run(script, [*args, "--home", os.path.normpath(space.path(home))])
    assert r.rc == 125 and r.out == "" and "name a directory beside it" in r.err and r.err.count("\n") == 1, r
    assert space.snapshot() == before
    r = space.run(script, [*args, "--home", beside])
    assert r.rc == 0 and r.out == "ran\n", r
    assert space.snapshot() == before


def test_home_is_changed_while_a_run_starts(sbx, world):
    """Another sandbox with the same home swaps the place of a mount with a link to /usr/bin: what is there is never
    covered by the grant."""
    import ctypes
    import threading
    home, kept = world.user.pw_dir, make_home(sbx, world.user.pw_uid)
    os.mkdir(kept + "/place")
    os.symlink("/usr/bin", kept + "/swap")
    data = sbx.tmp + "/data"
    os.mkdir(data)
    shutil.copy("/bin/false", data + "/true")
    sbx.own(world.user.pw_uid)
    libc, stop = ctypes.CDLL(None), threading.Event()

    def exchange():
        while not stop.is_set():
            libc.renameat2(-100, (kept + "/place").encode(), -100, (kept + "/swap").encode(), 2)
    t = threading.Thread(target=exchange)
    t.start()
    try:
        seen = [sbx.run(["--home", kept, "--ro-bind", f"{data}:{home}/place"], ["/usr/bin/true"]) for _ in range(40)]
    finally:
        stop.set()
        t.join()
    assert all(r.rc in (0, 125) for r in seen), seen
    assert any(r.rc == 0 for r in seen) and any(r.rc == 125 for r in seen), seen


def test_home_read_of_secrets(sbx, world):
    """A blocked name is refused, also behind a symbolic link; the twin beside it is seen."""
    home = world.user.pw_dir
    made = [home + "/.sbxtest-link", home + "/.sbxtest-file"]
    secret = home + "/.sbxtest-secret"
    os.makedirs(secret + "/.aws", exist_ok=True)
    for path, text in ((secret + "/.aws/config", "secret"), (made[1], "fine\n")):
        with open(path, "w") as f:
            f.write(text)
    os.symlink(secret + "/.aws/config", made[0])
    try:
        for names, ok in (("[.sbxtest-file]", True), ("[.sbxtest-file, .sbxtest-link]", False),
                          ("[.sbxtest-secret/.aws/config]", False)):
            sbx.profile("p", f"extends: none\nfilesystem: {{home_read: {names}}}\n")
            r = sbx.run(["--profile", "p"], ["sh", "-c", "cat ~/.sbxtest-*"])
            assert (r.rc, r.out) == ((0, "fine\n") if ok else (125, "")), r
            assert ok or "blocked segment '.aws'" in r.err
        sbx.own(0)
        sbx.profile("p", "extends: none\nfilesystem: {home_read: [.sbxtest-file]}\n")
        r = sbx.run(["--profile", "p"], ["sh", "-c", "ls -A ~"], root=True)
        assert (r.rc, r.out) == (0, "") and "no home to read" in r.err, r
    finally:
        shutil.rmtree(secret)
        for path in made:
            os.unlink(path)


# --- devices ---

device_nodes = pytest.mark.xdist_group("device nodes")  # /dev is the machine's


@pytest.fixture
def nodes():
    """Nodes with a GPU's names and /dev/null's and /dev/full's numbers, and what must not be granted."""
    made = {"/dev/nvidia250": (0o666, 1, 3), "/dev/nvidia251": (0o666, 1, 7), "/dev/nvidia252": (0o600, 1, 3),
            "/dev/sbxtest": (0o666, 1, 3)}
    for path in [*made, "/dev/nvidia253"]:  # of a run that was killed
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    for path, (mode, major, minor) in made.items():
        os.mknod(path, 0o020000 | mode, os.makedev(major, minor))
        os.chmod(path, mode)
    os.symlink("/dev/full", "/dev/nvidia253")
    yield
    for path in [*made, "/dev/nvidia253"]:
        os.unlink(path)


@device_nodes
def test_devices(sbx, root, nodes):
    """A granted node works and is what it is outside; all others stay what they were: not there."""
    script = """for f in 250 251 252 253; do (echo x >/dev/nvidia$f) 2>/dev/null && echo wrote $f; done; ls /dev
        grep ' /dev/nvidia250 ' /proc/self/mountinfo | cut -d' ' -f6
        rm -f /dev/nvidia250 2>&- || echo stays; mknod /dev/x c 1 3 2>&- || echo not made"""
    r = sbx.run(["--device", "/dev/nvidia25?"], ["sh", "-c", script], root=root)
    assert r.rc == 0 and "/dev/nvidia252 is granted, but" in r.err, r
    lines = r.out.splitlines()
    assert lines[0] == "wrote 250" and "wrote" not in lines[1], r  # full: ENOSPC; 252: not for us; 253: no device
    assert [x for x in lines if "nvidia" in x] == ["nvidia250", "nvidia251", "nvidia252"], r
    flags = lines[-3].split(",")
    assert "nosuid" in flags and "noexec" in flags and "nodev" not in flags, r
    assert lines[-2:] == ["stays", "not made"], r
    assert os.path.exists("/dev/nvidia250")
    r = sbx.run([], ["sh", "-c", script], root=root)
    assert "nvidia" not in r.out and "wrote" not in r.out, r


@device_nodes
@pytest.mark.parametrize("asked,ok", [
    ("/dev/nvidia250", True), ("/dev/nvidia25[0-9]", True), ("/dev/sbxtest", False), ("/dev/sbx*", False),
    ("/dev/nvidia253", False), ("/dev/full", False), ("/dev/mem", False), ("/dev/kmsg", False), ("/dev/*", False),
    ("/dev/kvm", False), ("/dev/tty[0-9]", False),
])
def test_which_devices(sbx, nodes, asked, ok):
    if asked == "/dev/*":
        # It finds what may be granted, too: that alone is.
        assert sbx.run(["--device", asked], ["sh", "-c", "test ! -e /dev/sbxtest -a -e /dev/nvidia250"]).rc == 0
        return
    if asked == "/dev/tty[0-9]" and not os.path.exists("/dev/tty0"):
        asked = "/dev/tt[y]"
    r = sbx.run(["--device", asked], ["true"])
    assert r.rc == (0 if ok else 125), r
    assert ok or ("not among the devices" in r.err and r.err.count("\n") == 1), r


@device_nodes
def test_devices_of_the_hosts_owner(sbx, nodes):
    """Listed by the owner it is granted; a block device or a file of that name is not."""
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write("devices: ['/dev/sbx*']\n")
    sbx.profile("p", "extends: none\nfilesystem: {devices: [/dev/sbxtest]}\n")
    assert sbx.run(["--profile", "p"], ["sh", "-c", "echo x >/dev/sbxtest"]).rc == 0
    assert sbx.run(["--device", "/dev/nvidia250"], ["true"]).rc == 125
    os.mknod("/dev/sbxtest-block", 0o060666, os.makedev(7, 200))
    os.symlink("/etc/hostname", "/dev/sbxtest-link")
    try:
        for name in ("block", "link"):
            r = sbx.run(["--device", "/dev/sbxtest-" + name], ["true"])
            assert r.rc == 125 and "not among the devices" in r.err, r
    finally:
        os.unlink("/dev/sbxtest-block")
        os.unlink("/dev/sbxtest-link")


# --- roots ---

STATIC = r"""
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
/* A few tools in one static program: busybox's idea, without it. */
int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	char text[4096];
	int failed = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(name, "ls")) {
			struct dirent *e;
			DIR *d = opendir(argv[i]);
			while (d && (e = readdir(d)))
				if (e->d_name[0] != '.')
					puts(e->d_name);
			failed |= !d;
		} else if (!strcmp(name, "cat")) {
			int fd = open(argv[i], O_RDONLY), n = fd < 0 ? -1 : read(fd, text, sizeof(text));
			if (n > 0)
				fwrite(text, 1, n, stdout);
			failed |= n < 0;
		} else if (!strcmp(name, "touch")) {
			int fd = open(argv[i], O_CREAT | O_WRONLY, 0644);
			printf("%s: %s\n", argv[i], fd < 0 ? strerror(errno) : "made");
		} else if (!strcmp(name, "open")) {
			int fd = open(argv[i], O_RDWR);
			printf("%s: %s\n", argv[i], fd < 0 ? strerror(errno) : "opened");
		} else if (!strcmp(name, "id")) {
			printf("%d %d\n", getuid(), geteuid());
		}
	}
	fflush(stdout);
	return failed;
}
"""


@pytest.fixture(scope="session")
def tools():
    d = tempfile.mkdtemp(prefix="sbx-static-", dir="/var/tmp")
    os.chmod(d, 0o755)
    with open(d + "/tools.c", "w") as f:
        f.write(STATIC)
    subprocess.run(["gcc", "-static", "-O1", "-o", d + "/tools", d + "/tools.c"], check=True)
    yield d + "/tools"
    shutil.rmtree(d)


@pytest.fixture
def image(sbx, root, tools):
    """A small system in a directory: as debootstrap or an unpacked image leave one, and with what neither would."""
    image = sbx.tmp + "/image"
    for d in ("usr/bin", "usr/lib", "etc/app", "var/lib/app", "home", "srv", "root", "opt/app", "proc", "sys", ".ssh"):
        os.makedirs(f"{image}/{d}")
    for name in ("ls", "cat", "touch", "open", "id"):
        shutil.copy(tools, f"{image}/usr/bin/{name}")
    for path, text in (("etc/passwd", "root:x:0:0::/root:/bin/sh\nwww:x:33:33::/:/bin/false\n"), ("etc/app/conf", "own\n"),
                       ("etc/hosts", "192.0.2.99 allowed.test\n"), ("etc/os-release", "ID=image\n"),
                       ("opt/app/file", "app\n"), (".ssh/id", "secret\n"), ("file", "top\n")):
        with open(f"{image}/{path}", "w") as f:
            f.write(text)
    for link, text in (("bin", "usr/bin"), ("tmp", "/etc"), ("dev", "../../../dev"), ("run", "/usr"), ("abs", "/etc/app"),
                       ("up", "../../../../etc/app"), ("etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"),
                       ("etc/out", "../../../../../../../etc/hostname"), ("var/tmp", "/tmp")):
        os.symlink(text, f"{image}/{link}")
    os.makedirs(image + "/odd\n\x1b[2J")
    shutil.copy(tools, image + "/usr/bin/suid")
    shutil.copy(tools, image + "/usr/bin/rootsuid")
    os.mknod(image + "/opt/null", 0o020666, os.makedev(1, 3))
    os.chmod(image + "/opt/null", 0o666)
    os.mknod(image + "/node", 0o020666, os.makedev(1, 3))
    owner = 0 if root else sbx.world.user.pw_uid
    for base, dirs, files in os.walk(image):
        for name in [base] + [os.path.join(base, n) for n in dirs + files]:
            os.lchown(name, owner, owner)
    os.chown(image + "/usr/bin/rootsuid", 0, 0)
    for name in ("suid", "rootsuid"):
        os.chmod(f"{image}/usr/bin/{name}", 0o4755)
    return image


def test_minimal(sbx, root, tools):
    """Nothing is there but the sandbox's own and what is granted; the twin is the host's view."""
    grant = []
    for name in ("ls", "cat", "touch"):
        grant += ["--ro-bind", f"{tools}:/bin/{name}"]
    r = sbx.run(["--root", "minimal"] + grant, ["ls", "/", "/etc"], root=root)
    top = r.out.split()
    here = sbx.tmp.split("/")[1]
    assert set(top) - {here, "home", "var"} == {"bin", "dev", "etc", "proc", "run", "tmp"} | {
        "group", "hostname", "hosts", "mtab", "nsswitch.conf", "passwd", "resolv.conf", "ssl"}, r  # ssl: the trust store of terminated hosts
    r = sbx.run(["--root", "minimal"] + grant, ["cat", "/etc/resolv.conf", "/etc/hostname", "/etc/hosts"], root=root)
    assert r.rc == 0 and "nameserver 100.64.0.1\nsandbox\n127.0.0.1 localhost" in r.out, r
    r = sbx.run(["--root", "minimal"] + grant, ["touch", "/x", "/etc/x", "/bin/x", "/tmp/x", "/etc/passwd"], root=root)
    assert [line.split(": ")[1] for line in r.out.splitlines()] == \
        ["Read-only file system"] * 3 + ["made", "Permission denied"], r
    assert sbx.run(["--root", "minimal"] + grant, ["cat", "/etc/debian_version"], root=root).rc == 1
    assert sbx.run([], ["cat", "/etc/debian_version"], root=root).rc == 0


def test_minimal_with_the_systems_directories(sbx, root):
    """They need no prefix to be read there; with the libraries a program runs, without them it does not."""
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write(f"allowed_prefixes: [{sbx.work}]\n")
    libs = [f"--ro-bind={d}" for d in ("/lib", "/lib64") if os.path.exists(d)]
    r = sbx.run(["--root", "minimal", "--ro-bind", "/usr/bin/cat", *libs, "--ro-bind", "/usr/lib"],
                ["/usr/bin/cat", "/etc/hostname"], root=root)
    assert (r.rc, r.out) == (0, "sandbox\n"), r
    assert sbx.run(["--root", "minimal", "--ro-bind", "/usr/bin/cat"], ["/usr/bin/cat", "/etc/hostname"], root=root).rc != 0
    assert sbx.run(["--root", "minimal", "--ro-bind", "/etc"], ["/usr/bin/cat"], root=root).rc == 125
    assert sbx.run(["--root", "minimal", "--bind", "/usr/share"], ["/usr/bin/cat"], root=root).rc == 125


def test_directory(sbx, root, image):
    """Its programs run, its /etc is there with the sandbox's files over it; none of the host's is."""
    run = lambda *cmd: sbx.run(["--scratch", "--root", image], cmd, root=root)  # noqa: E731
    assert run("cat", "/etc/os-release", "/etc/app/conf", "/opt/app/file", "/file").out == "ID=image\nown\napp\ntop\n"
    r = run("cat", "/etc/hosts", "/etc/passwd", "/etc/resolv.conf")
    assert "192.0.2.99" not in r.out and "www:x:33:33" in r.out and "nameserver 100.64.0.1" in r.out, r
    assert r.out.index("root:x:0:0:root:/:/usr/sbin/nologin") < r.out.index("www:")
    top = set(run("ls", "/").out.split())
    assert {"bin", "usr", "etc", "var", "srv", "home", "opt", "file", "proc", "dev", "tmp", "run"} <= top
    assert not top & {"node", "lib64", "lib"}, top
    assert run("ls", "/.ssh").rc == 1
    r = run("touch", "/usr/bin/x", "/etc/x", "/etc/app/conf", "/opt/x", "/x", "/tmp/x", "/var/tmp/y")
    assert [line.split(": ")[1] for line in r.out.splitlines()] == ["Read-only file system"] * 5 + ["made"] * 2, r
    assert run("true").rc == 127  # the host has one
    assert sbx.run([], ["true"], root=root).rc == 0


def test_directory_with_a_home_and_grants(sbx, root, image, world):
    """Places that it lacks are made around what it has; nothing of that reaches the directory itself."""
    before = sorted(os.listdir(image + "/home") + os.listdir(image + "/srv") + os.listdir(image + "/var"))
    data = sbx.tmp + "/data"
    os.mkdir(data)
    shutil.copy(image + "/file", data + "/granted")
    os.chown(data, *[OWNER if root else world.user.pw_uid] * 2)
    r = sbx.run(["--scratch", "--root", image, "--ro-bind", f"{data}:/srv/deep/er", "--tmpfs", "/var/lib/new"],
                ["ls", "/srv/deep/er", "/var/lib", "/opt/app"], root=root)
    assert r.rc == 0 and sorted(r.out.split()) == ["app", "file", "granted", "new"], r
    r = sbx.run(["--scratch", "--root", image, "--bind", f"{data}:/srv/deep/er"], ["touch", "/srv/deep/er/new"], root=root)
    assert r.out.endswith("made\n"), r
    assert os.path.exists(data + "/new")
    assert sorted(os.listdir(image + "/home") + os.listdir(image + "/srv") + os.listdir(image + "/var")) == before


def test_hostile_directory(sbx, root, image):
    """Links, devices and setuid files in it give nothing; what is not hostile beside them works."""
    run = lambda *cmd: sbx.run(["--scratch", "--root", image], cmd, root=root)  # noqa: E731
    # Links are followed inside: to its own, or the sandbox's own, never out.
    assert run("cat", "/abs/conf", "/up/conf").out == "own\nown\n"
    assert run("cat", "/etc/out").out == "sandbox\n"
    # /tmp, /dev, /run and /proc are the sandbox's, whatever it has there.
    assert run("ls", "/tmp").out == "" and "null" in run("ls", "/dev").out.split()
    assert run("ls", "/run").out == "sbx\n" and "self" in run("ls", "/proc").out.split()
    r = run("open", "/opt/null", "/dev/null")
    assert r.out == "/opt/null: Permission denied\n/dev/null: opened\n", r
    link = image + "/usr/bin/id"
    for name in ("suid", "rootsuid"):
        os.rename(link, link + ".was")
        os.rename(f"{image}/usr/bin/{name}", link)
        os.chmod(link, 0o4755)
        real, effective = run("id", "x").out.split()
        assert real == effective != "0"
        os.unlink(link)
        os.rename(link + ".was", link)


@pytest.mark.parametrize("etc,ok", [("../..", False), ("/etc", False), ("etc.real", False), (None, True)])
def test_etc_of_a_hostile_directory(sbx, root, image, etc, ok):
    os.rename(image + "/etc", image + "/etc.real")
    if etc:
        os.symlink(etc, image + "/etc")
    r = sbx.run(["--scratch", "--root", image], ["cat", "/etc/hostname"], root=root)
    assert (r.rc, r.out) == ((0, "sandbox\n") if ok else (125, "")), r
    assert ok or ("an /etc that is no directory" in r.err and r.err.count("\n") == 1)


def test_directory_that_changes_while_a_run_starts(sbx, tools, world):
    """Its owner exchanges a part of it with a link to the host's: what is seen is what was judged, or nothing runs."""
    import ctypes
    import threading
    image = sbx.tmp + "/image"
    for d in ("usr/bin", "opt", "etc"):
        os.makedirs(f"{image}/{d}")
    shutil.copy(tools, image + "/usr/bin/cat")
    os.symlink("/etc", image + "/swap")
    for name in ("opt", "etc"):
        with open(f"{image}/{name}/debian_version", "w") as f:
            f.write("the image's\n")
    sbx.own(world.user.pw_uid)
    libc, stop = ctypes.CDLL(None), threading.Event()

    def exchange():
        while not stop.is_set():
            for name in ("opt", "etc"):
                for _ in range(2):
                    libc.renameat2(-100, f"{image}/{name}".encode(), -100, (image + "/swap").encode(), 2)
    t = threading.Thread(target=exchange)
    t.start()
    try:
        seen = [sbx.run(["--root", image], ["cat", "/opt/debian_version", "/etc/debian_version"]) for _ in range(40)]
    finally:
        stop.set()
        t.join()
    with open("/etc/debian_version") as f:
        host = f.read()
    assert all(host not in r.out for r in seen), seen
    assert all(r.rc in (0, 1, 125) for r in seen) and any(r.rc == 0 for r in seen), seen


@pytest.mark.parametrize("source,part", [("/", "holds the control socket"), ("/etc", "outside the allowed prefixes"),
                                         ("{}/missing", "does not exist"), ("{}/image/file", "no directory"),
                                         ("{}/image/.ssh", "blocked segment"), ("{}", "holds sbx's own"),
                                         ("{}/state", "its own files"), ("{}/image/proc/../usr", "'..'")])
def test_which_directories(sbx, root, image, source, part):
    r = sbx.run(["--root", source.format(sbx.tmp)], ["cat"], root=root)
    assert r.rc == 125 and "--root: " in r.err and part in r.err and r.err.count("\n") == 1, r


def test_directory_of_debian(sbx, tmp_path):
    """A dynamically linked program of a directory runs with the directory's loader and libraries, not the host's."""
    image = sbx.tmp + "/debian"
    os.makedirs(image + "/usr/bin")
    os.makedirs(image + "/etc")
    os.symlink("usr/bin", image + "/bin")
    for program in ("/usr/bin/dash", "/usr/bin/id"):
        shutil.copy(program, image + program)
        out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for word in out.split():
            if word.startswith("/"):
                os.makedirs(image + os.path.dirname(word), exist_ok=True)
                shutil.copy(word, image + word)
    os.symlink("dash", image + "/usr/bin/sh")
    with open(image + "/etc/passwd", "w") as f:
        f.write("image:x:4242:4242::/:/bin/sh\n")
    sbx.own(sbx.world.user.pw_uid)
    r = sbx.run(["--root", image], ["sh", "-c", "id -u image; id -un; echo $PATH; pwd"])
    assert r.out.splitlines() == ["4242", sbx.world.user.pw_name, "/usr/bin:/bin", sbx.work], r
    os.unlink(image + [line.split()[0] for line in subprocess.run(
        ["ldd", "/usr/bin/dash"], capture_output=True, text=True, check=True).stdout.splitlines() if "ld-linux" in line][0])
    assert sbx.run(["--root", image], ["sh", "-c", "true"]).rc in (126, 127)


def test_etc_that_changed_since_the_last_start(sbx):
    """Every start has the host's /etc of now."""
    script = """cp -a /etc "$1/etc"; mount --bind "$1/etc" /etc; mkdir -p /etc/vim; shift
                add() { echo "# $1" | tee -a /etc/services >>/etc/vim/below; }
                add new; chmod 755 /etc/vim; chmod 644 /etc/services /etc/vim/below
                "$@"; add "changed once"; "$@"; "$@"; add "changed twice"; "$@" """
    user = str(sbx.world.user.pw_uid)
    argv = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "env", "-C", sbx.work,
            os.path.join(INST, "bin/sbx-run"), "-q", "--", "grep", "-ch", "^# changed", "/etc/services", "/etc/vim/below"]
    r = subprocess.run([*sbx.world.ns(), "unshare", "-m", "sh", "-c", script, "sh", sbx.tmp, *argv], env=sbx.env(),
                       capture_output=True, text=True, timeout=60)
    assert (r.stdout, r.stderr) == ("0\n0\n1\n1\n1\n1\n2\n2\n", ""), r
    assert not sbx.leftovers()
