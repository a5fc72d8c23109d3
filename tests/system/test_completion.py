# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shells complete the options and values that sbx-run, sbxctl and sbxd take."""
import json
import os
import pty
import re
import select
import shutil
import subprocess

import pytest

from conftest import INST

COMPLETION = os.path.join(os.environ["SBX_SRCDIR"], "completion")


@pytest.fixture(scope="module")
def options():
    text = subprocess.run([INST + "/bin/sbx-run", "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text.split("Runs COMMAND")[1]))


def complete(*words, program="sbx-run"):
    """The completions that bash offers for the last word."""
    function = "_" + program.replace("-", "_")
    script = f'. "$1"; shift; PATH={INST}/bin:$PATH; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function}; ' \
        'printf "%s\\n" "${COMPREPLY[@]}"'
    r = subprocess.run(["bash", "--norc", "-c", script, "bash", f"{COMPLETION}/{program}", program, *words],
                       capture_output=True, text=True, timeout=30, cwd="/")
    assert (r.returncode, r.stderr) == (0, ""), r
    return set(r.stdout.split())


def test_options(options):
    assert len(options) > 25
    assert complete("--") == options
    assert complete("--profile", "none", "--net") == set()
    with open(COMPLETION + "/_sbx-run") as f:
        assert set(re.findall(r"'?\*?(--[a-z-]+)(?=\[|}')", f.read())) == options


def test_values():
    assert complete("--profile", "n") == {"none", "notebook"}
    assert "minimal" in complete("--root", "m")
    assert "/etc/" in {f"{w}/" for w in complete("--bind", "/et")}
    assert complete("--limit", "wall") == {"wall_time="}


def test_command():
    """Behind the options it is somebody else's word: no option of ours is offered."""
    assert "true" in complete("--profile", "none", "--", "tru")
    assert "true" in complete("--profile", "none", "tru")
    assert complete("--profile", "none", "--", "ls", "--prof") == set()
    assert complete("-v", "ls", "--prof") == set()


# --- sbxctl ---

def ctl(*words):
    return complete(*words, program="sbxctl")


def test_ctl_commands():
    text = subprocess.run([INST + "/bin/sbxctl", "help", "--json"], capture_output=True, text=True, check=True).stdout
    commands = {c["name"]: c for c in json.loads(text)["commands"]}
    common = {"--json", "--wide", "--version", "--help", "-V", "-h"}
    assert ctl("") == {name.split()[0] for name in commands} | {"--json", "--wide", "--version", "--help"}
    for name, command in commands.items():
        words = name.split()
        assert words[-1] in ctl(*words)
        assert {w for w in ctl(*words, "-") if w.startswith("--")} >= \
            {"--" + o["option"] for o in command["options"]} | (common - {"-V", "-h"})
        assert ctl(*words, "--nonsense-") == set()
    assert ctl("--json", "vers") == {"version"}


def test_ctl_values():
    assert ctl("profile", "") == {"check", "diff", "list", "show"}
    assert ctl("profile", "show", "not") == {"notebook"}
    assert ctl("profile", "check", "--json", "none", "not") == {"notebook"}
    assert "/etc/" in {f"{w}/" for w in ctl("profile", "check", "/et")}
    assert ctl("help", "prof") == {"profile"}
    assert ctl("nonsense", "") == set() and ctl("profile", "nonsense", "") == set()
    assert ctl("version", "") == set()


# --- zsh ---

# Ctrl-T completes the line, and prints it between marks.
ZSH = """PS1='READY> '; unsetopt PROMPT_SP; fpath=({} $fpath); autoload -Uz compinit; compinit -D -u
finish() {{ zle expand-or-complete; print -rn -- "<<$BUFFER>>" }}; zle -N finish; bindkey '^T' finish
"""
TYPED = {
    "sbxctl deni": "sbxctl denies ", "sbxctl profile sh": "sbxctl profile show ",
    "sbxctl profile show noteb": "sbxctl profile show notebook ", "sbxctl events --foll": "sbxctl events --follow ",
    "sbxctl events --action al": "sbxctl events --action allow ", "sbxctl nonsense --foll": "sbxctl nonsense --foll",
    "sbx-run --workspa": "sbx-run --workspace ", "sbx-run --profile noteb": "sbx-run --profile notebook ",
    "sbx-run --bind /et": "sbx-run --bind /etc/", "sbx-run -- ls --prof": "sbx-run -- ls --prof",
}


def test_zsh(tmp_path):
    (tmp_path / ".zshrc").write_text(ZSH.format(COMPLETION))
    leader, follower = pty.openpty()
    p = subprocess.Popen(["zsh", "-d", "-i"], stdin=follower, stdout=follower, stderr=follower, cwd="/", start_new_session=True,
                         env={"PATH": f"{INST}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb", "LC_ALL": "C"})
    os.close(follower)

    def until(pattern):
        text = ""
        while not (found := re.search(pattern, text, re.S)):
            assert select.select([leader], [], [], 20)[0], text
            text += os.read(leader, 65536).decode()
        return found
    try:
        until("READY> ")
        for typed, completed in TYPED.items():
            os.write(leader, b"\x15" + typed.encode() + b"\x14")
            assert until(r"<<(.*?)>>").group(1) == completed
    finally:
        p.kill()
        p.wait()
        os.close(leader)


# --- sbxd ---

def test_sbxd():
    text = subprocess.run([INST + "/bin/sbxd", "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"(?m)^ .*?(--[a-z][a-z-]+)", text))
    assert len(options) > 7 and complete("", program="sbxd") == options
    assert complete("--tls", program="sbxd") == {"--tls-certificate", "--tls-key"}
    assert "/etc/hosts" in complete("--tls-key", "/etc/hos", program="sbxd")
    assert "/etc" in complete("--web", "/et", program="sbxd")
    assert complete("--listen", "", program="sbxd") == set()
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", COMPLETION + "/_sbxd"], check=True)
