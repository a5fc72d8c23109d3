# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a program where a system call does not work, as on an old kernel or under an old container's filter.

Usage: without.py SYSCALL[:ARG=VALUE] ERRNO PROGRAM [ARG...]   SYSCALL is a number, ERRNO a name; with ARG, a number
from 0, only calls where that argument is VALUE. The filter cannot be taken off: whatever the program starts has it, too.
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JEQ, RET = 0x20, 0x15, 0x06  # linux/bpf_common.h: LD|W|ABS, JMP|JEQ|K, RET|K
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7fff0000


def main():
    call, _, condition = sys.argv[1].partition(":")
    error = getattr(errno, sys.argv[2])
    rows = [(LOAD, 0, 0, 0), (JEQ, 0, 1, int(call)), (RET, 0, 0, SECCOMP_RET_ERRNO | error), (RET, 0, 0, SECCOMP_RET_ALLOW)]
    if condition:
        arg, value = map(int, condition.split("="))
        rows[1] = (JEQ, 0, 3, int(call))
        rows[2:2] = [(LOAD, 0, 0, 16 + 8 * arg), (JEQ, 0, 1, value)]  # struct seccomp_data: args, low half first
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    buf = ctypes.create_string_buffer(code, len(code))
    prog = ctypes.create_string_buffer(struct.pack("HP", len(rows), ctypes.addressof(buf)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog) != 0:
        sys.exit(f"without.py: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[3], sys.argv[3:])


main()
