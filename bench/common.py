# SPDX-License-Identifier: LGPL-2.1-or-later
"""Common parts of the benchmarks: paths, the ordinary user, running and ending processes, the printed
table."""
import contextlib
import json
import os
import pwd
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

USER = "sbxtest"
INST = os.environ.get("SBX_INST", "")
BUILD = os.environ.get("SBX_BUILDDIR", "")
SBX_RUN = os.path.join(INST, "bin", "sbx-run")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def ordinary_user():
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
        return pwd.getpwnam(USER)


class Places:
    """A scratch directory with the state, runtime and working directories of the ordinary user."""

    def __init__(self):
        self.user = ordinary_user()
        self.dir = tempfile.mkdtemp(prefix="sbx-bench-", dir="/var/tmp")
        # On a tmpfs, as $XDG_RUNTIME_DIR is.
        self.runtime = tempfile.mkdtemp(prefix="sbx-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm")
                                        else "/var/tmp")
        for directory in self.dir, self.runtime:
            os.chmod(directory, 0o755)
        os.chown(self.runtime, self.user.pw_uid, self.user.pw_gid)
        self.work = self.own("work")
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": self.user.pw_dir, "USER": USER,
                    "LOGNAME": USER, "SBX_STATE_DIR": self.own("state"),
                    "SBX_RUNTIME_DIR": os.path.join(self.runtime, "sbx"),
                    "SBX_CONFIG_DIR": self.own("config")}

    def own(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(path, mode=0o755, exist_ok=True)
        os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def as_user(self):
        """Keyword arguments for Popen and run: the ordinary user, in its working directory."""
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [],
                "env": self.env, "cwd": self.work}

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.runtime, ignore_errors=True)


def end(proc, seconds=10):
    """End a process that we started: by its pid, politely first."""
    if proc.stdin:
        with contextlib.suppress(OSError):
            proc.stdin.close()
    if proc.poll() is None:
        proc.send_signal(signal.SIGTERM)
    try:
        proc.wait(seconds)
    except subprocess.TimeoutExpired:
        proc.kill()
        proc.wait()
    for pipe in (proc.stdout, proc.stderr):
        if pipe:
            pipe.close()


def processes():
    """pid -> (ppid, name, CPU seconds) of every process that can be read."""
    found = {}
    tick = os.sysconf("SC_CLK_TCK")
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    text = f.read()
            except OSError:
                continue
            name = text[text.index("(") + 1:text.rindex(")")]
            rest = text[text.rindex(")") + 2:].split()
            found[int(entry)] = int(rest[1]), name, (int(rest[11]) + int(rest[12])) / tick
    return found


def descendants(pid, all_processes=None):
    """{pid: name} of @pid and everything below it."""
    table = all_processes or processes()
    children = {}
    for p, (parent, _name, _cpu) in table.items():
        children.setdefault(parent, []).append(p)
    found, todo = {}, [pid]
    while todo:
        p = todo.pop()
        if p in table:
            found[p] = table[p][1]
            todo += children.get(p, [])
    return found


def helpers_of(launcher, *names):
    """The pids of the processes with these names below @launcher, when all of them are there."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [p for p, name in descendants(launcher).items() if name in names]
        if len(found) == len(names):
            return found
        time.sleep(0.05)
    raise RuntimeError(f"no {' and '.join(names)} below sbx-run")


def exe_name(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def cpu_seconds(pids):
    table = processes()
    return sum(table[p][2] for p in pids if p in table)


def measure(loads, ways, ask, n_rounds):
    """{(load, way's name): [figure]} and {the same: [CPU s per unit of work]}, of ask(way, load): figure and work.
    Round by round, so that what else the machine does meets all of them alike."""
    figures, cpus = {}, {}
    for _round in range(n_rounds):
        for load in loads:
            for way in (w for w in ways if w.serves(load)):
                before = cpu_seconds(way.relay or [])
                figure, work = ask(way, load)
                figures.setdefault((load, way.name), []).append(figure)
                if way.relay and work:
                    used = cpu_seconds(way.relay) - before
                    cpus.setdefault((load, way.name), []).append(used / work)
    return figures, cpus


def percentile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


median = statistics.median


class Report:
    """The table: printed row by row as figures come in, kept for --json."""

    def __init__(self):
        self.rows, self.section_name = [], ""
        self.started = time.monotonic()

    def section(self, name, *columns):
        self.section_name = name
        print(f"\n{name}")
        if columns:
            self._line("", columns, "target", "")
        sys.stdout.flush()

    def _line(self, name, cells, target, verdict):
        print((f"  {name:<44}" + "".join(f"{c:>13}" for c in cells).ljust(52) +
               f"  {target:<10}{verdict}").rstrip())
        sys.stdout.flush()

    def row(self, name, cells, *, value=None, at_most=None, at_least=None, unit=""):
        """@value is judged against the target; @cells are what is printed, already as text."""
        target, verdict, met = "", "", None
        if at_most is not None:
            target, met = f"<= {at_most:g}{unit}", value <= at_most
        elif at_least is not None:
            target, met = f">= {at_least:g}{unit}", value >= at_least
        if met is not None:
            verdict = "met" if met else "NOT MET"
        self._line(name, cells, target, verdict)
        self.rows.append({"section": self.section_name, "name": name, "cells": list(cells),
                          "value": value, "target": target or None, "met": met})

    def note(self, text):
        print(f"  {text}")
        sys.stdout.flush()
        self.rows.append({"section": self.section_name, "note": text})

    def end(self, json_path):
        judged = [r for r in self.rows if r.get("met") is not None]
        met = sum(r["met"] for r in judged)
        print(f"\n{met} of {len(judged)} targets met; {time.monotonic() - self.started:.0f} s")
        if json_path:
            with open(json_path, "w") as f:
                json.dump(self.rows, f, indent=1)
                f.write("\n")
