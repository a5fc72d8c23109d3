# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Ways to execute a program that is on no list, tried in a sandbox; prints {way: "ran" or the errno}. ./evil is a program that
ends with 0, /usr/bin/ls a program of the system. Standard library only.
"""
import ctypes
import errno
import json
import mmap
import os
import shutil
import sys

LOADER = sys.argv[1]
NOEXEC_SEAL = 8
libc = ctypes.CDLL(None, use_errno=True)


def copy(to, mode=0o755):
    shutil.copyfile("evil", to)
    os.chmod(to, mode)
    return to


def execute(path, *args):
    os.execv(path, [path, *args])


def workspace():
    execute("./evil")


def tmp():
    execute(copy("/tmp/evil"))


def shm():
    execute(copy("/dev/shm/evil"))


def home():
    execute(copy(os.path.expanduser("~/evil")))


def setuid():
    execute(copy("/tmp/evil-setuid", 0o4755))


def setgid():
    execute(copy("/tmp/evil-setgid", 0o2755))


def hard_link():
    if os.path.exists("evil-link"):
        os.unlink("evil-link")
    os.link("evil", "evil-link")
    execute("./evil-link")


def symlink():
    os.symlink("/usr/bin/ls", "/tmp/ls")
    execute("/tmp/ls")


def symlink_from_listed_name():
    os.symlink(copy("/tmp/evil-target"), "/tmp/cat")
    execute("/tmp/cat")


def system_program():
    execute("/usr/bin/ls")


def by_proc_root():
    execute("/proc/self/root/usr/bin/ls")


def memfd():
    fd = os.memfd_create("x", 0)
    os.write(fd, open("evil", "rb").read())
    execute(f"/proc/self/fd/{fd}")


def memfd_execveat():
    fd = libc.syscall(319, b"x", 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "memfd_create")
    os.write(fd, open("evil", "rb").read())
    os.execve(fd, ["x"], os.environ)


def memfd_sealed():
    fd = libc.syscall(319, b"x", NOEXEC_SEAL)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "memfd_create")
    os.write(fd, open("evil", "rb").read())
    os.execve(fd, ["x"], os.environ)


def memfd_high_bits():
    """The kernel reads an int: what is above it is not the flag."""
    fd = libc.syscall(319, b"x", ctypes.c_ulong(NOEXEC_SEAL << 32))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "memfd_create")
    os.execve(fd, ["x"], os.environ)


def tmpfile():
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
    os.write(fd, open("evil", "rb").read())
    path = f"/proc/self/fd/{fd}"
    read = os.open(path, os.O_RDONLY)
    os.close(fd)
    os.execve(read, ["x"], os.environ)


def deleted():
    copy("/tmp/evil-deleted")
    fd = os.open("/tmp/evil-deleted", os.O_RDONLY)
    os.unlink("/tmp/evil-deleted")
    execute(f"/proc/self/fd/{fd}")


def o_path():
    fd = os.open("/usr/bin/ls", os.O_PATH)
    os.execve(fd, ["ls"], os.environ)


def script():
    with open("/tmp/script", "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod("/tmp/script", 0o755)
    execute("/tmp/script")


def loader_on_workspace():
    execute(LOADER, "./evil")


def loader_on_tmp():
    execute(LOADER, copy("/tmp/evil-loaded"))


def loader_on_system_program():
    execute(LOADER, "/usr/bin/true")


def loader_on_moved():
    """A moved file keeps the rights of its old place and does not get those of its new one."""
    os.mkdir("/tmp/a")
    os.rename(copy("/tmp/evil-moved"), "/tmp/a/evil")
    execute(LOADER, "/tmp/a/evil")


def map_executable():
    fd = os.open(copy("/tmp/evil-mapped"), os.O_RDONLY)
    mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    os._exit(0)


def attempt(way):
    """A loader that may not read or map says so by status 127."""
    pid = os.fork()
    if pid == 0:
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            way()
        except OSError as e:
            os._exit(e.errno)
        finally:
            os._exit(255)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "ran" if status == 0 else "loader" if status == 127 else errno.errorcode.get(status, str(status))


WAYS = [workspace, tmp, shm, home, setuid, setgid, hard_link, symlink, symlink_from_listed_name, system_program, by_proc_root,
        memfd, memfd_execveat, memfd_sealed, memfd_high_bits, tmpfile, deleted, o_path, script, loader_on_workspace, loader_on_tmp,
        loader_on_system_program, loader_on_moved, map_executable]

if __name__ == "__main__":
    print(json.dumps({way.__name__: attempt(way) for way in WAYS}))
