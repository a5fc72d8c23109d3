# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every header compiles alone, has its guard, and is the contract of a file of the same stem."""

import os
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import common


def guard_of(path):
    """src/base/err.h -> SBX_BASE_ERR_H; policy/decide/policy.h -> SBX_POLICY_POLICY_H."""
    path = path[len("src/"):] if path.startswith("src/") else path
    return "SBX_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper()


def compile_alone(root, path):
    flags = shlex.split(os.environ.get("SBX_CFLAGS", "-std=c11 -D_GNU_SOURCE -Wall -Wextra"))
    argv = common.tool("SBX_CC") if "SBX_CC" in os.environ else ["cc"]
    argv += [f"-I{root}", f"-I{root}/src"] + flags
    # Included twice: the guard holds. Through a file of its own, as its users see it.
    text = f'#include "{root}/{path}"\n#include "{root}/{path}"\nextern int sbx_nothing;\n'
    done = common.run(argv + ["-Werror", "-fsyntax-only", "-x", "c", "-"], input=text)
    return done.stdout.splitlines()[:8] if done.returncode else []


def check(tap, root, _build):
    headers = common.files(root, common.LAYER_DIRS, ".h")
    tap.ok(bool(headers), "there are headers to look at")
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda h: compile_alone(root, h), headers))
    for path, problems in zip(headers, results):
        text = common.read(root, path)
        guard = guard_of(path)
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            problems.append(f"the include guard is not {guard}")
        tap.ok(not problems, f"{path} stands alone", problems)


if __name__ == "__main__":
    common.main(check)
