# SPDX-License-Identifier: LGPL-2.1-or-later
"""systemd's own opinion of the units (systemd-analyze, without a manager); how they run is tests/vm's."""

import os
import re
import shutil
import tempfile

import common


def put(directory, name, text, programs):
    """The unit with every program that it starts in @programs."""
    with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?m)^(Exec\w+=)\S*/", r"\1" + programs + "/", text))


def verify(directory, name, *more):
    r = common.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *more,
                    os.path.join(directory, name)])
    said = [line for line in r.stdout.splitlines() if line]
    return r.returncode == 0 and not said, said


def check(tap, root, _build):
    if not shutil.which("systemd-analyze"):
        tap.skip("units", "systemd-analyze is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="sbx-units-") as directory:
        programs = os.path.join(directory, "bin")
        os.mkdir(programs)
        for program in ("sbx-run", "sbxd", "sbx-output", "job-runner", "sh"):
            os.symlink("/bin/true", os.path.join(programs, program))
        units = {"sbx@.service": "sbx@.service.in", "sbx.slice": "sbx.slice",
                 "job-runner.service": "examples/job-runner.service",
                 "sbxd.service": "sbxd.service.in", "sbxd.socket": "sbxd.socket",
                 "sbx-sandbox@.service": "sbx-sandbox@.service.in", "sbx-sandbox.socket": "sbx-sandbox.socket"}
        for name, source in units.items():
            text = common.read(root, "systemd/" + source).replace("@bindir@", programs).replace("@pkglibexecdir@", programs)
            put(directory, name, text, programs)
        for name in units:
            fine, said = verify(directory, name)
            tap.ok(fine, f"{name} is what systemd takes", said)
        for name in ("sbxd.service", "sbxd.socket"):  # the user's, in a directory without the system's
            source = "systemd/user/" + name + (".in" if name.endswith(".service") else "")
            put(directory, name, common.read(root, source).replace("@bindir@", programs), programs)
        os.environ.setdefault("XDG_RUNTIME_DIR", directory)
        for name in ("sbxd.service", "sbxd.socket"):
            fine, said = verify(directory, name, "--user")
            tap.ok(fine, f"user/{name} is what systemd takes", said)
        put(directory, "broken.service", "[Service]\nType=notfy\nExecStart=/bin/sbx-run\n", programs)
        fine, said = verify(directory, "broken.service")
        tap.ok(not fine and any("notfy" in line for line in said), "a broken one is not", said)


if __name__ == "__main__":
    common.main(check)
