# SPDX-License-Identifier: LGPL-2.1-or-later
"""First commands of a new user: each works, or one line says what to type instead."""
import json
import os

import pytest

from conftest import INST


def refused(r, *says):
    assert r.rc == 125 and r.err.startswith("sbx-run: ") and r.err.count("\n") == 1, r
    assert all(word in r.err for word in says), r


def test_short_options(sbx):
    assert sbx.run(["-h"], []).out == sbx.run(["--help"], []).out != ""
    assert sbx.run(["-V"], []).out == sbx.run(["--version"], []).out != ""
    refused(sbx.run(["-x"], []), "--help")


def test_list_profiles(sbx):
    r = sbx.run(["--list-profiles"], [])
    lines = {line.split()[0]: line for line in r.out.splitlines()}
    assert r.rc == 0 and list(lines) == sorted(lines) and {"default", "none", "notebook"} <= set(lines), r
    assert lines["none"] == "none           No network at all but the sandbox's own loopback.  " \
        f"({INST}/share/sbx/profiles/none.yaml)"
    sbx.profile("none", "name: none\ndescription: mine\nextends: full\n")
    sbx.profile("bad", "name: bad\nnetwrok: {}\n")
    with open(sbx.config + "/profiles/.hidden.yaml", "w") as f:
        f.write("name: hidden\n")
    out = sbx.run(["--list-profiles"], []).out
    assert f"none           mine  ({sbx.config}/profiles/none.yaml)\n" in out and out.count("\nnone ") == 1, out
    assert f"bad            {sbx.config}/profiles/bad.yaml:2:1: unknown key 'netwrok'" in out and "hidden" not in out, out
    refused(sbx.run(["--list-profiles"], ["true"]), "stands alone")


def test_bind_of_the_current_directory(sbx):
    os.mkdir(sbx.work + "/sub")
    sbx.own(sbx.world.user.pw_uid)
    assert sbx.run(["--bind", ".:/w", "--profile", "none"], ["sh", "-c", "echo x > /w/made"]).rc == 0
    assert os.path.exists(sbx.work + "/made")
    r = sbx.run(["--ro-bind", "./sub:/s"], ["sh", "-c", "touch /s/x"])
    assert r.rc == 1 and "Read-only" in r.err, r
    r = sbx.run(["--ro-bind", "."], ["sh", "-c", "pwd; touch x"])  # at its own path, instead of the grant that it has by itself
    assert r.rc == 1 and r.out == sbx.work + "\n" and "Read-only" in r.err, r
    refused(sbx.run(["--bind", "sub"], ["true"]), "'sub'")
    refused(sbx.run(["--bind", "./../x"], ["true"]), "..")
    with open(sbx.tmp + "/job.yaml", "w") as f:
        f.write("bind: ['.:/w']\ncommand: [test, -e, /w/made]\n")
    assert sbx.run(["--job", sbx.tmp + "/job.yaml"], []).rc == 0


def test_publish_localhost(sbx):
    plan = sbx.run(["--dry-run", "--publish", "localhost:8080"], ["true"])
    assert json.loads(plan.out)["network"]["publish"] == [{"address": "127.0.0.1", "port": 8080, "inside": 8080}], plan
    refused(sbx.run(["--dry-run", "--publish", "myhost:8080"], ["true"]), "myhost:8080")


@pytest.mark.parametrize("entry", ["10.0.0.9", "192.168.1.0/24:80", "169.254.7.7", "fd12::1"])
def test_allow_of_what_no_connection_reaches(sbx, entry):
    refused(sbx.run(["--allow", entry], ["true"]), entry, "admit")
    with open(sbx.config + "/system.yaml", "w") as f:
        f.write("admit: [10.0.0.0/8, 192.168.0.0/16, 169.254.7.0/24, 'fd12::/64']\n")
    assert sbx.run(["--allow", entry], ["true"]).rc == 0
    refused(sbx.run(["--allow", "10.0.0.9", "--allow", "172.16.0.1"], ["true"]), "172.16.0.1")


@pytest.mark.parametrize("name", ["localhost", "localhost:8080", "*.localhost", "app.localhost", "127.0.0.1", "[::1]:80"])
def test_allow_of_loopback(sbx, name):
    refused(sbx.run(["--allow", name], ["true"]), name)
    sbx.profile("l", f"name: l\nnetwork: {{allow: ['{name}']}}\n")
    refused(sbx.run(["--profile", "l"], ["true"]), "l.yaml:2:")
    assert sbx.run(["--deny", name], ["true"]).rc == 0


def test_minimal_root_says_what_it_lacks(sbx):
    r = sbx.run(["--root", "minimal"], ["ls"])
    assert r.rc == 127 and "minimal" in r.err and r.err.count("\n") == 1, r
    flags = r.err.partition("(")[2].partition(" are the host's")[0].split()
    r = sbx.run(["--root", "minimal", *flags], ["ls"])
    assert r.rc == 0 and "inside.py" in r.out.split(), r
    assert "minimal" in sbx.run(["--root", "minimal"], ["/usr/bin/ls"]).err
    assert "minimal" not in sbx.run([], ["no-such-program"]).err


def asks(sbx, name, host, *curl):
    """The status of curl's request, what it printed, and the methods that the server saw."""
    sbx.world.mark()
    r = sbx.run(["--profile", name], ["curl", "-sS", "-D-", *curl, f"https://{host}/project"])
    assert r.rc == 0, r
    seen = [e["method"] for e in sbx.world.log(path="/project")]
    return int(r.out.split()[1]), r, seen


@pytest.mark.parametrize("host", ["pypi.org", "files.pythonhosted.org", "github.com"])
@pytest.mark.parametrize("name", ["default", "notebook"])
def test_shipped_profiles_only_read(sbx, name, host):
    """The same request passes when it only reads, and when the profile's entry says no `access`."""
    status, r, seen = asks(sbx, name, host)
    assert (status, seen) == (200, ["GET"]), r
    for curl in (["-d", "x=1"], ["-X", "PUT", "-d", "x=1"], ["-X", "DELETE"]):
        status, r, seen = asks(sbx, name, host, *curl)
        assert (status, seen) == (403, []) and "x-sbx-denied: access_method" in r.out.lower(), r
        assert f"{host} is read-only here" in r.out, r
    assert {e["fqdn_pinned"] for e in sbx.events(action="deny", reason="access_method")} == {host}
    sbx.profile("writes", f"name: writes\nextends: {name}\nnetwork: {{allow: [{{host: {host}, access: any}}]}}\n")
    status, r, seen = asks(sbx, "writes", host, "-d", "x=1")
    assert (status, seen) == (200, ["POST"]), r
