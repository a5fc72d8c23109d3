# SPDX-License-Identifier: LGPL-2.1-or-later
"""A refused name is refused at once and finally, for every client. If an allowed name does not resolve, the error says so."""
import os
import shutil
import subprocess

import pytest

from conftest import USER

SECONDS = 2  # more than where the name is allowed; a client that asks again takes 5 to 70
C_CODE = r"""
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
int main(int n, char **v)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int e = getaddrinfo(v[n - 1], "443", &hints, &found);
	puts(e == 0 ? "resolved" : e == EAI_NONAME ? "final" : gai_strerror(e));
	return 0;
}
"""
GO_CODE = r"""
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	_, err := net.LookupHost(os.Args[1])
	if e, ok := err.(*net.DNSError); ok && e.IsNotFound && !e.IsTemporary {
		fmt.Println("final")
	} else if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println("resolved")
	}
}
"""
JAVA_CODE = """
class Gai {
	public static void main(String[] v) {
		long start = System.nanoTime();
		try {
			java.net.InetAddress.getAllByName(v[0]);
			System.out.println("resolved");
		} catch (java.net.UnknownHostException e) {
			boolean soon = System.nanoTime() - start < 2_000_000_000L; // the compiler takes longer
			System.out.println(soon && e.getMessage().endsWith(": Name or service not known") ? "final" : e.getMessage());
		}
	}
}
"""
NODE = "const d = require('dns'), done = e => console.log(!e ? 'resolved' : e.code == 'ENOTFOUND' ? 'final' : e.code);"
CLIENTS = {
    "glibc": ["./gai-gcc", "NAME"],
    "musl": ["./gai-musl-gcc", "NAME"],
    "node": ["node", "-e", NODE + "d.lookup('NAME', done)"],
    "c-ares": ["node", "-e", NODE + "d.resolve4('NAME', done)"],
    "go": ["env", "GODEBUG=netdns=go", "./gai-go", "NAME"],  # its own resolver
    "java": ["java", "-Xshare:auto", "Gai.java", "NAME"],
}


def build(sbx, client):
    def put(name, text):
        with open(os.path.join(sbx.work, name), "w") as f:
            f.write(text)

    tool = client if client in ("go", "java") else CLIENTS[client][0].removeprefix("./gai-")
    assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    if client == "java":
        put("Gai.java", JAVA_CODE)
    elif client == "go":
        put("gai.go", GO_CODE)
        subprocess.run(["go", "build", "-o", "gai-go", "gai.go"], check=True, cwd=sbx.work,
                       env={"PATH": "/usr/bin:/bin", "HOME": "/root", "CGO_ENABLED": "0", "GOCACHE": f"/tmp/gai-{USER}"})
    elif tool != "node":
        subprocess.run([tool, "-static" if client == "musl" else "-O1", "-x", "c", "-", "-o",
                        os.path.join(sbx.work, f"gai-{tool}")], input=C_CODE, text=True, check=True)


@pytest.mark.parametrize("client", CLIENTS)
def test_resolvers(sbx, client):
    """The same name, allowed and not. systemd-resolved, which works in no network of lo alone, was measured with a link put
    beside it: an NXDOMAIN with EDNS makes it ask once more without, at once, and that answer is final."""
    build(sbx, client)
    argv = [a.replace("NAME", "allowed.test") for a in CLIENTS[client]]
    allowed = sbx.run(["--allow", "allowed.test"], argv)
    assert allowed.out == "resolved\n", allowed
    denied = sbx.run(["--allow", "denied.test"], argv)
    assert denied.out == "final\n" and (client == "java" or denied.seconds < allowed.seconds + SECONDS), (allowed, denied)


PACKAGES = {
    "pip": ["python3", "-m", "pip", "install", "--disable-pip-version-check", "--target", "/tmp/p", "--index-url", "https://denied.test/simple",
            "sbxdemo"],
    "npm": ["npm", "view", "--registry", "https://denied.test/", "sbx-demo"],
}


@pytest.mark.parametrize("tool", PACKAGES)
@pytest.mark.parametrize("profile", ["default", "install", "build", "notebook", "ai-bash"])
def test_installers(sbx, tool, profile):
    """Installers try again after every error, here for a shorter time. On a busy machine most of the time is their own
    start."""
    r = sbx.run(["--profile", profile], PACKAGES[tool])
    assert r.rc not in (0, 125) and r.seconds < 20, r  # npm by itself: 70
    if tool == "pip":
        assert r.err.count("Retrying (Retry(") == 2, r  # 0 s and 0.5; by itself 5 times, 7.5 s


def test_reason_is_in_the_answer(sbx):
    """An answer with EDNS says why the name was refused; an answer without EDNS is the bare refusal."""
    def ask(*args):
        return sbx.inside(["--allow", "allowed.test", "--deny", "no.allowed.test"], "dns", "100.64.0.1", *args)

    for transport in ("udp", "tcp"):
        code, text = ask("denied.test", 1, transport, "edns")["ede"]
        assert code == 15 and "--allow denied.test" in text, text
        code, text = ask("no.allowed.test", 28, transport, "edns")["ede"]
        assert code == 15 and "the deny entry 'no.allowed.test'" in text, text
        assert "which no profile, rule or flag lifts" in ask("ipinfo.io", 1, transport, "edns")["ede"][1]
        r = ask("denied.test", 1, transport)
        assert r["rcode"] == 3 and "ede" not in r, r
        r = ask("allowed.test", 16, transport, "edns")
        assert r["rcode"] == 0 and "ede" not in r, r
    long = ".".join(["a" * 60] * 4) + ".test"
    assert long.startswith(ask(long, 1, "udp", "edns")["ede"][1][:200])


def lines_about(r, name):
    return [line for line in r.err.splitlines() if name in line]


@pytest.mark.parametrize("root", [False, True])
def test_allowed_name_that_does_not_resolve(sbx, root):
    if root:
        sbx.own(0)
    args = ["--allow", "gone.test", "--allow", "allowed.test"]
    r = sbx.run(args, ["sh", "-c", "curl -s -o /tmp/o -w '%{http_code}' http://gone.test; cat /tmp/o"], root=root)
    assert r.out.startswith("502sbx: gone.test:80 ") and "did not resolve outside" in r.out, r
    assert lines_about(r, "gone.test") == [
        "sbx-run: failed 1x gone.test:80 (the name did not resolve outside: check the name and this host's own network)"], r
    # told once, and not with -q; the twin says nothing
    again = "for i in 1 2 3; do curl -s -o /dev/null http://gone.test; done; curl -s http://allowed.test/ok"
    r = sbx.run(args, ["sh", "-c", again], root=root)
    assert len(lines_about(r, "gone.test")) == 1 and '"/ok"' in r.out and "allowed.test" not in r.err, r
    assert lines_about(sbx.run(["-q", *args], ["sh", "-c", again], root=root), "gone.test") == []
    # TLS: an alert, which is not the one of a refusal
    r = sbx.run(args, ["curl", "-sS", "https://gone.test"], root=root)
    assert "alert internal error" in r.err and len(lines_about(r, "sbx-run: failed 1x gone.test:443")) == 1, r
    assert "access denied" in sbx.run(args, ["curl", "-sS", "--connect-to", "allowed.test:443:gone.test:443",
                                             "https://allowed.test"], root=root).err


def test_lines_are_bounded(sbx):
    r = sbx.run(["--allow", "*.wild.test:80"], ["sh", "-c", "for i in $(seq 20); do curl -s -o /dev/null "
                "http://gone$i.wild.test; done"])
    assert len(lines_about(r, "did not resolve")) == 10 and "and 10 more" in r.err, r


def test_unreachable_server_says_so(sbx):
    r = sbx.run(["--allow", "refusing.test:80"], ["curl", "-s", "-w", "%{http_code}", "http://refusing.test"])
    assert "could not be reached" in r.out and r.out.endswith("502"), r
