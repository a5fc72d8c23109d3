# SPDX-License-Identifier: LGPL-2.1-or-later
"""The checks notice what they are there for: each gets a planted violation, and its harmless twin."""

import contextlib
import io
import os
import tempfile

import circles
import common
import copies
import hardening
import headers
import layers
import purity
import style


def write(root, path, text):
    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
    with open(f"{root}/{path}", "w", encoding="utf-8") as f:
        f.write(text)


def fails(check, root, build):
    inner = common.Tap()
    with contextlib.redirect_stdout(io.StringIO()):
        check(inner, root, build)
    return inner.n_failed > 0


def cc(argv):
    # Plain flags: the planted code must build whatever configure was asked for.
    command = common.tool("SBX_CC") if "SBX_CC" in os.environ else ["cc"]
    return common.run(command + argv).returncode == 0


def tree_check(tap, check, what, path, good, bad):
    """@check passes a tree whose file @path says @good and fails one where it says @bad."""
    with tempfile.TemporaryDirectory() as root:
        write(root, path, good)
        passed = not fails(check, root, root)
        write(root, path, bad)
        tap.ok(passed and fails(check, root, root), what)


SPDX = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"


def check_layers(tap):
    for what, path, good, bad in (
            ("an arrow that points up", "src/base/a.c", '"base/err.h"', '"wire/dns.h"'),
            ("a sideways arrow", "src/wire/a.c", '"base/err.h"', '"ipc/messages.h"'),
            ("a library outside its layer", "src/store/a.c", "<sqlite3.h>", "<yaml.h>"),
            ("the broker reading the database", "src/broker/io/a.h", '"policy/decide/policy.h"',
             '"store/store.h"'),
            ("a room's arrow that points up", "src/broker/io/a.c", '"broker/core/core.h"',
             '"broker/dns/resolve.h"'),
            ("a sideways arrow of a room", "src/broker/tcp/a.c", '"broker/dns/resolve.h"',
             '"broker/udp/udp_flow.h"'),
            ("a room of another layer", "src/ctl/live/a.c", '"launcher/host/facts.h"', '"launcher/run/run.h"'),
            ("a header without its folder", "launcher/plan/a.c", '"launcher/plan/plan.h"', '"plan.h"')):
        tree_check(tap, layers.check, f"layers notices {what}", path,
                   f"#include {good}\n", f"  #  include {bad}\n")
    with tempfile.TemporaryDirectory() as root:
        for i in range(layers.ROOM_MAX):
            write(root, f"src/sys/fs/{i}.c", SPDX)
        passed = not fails(layers.check, root, root)
        write(root, "src/sys/fs/one_more.h", SPDX)
        tap.ok(passed and fails(layers.check, root, root), "layers notices a room with too many files")


def check_circles(tap):
    """b.c is b.h's by its name, x.c by the function that b.h declares."""
    tree = {"src/base/a.h": '#include "base/b.h"\n', "src/base/b.c": "",
            "src/base/b.h": "int sbx_x(void);\n", "src/base/x.c": "int sbx_x(void)\n{\n}\n"}

    def found(texts):
        return circles.circles(circles.includes_of(texts, circles.modules_of(texts)))
    for name in ("b.h", "b.c", "x.c"):
        path = f"src/base/{name}"
        bad = tree | {path: f'#include "base/a.h"\n{tree[path]}'}
        tap.ok(not found(tree) and found(bad), f"circles notices one by way of {name}")


def check_headers(tap):
    def header(guard, body):
        return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"
    good = header("SBX_BASE_A_H", "#include <stddef.h>\nsize_t sbx_a(void);")
    tree_check(tap, headers.check, "headers notices one that does not compile alone",
               "src/base/a.h", good, header("SBX_BASE_A_H", "size_t sbx_a(void);"))
    tree_check(tap, headers.check, "headers notices a wrong guard",
               "src/base/a.h", good, good.replace("BASE_A", "A"))


PURE_CODE = {
    "nothing": "int sbx_f(const char *s) { return (int)strlen(s); }",
    "a file": "int sbx_f(const char *s) { return open(s, 0); }",
    "the clock": "int sbx_f(const char *s) { return (int)time(0) + !s; }",
    "the environment": "int sbx_f(const char *s) { return !getenv(s); }",
    "logging": "int sbx_f(const char *s) { return fputs(s, stderr); }",
    "a mutable static": "int sbx_f(const char *s) { static int n = 3; return n++ + !s; }",
    "a mutable variable": "int sbx_v; int sbx_f(const char *s) { return sbx_v + !s; }",
}


def pure_archive_fails(root, code):
    write(root, "a.c", "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
          f"#include <string.h>\n#include <time.h>\n{code}\n")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{root}/lib.a")
    if not cc(["-O1", "-fPIE", "-c", f"{root}/a.c", "-o", f"{root}/a.o"]):
        return None
    common.run(common.tool("AR") + ["cr", f"{root}/lib.a", f"{root}/a.o"])
    return fails(lambda tap, r, b: purity.check_archive(tap, f"{b}/lib.a", "lib.a", (), (), False),
                 root, root)


def check_purity(tap):
    with tempfile.TemporaryDirectory() as root:
        for what, code in PURE_CODE.items():
            expected = what != "nothing"
            tap.ok(pure_archive_fails(root, code) is expected, f"purity notices {what}")


def check_hardening(tap):
    code = '#include <string.h>\nint main(int c, char **v)\n{\n\tchar b[64];\n' \
        '\tstrcpy(b, v[c - 1]);\n\treturn b[0] == 1;\n}\n'
    flags = ["-fPIE", "-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack",
             "-fstack-protector-strong", "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
    without = {
        "pie": ["-no-pie"],
        "relro": ["-Wl,-z,norelro"],
        "now": ["-Wl,-z,lazy"],
        "noexecstack": ["-Wl,-z,execstack"],
        "canary": ["-fno-stack-protector"],
        "fortify": ["-U_FORTIFY_SOURCE"],
    }
    with tempfile.TemporaryDirectory() as root:
        write(root, "a.c", code)
        base = [f"{root}/a.c", "-o", f"{root}/a"] + flags
        built = cc(base)
        gone = hardening.missing(hardening.Program(f"{root}/a"), set(without)) if built else ["?"]
        tap.ok(not gone, "hardening finds what is there", gone)
        for word, flag in without.items():
            built = cc(base + flag)
            gone = hardening.missing(hardening.Program(f"{root}/a"), set(without)) if built else []
            tap.ok(word in gone, f"hardening notices the loss of {word}", gone)


def check_style(tap):
    good = SPDX + "int f(void)\n{\n\treturn 0;\n}\n"
    for what, bad in (
            ("a file without its licence", good[len(SPDX):]),
            ("an unfinished mark", good + "/* TO" + "DO: more */\n"),
            ("white space at the end", good + "int x; \n"),
            ("a line that is too wide", good + "/* " + "x" * style.WIDTH_MAX + " */\n"),
            ("a comment that names nothing", good + "/* What comes next. */\n"),
            ("a second sentence that names nothing", good + "/*\n * The value. What is held is kept.\n */\n"),
            ("a file that is too long", good + "int x;\n" * style.FILE_LINES_MAX),
            ("a function that is too long",
             SPDX + "int f(void)\n{\n" + "\t;\n" * style.FUNCTION_LINES_MAX + "}\n")):
        tree_check(tap, style.check, f"style notices {what}", "src/base/a.c", good, bad)
    with tempfile.TemporaryDirectory() as root:
        for i in range(style.FOLDER_C_MAX):
            write(root, f"src/base/a{i}.c", good)
        passed = not fails(style.check, root, root)
        write(root, "src/base/b.c", good)
        tap.ok(passed and fails(style.check, root, root), "style notices a folder with too many files")


COPIES = (
    # what, in a function with these variables it is refused, and its harmless twin
    ("a string of any length", "strcpy(x->buf, s)", "r = sbx_text_copy(x->buf, sizeof(x->buf), s)"),
    ("strcat", "strcat(x->buf, s)", "sbx_text_cut(x->buf, sizeof(x->buf), \"%s\", s)"),
    ("strncpy", "strncpy(x->buf, s, sizeof(x->buf) - 1)", "memset(x->buf, 0, sizeof(x->buf))"),
    ("sprintf", "sprintf(x->buf, \"%d\", r)", "snprintf(x->buf, sizeof(x->buf), \"%d\", r)"),
    ("a stack as long as somebody likes", "s = alloca(n)", "s = malloc(n)"),
    ("what is cut and nobody looks", "snprintf(x->buf, sizeof(x->buf), \"%s/%d\", s, r)",
     "if (snprintf(x->buf, sizeof(x->buf), \"%s/%d\", s, r) >= (int)sizeof(x->buf))\n\t\treturn -1"),
    ("the same, cast away", "(void)snprintf(x->buf, 4, \"%-*s\", r, s)", "(void)snprintf(x->buf, 4, \"%.3s\", s)"),
    ("the same in a switch", "case 1:\n\t\tsnprintf(x->buf, 4, \"%s\", s)", "case 1:\n\t\tsnprintf(x->buf, 4, \"%%s\")"),
    # the one that was in sbx_trail_begin()
    ("a length that nothing bounds", "x->n = strlen(s);\n\tmemcpy(x->buf, s, x->n + 1);\n\tif (x->n == 1)\n\t\tx->n = 0",
     "x->n = strlen(s);\n\tif (x->n >= sizeof(x->buf))\n\t\treturn -1;\n\tmemcpy(x->buf, s, x->n + 1)"),
    ("a bound of another length", "if (x->n < 4)\n\t\tmemcpy(x->buf, s, n)", "if (n < 4)\n\t\tmemcpy(x->buf, s, n)"),
    ("a loop up to it", "for (size_t i = 0; i < n; i++)\n\t\tr++;\n\tmemcpy(x->buf, s, n)",
     "assert(n <= sizeof(x->buf));\n\tmemcpy(x->buf, s, n)"),
    ("a length above 0", "if (n > 0)\n\t\tmemcpy(x->buf, s, n)", "x->p = malloc(n);\n\tmemcpy(x->p, s, n)"),
    ("a bound behind it", "memcpy(x->buf, s, n);\n\tif (n > 4)\n\t\tr = 1", "memcpy(x->buf, s, r ? 4 : 16)"),
    ("a string's length", "memcpy(x->buf, s, strlen(s) + 1)", "memmove(x->buf, x->buf + 2, strlen(x->buf + 2) + 1)"),
)


def check_copies(tap):
    for what, bad, good in COPIES:
        texts = [SPDX + "/* strcpy(a, b) in a comment */\n"
                 f"static int f(struct x *x, char *s, size_t n, int r)\n{{\n\t{code};\n\treturn r;\n}}\n"
                 for code in (good, bad)]
        tree_check(tap, copies.check, f"copies notices {what}", "src/base/a.c", *texts)


def check(tap, _root, _build):
    check_layers(tap)
    check_circles(tap)
    check_copies(tap)
    check_headers(tap)
    check_purity(tap)
    check_hardening(tap)
    check_style(tap)


if __name__ == "__main__":
    common.main(check)
