# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Attempts of a command, one function each. An attempt must fail in a sandbox. It must work outside:
otherwise its failure proves nothing. Prints one JSON value: {"ok": ..., "why": ...}. The text is
passed to python3 -c: it uses the standard library only, and no file beside it.
"""
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
NR = dict(zip(
    "ptrace syslog setns process_vm_readv unshare clone clone3 io_uring_setup pidfd_open pidfd_getfd bpf perf_event_open "
    "keyctl add_key userfaultfd mknodat openat2 fchmodat kcmp move_pages open_by_handle_at name_to_handle_at "
    "renameat2".split(),
    {"x86_64": (101, 103, 308, 310, 272, 56, 435, 425, 434, 438, 321, 298, 250, 248, 323, 259, 437, 268, 312, 279, 304,
                303, 316),
     "aarch64": (117, 116, 268, 270, 97, 220, 435, 425, 434, 438, 280, 241, 219, 217, 282, 33, 437, 53, 272, 239, 265,
                 264, 276)}[os.uname().machine]))


def call(name, *args):
    """A bare system call, or OSError. Integers are whole registers."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(NR[name]), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


def child():
    """A process of ours that waits."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    return pid


# --- files ---

def read(path):
    with open(path, "rb") as f:
        return bool(f.read(1))


def listing(path):
    return bool(os.listdir(path))


def writable(path):
    """For writing, not a byte written."""
    os.close(os.open(path, os.O_WRONLY))
    return True


def memory(pid):
    """A byte of the memory of another process."""
    with open(f"/proc/{pid}/maps") as f:
        start = next(int(line.split("-")[0], 16) for line in f if " r" in line)
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        f.seek(start)
        return len(f.read(1)) == 1


def symbols():
    """An address of the kernel."""
    with open("/proc/kallsyms") as f:
        return any(int(line.split()[0], 16) for line in f)


def handle(path):
    """A file of the file system that @path is in, by its handle."""
    buf, mount = ctypes.create_string_buffer(136), ctypes.c_int()
    struct.pack_into("I", buf, 0, 128)
    call("name_to_handle_at", -100, path.encode(), buf, ctypes.addressof(mount), 0)
    fd = os.open(path, os.O_RDONLY)
    call("open_by_handle_at", fd, buf, os.O_RDONLY)
    return True


def device(path):
    call("mknodat", -100, path.encode(), 0o20666, 0)  # 0:0, which needs no capability
    os.unlink(path)
    return True


def rename(path, flags):
    """With RENAME_WHITEOUT (4) the device 0:0 stays where the file was. Bits above 32 are the caller's to choose."""
    flags = int(flags, 16)
    for name in (path, path + ".to"):  # RENAME_EXCHANGE (2) wants both
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600))
    call("renameat2", -100, path.encode(), -100, (path + ".to").encode(), flags)
    return not flags & 4 or stat.S_ISCHR(os.lstat(path).st_mode)


def set_id(path, mode, how):
    """A file with that mode, by chmod, open, tmpfile, mknod or openat2."""
    mode = int(mode, 8)
    os.umask(0)
    if how == "chmod":
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        os.chmod(path, mode)
    elif how == "open":
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode))
    elif how == "tmpfile":
        fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY, mode)
        return os.fstat(fd).st_mode & 0o7777 == mode
    elif how == "mknod":
        os.mknod(path, mode)
    elif how == "openat2":
        call("openat2", -100, path.encode(), struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, mode, 0), 24)
    return os.stat(path).st_mode & 0o7777 == mode


# --- sockets ---

def connect(path):
    """A unix socket: a path, or @name for an abstract one."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + path[1:] if path[0] == "@" else path)
        return s.recv(100) != b""


def family(number, kind, protocol="0"):
    socket.socket(int(number), int(kind), int(protocol)).close()
    return True


def option(kind, level, name, value):
    """An option of an IPv4 socket, and of an IPv6 one."""
    for domain in socket.AF_INET, socket.AF_INET6:
        with socket.socket(domain, int(kind)) as s:
            s.setsockopt(int(level), int(name), int(value))
    return True


# --- processes ---

def trace():
    pid = child()
    try:
        call("ptrace", 16, pid, 0, 0)  # ATTACH
        os.waitpid(pid, 0)
        return True
    finally:
        os.kill(pid, signal.SIGKILL)


def trace_pid(pid):
    call("ptrace", 0x4206, int(pid), 0, 0)  # SEIZE
    return True


def vm_read():
    pid, byte = child(), ctypes.create_string_buffer(b"x", 1)
    iov = struct.pack("PN", ctypes.addressof(byte), 1)
    try:
        return call("process_vm_readv", pid, iov, 1, iov, 1, 0) == 1
    finally:
        os.kill(pid, signal.SIGKILL)


def take_fd():
    pid = child()
    try:
        call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)
        return True
    finally:
        os.kill(pid, signal.SIGKILL)


def compare():
    return call("kcmp", os.getpid(), os.getpid(), 0, 0, 0) == 0


def in_child(name, *args):
    """The call in a child, which it may change: did it work there?"""
    pid = os.fork()
    if pid == 0:
        try:
            call(name, *args)
        except OSError as e:
            os._exit(e.errno)
        os._exit(0)
    e = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if e:
        raise OSError(e, os.strerror(e))
    return True


def unshare(flags):
    return in_child("unshare", int(flags, 16))


def clone(flags):
    pid = call("clone", int(flags, 16) | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def clone3(flags):
    pid = call("clone3", struct.pack("8Q", int(flags, 16), 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def join():
    """The user namespace that a process is in may not be joined again (EINVAL); to hear that, ask."""
    fd = os.open("/proc/self/ns/uts", os.O_RDONLY)
    return in_child("setns", fd, 0)


# --- the kernel ---

def io_uring():
    return call("io_uring_setup", 1, ctypes.create_string_buffer(120)) >= 0


def bpf():
    return call("bpf", 0, struct.pack("IIIII", 2, 4, 4, 1, 0) + bytes(100), 120) >= 0  # an array


def perf():
    attr = bytearray(112)
    struct.pack_into("IIQ", attr, 0, 1, 112, 0)  # the processor's clock, in software
    struct.pack_into("Q", attr, 40, 1 << 5 | 1 << 6)  # not the kernel's time
    return call("perf_event_open", bytes(attr), 0, -1, -1, 0) >= 0


def user_fault():
    return call("userfaultfd", 1) >= 0  # of user space alone


def key():
    return call("add_key", b"user", b"sbx-probe", b"x", 1, -2) > 0  # the process's own ring


def user_keyring():
    return call("keyctl", 0, -4, 0) > 0


def kernel_log():
    return call("syslog", 10, 0, 0) >= 0


def pages():
    page, status = ctypes.create_string_buffer(b"x"), ctypes.c_int()
    call("move_pages", 0, 1, struct.pack("P", ctypes.addressof(page) & ~4095), 0, ctypes.addressof(status), 0)
    return True


# --- the terminal, which is stdin ---

def terminal(number, *values):
    """An ioctl; ENOTTY is a terminal's word, too: it was asked. Bits above 32 are the caller's to choose."""
    number = int(number, 16)
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long({"x86_64": 16, "aarch64": 29}[os.uname().machine]), ctypes.c_long(0),
                     ctypes.c_long(number), (values[0].encode() if values else b"") + bytes(64))
    e = ctypes.get_errno()
    if r < 0 and e not in (errno.ENOTTY, errno.EINVAL, errno.EFAULT):
        raise OSError(e, os.strerror(e))
    return True


def main(name, *args):
    try:
        result = {"ok": bool(globals()[name](*args)), "why": ""}
    except OSError as e:
        result = {"ok": False, "why": errno.errorcode.get(e.errno, str(e))}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
