# SPDX-License-Identifier: LGPL-2.1-or-later
"""
No circle of includes, counted by module. A module is a .c file with the .h file of its name; a .c file
without one belongs to the header that declares its functions. A foo_internal.h is a part of the module foo.
"""

import re

import common

# The folders that must be free of circles, with their rooms.
FOLDERS = ("src/base", "src/wire", "src/http", "src/ipc", "src/control", "src/broker", "src/sys", "src/store", "policy", "launcher")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
# A function's name in the first line of its definition or declaration, which begins a line.
FUNCTION = re.compile(r"^(?!static\b)[a-z][^\n;{}()=]*?\b(\w+)\(", re.M)


def modules_of(texts):
    """{path: name of its module} of the files in @texts, {path: text}."""
    declared = {}
    for path, text in texts.items():
        if path.endswith(".h"):
            for name in FUNCTION.findall(text):
                declared.setdefault(name, path[:-2].removesuffix("_internal"))
    modules = {}
    for path, text in texts.items():
        stem = path[:-2].removesuffix("_internal")
        owners = [declared[f] for f in FUNCTION.findall(text) if f in declared]
        alone = path.endswith(".c") and stem + ".h" not in texts
        modules[path] = max(sorted(set(owners)), key=owners.count) if alone and owners else stem
    return modules


def includes_of(texts, modules):
    """{module: set of the modules that it includes}."""
    graph = {m: set() for m in modules.values()}
    for path, text in texts.items():
        for header in INCLUDE.findall(text):
            target = modules.get(header, modules.get("src/" + header))
            if target and target != modules[path]:
                graph[modules[path]].add(target)
    return graph


def reachable(graph, start):
    found, todo = set(), [start]
    while todo:
        for m in graph[todo.pop()] - found:
            found.add(m)
            todo.append(m)
    return found


def circles(graph):
    """Sorted lists of modules, each of which reaches all others of its list."""
    reach = {m: reachable(graph, m) for m in graph}
    rings = {tuple(sorted(o for o in reach[m] if m in reach[o])) for m in graph if m in reach[m]}
    return sorted(rings)


def check(tap, root, _build):
    n_circles = 0
    for folder in FOLDERS:
        texts = {p: common.read(root, p) for p in common.files(root, (folder,), ".c", ".h")}
        found = circles(includes_of(texts, modules_of(texts)))
        n_circles += len(found)
        tap.ok(not found, f"{folder} includes in no circle", [" ".join(c) for c in found])
    print(f"# circles of includes: {n_circles or 'none'}")


if __name__ == "__main__":
    common.main(check)
