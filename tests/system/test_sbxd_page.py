# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of sbxd over the real service: what is clicked happens to real sandboxes."""
from page import needs_browser, page
from sbxd import Api, service, wait_for
from test_control import running
from test_lifecycle import clean  # noqa: F401
from test_live import NET as LIVE, RESET, line, stream, until_up
from test_sbxd_access import OTHER_UID, own

PORT = 8485
TCP = ["--listen", f"127.0.0.1:{PORT}"]
MARKUP = "<img src=x onerror=window.hacked=1></td><script>window.hacked=1</script>"

pytestmark = needs_browser


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


def test_a_command_is_text(sbx, clean):
    with service(sbx, TCP) as s, running(sbx, ["sh", "-c", "sleep 60", MARKUP]):
        wait_for(lambda: s.get("/sandboxes?state=running")["items"])
        with page(sbx, s) as web:
            web.see("onerror=window.hacked=1")
            assert MARKUP in web.text()
            assert web.script("'hacked' in window") is False
            assert not [text for text in web.trouble() if "Policy" in text]
            web.shot("real-hostile")


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
    with service(sbx, TCP, root=True) as s, running(sbx, root=True), running(sbx, root=True):
        wait_for(lambda: len(s.get("/sandboxes?state=running")["items"]) == 2)
        ids = [x["id"] for x in s.get("/sandboxes?state=running")["items"]]
        for i, uid in enumerate((OTHER_UID, OTHER_UID + 1)):
            own(sbx, ids[i], uid)
        for i, uid in enumerate((OTHER_UID, OTHER_UID + 1)):
            theirs, hidden = Api(s.where, uid=uid), "/sandboxes/" + ids[1 - i]
            with page(sbx, s, theirs.ask("POST", "/session/links", status=201).json["url"]) as web:
                web.see(ids[i])
                web.see(f"uid {uid}, operator")
                assert ids[1 - i] not in web.text()
                web.view("#" + hidden)
                web.see(theirs.ask("GET", hidden, status=404).json["detail"])
                assert "Kill" not in web.text()
