# SPDX-License-Identifier: LGPL-2.1-or-later
"""
The documents and the code agree on names: a file of the tree that a document or a comment names is there. A
paragraph of docs/ARCHITECTURE.md and its parts has at most six lines. Subjects of new commits fit 72 columns.
"""

import os
import re

import common

PATHS = re.compile(r"(?<![\w./-])((?:launcher|src|policy|tests|bench|migrations|profiles|man|completion)/[\w./-]*\w\.(?:c|h|py|sh|sql|yaml|mk))\b")
# A file's name alone, where it is no include and no part of a path.
NAMES = re.compile(r"(?<![\w./<-])([a-z][a-z0-9_]*\.[ch])\b(?!>)")
# Of the kernel, libraries and generated code.
OTHERS = {"config.h", "seccomp_programs.c", "c.h", "udata.h", "id_map.c"}
PARAGRAPH_LINES_MAX = 6
SUBJECT_MAX = 72
SUBJECTS_SINCE = "2026-11-24 22:40 +0000"  # older ones are history


def missing_paths(root):
    paths = common.files(root, ("docs",), ".md") + ["README.md", "NEWS.md", "SECURITY.md"]
    paths += common.files(root, common.LAYER_DIRS + ("tests/check",), ".c", ".h", ".py", ".mk")
    names = {os.path.basename(p) for p in common.files(root, common.CODE_DIRS, ".c", ".h")} | OTHERS
    for path in paths:
        text = common.read(root, path)
        if path.endswith("selftest.py"):
            continue
        for name in sorted(set(PATHS.findall(text))):
            if "NNNN" not in name and not os.path.exists(os.path.join(root, name)):
                yield f"{path}: {name} is not there"
        for name in sorted(set(NAMES.findall(text)) - names):
            if path.endswith((".c", ".h", ".md")):
                yield f"{path}: there is no {name}"


def long_paragraphs(root):
    for path in ["docs/ARCHITECTURE.md"] + common.files(root, ("docs/architecture",), ".md"):
        n = 0
        for i, line in enumerate(common.read(root, path).split("\n"), 1):
            prose = line and not line.startswith(("|", "#", "    ", "- ", "* ")) and not re.match(r"\d+\. ", line)
            n = n + 1 if prose else 0
            if n == PARAGRAPH_LINES_MAX + 1:
                yield f"{path}:{i}: a paragraph of more than {PARAGRAPH_LINES_MAX} lines"


def long_subjects(root):
    done = common.run(["git", "-C", root, "log", "--format=%h %s", f"--since={SUBJECTS_SINCE}"])
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_MAX:
            yield f"{commit}: the subject has {len(subject)} columns (at most {SUBJECT_MAX})"


def check(tap, root, _build):
    for what, problems in (("files that are named are there", missing_paths(root)),
                           ("paragraphs are short", long_paragraphs(root)),
                           ("subjects of commits are short", long_subjects(root))):
        found = list(problems)
        tap.ok(not found, what, found)


if __name__ == "__main__":
    common.main(check)
