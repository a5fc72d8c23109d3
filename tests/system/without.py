# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a program where a system call does not work, as on an old kernel or under an old container's filter.

Usage: without.py SYSCALL ERRNO PROGRAM [ARG...]   SYSCALL is a number, ERRNO a name. The filter cannot be taken off:
whatever the program starts has it, too.
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NR, JEQ, RET = 0x20, 0x15, 0x06  # linux/bpf_common.h: LD|W|ABS, JMP|JEQ|K, RET|K
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7fff0000


def main():
    nr, error = int(sys.argv[1]), getattr(errno, sys.argv[2])
    code = b"".join(struct.pack("HBBI", *row) for row in (
        (LOAD_NR, 0, 0, 0), (JEQ, 0, 1, nr), (RET, 0, 0, SECCOMP_RET_ERRNO | error), (RET, 0, 0, SECCOMP_RET_ALLOW)))
    buf = ctypes.create_string_buffer(code, len(code))
    prog = ctypes.create_string_buffer(struct.pack("HP", 4, ctypes.addressof(buf)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog) != 0:
        sys.exit(f"without.py: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[3], sys.argv[3:])


main()
