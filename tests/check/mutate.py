#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mutation testing, by hand: one small change at a time, and whether a test sees it.

    tests/check/mutate.py src/wire/http_head.c policy/decide/policy_decide.c
    tests/check/mutate.py -t 60 -s 7 src/sys/fs/path_resolve.c:150-300
    tests/check/mutate.py --system 'test_mounts.py test_masks.py' launcher/tree/tree.c

Works in a copy of the tree (_build-mutate, kept for the next run). For each mutant it builds and runs the unit tests
and corpus replays that have code of the file in them, until one fails: killed. One that none sees is printed with its
change: either a test is missing, or the change changes nothing (an equivalent mutant, for a person to tell). The order
is random by a fixed seed, so a run that its time ends is a sample, and the same one again.
"""

import argparse
import difflib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import copies

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLIPS = {"<": ("<=", ">="), "<=": ("<",), ">": (">=", "<="), ">=": (">",), "==": ("!=",), "!=": ("==",)}
OPENING, CLOSING = "([{", ")]}"
STATEMENT = re.compile(r"^(\t+)((?:[\w.>\[\]*()&-]+ (?:[-+|&^*/]|<<|>>)?= [^;]*|\*?[\w.>\[\]-]+(?:\+\+|--)|\w+\([^;]*\)|break|continue|"
                       r"return[^;]*));$", re.M)
TYPES = re.compile(r"(?:const|static|struct|enum|union|unsigned|int|char|bool|size_t|ssize_t|uint\d+_t|int\d+_t|SBX_\w+) ")


# --- mutants: (position, end, what stands there instead) ---

def hide(text):
    """The same length, with nothing in comments and strings."""
    return copies.TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def operand_end(text, at, step):
    """From @at on, or back: where the operand of a && or || ends."""
    up, down, depth = (OPENING, CLOSING, 0) if step > 0 else (CLOSING, OPENING, 0)
    while 0 <= at < len(text):
        c, pair = text[at], text[at:at + 2] if step > 0 else text[at - 1:at + 1]
        if c in up:
            depth += 1
        elif c in down:
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0 and (pair in ("&&", "||") or c in ";?:,"):
            return at
        elif depth == 0 and step < 0 and (c == "=" and text[at - 1] not in "=!<>" and text[at + 1] != "="):
            return at
        elif depth == 0 and step < 0 and text[at - 6:at] == "return":
            return at - 1
        at += step
    return None


def operands(code, base):
    for m in re.finditer(r"&&|\|\|", code):
        left, right = operand_end(code, m.start() - 1, -1), operand_end(code, m.end(), 1)
        if left is not None and right is not None:
            yield base + m.start(), base + right, ""      # the right one goes
            yield base + left + 1, base + m.end(), ""     # the left one goes


def conditions(code, base):
    for m in re.finditer(r"\b(?:if|while) (?=\()", code):
        _, end = copies.arguments(code, m.end())
        yield base + m.end(), base + end, f"(!{code[m.end():end]})"


def mutants_of(text):
    """Of all functions in @text, C code."""
    hidden, found = hide(text), []
    for base, code in copies.functions(hidden):
        for m in re.finditer(r"(?<![-<>=!+*/&|^])([<>]=?|[!=]=)(?![<>=])", code):
            for other in FLIPS[m[1]]:
                found.append((base + m.start(), base + m.end(), other))
        for m in re.finditer(r"(?<![\w.\"'\[])(\d+)(?=[uU]?[lL]*(?![\w.\"'xX]))", code):
            for other in {int(m[1]) + 1, max(int(m[1]) - 1, 0)} - {int(m[1])}:
                found.append((base + m.start(), base + m.end(), str(other)))
        found += operands(code, base)
        found += conditions(code, base)
        for m in STATEMENT.finditer(code):
            if not TYPES.match(m[2]):
                found.append((base + m.start(2), base + m.end(2), ""))
    # what the hidden text says of a string's place is in the text itself
    return sorted({(a, b, new if new == "" or new[0] != "(" else f"(!{text[a:b]})") for a, b, new in found})


# --- the copy of the tree, and what is built of it ---

class Tree:
    def __init__(self, directory, configure, jobs):
        self.top, self.build, self.jobs = directory + "/src", directory + "/build", jobs
        self.sync()
        os.makedirs(self.build, exist_ok=True)
        if not os.path.exists(self.build + "/Makefile"):
            self.must([self.top + "/configure", "-q", *configure.split()])
        self.must(["make", "-s", f"-j{jobs}", "all", "check", "TESTS="])
        programs = subprocess.run(["make", "-s", "-f", "-", "names"], cwd=self.build, text=True, check=True, capture_output=True,
                                  input="include Makefile\nnames:\n\t@echo $(check_PROGRAMS)\n").stdout.split()
        self.programs = [p for p in programs if p.startswith(("tests/unit/", "tests/fuzz/")) and os.path.exists(f"{self.build}/{p}")]
        self.symbols = {p: self.defined(p) for p in self.programs}
        self.environment = {**os.environ, "LC_ALL": "C", "SBX_SRCDIR": self.top, "SBX_BUILDDIR": self.build}

    def sync(self):
        """The tree as it is now, without touching what is the same."""
        seen = set()
        for at, dirs, files in os.walk(TOP):
            dirs[:] = [d for d in dirs if not (at == TOP and (d.startswith("_") or d in (".git", "autom4te.cache")))]
            for name in files:
                path = os.path.relpath(os.path.join(at, name), TOP)
                seen.add(path)
                mine = f"{self.top}/{path}"
                if not os.path.lexists(mine):
                    os.makedirs(os.path.dirname(mine), exist_ok=True)
                    shutil.copy2(f"{TOP}/{path}", mine)
                elif self.read(mine, "rb") != self.read(f"{TOP}/{path}", "rb"):
                    shutil.copyfile(f"{TOP}/{path}", mine)  # new for make: it may be a mutant that a kill left
        for at, _dirs, files in os.walk(self.top):
            for name in files:
                if os.path.relpath(os.path.join(at, name), self.top) not in seen:
                    os.unlink(os.path.join(at, name))

    @staticmethod
    def read(path, mode="r"):
        with open(path, mode) as f:
            return f.read()

    def must(self, argv):
        r = subprocess.run(argv, cwd=self.build, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if r.returncode != 0:
            sys.exit(f"{' '.join(argv)}:\n{r.stdout[-3000:]}")

    def defined(self, path):
        r = subprocess.run(["nm", "--defined-only", f"{self.build}/{path}"], text=True, capture_output=True, check=False)
        return {line.split()[-1] for line in r.stdout.splitlines() if line.split()[-2:-1] in (["T"], ["t"])}

    def tests_of(self, source):
        """Those with code of @source in them, the ones of its name first."""
        stem = os.path.basename(source)[:-2]

        def alike(program):
            return -len(os.path.commonprefix([stem, program.rpartition("/")[2].partition("_")[2]]))
        objects = [os.path.join(at, n) for at, _d, names in os.walk(self.build) for n in names
                   if (n == stem + ".o" or n.endswith("-" + stem + ".o"))]
        mine = set().union(*(self.defined(os.path.relpath(o, self.build)) for o in objects if source[:-2] in o or "-" in o))
        return sorted((p for p in self.programs if mine & self.symbols[p]), key=lambda p: (alike(p), p))

    def builds(self, program):
        return subprocess.run(["make", "-s", f"-j{self.jobs}", program], cwd=self.build, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def passes(self, argv, seconds):
        with subprocess.Popen(argv, cwd=self.build, env=self.environment, start_new_session=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            try:
                return p.wait(seconds) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                try:
                    os.killpg(p.pid, signal.SIGKILL)  # what it started, too
                except ProcessLookupError:
                    pass


def parse(name):
    path, _, lines = name.partition(":")
    first, _, last = lines.partition("-")
    path = os.path.relpath(os.path.join(os.getcwd(), path), TOP) if os.path.exists(path) else path
    return path, int(first or 1), int(last or first or 10**9)


def diff(path, old, new):
    return "".join(line for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), path, path, n=0)
                   if line[:2] not in ("--", "++", "@@"))


class Run:
    def __init__(self, args, tree, name):
        self.args, self.tree, self.n = args, tree, {"killed": 0, "survived": 0, "not built": 0}
        self.path, first, last = parse(name)
        self.mine = f"{tree.top}/{self.path}"
        self.text = tree.read(self.mine)
        self.tests = [t for t in tree.tests_of(self.path) if not args.tests or re.search(args.tests, t)]
        self.seconds = {}
        self.all = [m for m in mutants_of(self.text) if first <= self.text.count("\n", 0, m[0]) + 1 <= last]
        random.Random(args.seed).shuffle(self.all)

    def write(self, text):
        with open(self.mine, "w") as f:
            f.write(text)

    def measure(self):
        """How long each test takes; one that fails without a change says nothing."""
        for test in list(self.tests):
            start = time.monotonic()
            if not self.tree.builds(test) or not self.tree.passes([f"{self.tree.build}/{test}"], 120):
                print(f"{test} fails without a change and is left out")
                self.tests.remove(test)
            self.seconds[test] = 5 + 10 * (time.monotonic() - start)

    def judge(self):
        for test in self.tests:
            if not self.tree.builds(test):
                return "not built", ""
            if not self.tree.passes([f"{self.tree.build}/{test}"], self.seconds[test]):
                return "killed", "by " + test
        if self.args.system and not self.tree.passes(
                ["make", "check-system", f"SYSTEM_TESTS={self.args.system}", "PYTEST_FLAGS=-x"], 1200):
            return "killed", "by the system tests"
        return "survived", ""

    def go(self, end):
        self.measure()
        try:
            for a, b, new in self.all[:self.args.count]:
                if time.monotonic() > end:
                    break
                mutant = self.text[:a] + new + self.text[b:]
                self.write(mutant)
                how, by = self.judge()
                self.n[how] += 1
                if how == "survived" or self.args.verbose:
                    print(f"{how}: {self.path}:{self.text.count(chr(10), 0, a) + 1} {by}\n{diff(self.path, self.text, mutant)}",
                          flush=True)
        finally:
            self.write(self.text)
        judged = self.n["killed"] + self.n["survived"]
        return (f"{self.path}: {self.n['killed']} of {judged} killed ({100 * self.n['killed'] // max(judged, 1)} %), "
                f"{self.n['not built']} not built, {len(self.all) - judged - self.n['not built']} not tried; "
                f"{len(self.tests)} tests")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", metavar="FILE[:FIRST-LAST]")
    p.add_argument("-t", "--seconds", type=float, default=600, help="of all files together (%(default)s)")
    p.add_argument("-n", "--count", type=int, default=10**9, help="mutants of each file at most")
    p.add_argument("-s", "--seed", type=int, default=1)
    p.add_argument("-j", "--jobs", type=int, default=2)
    p.add_argument("--tests", metavar="PATTERN", help="of the names of unit tests and replays, instead of all that matter")
    p.add_argument("-d", "--directory", default=TOP + "/_build-mutate")
    p.add_argument("--configure", default="CFLAGS=-O1", help="arguments, once: --enable-sanitizers kills more, slower")
    p.add_argument("--system", metavar="FILES", help="of tests/system, for those that the unit tests let live (root)")
    p.add_argument("-v", "--verbose", action="store_true", help="the killed ones, too")
    args = p.parse_args()
    tree = Tree(os.path.abspath(args.directory), args.configure, args.jobs)
    start, lines = time.monotonic(), []
    for i, name in enumerate(args.files):
        lines.append(Run(args, tree, name).go(start + args.seconds * (i + 1) / len(args.files)))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
