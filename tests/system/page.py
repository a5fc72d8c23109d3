# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of sbxd in Chromium, driven by web/test/driver.mjs in the network namespace of the service."""
import contextlib
import json
import os
import shutil
import subprocess

import pytest

from ctl import ctl

WEB = os.path.join(os.environ["SBX_BUILDDIR"], "web")
DRIVER = os.path.join(WEB, "work", "test", "driver.mjs")
SHOTS = os.path.join(WEB, "screenshots")
NODE = shutil.which("node", path="/usr/local/bin:/usr/bin:/bin")
CHROMIUM = "/usr/bin/chromium"
MISSING = [path for path in (DRIVER, NODE, CHROMIUM) if not path or not os.path.exists(path)]
needs_browser = pytest.mark.skipif(bool(MISSING), reason=f"no page to drive: {MISSING}")


class Page:
    """Each method is a command of the driver; one that fails ends the test."""

    def __init__(self, service, tmp):
        os.makedirs(SHOTS, exist_ok=True)
        env = {"PATH": "/usr/bin:/bin", "HOME": tmp, "LANG": "C.UTF-8"}
        self.service = service
        self.p = subprocess.Popen(["nsenter", "-t", str(service.p.pid), "-n", NODE, DRIVER, SHOTS], text=True, env=env,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *command):
        self.p.stdin.write(json.dumps(command) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline() or '{"error": "the driver ended"}')

    def __getattr__(self, command):
        def run(*args):
            answer = self.ask(command, *args)
            if "error" in answer:
                print("the page says:", self.ask("text").get("ok"), self.ask("trouble").get("ok"))
                pytest.fail(f"{command} {args}: {answer['error']}")
            return answer["ok"]
        return run

    def end(self):
        self.p.stdin.close()
        try:
            self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


@contextlib.contextmanager
def page(sbx, service, link=None):
    """The page, opened by @link, or by one of `sbxctl web`."""
    if not link:
        r = ctl(sbx, "web")
        assert r.rc == 0, r
        link = r.out.strip()
    p = Page(service, sbx.tmp)
    try:
        p.open(link)
        p.see("Sandboxes")
        yield p
    finally:
        p.end()
