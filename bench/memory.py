# SPDX-License-Identifier: LGPL-2.1-or-later
"""The memory of a sandbox: PSS of our processes with a number of sandboxes up."""
import contextlib
import subprocess

import common

N_SANDBOXES = 20
TARGET_MIB = 8
# Memory that bwrap would use without sbx. sbx-init replaces bwrap's own init and counts as ours.
OTHERS = ("bwrap", "command")


def pss_kib(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    return 0


def part_of(pid, launcher):
    """The row that a process belongs to: its program, and its name too where one program has two roles."""
    program = common.exe_name(pid)
    if pid == launcher:
        return "sbx-run (launcher)"
    if program == "sbx-run":
        with open(f"/proc/{pid}/comm") as f:
            name = f.read().strip()
        return f"sbx-run ({name})" if name != "sbx-run" else "sbx-run (its children)"
    if program.startswith("sbx-"):
        return program
    return "bwrap" if program == "bwrap" else "command"


def start_one(places):
    proc = subprocess.Popen([common.SBX_RUN, "--profile", "install", "--", "sh", "-c",
                             "echo up; exec sleep 120"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **places.as_user())
    if proc.stdout.readline().strip() != "up":
        raise RuntimeError("sbx-run did not start: " + proc.stderr.read().strip())
    return proc


def run(report, places, quick):
    n = 5 if quick else N_SANDBOXES
    report.section(f"Memory with {n} sandboxes up (PSS per sandbox)", "MiB", "processes")
    sums, counts = {}, {}
    with contextlib.ExitStack() as stack:
        launchers = []
        for _ in range(n):
            proc = start_one(places)
            stack.callback(common.end, proc)
            launchers.append(proc.pid)
        table = common.processes()
        for launcher in launchers:
            for pid in common.descendants(launcher, table):
                part = part_of(pid, launcher)
                sums[part] = sums.get(part, 0) + pss_kib(pid) / 1024
                counts[part] = counts.get(part, 0) + 1
    for part in sorted(sums, key=lambda p: (p in OTHERS, p)):
        report.row(part, (f"{sums[part] / n:.2f}", f"{counts[part] / n:g}"))
    ours = sum(v for part, v in sums.items() if part not in OTHERS) / n
    report.row("ours together", (f"{ours:.2f}",), value=ours, at_most=TARGET_MIB)
