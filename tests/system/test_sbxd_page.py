# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of sbxd over the real service: what is clicked happens to real sandboxes."""
import contextlib
import datetime
import subprocess

import pytest

from ctl import ctl
from page import needs_browser, page
from sbxd import Api, service, wait_for
from test_control import running
from test_lifecycle import clean  # noqa: F401
from test_live import NET as LIVE, RESET, line, stream, until_up
from test_sbxd_access import OTHER_UID, own
from test_sbxd_start import SH, ended, started

PORT = 8485
TCP = ["--listen", f"127.0.0.1:{PORT}"]
MARKUP = "<img src=x onerror=window.hacked=1></td><script>window.hacked=1</script>"

pytestmark = needs_browser

ASK = """
import socket, time
for name in ("ipinfo.io", "other.test"):
    try:
        socket.create_connection((name, 443), 5)
    except OSError as e:
        print(e, flush=True)
time.sleep(60)
"""


def test_a_click_cuts_a_download(sbx, clean):
    sbx.profile("live", LIVE)
    with service(sbx, TCP) as s, running(sbx, stream("http", "files.test", 80), ["--profile", "live"]) as (p, _):
        assert line(p) == ["up"]
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        with page(sbx, s) as web:
            web.see(one)
            web.click("switch", f"Air gap of {one}")
            web.see("cut 1 flow")
            assert line(p) in RESET
            assert line(p)[:2] == ["new", "ECONNREFUSED"]
            assert web.state("switch", f"Air gap of {one}", "aria-checked") == "true"
            assert s.get("/sandboxes/" + one)["allow_internet_access"] is False
            web.shot("real-air-gap")
            web.click("switch", f"Air gap of {one}")
            web.see("opened")
            until_up(p)
            assert s.get("/sandboxes/" + one)["allow_internet_access"] is True

            web.click("button", f"Kill {one}")
            web.click("button", "Kill it")
            assert p.wait(20) == 137
            web.see("No sandbox is running.")


def test_command_metadata_and_output_are_text(sbx, clean):
    """Names are: the broker takes no name with such characters (web/test has them)."""
    words = [*SH, 'echo "$0"; echo "$0" >&2; sleep 60', MARKUP]
    with service(sbx, TCP) as s, started(s, *words, metadata={"job": MARKUP}) as one, page(sbx, s) as web:
        web.see("onerror=window.hacked=1")
        assert MARKUP in web.text()
        web.shot("real-hostile")
        web.view(f"#/sandboxes/{one}")
        web.see("Up to offset")
        assert web.text().count(MARKUP) >= 4  # the command, metadata, both outputs
        assert web.script("'hacked' in window") is False
        assert not [text for text in web.trouble() if "Policy" in text]
        web.shot("real-hostile-one")


def test_an_empty_installation_says_what_to_run(sbx):
    with service(sbx, TCP) as s, page(sbx, s) as web:
        web.see("sbx-run --profile none -- id")
        web.shot("real-empty")


def test_a_rule_is_followed_by_a_running_sandbox(sbx, clean):
    sbx.profile("live", LIVE.replace("    - v4.test:7000\n", ""))
    run = ["--profile", "live", "--workspace", "shop"]
    with service(sbx, TCP) as s, running(sbx, stream("echo", "v4.test", 7000), run) as (p, _):
        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        with page(sbx, s) as web:
            web.view(f"#/sandboxes/{one}")
            web.see("v4.test:7000")  # refused, as it happens
            web.shot("real-sandbox")
            web.view("#/refusals?by=name")
            web.click("button", "Allow … v4.test")
            web.see("As it is now")
            web.click("button", "Add the rule")
            web.see("is in force")
            until_up(p)
            web.shot("real-draft")
            web.click("button", "Done")
            web.view("#/rules/shop")
            rule = s.get("/workspaces/shop/sandbox/rules")["items"][0]
            assert (rule["pattern"], rule["action"]) == ("v4.test:7000", "allow")
            web.click("button", f"Turn off rule {rule['id']}")
            web.see("cut 1 flow")
            assert line(p) in RESET
            web.shot("real-rules")


def test_two_users_see_their_own(sbx, clean):
    sbx.profile("live", LIVE)
    users = {"ana": ("a" * 12, OTHER_UID), "ben": ("b" * 12, OTHER_UID + 1)}
    ids = [i for i, _ in users.values()]
    with service(sbx, TCP, root=True) as s, contextlib.ExitStack() as stack:
        for name, (i, uid) in users.items():
            own(sbx, i, uid)  # as the service does it, before there is a refusal to be counted
            ask = ASK.replace("ipinfo.io", name + ".one.test").replace("other.test", name + ".two.test")
            stack.enter_context(running(sbx, ["/usr/bin/python3", "-c", ask], ["--profile", "live", "--id", i], root=True))
        wait_for(lambda: len(s.get("/denials")["items"]) == 4)
        for i, uid in enumerate((OTHER_UID, OTHER_UID + 1)):
            theirs, hidden = Api(s.where, uid=uid), "/sandboxes/" + ids[1 - i]
            with page(sbx, s, theirs.ask("POST", "/session/links", status=201).json["url"]) as web:
                web.see(ids[i])
                web.see(f"uid {uid}, operator")
                assert ids[1 - i] not in web.text()
                web.view("#/refusals")
                web.see(("ana", "ben")[i] + ".two.test")
                assert ("ana", "ben")[1 - i] not in web.text()
                web.shot(f"real-user-{i}")
                web.view("#/refusals?by=sandbox&key=" + ids[1 - i])
                web.see("There is none left.")
                web.view("#" + hidden)
                web.see(theirs.ask("GET", hidden, status=404).json["detail"])
                assert "Kill" not in web.text()


# --- a sandbox that the service started ---

def test_output_as_it_comes_and_from_an_offset(sbx, clean):
    wait = "while ! test -e /tmp/go; do sleep 0.1; done"
    with service(sbx, TCP) as s, started(s, *SH, f"printf 'one %s\\n' two; {wait}; printf '<b>%s\\n' bold >&2; sleep 100") as i:
        with page(sbx, s) as web:
            web.view(f"#/sandboxes/{i}")
            web.see("one two")
            s.ask("POST", f"/sandboxes/{i}/exec", {"command": ["touch", "/tmp/go"]}, status=200)
            web.see("<b>bold")
            web.shot("real-output")
            items = s.get(f"/sandboxes/{i}/output")["items"]
            assert [x["stream"] for x in items] == ["stdout", "stderr"]
            web.fill("From offset", str(items[1]["offset"]))
            web.click("button", "Show")
            web.see(f"Offsets {items[1]['offset']} to")
            assert "one two" not in web.text() and "<b>bold" in web.text()
            web.click("button", "Newest, as it comes")
            web.see("one two")
            s.ask("DELETE", f"/sandboxes/{i}", status=204)
            web.see("This sandbox has ended.")
            web.see("The output has ended")
            assert web.count("one two") == 1
            web.shot("real-ended")


def test_output_that_was_lost(sbx, clean):
    with service(sbx, TCP) as s, started(s, *SH, "yes 0123456789abcde | head -c 60000000; printf 'the %s\\n' end; sleep 100") as i:
        wait_for(lambda: "lost" if s.get(f"/sandboxes/{i}/output?limit=1")["lost_bytes"] else None)
        with page(sbx, s) as web:
            web.view(f"#/sandboxes/{i}")
            web.see("the end")
            web.see("Older output is not shown")
            web.click("button", "Show")  # from offset 0
            web.see("MiB were not kept")


def test_the_time_of_a_sandbox(sbx, clean):
    with service(sbx, TCP) as s, started(s, "sleep", "100") as i, page(sbx, s) as web:
        web.view(f"#/sandboxes/{i}")
        web.see("Ends at the latest")
        web.click("button", "10 min from now")
        web.see("in 9 min")
        at = datetime.datetime.fromisoformat(s.get(f"/sandboxes/{i}")["timeout_at"].replace("Z", "+00:00"))
        left = (at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
        assert 500 < left <= 600
        s.ask("POST", f"/sandboxes/{i}/timeout", {"timeout": 1}, status=200)
        web.see("timed out")
        web.see("This sandbox has ended.")


# --- what breaks ---

def test_the_service_starts_again_while_the_page_is_open(sbx, clean):
    """Its sessions are over: after the next link the page goes on, has all events, and each once."""
    sbx.profile("live", LIVE)
    ask = "import socket, sys\nfor name in sys.stdin:\n try: socket.create_connection((name.strip(), 443), 5)\n except OSError: pass\n print(name, end='', flush=True)"
    with service(sbx, TCP) as s, running(sbx, ["/usr/bin/python3", "-c", ask], ["--profile", "live"],
                                           stdin=subprocess.PIPE) as (p, _):
        def refused(name):
            p.stdin.write(name + "\n")
            p.stdin.flush()
            assert p.stdout.readline().strip() == name

        one = wait_for(lambda: s.get("/sandboxes?state=running")["items"])[0]["id"]
        with page(sbx, s) as web:
            web.view(f"#/sandboxes/{one}")
            web.see("live")
            refused("before.test")
            web.see("before.test")
            s.p.kill()
            s.p.wait()
            refused("between.test")
            web.see("connection lost, trying again")
            web.see("the service does not answer")
            s.start()
            web.see("Your session is over")
            web.shot("real-session-over")
            web.tab(ctl(sbx, "web").out.strip())
            web.see("between.test")
            refused("after.test")
            web.see("after.test")
            for name in ("before.test", "between.test", "after.test"):
                assert web.count(name) == len([e for e in s.get(f"/events?sandbox={one}")["items"] if e["name"] == name])


# --- what it says ---

def test_a_refused_name_and_a_floor(sbx, clean):
    """A name becomes a draft that is explained and then confirmed; a floor is not offered to be allowed."""
    sbx.profile("live", LIVE)
    run = ["--profile", "live", "--workspace", "shop"]
    with service(sbx, TCP) as s, running(sbx, ["/usr/bin/python3", "-c", ASK], run):
        wait_for(lambda: len(s.get("/denials")["items"]) == 2)
        with page(sbx, s) as web:
            web.view("#/refusals?by=name")
            web.see("floor: no rule lifts it")
            assert web.named("button", "Allow … ipinfo.io") == 0
            web.shot("real-refusals")
            web.click("button", "Allow … other.test")
            assert web.value("Allow") == "other.test"  # DNS was asked for it: there is no port yet
            web.see("the draft decides")
            assert web.text().count("Refused:") == 1 and web.text().count("Allowed:") == 1
            assert web.value("Workspace") == "shop"
            assert (web.axe(), web.excess()) == ([], 0)
            web.shot("real-draft-before")
            assert s.get("/workspaces/shop/sandbox/rules")["items"] == []
            web.click("button", "Add the rule")
            web.see("is in force. 1 sandbox followed")
            assert [r["pattern"] for r in s.get("/workspaces/shop/sandbox/rules")["items"]] == ["other.test"]
            web.click("button", "Done")
            web.click("link", "Explain ipinfo.io")
            web.click("button", "Explain")
            web.see("Refused")
            web.shot("real-explain-floor")


def test_a_draft_is_tested_before_it_is_saved(sbx, clean):
    with service(sbx, TCP) as s, page(sbx, s) as web:
        s.ask("POST", "/workspaces/shop/sandbox/rules", {"pattern": "*.x.test", "action": "deny", "priority": 50}, status=201)
        web.view("#/rules/shop")
        web.see("*.x.test")
        web.click("button", "Add a rule")
        web.fill("Pattern", "a.x.test")
        web.click("button", "Explain")
        web.see("the draft does not decide")
        web.fill("Priority, lowest first", "10")
        web.click("button", "Explain")
        web.see("the draft decides")
        assert (web.axe(), web.excess()) == ([], 0)
        web.shot("real-draft-rule")
        web.fill("Pattern", "ipinfo.io")
        web.click("button", "Explain")
        web.see("A floor: no rule lifts it.")
        web.shot("real-draft-floor")
        assert len(s.get("/workspaces/shop/sandbox/rules")["items"]) == 1


VIEWS = ["#/sandboxes", "#/sandboxes/{id}", "#/refusals?by=ip", "#/rules", "#/rules/shop", "#/reviews?state=all", "#/profiles",
         "#/profiles/build", "#/explain"]
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (360, "light")}


@pytest.mark.parametrize("look", LOOKS)
def test_each_view(sbx, clean, look):
    """As the real service fills it: axe finds nothing, and nothing is wider than the window."""
    ask = "import socket, sys\ntry: socket.create_connection(('a.test', 443), 5)\nexcept OSError as e: print(e)\nsys.stdout.flush()\nimport time; time.sleep(60)"
    with service(sbx, TCP) as s, started(s, "/usr/bin/python3", "-c", ask, profile="build", workspace="shop", timeout=3600,
                                         metadata={"job": "41"}) as i:
        s.ask("POST", "/workspaces/shop/sandbox/rules", {"pattern": "*.example.org", "action": "deny", "note": "x" * 200}, status=201)
        wait_for(lambda: s.get("/denials")["items"])
        with page(sbx, s) as web:
            web.look(*LOOKS[look])
            for view in VIEWS:
                web.view(view.format(id=i))
                web.settle()
                assert (web.axe(), web.excess()) == ([], 0), view
                web.shot(f"real-{view.strip('#/').split('?')[0].format(id='sandbox').replace('/', '-')}-{look}")
            assert not web.trouble()
