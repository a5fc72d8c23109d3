# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each event names the generation of the policy that decided."""
import os
import subprocess

from control import Client
from test_lifecycle import clean  # noqa: F401

ID = "dadadadadada"

# Lines of stdin: open NAME keeps a connection; try NAME; close ends the kept ones.
INSIDE = """
import socket, sys
kept = []
print("up", flush=True)
for line in sys.stdin:
    word, name = line.split()
    if word == "close":
        kept.clear()
    else:
        try:
            s = socket.create_connection((name, 7000), timeout=20)
            s.sendall(b"hello")
            assert s.recv(5) == b"hello"
            print("open", flush=True)
            if word == "open":
                kept.append(s)
        except OSError:
            print("refused", flush=True)
"""


def generations(sbx, **match):
    return {e["generation"] for e in sbx.events(**match)}


def test_generations(sbx, clean):
    args = ["-q", "--id", ID, "--allow", "allowed.test:7000", "--allow", "v4.test:7000"]
    p = sbx.popen(args, ["/usr/bin/python3", "-c", INSIDE], stdin=subprocess.PIPE)
    assert p.stdout.readline() == "up\n"

    def tell(line, answer=None):
        p.stdin.write(line + "\n")
        p.stdin.flush()
        assert answer is None or p.stdout.readline() == answer + "\n"

    tell("open allowed.test", "open")
    tell("open v4.test", "open")
    tell("try denied1.test", "refused")
    with Client(os.path.join(sbx.runtime, ID, "control.sock")) as c:
        assert c.ask("network", add_deny=["v4.test"])["generation"] == 2  # cuts
        tell("try denied2.test", "refused")
        tell("try v4.test", "refused")
        assert c.ask("network", add_allow=["denied3.test"])["generation"] == 3
    tell("try denied4.test", "refused")
    tell("close .")
    p.communicate(timeout=20)
    assert p.returncode == 0
    assert generations(sbx, fqdn_pinned="denied1.test") == {1}
    assert generations(sbx, fqdn_pinned="denied2.test") == {2}
    assert generations(sbx, fqdn_pinned="denied4.test") == {3}
    assert generations(sbx, fqdn_pinned="v4.test", action="deny") == {2}
    assert generations(sbx, fqdn_pinned="v4.test", action="deny", protocol="tcp") == {2}  # the flow that was cut
    assert generations(sbx, fqdn_pinned="v4.test", action="allow") == {1}
    # A flow is told at its end, and was judged again by each policy until then.
    flow, = [e for e in sbx.events(fqdn_pinned="allowed.test", action="allow", protocol="tcp")]
    assert flow["generation"] == 3 and flow["bytes_out"] == 5, flow
    assert [e for e in sbx.events() if e["action"] in ("allow", "deny") and not e["generation"]] == []


def test_no_policy_decided(sbx):
    """A notice of the launcher has none."""
    assert subprocess.run([*sbx.world.ns(str(sbx.world.user.pw_uid)), "git", "-C", sbx.work, "init", "-q"], check=False).returncode == 0
    r = sbx.run(["-q"], ["sh", "-c", "getent hosts denied.test; mkdir -p .vscode && echo '{}' >.vscode/tasks.json; sleep 1"])
    assert r.rc == 0, r
    events = sbx.events()
    assert {e["generation"] for e in events if e["action"] == "deny"} == {1}
    notices = [e for e in events if e["action"] == "notice"]
    assert notices and {e["generation"] for e in notices} == {None}, events
