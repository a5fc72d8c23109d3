# SPDX-License-Identifier: LGPL-2.1-or-later
"""The memory of other processes: root reads it over /proc."""
import dataclasses

SKIPPED = ("[vvar]", "[vvar_vclock]", "[vsyscall]")


@dataclasses.dataclass
class Area:
    """A mapping: its name, the bytes that could be read, and its VmFlags (proc(5): lo locked, dd not dumped,
    wf wiped in a child)."""
    name: str
    data: bytes = dataclasses.field(repr=False)
    flags: set


def areas(pid):
    """The mappings of a process, one at a time: they are large."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        place = None
        for line in lines:
            word = line.split(" ", 1)[0]
            if not word.endswith(":"):
                place = line.split(maxsplit=5)
            elif word == "VmFlags:":
                begin, end = (int(n, 16) for n in place[0].split("-"))
                name = place[5] if len(place) > 5 else ""
                if "r" in place[1] and end - begin <= 1 << 28 and name not in SKIPPED:
                    yield Area(name, read(mem, begin, end - begin), set(line.split()[1:]))


def read(mem, at, n):
    try:
        mem.seek(at)
        return mem.read(n)
    except OSError:  # pages that have no content, or a process that ends
        return b""


def has(pid, *texts):
    """Is one of the texts (bytes) in the memory of the process, which has its arguments and its environment too?"""
    return any(text in area.data for area in areas(pid) for text in texts)
