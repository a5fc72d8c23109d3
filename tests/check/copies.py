# SPDX-License-Identifier: LGPL-2.1-or-later
"""No copy into a buffer without its bound: what the C of the layers may not do.

1. Functions that take no bound, or cut and say nothing: base/text.h has what stands for them.
2. snprintf() of a string of any length whose result nobody looks at: sbx_text_format() where a part would mean
   something else, sbx_text_cut() where people read it. A precision is a bound, and so are numbers.
3. memcpy() or memmove() of a size that is not constant and that nothing before it in the function has bounded: no
   comparison with it, no allocation of it. A bound that holds elsewhere is repeated in the function (an assert() is
   a comparison), or the copy is sbx_text_copy().
"""

import re

import common

FORBIDDEN = ("strcpy", "strcat", "strncpy", "strncat", "stpcpy", "stpncpy", "sprintf", "vsprintf", "gets",
             "alloca", "strdupa", "strndupa", "bcopy", "mempcpy", "wcscpy", "wcscat")
STRING = r'"(?:[^"\\\n]|\\.)*"'
CHARACTER = r"'(?:[^'\\\n]|\\.)+'"
TOKEN = re.compile(STRING + "|" + CHARACTER + r"|/\*.*?\*/|//[^\n]*", re.S)
# a string of any length: no precision; `*` is the width's
ANY_STRING = re.compile(r"%[-+ #0]*(?:\d+|\*)?s")
NAME = r"[A-Za-z_]\w*(?:(?:->|\.|\[\w+\]\.?)[A-Za-z_]\w*)*"
CONSTANT = re.compile(r"\b(?:sizeof|SBX_N_ELEMENTS|offsetof)\s*\((?:[^()]|\([^()]*\))*\)|\b[A-Z][A-Z0-9_]*\b|"
                      r"\b(?:size_t|unsigned|int)\b|\b0x[0-9a-f]+u?\b|\b\d+u?\b")
MAKES_ROOM = r"\b(?:malloc|calloc|realloc|reallocarray|take|grow)\s*\("
# Copies whose bound is another function's contract.
LISTED = {("src/sys/net/mnl_static.c", "len"): "libmnl's mnl_attr_put(), whose callers made room"}


def without_comments(text):
    """The same lines, with nothing in comments."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0][0] == "/" else m[0], text)


def functions(text):
    """(Where it begins, its text) of each function: a `{` and a `}` at the beginning of a line."""
    return [(m.start(), m[0]) for m in re.finditer(r"^\{\n.*?^\}", text, re.S | re.M)]


def arguments(text, at):
    """The arguments of the call whose `(` is at @at, and where it ends."""
    found, depth, begin, i = [], 0, at + 1, at
    while i < len(text):
        if text[i] in "\"'":
            i = TOKEN.match(text, i).end()
            continue
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and text[i] == ","):
            found.append(text[begin:i].strip())
            begin = i + 1
            if depth == 0:
                return found, i + 1
        i += 1
    return found, i


def calls(text, names):
    """(Name, position, arguments, end) of each call of one of @names."""
    for m in re.finditer(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(", text):
        found, end = arguments(text, m.end() - 1)
        yield m[1], m.start(), found, end


def is_statement(text, at, end):
    before = text[:at].rstrip()
    before = re.sub(r"\(void\)\s*!?$", "", before).rstrip()
    return (before[-1:] in "{};):" or before.endswith("else")) and text[end:].lstrip().startswith(";") and \
        not before.endswith(("(size_t)", "(int)", "(ssize_t)"))


def is_constant(size):
    """One of some constants: `family == 4 ? 4 : 16`."""
    rest = re.sub(r"[^?:]*\?", "", size)
    return not re.search(r"[A-Za-z_]", CONSTANT.sub(" ", rest))


def is_bounded(size, before):
    """Has something before the copy bounded each name in @size?"""
    if is_constant(size):
        return True
    before = re.sub(r"\bfor \([^;]*;[^;]*;", " ", before)  # a loop up to it is no bound
    before = re.sub(r"([!=<>]=|[<>])\s*0(?![\w.])", " ", before)  # nor is that
    rest = re.sub(r"\b\w+\s*\(", "(", CONSTANT.sub(" ", size))  # no types, no functions
    for name in set(re.findall(NAME, rest)):
        n = r"(?<![\w.>])" + re.escape(name) + r"(?!\w|->|\.\w)"
        part = r"[^;&|?{}]*?"
        compared = rf"{n}{part}(?<![-<>])[<>](?![<>])=?|(?<![-<>])[<>](?![<>])=?{part}{n}|{n}\s*[!=]="
        given = re.search(rf"{n} = ([^;]*)[;,]", before)
        if not re.search(compared, before + ";" + size) and not re.search(MAKES_ROOM + rf"[^;]*{n}", before) and \
                not (given and is_constant(given[1])):
            return False
    return True


def problems(text, path=""):
    """(Line, what is wrong) of each copy in @text, C code."""
    text = without_comments(text)
    found = []
    for name, at, _args, _end in calls(text, FORBIDDEN):
        found.append((at, f"{name}() has no bound, or says nothing where it cuts"))
    for begin, body in functions(text):
        for name, at, args, end in calls(body, ("snprintf", "vsnprintf")):
            form = "".join(re.findall(STRING, args[2]))
            if is_statement(body, at, end) and (name[0] == "v" or not form or ANY_STRING.search(form.replace("%%", ""))):
                found.append((begin + at, f"nobody looks whether {name}() cut"))
        for name, at, args, _end in calls(body, ("memcpy", "memmove")):
            to_the_front = name == "memmove" and args[1].startswith(args[0] + " + ")
            if not to_the_front and (path, args[2]) not in LISTED and not is_bounded(args[2], body[:at]):
                found.append((begin + at, f"{name}() of {args[2]}, which nothing before it bounds"))
    return [(text.count("\n", 0, at) + 1, what) for at, what in sorted(found)]


def check(tap, root, _build):
    for folder in common.LAYER_DIRS:
        found = []
        for path in common.files(root, [folder], ".c", ".h"):
            if path != "src/base/text.c":
                found += [f"{path}:{line}: {what}" for line, what in problems(common.read(root, path), path)]
        tap.ok(not found, f"copies into buffers in {folder} have their bounds", found)


if __name__ == "__main__":
    common.main(check)
