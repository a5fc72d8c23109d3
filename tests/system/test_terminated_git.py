# SPDX-License-Identifier: LGPL-2.1-or-later
"""git over HTTP to a terminated host: a read-only entry carries clone and fetch, and no push, whatever sends it."""
import os
import subprocess

import pytest

from terminated import Inside, case, reason, req, status

PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow: [{host: github.com, %s}]
"""
READ_ONLY, ANY = "access: read-only", "inspect: true"


@pytest.fixture
def repository(world):
    """DIR/git/r.git, which takes pushes from anyone; returns the function that says its branches."""
    path = os.path.join(world.dir, "git", "r.git")
    env = {**os.environ, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
           "GIT_COMMITTER_EMAIL": "t@t", "HOME": world.dir}

    def git(*argv):
        return subprocess.run(["git", "-C", path, *argv], check=True, env=env, capture_output=True, text=True).stdout

    if not os.path.exists(path):
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", path], check=True, env=env)
        git("config", "http.receivepack", "true")
        tree = git("hash-object", "-w", "-t", "tree", "/dev/null").strip()
        git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "first").strip())
    for branch in git("for-each-ref", "--format=%(refname)").split():
        if branch != "refs/heads/main":
            git("update-ref", "-d", branch)
    return lambda: git("for-each-ref", "--format=%(refname:short)").split()


IDENTITY = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t; "
CLONE = IDENTITY + "cd /tmp && git clone -q https://github.com/git/r.git r && cd r && git log --oneline && git fetch -q; echo rc $?; "
PUSH = "git commit -q --allow-empty -m second && git push -q origin HEAD:refs/heads/pushed; echo rc $?"


@pytest.mark.parametrize("entry", [READ_ONLY, ANY], ids=["read-only", "any"])
def test_clone_fetch_and_push(sbx, world, repository, entry):
    sbx.profile("tls", PROFILE % entry)
    world.mark()
    r = sbx.run(["--profile", "tls"], ["sh", "-c", CLONE + PUSH])
    assert "first" in r.out and r.out.count("rc ") == 2 and "rc 0" in r.out, r
    asked = [(e["method"], e["path"]) for e in world.log("origin")]
    assert ("POST", "/git/r.git/git-upload-pack") in asked, asked
    if entry == ANY:
        assert r.out.endswith("rc 0\n") and repository() == ["main", "pushed"], r
        return
    assert not r.out.endswith("rc 0\n") and "403" in r.err, r
    assert repository() == ["main"] and not [a for a in asked if "receive-pack" in a[1]], asked
    assert sbx.events(action="deny", reason="access_method", fqdn_pinned="github.com")


def pack(command):
    """The pkt-lines of gitprotocol-pack(5), as text."""
    return f"{len(command) + 4:04x}{command}0000"


def post(path, kind, body, *more):
    return case(req(f"POST {path} HTTP/1.1", f"Content-Type: application/x-{kind}-request", f"Content-Length: {len(body)}", *more,
                    host="github.com", body=body), "github.com")


CREATE = "0" * 40 + " %s refs/heads/raw\0 report-status\n"
PUSHES = [  # a push without git's client
    lambda body: post("/git/r.git/git-receive-pack", "git-receive-pack", body),
    lambda body: post("/git/r.git/git-receive-pack", "git-upload-pack", body),
    lambda body: post("/git/r.git/git-receive-pack?/git-upload-pack", "git-upload-pack", body),
    lambda body: case(req("GET /git/r.git/info/refs?service=git-receive-pack HTTP/1.1", host="github.com"), "github.com"),
    lambda body: case(req("GET /git/r.git/info/refs?a=b&service=git%2Dreceive-pack HTTP/1.1", host="github.com"), "github.com"),
    lambda body: case(req("GET /git/r.git/git-receive-pack HTTP/1.1", host="github.com"), "github.com"),
]


@pytest.mark.parametrize("entry", [READ_ONLY, ANY], ids=["read-only", "any"])
def test_a_push_by_hand(sbx, world, repository, entry):
    """The same requests are refused, and reach the server when the entry allows all: the first of them is a push."""
    path = os.path.join(world.dir, "git", "r.git")
    commit = subprocess.run(["git", "-C", path, "rev-parse", "main"], check=True, capture_output=True, text=True).stdout.strip()
    empty_pack = subprocess.run(["git", "-C", path, "pack-objects", "--stdout", "-q"], input=b"", check=True,
                                capture_output=True).stdout.decode("latin-1")
    body = pack(CREATE % commit) + empty_pack
    world.mark()
    replies = Inside(sbx, PROFILE % entry, {})([push(body) for push in PUSHES])
    if entry == READ_ONLY:
        assert {(status(r), reason(r), r[1]) for r in replies} == {(403, "access_method", "end")}, replies
        assert repository() == ["main"] and not world.log("origin")
    else:
        assert {reason(r) for r in replies} == {None} and status(replies[0]) == 200, replies
        assert "raw" in repository() and len(world.log("origin")) == len(PUSHES)
