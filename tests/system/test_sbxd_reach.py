# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd: what a sandbox may reach: rules of one sandbox, at its start and live, with the requests that they admit; and
what no rule lifts."""
import os
import threading

import pytest

from sbxd import service, wait_for
from test_lifecycle import clean  # noqa: F401
from test_live import RESET, stream
from test_sbxd_start import ended, start, started, text

NET = """
network:
  mode: fetch
  allow:
    - files.test
    - {host: other.api.test, access: read-only}
    - 203.0.113.0/24:5432
"""
READ = {"action": "allow", "host": "api.test", "methods": ["GET", "HEAD"]}


@pytest.fixture
def net(sbx, clean):  # noqa: F811
    sbx.profile("net", NET)
    with service(sbx) as s:
        yield s


def curl(s, i, url, *args):
    """The status that the request gets; 0: there was no connection, or it ended."""
    a = s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", *args,
                                                           url]}, status=200, timeout=60).json
    return int(a["stdout"] or 0)


def put(s, i, status=200, headers=None, **body):
    return s.ask("PUT", f"/sandboxes/{i}/network", body, headers, status=status).json


def network(s, i):
    return s.get(f"/sandboxes/{i}/network")


# --- requests ---

def test_requests_are_judged_by_a_rule_of_a_live_sandbox(net):
    """GET passes and POST does not; another rule takes its place; without one the host is out of reach."""
    s = net
    below = {"action": "allow", "host": "*.sub.api.test", "ports": [443], "paths": ["/v1"]}
    with started(s, profile="net", network={"rules": [READ, below]}) as i:
        assert network(s, i)["rules"] == [READ, below]
        for scheme in "https", "http":
            assert curl(s, i, f"{scheme}://api.test/a") == 200
            assert curl(s, i, f"{scheme}://api.test/a", "-I") == 200
            assert curl(s, i, f"{scheme}://api.test/a", "-X", "POST", "-d", "x") == 403
            assert curl(s, i, f"{scheme}://api.test/a", "-X", "DELETE") == 403
        assert curl(s, i, "https://files.test/a", "-X", "POST", "-d", "x") == 200  # another host: carried unread
        assert curl(s, i, "https://api.test:8443/a") == 0  # another port
        found = wait_for(lambda: s.get(f"/sandboxes/{i}/events?reason=access_method")["items"])
        assert found[0]["name"] == "api.test" and "api.test" in found[0]["rule"] and found[0]["request"].startswith("DELETE /a")
        # other methods, and paths
        put(s, i, rules=[{"action": "allow", "host": "api.test", "methods": ["POST"], "paths": ["/v1/**"]}])
        assert curl(s, i, "https://api.test/v1/a/b", "-X", "POST", "-d", "x") == 200
        assert curl(s, i, "https://api.test/v1/a/b") == 403
        assert curl(s, i, "https://api.test/v2", "-X", "POST", "-d", "x") == 403
        assert curl(s, i, "https://api.test/v1/../v2", "--path-as-is", "-X", "POST", "-d", "x") == 400
        # paths alone
        put(s, i, rules=[below])
        assert curl(s, i, "https://deep.sub.api.test/v1", "-X", "PUT", "-d", "x") == 200
        assert curl(s, i, "https://deep.sub.api.test/v2") == 403
        put(s, i, rules=[])
        assert network(s, i)["rules"] == [] and curl(s, i, "https://api.test/a") == 0


def test_a_change_cuts_what_was_judged_by_the_rule_before(net):
    """A connection that is kept open is cut when its rule changes, and not when another does."""
    s = net
    with started(s, profile="net", network={"rules": [READ]}) as i:
        def flows():
            return [f["name"] for f in s.get(f"/sandboxes/{i}")["flows"] if f["bytes_in"] > 10000]

        got = {}

        def download():
            got.update(s.ask("POST", f"/sandboxes/{i}/exec", {"command": stream("get", "api.test", 443), "timeout": 6},
                             status=200, timeout=60).json)

        t = threading.Thread(target=download)
        t.start()
        wait_for(lambda: "api.test" in flows())
        assert put(s, i, deny_out=["other.test"])["cut"] == 0
        assert put(s, i, rules=[READ, {"action": "deny", "host": "more.test"}])["cut"] == 0
        assert "api.test" in flows()
        assert put(s, i, rules=[{**READ, "methods": ["GET"]}])["cut"] == 1
        t.join(20)
        words = [line.split() for line in got["stdout"].splitlines()]
        assert ["up"] in words and any(w in RESET for w in words), got


def test_no_other_way_to_a_name_whose_requests_are_judged(net, sbx):
    """Whatever else allows the name: the workspace's rule, a wildcard of the live list, udp, the profile's own entry."""
    s = net
    sbx.profile("wide", "network: {mode: fetch, allow: ['*.api.test', 'api.test', {host: api.test, ports: [443], protocol: udp}]}\n")
    with started(s, profile="wide", workspace="w", network={"rules": [READ], "allow_out": ["*.api.test", "api.test"]}) as i:
        def refused():
            return curl(s, i, "https://api.test/a", "-X", "POST", "-d", "x") == 403 and curl(s, i, "https://api.test/a") == 200

        def explained(**more):
            return s.ask("POST", "/explain", {"id": i, "host": "api.test", "port": 443, **more}, status=200).json

        assert refused() and curl(s, i, "https://other.api.test/a", "-X", "POST", "-d", "x") == 200
        assert explained(protocol="udp")["reason"] == "not_terminated"
        assert explained(protocol="tcp")["verdict"] == "allow"
        assert explained(protocol="tcp", method="POST")["reason"] == "access_method"
        assert explained(protocol="tcp", method="HEAD")["verdict"] == "allow"
        s.ask("POST", "/workspaces/w/sandbox/rules", {"action": "allow", "pattern": "api.test", "priority": 0}, status=201)
        wait_for(lambda: s.get(f"/sandboxes/{i}")["generation"] > 1)
        assert explained(protocol="tcp")["reason"] == "rule_allow" and refused()
        # by its address, which the name's server has
        put(s, i, allow_out=["203.0.113.0/24"])
        assert curl(s, i, "https://api.test/a", "-X", "POST", "-d", "x", "--resolve", "api.test:443:203.0.113.13") in (0, 403)
        assert refused()


def test_a_sandbox_without_a_judge_of_requests(net, sbx):
    """Nothing is half true: without sbx-tls the rule is refused, and says what to do; a plain one is taken."""
    s = net
    plain = {"action": "allow", "host": "api.test"}
    sbx.profile("plain", "network: {mode: fetch, allow: [files.test]}\n")
    with started(s, profile="plain", network={"allow_out": ["files.test"]}) as i:
        before = network(s, i)
        a = put(s, i, 422, rules=[plain, READ], deny_out=["x.test"])
        assert a["field"] == "rules[1].methods" and "start it with a rule for this name" in a["detail"], a
        a = put(s, i, 422, rules=[{**plain, "paths": ["/a"]}])
        assert a["field"] == "rules[0].paths", a
        assert network(s, i) == before
        put(s, i, rules=[plain])
        assert curl(s, i, "https://api.test/a", "-X", "POST", "-d", "x") == 200
    # the authority of a sandbox is for the names of its start
    with started(s, profile="plain", network={"rules": [READ]}) as i:
        for host in "denied.test", "*.test", "sub.api.test", "*.api.test":
            assert put(s, i, 422, rules=[{**READ, "host": host}])["field"] == "rules[0].methods", host
        assert put(s, i, rules=[{**READ, "ports": [443]}])["generation"] == 2


# --- the start ---

def test_what_is_asked_at_the_start_is_live(net):
    """GET shows it, in the object, the list and network, and a PUT takes it away; so does each part alone."""
    s = net
    rules = [{"action": "allow", "cidr": "203.0.113.0/24", "ports": [80, "8000-8100"], "protocol": "tcp"},
             {"action": "deny", "host": "*.wild.test"}]
    asked = {"allow_out": ["denied.test:443"], "deny_out": ["files.test"], "rules": rules}
    with started(s, profile="net", network=asked) as i:
        row = next(x for x in s.get("/sandboxes")["items"] if x["id"] == i)
        for o in network(s, i), s.get(f"/sandboxes/{i}"), row:
            assert {k: o[k] for k in asked} == asked and o["generation"] == 1, o
        assert curl(s, i, "https://denied.test/a") == 200 and curl(s, i, "https://files.test/a") == 0
        got = put(s, i, allow_out=[])
        assert (got["allow_out"], got["deny_out"], got["rules"]) == ([], ["files.test"], rules)
        assert curl(s, i, "https://denied.test/a") == 0 and curl(s, i, "https://files.test/a") == 0
        got = put(s, i, deny_out=[])
        assert got["rules"] == rules and curl(s, i, "https://files.test/a") == 200
        got = put(s, i, rules=[])
        assert (got["allow_out"], got["deny_out"], got["rules"], got["generation"]) == ([], [], [], 4)
        row = next(x for x in s.get("/sandboxes")["items"] if x["id"] == i)
        assert row["rules"] == [] and row["generation"] == 4


@pytest.mark.parametrize("deny", [{"deny_out": ["files.test"]}, {"rules": [{"action": "deny", "host": "files.test"}]},
                                  {"rules": [{"action": "deny", "cidr": "0.0.0.0/0"}, {"action": "deny", "cidr": "::/0"}]}])
def test_a_deny_at_the_start_holds_from_the_first_connection(net, deny):
    """The command connects as its first act. Its twin has no deny."""
    s = net
    connect = ["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", "https://files.test/a"]
    denied = start(s, *connect, profile="net", network=deny)["id"]
    ended(s, denied)
    assert text(s, denied) == b"000"
    twin = start(s, *connect, profile="net", network={"deny_out": ["x.test"]})["id"]
    ended(s, twin)
    assert text(s, twin) == b"200"
    reasons = {e["reason"] for e in s.get(f"/sandboxes/{denied}/events?action=deny")["items"]}
    assert reasons == {"live_deny"}, reasons


def test_internet_access_is_the_live_state(net):
    """allow_internet_access of the start and of each change; air-gapped, it reaches what the live list allows."""
    s = net

    def access(i):
        row = next(x for x in s.get("/sandboxes")["items"] if x["id"] == i)
        return {s.get(f"/sandboxes/{i}")["allow_internet_access"], row["allow_internet_access"]}

    with started(s, profile="net") as i:
        assert access(i) == {True} and curl(s, i, "https://files.test/a") == 200
        put(s, i, air_gapped=True)
        assert access(i) == {False} and curl(s, i, "https://files.test/a") == 0
        put(s, i, air_gapped=False)
        assert access(i) == {True} and curl(s, i, "https://files.test/a") == 200
    with started(s, profile="net", allow_internet_access=False) as i:
        assert access(i) == {False} and curl(s, i, "https://files.test/a") == 0
        put(s, i, air_gapped=False)
        assert access(i) == {True} and curl(s, i, "https://files.test/a") == 200
    for lists in {"allow_out": ["denied.test"]}, {"rules": [{"action": "allow", "host": "denied.test", "methods": ["GET"]}]}:
        with started(s, profile="net", allow_internet_access=False, network=lists) as i:
            assert access(i) == {False}
            assert curl(s, i, "https://denied.test/a") == 200 and curl(s, i, "https://files.test/a") == 0
            assert curl(s, i, "https://denied.test/a", "-X", "POST", "-d", "x") == (200 if "allow_out" in lists else 403)
            put(s, i, allow_out=[], rules=[])
            assert access(i) == {False} and curl(s, i, "https://denied.test/a") == 0


# --- what no rule lifts ---

def test_floors_and_rules_of_the_workspace_stand_above(net):
    s = net
    s.ask("POST", "/workspaces/w/sandbox/rules", {"action": "deny", "pattern": "denied.test"}, status=201)
    hosts = ["ipinfo.io", "denied.test", "meta.test", "private.test", "loop.test"]
    wide = [{"action": "allow", "host": h} for h in hosts]
    read = [{**r, "methods": ["GET"]} for r in wide]
    with started(s, profile="net", workspace="w", network={"rules": read}) as i:
        for rules in read, wide:
            put(s, i, rules=rules)
            for host, reason in ("ipinfo.io", "floor"), ("denied.test", "rule_deny"):
                a = s.ask("POST", "/explain", {"id": i, "protocol": "tcp", "host": host, "port": 443}, status=200).json
                assert (a["verdict"], a["reason"]) == ("deny", reason), a
            for host in hosts:
                assert curl(s, i, f"http://{host}/") in (0, 403), host
        allowed = {e["name"] for e in s.get(f"/sandboxes/{i}/events?action=allow&limit=1000")["items"]}
        assert not allowed & set(hosts), allowed
        for cidr in "169.254.169.254", "127.0.0.0/8", "224.0.0.0/4", "::ffff:169.254.169.254":
            assert put(s, i, 422, rules=[{"action": "allow", "cidr": cidr}])["field"] == "rules[0].cidr"


def test_no_rule_changes_what_the_profile_asks_of_requests(net, sbx):
    """A host with an access of its own, or a secret: a rule about its requests is refused, and one that allows it keeps
    what the profile asks."""
    s = net
    directory = os.path.join(sbx.config, "secrets")
    os.mkdir(directory)
    value = "the value of the secret, 33 bytes or more"
    with open(os.path.join(directory, "TOKEN@api.test"), "w") as f:
        f.write(value + "\n")
    for p, mode in ((directory, 0o700), (os.path.join(directory, "TOKEN@api.test"), 0o600)):
        os.chmod(p, mode)
        os.chown(p, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    post = {"methods": ["POST"]}
    with started(s, profile="net", network={"allow_out": ["api.test"]}, secrets=["TOKEN"]) as i:
        for host in "other.api.test", "api.test", "*.api.test":
            a = put(s, i, 422, rules=[{"action": "allow", "host": host, **post}])
            assert a["field"] == "rules[0].methods" and "judges the requests" in a["detail"], a
        assert start(s, profile="net", status=422, secrets=["TOKEN"], network={
            "allow_out": ["api.test"], "rules": [{"action": "allow", "host": "api.test", **post}]})["field"] == "network.rules[0].methods"
        put(s, i, rules=[{"action": "allow", "host": "other.api.test"}])
        assert curl(s, i, "https://other.api.test/a", "-X", "POST", "-d", "x") == 403
        assert curl(s, i, "https://other.api.test/a") == 200
        # the secret goes to its host while the list allows it, and nowhere else
        def sent_to(host):
            """The values of the header at the server, and the answer in the sandbox."""
            sbx.world.mark()
            run = {"command": ["sh", "-c", f'curl -sS -m 10 -H "X-T: $TOKEN" https://{host}/token']}
            out = s.ask("POST", f"/sandboxes/{i}/exec", run, status=200, timeout=60).json["stdout"]
            return [dict(e["headers"]).get("x-t") for e in sbx.world.log("origin", path="/token")], out

        got, shown = sent_to("api.test")
        assert got == [value] and value not in shown and "sbx_secret_" in shown, (got, shown)
        got, shown = sent_to("other.api.test")
        assert value not in str(got) + shown, (got, shown)
        put(s, i, allow_out=[])
        assert curl(s, i, "https://api.test/a") == 0
        put(s, i, allow_out=["*.api.test", "api.test"])
        assert curl(s, i, "https://api.test/a") == 200


# --- bodies ---

BAD = [
    ([{"action": "allow"}], "rules[0].host"),
    ([{"action": "allow", "host": "a.test", "cidr": "192.0.2.1"}], "rules[0].cidr"),
    ([READ, {"action": "drop", "host": "a.test"}], "rules[1].action"),
    ([{"host": "a.test"}], "rules[0].action"),
    ([{"action": "allow", "host": "a.test", "port": [1]}], "rules[0].port"),
    ([{"action": "allow", "host": "a.test:443"}], "rules[0].host"),
    ([{"action": "allow", "host": "192.0.2.1"}], "rules[0].host"),
    ([{"action": "allow", "host": "*"}], "rules[0].host"),
    ([{"action": "allow", "host": "*.co.uk"}], "rules[0].host"),
    ([{"action": "allow", "host": "localhost"}], "rules[0].host"),
    ([{"action": "allow", "host": ""}], "rules[0].host"),
    ([{"action": "allow", "host": "a.test GET"}], "rules[0].host"),
    ([{"action": "allow", "host": "a.test\u0007"}], "rules[0].host"),
    ([{"action": "allow", "host": ["a.test"]}], "rules[0].host"),
    ([{"action": "allow", "host": {"action": "allow"}}], "rules[0].host"),
    ([{"action": "allow", "host": "x" * 300}], "rules[0].host"),
    ([{"action": "allow", "cidr": "a.test"}], "rules[0].cidr"),
    ([{"action": "allow", "cidr": "192.0.2.1/24"}], "rules[0].cidr"),
    ([{"action": "allow", "cidr": "192.0.2.0/24:443"}], "rules[0].cidr"),
    ([{"action": "allow", "cidr": "[2001:db8::1]:443"}], "rules[0].cidr"),
    ([{"action": "allow", "host": "a.test", "ports": [0]}], "rules[0].ports[0]"),
    ([{"action": "allow", "host": "a.test", "ports": [443, 65536]}], "rules[0].ports[1]"),
    ([{"action": "allow", "host": "a.test", "ports": [-1]}], "rules[0].ports[0]"),
    ([{"action": "allow", "host": "a.test", "ports": [10 ** 18]}], "rules[0].ports[0]"),
    ([{"action": "allow", "host": "a.test", "ports": ["1-99999999999"]}], "rules[0].ports[0]"),
    ([{"action": "allow", "host": "a.test", "ports": ["443/udp"]}], "rules[0].ports[0]"),
    ([{"action": "allow", "host": "a.test", "ports": ["9-1"]}], "rules[0].ports"),
    ([{"action": "allow", "host": "a.test", "ports": 443}], "rules[0].ports"),
    ([{"action": "allow", "host": "a.test", "ports": []}], "rules[0].ports"),
    ([{"action": "allow", "host": "a.test", "ports": list(range(1, 18))}], "rules[0].ports"),
    ([{"action": "allow", "host": "a.test", "protocol": "icmp"}], "rules[0].protocol"),
    ([{"action": "allow", "host": "a.test", "methods": ["get"]}], "rules[0].methods[0]"),
    ([{"action": "allow", "host": "a.test", "methods": ["GET", "CONNECT"]}], "rules[0].methods[1]"),
    ([{"action": "allow", "host": "a.test", "methods": ["GET /x"]}], "rules[0].methods[0]"),
    ([{"action": "allow", "host": "a.test", "methods": ["GET,POST"]}], "rules[0].methods[0]"),
    ([{"action": "allow", "host": "a.test", "methods": ["*"]}], "rules[0].methods[0]"),
    ([{"action": "allow", "host": "a.test", "methods": []}], "rules[0].methods"),
    ([{"action": "allow", "host": "a.test", "methods": ["GET"] * 65}], "rules[0].methods"),
    ([{"action": "deny", "host": "a.test", "methods": ["GET"]}], "rules[0].methods"),
    ([{"action": "allow", "cidr": "192.0.2.1", "methods": ["GET"]}], "rules[0].methods"),
    ([{"action": "allow", "host": "a.test", "protocol": "udp", "paths": ["/"]}], "rules[0].paths"),
    ([{"action": "allow", "host": "a.test", "paths": ["a"]}], "rules[0].paths[0]"),
    ([{"action": "allow", "host": "a.test", "paths": ["/a b"]}], "rules[0].paths[0]"),
    ([{"action": "allow", "host": "a.test", "paths": ["/../x"]}], "rules[0].paths[0]"),
    ([{"action": "allow", "host": "a.test", "paths": ["/%2e"]}], "rules[0].paths[0]"),
    ([{"action": "allow", "host": "a.test", "paths": ["/" + "a" * 800] * 4}], "rules[0].paths"),
    ([READ, {**READ, "methods": ["POST"]}], "rules[1].methods"),
    ([{"action": "allow", "host": "a.test"}] * 257, "rules"),
    ([{"action": "allow", "host": "a.test"}] * 3000, "rules"),
    ({"action": "allow", "host": "a.test"}, "rules"),
    (["allow a.test"], "rules[0]"),
    ([[READ]], "rules[0]"),
    ([None], "rules[0]"),
    ("allow a.test", "rules"),
    (None, "rules"),
]


def test_rules_that_are_none(net):
    """Each is refused as a whole, names its member, and changes nothing: of a live sandbox, and of one to be started."""
    s = net
    with started(s, profile="net", network={"rules": [READ]}) as i:
        before = network(s, i)
        for rules, field in BAD:
            a = put(s, i, 422, rules=rules, deny_out=["x.test"], air_gapped=True)
            assert a["field"] == field and a["detail"], (field, a)
            if field != "rules" or not isinstance(rules, list) or len(rules) < 3000:
                a = start(s, profile="net", status=422, network={"rules": rules})
                assert a["field"] == "network." + field, (field, a)
        assert network(s, i) == before and [x["id"] for x in s.get("/sandboxes?state=live")["items"]] == [i]
        many = [{"action": "allow", "host": f"h{n}.test"} for n in range(10000)]
        assert s.ask("PUT", f"/sandboxes/{i}/network", {"rules": many}).status in (413, 422)
        assert network(s, i) == before
        # 256 of the longest that one request may have
        long = [{"action": "deny", "host": f"{n}-{'h' * 50}.{'i' * 60}.test"} for n in range(256)]
        assert put(s, i, rules=long)["rules"] == long
        assert put(s, i, rules=[READ])["rules"] == [READ]
        # more than the launcher takes in one line
        paths = [f"/{n}/{'a' * 90}" for n in range(20)]
        heavy = [{"action": "allow", "host": "api.test", "ports": [n + 1], "methods": ["GET"], "paths": paths} for n in range(60)]
        a = s.ask("PUT", f"/sandboxes/{i}/network", {"rules": heavy})
        assert a.status == 422 and a.json["field"] == "rules", a
        a = s.ask("PUT", f"/sandboxes/{i}/network", {"rules": heavy[:25]})
        assert a.status == 422 and a.json["field"].startswith("rules["), a
        # the longest of everything can still be shown
        names = [f"{n}.{'n' * 60}.test" for n in range(800)]
        put(s, i, allow_out=names)
        put(s, i, deny_out=[f"d{n}" for n in names])
        put(s, i, rules=[READ, *heavy[:14]])
        assert len(network(s, i)["rules"]) == 15 and len(s.get(f"/sandboxes/{i}")["allow_out"]) == 800
        put(s, i, allow_out=[], deny_out=[], rules=[READ])
        assert network(s, i)["rules"] == [READ]


def test_etag_and_audit_have_the_rules(net, sbx):
    s = net
    with started(s, profile="net", network={"rules": [READ]}) as i:
        tag = s.ask("GET", f"/sandboxes/{i}/network", status=200).headers["ETag"]
        rules = [{"action": "deny", "host": "a.test", "ports": [22], "protocol": "tcp"}]
        put(s, i, headers={"If-Match": tag}, rules=rules)
        assert put(s, i, 412, headers={"If-Match": tag}, rules=[])["code"] == "changed"
        changed, made = s.get("/audit")["items"][:2]
        assert changed["before"]["rules"] == [READ] and changed["after"]["rules"] == rules
        assert changed["before"]["generation"] == 1 and changed["after"]["generation"] == 2
        assert made["after"]["network"] == {"rules": [READ]} and made["object"] == i
        # the rows of the database say the same
        assert next(x for x in s.get("/sandboxes")["items"] if x["id"] == i)["rules"] == rules
