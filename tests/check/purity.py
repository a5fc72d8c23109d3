# SPDX-License-Identifier: LGPL-2.1-or-later
"""
PURE code has no fd, clock, environment, logging or mutable static: what its objects leave undefined
is on the list below, and they keep no writable data. Looked at in the objects, not in the sources,
so a macro or an inline function hides nothing.
"""

import fnmatch
import os
import re

import common

# archive -> (objects that are not pure, library symbols allowed besides LIBC)
PURE = {
    "src/base/libsbx-base.a": ((), ()),
    "src/wire/libsbx-wire.a": ((), ()),
    "src/http/libsbx-http.a": ((), ("SHA256*",)),
    "src/ipc/libsbx-ipc.a": (("channel.o",), ()),
    "policy/libsbx-policy.a": ((), ("yaml_*", "psl_*", "idn2_*", "SHA256*")),
    "src/broker/libsbx-broker-core.a": ((), ()),
    "src/broker/libsbx-broker-names.a": ((), ()),
}

# Functions of libc for code that only computes. No FILE but the one that writes to memory.
LIBC = """
    mem* __mem*_chk explicit_bzero __explicit_bzero_chk bcmp
    str* __str*_chk __xpg_strerror_r __isoc99_sscanf __isoc23_* rawmemchr
    snprintf vsnprintf __snprintf_chk __vsnprintf_chk asprintf vasprintf __asprintf_chk
    __vasprintf_chk
    malloc calloc realloc reallocarray free posix_memalign aligned_alloc
    qsort qsort_r bsearch abs labs
    isalnum isalpha isdigit isxdigit isspace isprint tolower toupper
    __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc
    inet_pton inet_ntop htons htonl ntohs ntohl
    open_memstream fprintf __fprintf_chk vfprintf __vfprintf_chk fputc fputs fwrite putc fflush
    fclose ferror
    __errno_location __assert_fail abort
    __stack_chk_fail _GLOBAL_OFFSET_TABLE_ __tls_get_addr
""".split()

# Allowed by LIBC's patterns but not pure: they keep state or read the environment.
NOT_PURE = {"strtok", "strerror", "strsignal", "strptime", "strftime_l"}

# Symbols that a sanitizer or coverage build adds to every object.
INSTRUMENTED = re.compile(r"^_*((start|stop)_+)?(asan|ubsan|tsan|msan|lsan|sanitizer|sancov|gcov|llvm)_")

WRITABLE = re.compile(r"^\.(data|bss|tdata|tbss)(\.(?!rel\.ro).*)?$|^\*COM\*$")


def impurities(archive_symbols, allowed):
    """[(object, symbol)] of the undefined symbols that no pattern allows."""
    found = []
    for obj, symbol in archive_symbols:
        if symbol.startswith("sbx_") or INSTRUMENTED.match(symbol):
            continue
        if symbol in NOT_PURE or not any(fnmatch.fnmatchcase(symbol, a) for a in allowed):
            found.append((obj, symbol))
    return found


def undefined(path):
    """[(object, symbol)] of `nm -u` over an archive."""
    out = common.run(common.tool("NM") + ["-u", path]).stdout
    found, obj = [], "?"
    for line in out.splitlines():
        if line.endswith(":"):
            obj = line[:-1]
        elif line.strip().startswith(("U ", "w ", "v ")):
            found.append((obj, line.split()[-1].split("@")[0]))
    return found


def writable(path):
    """[(object, symbol)] of the variables an archive's objects keep in writable sections."""
    out = common.run(common.tool("OBJDUMP") + ["-t", path]).stdout
    found, obj = [], "?"
    for line in out.splitlines():
        head = re.match(r"^(\S+):\s+file format", line)
        entry = re.match(r"^[0-9a-f]+ (.{7}) (\S+)\s+([0-9a-f]+) (.*)$", line)
        if head:
            obj = head.group(1)
        elif entry and "O" in entry.group(1) and WRITABLE.match(entry.group(2)):
            found.append((obj, entry.group(4).split()[-1]))
    return found


def check_archive(tap, path, name, exempt, extra, instrumented):
    symbols = [s for s in undefined(path) if s[0] not in exempt]
    if not tap.ok(bool(symbols), f"{name} has objects to look at"):
        return
    bad = impurities(symbols, LIBC + list(extra))
    tap.ok(not bad, f"{name} calls nothing impure", [f"{o}: {s}" for o, s in bad])
    if instrumented:
        return
    kept = [w for w in writable(path) if w[0] not in exempt]
    tap.ok(not kept, f"{name} keeps no mutable static", [f"{o}: {s}" for o, s in kept])


def check(tap, _root, build):
    instrumented = bool(os.environ.get("SBX_SANITIZERS")) or "--coverage" in \
        os.environ.get("SBX_CFLAGS", "")
    for name, (exempt, extra) in PURE.items():
        check_archive(tap, f"{build}/{name}", name, exempt, extra, instrumented)


if __name__ == "__main__":
    common.main(check)
