# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of looking for blocked names below a grant of 100,000 files, at the start and at the end: `true` with
such a workspace beside `true` with an empty one, in turns. The search at the end skips directories that have
not changed since some seconds before the start."""
import os
import time

import common
import start

TARGET_MS = 50
FILES = 100_000
SETTLED_S = 7
SHAPES = {"1,000 directories of 100": (10, 100, 100), "10,000 directories of 10": (100, 100, 10)}


def make_tree(places, name, shape):
    """Two levels of directories, then files: all of it within the default mask_depth, of 3."""
    top = places.own(name)
    outer, inner, files = shape
    for i in range(outer):
        for j in range(inner):
            directory = os.path.join(top, f"d{i}", f"e{j}")
            os.makedirs(directory)
            for k in range(files):
                os.close(os.open(os.path.join(directory, f"file{k}"), os.O_CREAT | os.O_WRONLY, 0o644))
    masked = os.path.join(top, "d1", "e1", ".ssh")
    os.mkdir(masked)
    for at, dirs, names in os.walk(top):
        for n in [at] + [os.path.join(at, n) for n in dirs + names]:
            os.chown(n, places.user.pw_uid, places.user.pw_gid)
    return top


def run(report, places, quick):
    report.section(f"Masking: `true` with a workspace of {FILES:,} files", "median ms", "p95 ms", "more ms", "runs")
    argv = [common.SBX_RUN, "--profile", "none", "--", "true"]
    found = [start.Candidate("an empty workspace", list(argv), cwd=places.own("empty"))]
    for name, shape in SHAPES.items():
        tree = make_tree(places, "tree" + str(len(found)), shape)
        found.append(start.Candidate(name, list(argv), cwd=tree, ours=True))
    time.sleep(SETTLED_S)
    for c in found:
        why = start.usable(places, c)
        if why:
            raise RuntimeError(f"{c.name}: {why}")
    times, failures = start.measure(places, found, 5 if quick else 30)
    empty = common.median(times[found[0].name])
    for c in found:
        mid = common.median(times[c.name])
        cells = (f"{mid:.2f}", f"{common.percentile(times[c.name], 0.95):.2f}", f"{mid - empty:.2f}",
                 f"{len(times[c.name])}")
        report.row(c.name, cells, value=mid - empty, at_most=TARGET_MS if c.ours else None, unit=" ms")
        if failures.get(c.name):
            report.note(f"{c.name}: {failures[c.name]} runs failed")
