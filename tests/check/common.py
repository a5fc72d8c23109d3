# SPDX-License-Identifier: LGPL-2.1-or-later
"""Common parts of the tree's checks: TAP output and the list of the tree's files."""

import os
import struct
import subprocess
import sys

# The folders of C code that are layers, and those that only use them.
LAYER_DIRS = ("src", "policy", "launcher")
CODE_DIRS = LAYER_DIRS + ("tests", "bench")


class Tap:
    """Counts and prints results; exit_status() is the program's."""

    def __init__(self):
        self.n = 0
        self.n_failed = 0

    def ok(self, passed, name, details=()):
        self.n += 1
        self.n_failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.n} - {name}")
        for line in details:
            print(f"#   {line}")
        return passed

    def skip(self, name, why):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {why}")

    def exit_status(self):
        print(f"1..{self.n}")
        return 1 if self.n_failed else 0


def srcdir():
    return os.environ.get("SBX_SRCDIR", os.getcwd())


def builddir():
    return os.environ.get("SBX_BUILDDIR", os.getcwd())


def tool(name):
    """The command line of a build tool: configure's choice in the environment, or its usual name."""
    return os.environ.get(name, "").split() or [name.lower()]


def run(argv, **kwargs):
    return subprocess.run(argv, check=False, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)


def files(root, dirs, *suffixes):
    """Paths relative to @root of the files below @dirs that end in one of @suffixes, sorted."""
    found = []
    for d in dirs:
        for path, subdirs, names in os.walk(os.path.join(root, d)):
            subdirs[:] = [s for s in subdirs if not s.startswith(("_", ".")) and s != "corpus"]
            found += [os.path.relpath(os.path.join(path, n), root)
                      for n in names if n.endswith(suffixes)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def record(kind, text):
    """What http1_events and tls_carry read: a kind, a length and so many bytes."""
    return bytes([kind]) + struct.pack(">I", len(text)) + text


def main(check):
    tap = Tap()
    check(tap, srcdir(), builddir())
    sys.exit(tap.exit_status())
