# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands of docs/SECRETS.md and of README.md's section on secrets, run as they are printed: the origin sees the
value, and no file, variable or output of the sandbox has it."""
import base64
import json
import os
import re
import shutil
import subprocess
import textwrap

import pytest

from conftest import INST, USER

TOP = os.environ["SBX_SRCDIR"]
VALUE = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
NPMRC = "registry=https://packages.npmjs.org/\n//packages.npmjs.org/:_authToken=${NPM_TOKEN}"
BASIC = {"packages.example.com": "me:" + VALUE, "github.com": "x-access-token:" + VALUE}
# A line of the page by its secret: the tool that it needs, the host that gets the value, and the header.
LINES = {
    "GITHUB_TOKEN@api.github.com": ("curl", "api.github.com", "authorization"),
    "GITHUB_TOKEN@github.com": ("git", "github.com", "authorization"),
    "'NPM_TOKEN@*.npmjs.org'": ("npm", "packages.npmjs.org", "authorization"),
    "INDEX_PASSWORD@packages.example.com": ("pip3", "packages.example.com", "authorization"),
    "NPM_PASSWORD@packages.example.com": ("npm", "packages.example.com", "authorization"),
}
AGENTS = {"ANTHROPIC_API_KEY=env:ANTHROPIC_API_KEY@api.anthropic.com", "CODEX_API_KEY=env:OPENAI_API_KEY@api.openai.com",
          "GEMINI_API_KEY@generativelanguage.googleapis.com"}


def page(name="docs/SECRETS.md"):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


def lines(text):
    """{the secret: the command}"""
    found = re.findall(r"^    (?:\$ )?(sbx-run .*--secret (\S+) .*)$", text, re.M)
    return {secret: line for line, secret in found}


def shell(sbx, script, **env):
    argv = sbx.world.ns(USER) + ["env", "-C", sbx.work, "bash", "-c", script]
    return subprocess.run(argv, env={**sbx.env(env), "PATH": f"{INST}/bin:/usr/bin:/bin"}, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)


def credentials(world, host, header):
    """The credentials that the origin got for the host, with Basic decoded."""
    found = set()
    for request in world.log("origin"):
        headers = dict(request["headers"])
        if headers.get("host") == host and header in headers:
            kind, _, text = headers[header].partition(" ")
            found.add(base64.b64decode(text).decode() if kind == "Basic" else text or kind)
    return found


def test_each_line_is_known():
    assert set(lines(page())) == set(LINES) | AGENTS
    assert set(lines(page("README.md"))) <= set(LINES), "README.md's line is on the page too"


@pytest.mark.parametrize("secret", LINES)
def test_line(sbx, world, secret):
    tool, host, header = LINES[secret]
    assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    assert NPMRC.split("\n")[1].replace("packages.npmjs.org", "HOST") in page()
    sbx.put(".npmrc", NPMRC + "\n")
    world.mark()
    line = lines(page())[secret].replace("OWNER/PROJECT", "private/repo.git").replace("PACKAGE", "sbx-demo").replace("OWNER", "me")
    r = shell(sbx, line, **{secret.strip("'").partition("@")[0]: VALUE})
    assert credentials(world, host, header) == {BASIC.get(host, VALUE)}, (r, world.log("origin"))
    assert VALUE not in r.stdout + r.stderr, r


@pytest.mark.parametrize("secret", sorted(AGENTS)[:1])
def test_agents_line(sbx, world, secret):
    """The flags; tests/net has the agents."""
    world.mark()
    line = lines(page())[secret].replace(" -- claude", " -- sh -c 'curl -sS -H \"x-api-key: $ANTHROPIC_API_KEY\" https://api.anthropic.com/'")
    r = shell(sbx, line, ANTHROPIC_API_KEY=VALUE)
    assert r.returncode == 0 and VALUE not in r.stdout, r
    assert credentials(world, "api.anthropic.com", "x-api-key") == {VALUE}


def blocks():
    return [textwrap.dedent(text) for text in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page(), re.M)]


def profile(name):
    text, = [t for t in blocks() if t.strip().startswith("name: " + name)]
    return text


PROFILES = ("my-agent", "npm-read", "s3-reader", "ledger", "corp", "github-reader")


def test_each_profile_is_whole():
    """A block that is pasted into a file is a profile that names the one it extends."""
    found = [re.match(r"\s*name: (\S+)\nextends: \S+\n", t) for t in blocks() if re.search(r"^(network|secrets):", t, re.M)]
    assert [m and m[1] for m in found] == list(PROFILES)


@pytest.mark.parametrize("name", PROFILES)
def test_profile(sbx, name):
    """Each is accepted, with files of the world in place of those that it names."""
    text = profile(name).replace("~/company/ca.pem", f"{sbx.world.dir}/ca.pem")
    sbx.profile(name, text)
    r = shell(sbx, f"sbx-run --profile {name} --dry-run -- true", AWS_PAIR="AKIA:x")
    assert r.returncode == 0, r
    hosts = [e["host"] for e in json.loads(r.stdout)["network"]["terminated"]]
    assert hosts and all(h in " ".join(hosts) for h in re.findall(r"hosts: \[?\"?([\w.-]+)", text)), r


def test_api_to_read(sbx, world):
    """The default profile reads GitHub's API with the token, and does not post; agent does."""
    post = "curl -sS -H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com/user -d x"
    for args, passes in (("", False), ("--allow api.github.com", False), ("--profile agent", True)):
        world.mark()
        r = shell(sbx, f"sbx-run {args} --secret GITHUB_TOKEN@api.github.com -- sh -c '{post}'", GITHUB_TOKEN=VALUE)
        assert ("api.github.com is read-only here" not in r.stdout) == passes, r
        assert [e["method"] for e in world.log("origin")] == (["POST"] if passes else []), r


def test_a_secret_lifts_no_access(sbx, world):
    """A profile that holds a wildcard to reading holds the secret's host to it, whatever flag names the host."""
    sbx.profile("npm-read", profile("npm-read"))
    put = "curl -sS -X PUT -H \"Authorization: Bearer $T\" https://packages.npmjs.org/x -d y"
    for args in ("", "--allow packages.npmjs.org"):
        world.mark()
        r = shell(sbx, f"sbx-run --profile npm-read {args} --secret T@packages.npmjs.org -- sh -c '{put}'", T=VALUE)
        assert "packages.npmjs.org is read-only here" in r.stdout and not world.log("origin"), r
    sbx.profile("npm-any", "name: npm-any\nextends: npm-read\nnetwork: {allow: [{host: packages.npmjs.org, access: any}]}\n")
    r = shell(sbx, f"sbx-run --profile npm-any --secret T@packages.npmjs.org -- sh -c '{put}'", T=VALUE)
    assert [e["method"] for e in world.log("origin")] == ["PUT"], r


def test_a_profile_for_reading(sbx, world):
    """npm installs, and cannot publish: the origin is never asked with PUT."""
    sbx.profile("npm-read", profile("npm-read"))
    sbx.put(".npmrc", NPMRC + "\n")
    sbx.put("package.json", '{"name": "sbx-demo", "version": "1.0.0"}')
    world.mark()
    run = "sbx-run --profile npm-read --secret 'NPM_TOKEN@*.npmjs.org' -- npm "
    r = shell(sbx, run + "view other", NPM_TOKEN=VALUE)
    assert VALUE in credentials(world, "packages.npmjs.org", "authorization"), r
    r = shell(sbx, run + "publish", NPM_TOKEN=VALUE)
    assert r.returncode != 0 and "403" in r.stderr, r
    assert {e["method"] for e in world.log("origin")} == {"GET"}
    assert sbx.events(action="deny", reason="access_method", fqdn_pinned="packages.npmjs.org")


def test_narrowed(sbx, world):
    text = profile("my-agent").replace("pass show github | head -n 1", f"echo {VALUE}")
    sbx.profile("my-agent", text)
    world.mark()
    ask = "curl -sS -H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com"
    r = shell(sbx, f"sbx-run --profile my-agent -- sh -c 'echo $GITHUB_TOKEN; {ask}/repos/me/project/issues; {ask}/user; "
              f"{ask}/repos/me/project/issues -d x'")
    assert r.stdout.startswith("ghp_") and VALUE not in r.stdout, r
    assert "is for the paths" in r.stdout and "is for the methods" in r.stdout, r
    assert [e["path"] for e in world.log("origin")] == ["/repos/me/project/issues"]


def test_client_certificate(sbx):
    """The profile is accepted; tests of mTLS itself are elsewhere."""
    text = profile("ledger")
    for name in ("cert", "key"):
        text = re.sub(rf"({name}): [^,}}]*", rf"\1: {sbx.world.dir}/leaf.{'pem' if name == 'cert' else 'key'}", text)
    os.chmod(os.path.join(sbx.world.dir, "leaf.key"), 0o644)
    sbx.profile("ledger", text)
    r = shell(sbx, "sbx-run --profile ledger -- curl -sS https://ledger.example.com/a")
    assert r.returncode == 0 and '"path": "/a"' in r.stdout, r


def test_a_push_is_refused_in_plain_words(sbx, www):
    """The message that a user of the shipped profiles reads; fetching from the same host works."""
    sbx.profile("p", "name: p\nextends: none\nnetwork: {mode: fetch, allow: [{host: allowed.test, access: read-only}]}\n")
    git = "git -c user.name=x -c user.email=x@example.com"
    r = shell(sbx, f"sbx-run --profile p -- sh -c 'git clone -q https://allowed.test/repo.git r && cd r && {git} commit -q "
              "--allow-empty -m two && git push'")
    assert "remote: sbx: allowed.test is read-only here" in r.stderr and "a git push is not allowed" in r.stderr, r
    assert "use a profile with access: any for the host" in r.stderr, r
