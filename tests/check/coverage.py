# SPDX-License-Identifier: LGPL-2.1-or-later
"""coverage.py SRCDIR BUILDDIR: lines covered per source file, from gcov's counts (--enable-coverage)."""

import json
import os
import subprocess
import sys


def reports(build):
    """gcov's JSON for every object that ran."""
    for path, _dirs, names in os.walk(build):
        data = [os.path.join(path, n) for n in names if n.endswith(".gcda")]
        if not data:
            continue
        out = subprocess.run(["gcov", "--json-format", "--stdout"] + data, cwd=build, check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for line in out.splitlines():
            yield json.loads(line)


def main(src, build):
    covered = {}
    for report in reports(build):
        for entry in report["files"]:
            path = os.path.relpath(os.path.join(build, entry["file"]), src)
            lines = covered.setdefault(path, {})
            for line in entry["lines"]:
                lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
    n_all = n_hit = 0
    for path, lines in sorted(covered.items()):
        if path.startswith((".", "tests/")) or not lines:
            continue
        hit = sum(1 for count in lines.values() if count)
        n_all += len(lines)
        n_hit += hit
        print(f"{100 * hit / len(lines):5.1f}%  {hit:5}/{len(lines):<5} {path}")
    print(f"{100 * n_hit / max(n_all, 1):5.1f}%  {n_hit:5}/{n_all:<5} all")


if __name__ == "__main__":
    main(*sys.argv[1:])
