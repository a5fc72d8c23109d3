# SPDX-License-Identifier: LGPL-2.1-or-later
"""README.md's examples, as they are printed there: each is run, and its output compared with the printed one."""
import json
import os
import re
import subprocess
import textwrap

from conftest import INST, USER

README = os.path.join(os.environ["SBX_SRCDIR"], "README.md")


def section(title):
    with open(README) as f:
        return f.read().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def examples(text):
    """[(command, [line of output])] of the indented lines; a backslash continues a command."""
    found = []
    for line in re.findall(r"^    (.*)$", text, re.M):
        if found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        elif line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shell(sbx, script):
    """As the test user with an empty home, in the work directory, with nothing set but what a login sets."""
    user = sbx.world.user
    start = f"mount -t tmpfs none {user.pw_dir}; chown {USER}: {user.pw_dir}; cd {sbx.work}; " \
        f"exec setpriv --reuid {USER} --regid {USER} --clear-groups bash -c \"$1\""
    env = {"HOME": user.pw_dir, "PATH": f"{INST}/bin:/usr/sbin:/usr/bin:/bin", "LANG": "C.UTF-8",
           "XDG_RUNTIME_DIR": sbx.runtime}
    r = subprocess.run(sbx.world.ns() + ["unshare", "--mount", "sh", "-ec", start, "sh", script], env=env, text=True,
                       capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    return r.stdout + r.stderr


def table(lines):
    """The cells of a box, without the first column: times."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    return [row[1:] for row in rows]


def counted(line):
    """A resolver asks more than once, as often as it likes."""
    return re.sub(r"^(sbx-run: refused )\d+x", r"\g<1>Nx", line)


def matches(printed, line):
    """"[...]" in the printed line stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, printed.split("[...]"))), line) is not None


def test_sixty_seconds(sbx):
    """All is as printed, but for the times, how often a name was asked for, and that the world's servers speak HTTP/1.1."""
    script = "exec 2>&1; mark() { local status=$?; echo; echo @@; return $status; }\n"
    run = [e for e in examples(section("Sixty seconds")) if "jq" not in e[0]]
    assert len(run) == 6
    outputs = shell(sbx, script + "".join(f"mark\n{command}\n" for command, _ in run)).split("\n@@\n")[1:]
    assert len(outputs) == 6, outputs
    for (command, printed), output in zip(run, outputs):
        lines = [counted(line.replace("HTTP/1.1 200 X", "HTTP/2 200")) for line in output.strip().split("\n") if line.strip()]
        if table(printed):
            assert table(lines) == table(printed)
        else:
            assert len(lines) == len(printed) and all(map(matches, [counted(line) for line in printed], lines)), (command, printed, lines)


def test_dry_run(sbx):
    command, = [c for c, _ in examples(section("Sixty seconds")) if "jq" in c]
    run, jq = command.split(" | jq .")
    plan = json.loads(shell(sbx, run))
    for key in jq.split("."):
        plan = plan[key]
    assert "pypi.org" in plan


def test_profile(sbx):
    texts = {text.split("\n", 1)[0]: text for text in re.findall(r"(?:^    .*\n)+", section("Profiles"), re.M)}
    with open(os.path.join(sbx.work, "crawl.yaml"), "w") as f:
        f.write(textwrap.dedent(texts["    name: crawl"]))
    profiles = sbx.world.user.pw_dir + "/.config/sbx/profiles"
    plan = json.loads(shell(sbx, f"mkdir -p {profiles} && mv crawl.yaml {profiles} && "
                            "sbx-run --dry-run --profile crawl -- true"))
    assert "data.example.com" in plan["policy"]["allow"] and "huggingface.co" in plan["policy"]["allow"]
    assert plan["policy"]["deny"] == ["tracker.example.org"] and plan["limits"]["wall_time_ms"]["asked"] == 30 * 60 * 1000
