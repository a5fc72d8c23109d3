# SPDX-License-Identifier: LGPL-2.1-or-later
"""A workspace in its three ways: the user's sandbox, root's for that user, root's with a uid of its own (id-mapped)."""
import os
import stat
import subprocess

import pytest

from conftest import USER

WAYS = ["user", "root", "pool"]


class Workspace:
    def __init__(self, sbx, way, new_protected=None):
        self.sbx, self.way, self.dir, self.new_protected = sbx, way, sbx.work, new_protected
        self.root = way != "user"
        os.unlink(os.path.join(sbx.work, "inside.py"))
        if self.root:
            sbx.own(0)
            self.give()
        if new_protected:
            self.policy("")

    def policy(self, text):
        """The host's system.yaml, which forces filesystem.new_protected where the test asked for one."""
        path = os.path.join(self.sbx.config, "system.yaml")
        with open(path, "w") as f:
            f.write((f"new_protected: {self.new_protected}\n" if self.new_protected else "") + text)
        os.chmod(path, 0o644)
        os.chown(path, 0, 0)

    def give(self):
        user = self.sbx.world.user
        for at, dirs, files in os.walk(self.dir):
            for name in [at] + [os.path.join(at, n) for n in dirs + files]:
                os.lchown(name, user.pw_uid, user.pw_gid)

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, tree):
        """{"dir/": None, "file": text, "link": ("target",)}"""
        for name, what in tree.items():
            path = self.path(name)
            os.makedirs(path if what is None else os.path.dirname(path), exist_ok=True)
            if isinstance(what, tuple):
                os.symlink(what[0], path)
            elif what is not None:
                with open(path, "w") as f:
                    f.write(what)
        self.give()

    def args(self, args=()):
        return (["--user", USER] if self.way == "root" else []) + list(args)

    def run(self, script, args=(), cmd=(), **kw):
        return self.sbx.run(self.args(args), ["sh", "-c", script, "sh", *cmd], root=self.root, **kw)

    def popen(self, script, args=(), **kw):
        return self.sbx.popen(self.args(args), ["sh", "-c", script], root=self.root, **kw)

    def outside(self, *argv, check=True):
        """As the owner, on the host."""
        return subprocess.run([*self.sbx.world.ns(USER), "env", "-C", self.dir, "HOME=/nonexistent", *argv],
                              capture_output=True, text=True, timeout=30, check=check,
                              env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"})

    def snapshot(self):
        found = {}
        for at, dirs, files in os.walk(self.dir):
            for name in dirs + files:
                path = os.path.join(at, name)
                text = None
                try:
                    st = os.lstat(path)
                    if stat.S_ISREG(st.st_mode):
                        with open(path, "rb") as f:
                            text = f.read()
                except FileNotFoundError:  # removed while we look: so it is not there
                    continue
                found[os.path.relpath(path, self.dir)] = (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), text)
        return found


@pytest.fixture(params=WAYS)
def space(sbx, request):
    return Workspace(sbx, request.param)


@pytest.fixture(params=WAYS)
def strict(sbx, request):
    """The same, where what is protected cannot be made."""
    return Workspace(sbx, request.param, "refuse")
