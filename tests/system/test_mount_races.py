# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names that trade places as fast as the kernel can while sandboxes start: what is mounted is what was judged.

Each race takes two seconds, ten for an ordinary user. An exchange replaces an allowed directory by a symlink that leads
out of the prefix: a user without rights outside can do no more. (After an exchange with a directory from outside, that
directory lies in the prefix when it is judged, and the judged object is mounted.) Every run sees the allowed directory
or is refused. Some runs must see it, or nothing was tested.
"""
import contextlib
import os
import subprocess
import threading
import time

import pytest

from conftest import USER

SECONDS = 2
PATIENCE_SECONDS = 60  # where the machine is busy, until one has started
STARTERS = 3
EXCHANGE = os.path.join(os.environ.get("SBX_BUILDDIR", ""), "tests", "system", "exchange")


class Track:
    def __init__(self, sbx, world, who):
        self.sbx, self.who, self.root, self.d = sbx, who, who != "user", sbx.tmp + "/data"
        d, uid = self.d, world.user.pw_uid
        for name in ("ws/swap/leaf", "ws/real", "ws/.ssh", "ws/point/at", "ws/two/leaf-was", "out/leaf"):
            os.makedirs(os.path.join(d, name))
        for name, text in (("ws/swap/mark", "inside"), ("ws/swap/leaf/mark", "inside"), ("ws/real/mark", "inside"),
                           ("ws/file", "inside"), ("ws/.ssh/mark", "OUTSIDE"), ("out/mark", "OUTSIDE"),
                           ("out/leaf/mark", "OUTSIDE")):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        for name, to in (("ws/swap-link", "../out"), ("ws/swap-blocked", ".ssh"), ("ws/file-link", "../out/mark"),
                         ("ws/hop", "real"), ("ws/hop-link", "../out"), ("ws/via", "hop"), ("ws/two/leaf", "../../out"),
                         ("ws/point-link", "/tmp")):
            os.symlink(to, os.path.join(d, name))
        with open(sbx.config + "/system.yaml", "w") as f:
            f.write(f"allowed_prefixes: [{d}/ws]\n")
        sbx.own(0 if self.root else uid)
        for at, dirs, files in os.walk(d):
            for path in [at] + [os.path.join(at, n) for n in dirs + files]:
                os.lchown(path, uid, uid)

    @contextlib.contextmanager
    def exchanging(self, a, b):
        p = subprocess.Popen([EXCHANGE, os.path.join(self.d, a), os.path.join(self.d, b)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        try:
            yield
        finally:
            out, _ = p.communicate(timeout=30)
        assert p.returncode == 0 and int(out) > 1000, (p.returncode, out)

    def race(self, a, b, args, script):
        """Sandboxes that start side by side while @a and @b trade places: what each of them said."""
        args = ["--scratch", *(["--user", USER] if self.who == "root" else [])] + [x.format(d=self.d) for x in args]
        begin, results = time.monotonic(), []

        def start():
            while time.monotonic() < begin + SECONDS or (time.monotonic() < begin + PATIENCE_SECONDS and
                                                         not any(r.rc == 0 for r in results)):
                results.append(self.sbx.run(args, ["sh", "-c", script], root=self.root))
        with self.exchanging(a, b):
            threads = [threading.Thread(target=start) for _ in range(STARTERS)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        assert all(r.rc in (0, 125) for r in results), [r for r in results if r.rc not in (0, 125)]
        assert all(r.out == "" and "sbx-run: " in r.err for r in results if r.rc == 125), results
        seen = [r.out for r in results if r.rc == 0]
        print(f"{a}: {len(seen)} of {len(results)} started")
        assert seen, results[:3]
        return seen

    def outside(self):
        return sorted(os.path.join(at, n)[len(self.d):] for top in ("out", "ws/.ssh")
                      for at, dirs, files in os.walk(os.path.join(self.d, top)) for n in dirs + files)


READ = "cat /granted/mark"
# name: the two that trade places, what is granted, what the command does
RACES = {
    "last component": ("ws/swap", "ws/swap-link", ["--bind", "{d}/ws/swap:/granted"], READ + "; echo x > /granted/new"),
    "component on the way": ("ws/swap", "ws/swap-link", ["--ro-bind", "{d}/ws/swap/leaf:/granted"], READ),
    "directory with another below": ("ws/swap", "ws/two", ["--ro-bind", "{d}/ws/swap/leaf:/granted"], READ),
    "symlink on the way": ("ws/hop", "ws/hop-link", ["--bind", "{d}/ws/via:/granted"], READ + "; echo x > /granted/new"),
    "blocked segment": ("ws/swap", "ws/swap-blocked", ["--bind", "{d}/ws/swap:/granted"], READ + "; echo x > /granted/new"),
}


@pytest.fixture(params=["user", "root", "pool"])
def track(sbx, world, request):
    return Track(sbx, world, request.param)


@pytest.mark.parametrize("name", RACES)
def test_what_is_mounted_is_what_was_judged(track, name):
    before = track.outside()
    assert set(track.race(*RACES[name])) == {"inside"}
    assert track.outside() == before


def test_file(track):
    seen = track.race("ws/file", "ws/file-link", ["--ro-bind", "{d}/ws/file:/granted"], "cat /granted")
    assert set(seen) == {"inside"}


def test_target(track):
    """The place for an inner grant, in a directory that somebody else has, becomes a symlink to the sandbox's own
    /tmp: what was to lie there does not appear elsewhere. The way to it is pinned, so it is mounted twice, and what is
    moved between the two has it at one of the places or at both."""
    where = "awk '$5 ~ /at$/ { print $5 }' /proc/self/mountinfo; ls /tmp"
    seen = track.race("ws/point", "ws/point-link", ["--bind", "{d}/ws:/granted", "--ro-bind",
                                                    "{d}/ws/real:/granted/point/at"], where)
    assert all(set(s.split()) <= {"/granted/point/at", "/granted/point-link/at"} for s in seen), set(seen)


def test_prefix(track):
    """The profile's prefix itself, in a directory that a sandbox can have, becomes a symlink."""
    track.sbx.profile("narrow", f"name: narrow\nfilesystem:\n  allowed_prefixes: [{track.d}/ws/swap]\n")
    seen = track.race("ws/swap", "ws/hop", ["--profile", "narrow", "--ro-bind", "{d}/ws/swap:/granted"],
                      "ls /granted; " + READ)
    assert set(seen) == {"leaf\nmark\ninside"}, set(seen)
