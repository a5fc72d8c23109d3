# SPDX-License-Identifier: LGPL-2.1-or-later
"""make check-net: the agents' CLIs of docs/AGENTS.md, installed and started by the lines that are printed there."""
import os
import pwd
import re
import shutil
import subprocess

import pytest

from test_registry import INST, ROOT, USER, extra, scratch, start_of  # noqa: F401 (scratch is a fixture)

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "AGENTS.md")
with open(PAGE, encoding="utf-8") as page:
    LINES = re.findall(r"^    (sbx-run --profile agent .*)", page.read(), re.M)
AGENTS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
NO_KEY = {"claude": (["-p", "hi"], "log"), "gemini": (["-p", "hi"], "GEMINI_API_KEY")}


def line_of(word, *also):
    found = [line for line in LINES if re.search(rf"\b{word}\b", line.split(" -- ")[1]) and all(a in line for a in also)]
    assert len(found) == 1, (word, found)
    return found[0]


@pytest.fixture
def home():
    """Of the agents, in that of the user."""
    path = os.path.join(pwd.getpwnam(USER).pw_dir, ".local/share/sbx-homes/agent")
    shutil.rmtree(path, ignore_errors=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def run(scratch, home, line, env=(), more=()):  # noqa: F811
    work = os.path.join(scratch, "work")
    if os.path.isdir(work):
        shutil.rmtree(work)
    _, variables, work = start_of(scratch, "agent", "user")
    flags = " ".join(f"'{word}'" for word in extra("install"))
    script = line.replace("--profile agent", "--profile agent " + flags) + "".join(f" '{word}'" for word in more)
    become = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if ROOT else []
    return subprocess.run([*become, "bash", "-c", script], cwd=work, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                          env={**variables, **dict(env), "PATH": os.path.join(INST, "bin") + ":/usr/bin:/bin"})


@pytest.mark.parametrize("agent", AGENTS)
def test_agent(scratch, home, agent):  # noqa: F811
    package = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli"}[agent]
    r = run(scratch, home, line_of(package, "npm install"))
    assert r.returncode == 0 and os.path.exists(os.path.join(home, ".local/bin", agent)), (r.stdout, r.stderr)
    start = line_of(agent, AGENTS[agent])
    r = run(scratch, home, start, {AGENTS[agent]: "no-key"}, ["--version"])
    assert r.returncode == 0 and re.search(r"\d+\.\d+\.\d+", r.stdout), (r.stdout, r.stderr)
    if agent in NO_KEY:
        args, said = NO_KEY[agent]
        r = run(scratch, home, re.sub(r"--(?:env|secret) \S+ ", "", start), (), args)
        assert r.returncode != 0 and said in r.stdout + r.stderr, (r.stdout, r.stderr)
