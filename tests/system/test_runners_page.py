# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/RUNNERS.md: each example is run, in the order of the page, and prints what the page says."""
import os
import re
import shutil
import signal
import subprocess
import textwrap

from conftest import INST, USER
from test_lifecycle import clean, processes, wait_until  # noqa: F401

TOP = os.environ["SBX_SRCDIR"]
FILES = {"name: runner": "runner.yaml", "name: watched": "watched.yaml", "profile: ./runner.yaml": "job-7.yaml"}


def page():
    with open(os.path.join(TOP, "docs/RUNNERS.md"), encoding="utf-8") as f:
        return f.read()


def blocks():
    return [textwrap.dedent(text).strip("\n") for text in re.findall(r"(?:^    .*\n)+", page(), re.M)]


def examples():
    """[(command, what it prints)]; a line that is indented further goes on with the command."""
    found = []
    for block in blocks():
        if not block.startswith("$ "):
            continue
        for line in block.split("\n"):
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif line.startswith("    "):
                found[-1][0] += "\n" + line
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(printed)) for command, printed in found]


def put_files(sbx):
    seen = set()
    for block in blocks():
        for first, name in FILES.items():
            if block.startswith(first + "\n"):
                sbx.put(name, block + "\n", own=True)
                seen.add(name)
    assert seen == set(FILES.values())


def matches(printed, text):
    return re.fullmatch(".*".join(map(re.escape, printed.split("[...]"))), text, re.S) is not None


def test_page(sbx, clean):
    for tool in ("jq", "sqlite3", "curl"):
        assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    put_files(sbx)
    run = examples()
    assert len(run) > 20
    script = "".join(f"echo; echo @@\n{command}\n" for command, _ in run)
    argv = sbx.world.ns(USER) + ["env", "-C", sbx.work, "bash", "-c", "exec 2>&1\n" + script]
    p = subprocess.Popen(argv, env={**sbx.env(), "PATH": f"{INST}/bin:/usr/bin:/bin"}, text=True, stdout=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = p.communicate(timeout=100)
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    outputs = [text.strip("\n") for text in out.split("@@\n")[1:]]
    assert len(outputs) == len(run), out
    for (command, printed), text in zip(run, outputs):
        assert matches(printed, text), f"$ {command}\nthe page:\n{printed}\nprinted:\n{text}\n\nall:\n{out}"
    assert wait_until(lambda: sbx.leftovers() == [])
    assert {r["state"] for r in sbx.sandboxes()} == {"done", "killed"}
    left = sbx.rows("SELECT pattern FROM sandbox_rule WHERE workspace = 'team-a'")
    assert left == []
