# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sizes and habits that a reader feels: long files, long functions, unfinished marks, licence lines."""

import collections
import os
import re

import common

FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 80
FOLDER_C_MAX = 20  # files; layers.py has the rooms of the program, which are smaller
WIDTH_MAX = 100  # columns of a line of C; a tab goes to the next multiple of 8
WEB_SUFFIXES = (".ts", ".tsx", ".mjs", ".css")
WEB_WIDTH_MAX = 120  # of the page; a tab goes to the next multiple of 4
WEB_FOLDER_MAX = 16  # files

# In pieces, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
# A sentence of a comment that begins so names nothing: say the thing (docs/HACKING.md, texts).
RIDDLE = re.compile(r'^\s*(/\*|\*|//|#|""")(.*[.:;])? *(Who|Whom|Whose|Whoever|What) [a-z]+ ')
SPDX = "SPDX-License-Identifier: LGPL-2.1-or-later"


def functions(text):
    """(line, name, lines) of every function: a `{` and its `}` alone in the first column."""
    lines = text.split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 4):start])
            name = (re.findall(r"(\w+)\s*\(", head) or ["?"])[-1]
            yield start + 1, name, i - start + 1
            start = None


def problems_of(path, text):
    found = []
    lines = text.split("\n")
    if len(lines) - 1 > FILE_LINES_MAX:
        found.append(f"{path}: {len(lines) - 1} lines (at most {FILE_LINES_MAX})")
    if SPDX not in "\n".join(lines[:3]):
        found.append(f"{path}:1: no licence line ({SPDX})")
    for i, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            found.append(f"{path}:{i}: unfinished: {line.strip()[:60]}")
        if RIDDLE.search(line):
            found.append(f"{path}:{i}: a comment says Who or What in place of a noun: {line.strip()[:60]}")
        if line != line.rstrip():
            found.append(f"{path}:{i}: white space at the end of the line")
    if path.endswith(WEB_SUFFIXES):
        found += [f"{path}:{i}: {len(line.expandtabs(4))} columns (at most {WEB_WIDTH_MAX})"
                  for i, line in enumerate(lines, 1) if len(line.expandtabs(4)) > WEB_WIDTH_MAX]
    if path.endswith((".c", ".h")):
        for i, line in enumerate(lines, 1):
            if len(line.expandtabs(8)) > WIDTH_MAX:
                found.append(f"{path}:{i}: {len(line.expandtabs(8))} columns (at most {WIDTH_MAX})")
        for line, name, n in functions(text):
            if n > FUNCTION_LINES_MAX:
                found.append(f"{path}:{line}: {name} has {n} lines (at most {FUNCTION_LINES_MAX})")
    return found


def check(tap, root, _build):
    for d in common.CODE_DIRS:
        paths = common.files(root, [d], ".c", ".h", ".py", ".sh", ".mk", ".sql")
        found = [p for path in paths for p in problems_of(path, common.read(root, path))]
        folders = collections.Counter(os.path.dirname(path) for path in paths if path.endswith(".c"))
        found += [f"{folder}: {n} C files (at most {FOLDER_C_MAX})" for folder, n in sorted(folders.items()) if n > FOLDER_C_MAX]
        tap.ok(not found, f"{d}/: {len(paths)} files", found)
    web = common.files(root, ["web/src", "web/test"], *WEB_SUFFIXES)  # not what is built beside them
    found = [p for path in web for p in problems_of(path, common.read(root, path))]
    folders = collections.Counter(os.path.dirname(path) for path in web)
    found += [f"{folder}: {n} files (at most {WEB_FOLDER_MAX})" for folder, n in sorted(folders.items()) if n > WEB_FOLDER_MAX]
    tap.ok(not found, f"web/: {len(web)} files", found)


if __name__ == "__main__":
    common.main(check)
