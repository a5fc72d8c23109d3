# SPDX-License-Identifier: LGPL-2.1-or-later
"""
The built programs have the properties that configure's hardening flags promise. SBX_HARDENING holds
one word per flag that configure found to work; a word that is missing there is not looked for (and
configure's summary says so), except where every supported system must have it.
"""

import os
import re
import shlex
import tempfile

import common

# Every Debian 12 toolchain has these: without them the build itself is wrong. A sanitizer build has
# no fortify, variable initialisation or static program.
ALWAYS = {"pie", "relro", "now", "noexecstack", "canary", "clash"}
UNSANITIZED = {"fortify", "autoinit", "static-pie"}

# Programs that are static and position independent, and the word that says so. Only a toolchain's own
# libc is asked for sbx-init; the others also take archives of their libraries, which need not be there.
STATIC = {"sbx-init": "static-pie", "sbx-broker": "static-broker", "sbx-run": "static-run", "sbxctl": "static-run"}


class Program:
    """A built file, as readelf shows it."""

    def __init__(self, path):
        readelf = common.tool("READELF")
        self.path = path
        self.segments = common.run(readelf + ["-Wlh", path]).stdout
        self.dynamic = common.run(readelf + ["-Wd", path]).stdout
        self.notes = common.run(readelf + ["-Wn", path]).stdout
        self.symbols = common.run(readelf + ["-Ws", path]).stdout

    def is_static(self):
        return "INTERP" not in self.segments

    def producers(self):
        """The command-line flags gcc left in the debug information."""
        out = common.run(common.tool("READELF") +
                         ["--debug-dump=info", "--dwarf-depth=1", self.path]).stdout
        return [p for p in re.findall(r"DW_AT_producer\s*:.*?(GNU C1.*)", out) if "-m" in p]


def has_pie(p):
    return re.search(r"Type:\s+DYN", p.segments) and "PIE" in p.dynamic


def has_relro(p):
    return "GNU_RELRO" in p.segments


def has_now(p):
    return re.search(r"FLAGS.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", p.dynamic)


def has_noexecstack(p):
    m = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}(\S+)", p.segments)
    return m and "E" not in m.group(1)


def has_canary(p):
    return "__stack_chk_fail" in p.symbols


def has_fortify(p):
    return re.search(r"\b__(?!stack)\w+_chk\b", p.symbols)


def has_cet(p):
    return "IBT" in p.notes and "SHSTK" in p.notes


def objects_without_cet(archive):
    """Members without the note: the linker drops it from a program as soon as one object lacks it."""
    out = common.run(common.tool("READELF") + ["-Wn", archive]).stdout
    return [m.group(1) for m in re.finditer(r"^File: \S+\((\S+)\)\n((?:(?!^File: ).*\n?)*)", out, re.M)
            if "IBT" not in m.group(2) or "SHSTK" not in m.group(2)]


LOOK_FOR = {
    "pie": has_pie,
    "relro": has_relro,
    "now": has_now,
    "noexecstack": has_noexecstack,
    "canary": has_canary,
    "fortify": has_fortify,
    "cet": has_cet,
}

# These leave no trace that readelf shows; gcc writes its flags into the debug information.
PRODUCER = {"clash": "-fstack-clash-protection", "autoinit": "-ftrivial-auto-var-init=zero"}


def toolchain_gives_cet(static):
    """Whether a program of nothing but main() gets the note: the C library's own objects decide."""
    with tempfile.TemporaryDirectory() as d:
        argv = common.tool("SBX_CC") if "SBX_CC" in os.environ else ["cc"]
        argv += shlex.split(os.environ.get("SBX_CFLAGS", "")) + ["-x", "c", "-", "-o", f"{d}/a"]
        argv += shlex.split(os.environ.get("SBX_LDFLAGS", "")) + (["-static-pie"] if static else [])
        done = common.run(argv, input="int main(void) { return 0; }\n")
        return done.returncode == 0 and has_cet(Program(f"{d}/a"))


def missing(program, words):
    """The words that configure promised and that the program does not show."""
    found = [w for w, look in LOOK_FOR.items() if w in words and not look(program)]
    found += [w for w in STATIC.values() if w in words and not program.is_static()]
    for word, flag in PRODUCER.items():
        # Of gcc's own objects only: a static program also holds libc's.
        producers = [p for p in program.producers() if "-std=c11" in p]
        if word in words and any(flag not in p for p in producers):
            found.append(word)
    return found


def check(tap, _root, build):
    words = set(os.environ.get("SBX_HARDENING", "").split())
    expected = ALWAYS | (set() if os.environ.get("SBX_SANITIZERS") else UNSANITIZED)
    gone = sorted(expected - words)
    tap.ok(not gone, "configure found the flags every supported toolchain has", gone)
    programs = os.environ.get("SBX_PROGRAMS", "").split()
    tap.ok(bool(programs), "there are programs to look at")
    for name in programs:
        program = Program(f"{build}/{name}")
        wanted = words - set(STATIC.values()) | words & {STATIC.get(os.path.basename(name))}
        if "cet" in wanted and not toolchain_gives_cet(program.is_static()):
            wanted.remove("cet")
        gone = missing(program, wanted)
        tap.ok(not gone, f"{name} has {' '.join(sorted(wanted))}",
               [f"not found in {name}: {w}" for w in gone])
    for name in os.environ.get("SBX_LIBRARIES", "").split() if "cet" in words else ():
        gone = objects_without_cet(f"{build}/{name}")
        tap.ok(not gone, f"every object of {name} is marked IBT and SHSTK", gone)


if __name__ == "__main__":
    common.main(check)
