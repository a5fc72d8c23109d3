# SPDX-License-Identifier: LGPL-2.1-or-later
"""Certificates on both sides of a terminated host, and bodies that are left alone."""
import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess

import origin
import pytest

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def run(sbx, network, script, *args, **kw):
    sbx.profile("tls", "name: tls\nextends: none\nnetwork:\n  mode: fetch\n" + network)
    return sbx.run(["--profile", "tls", *args], ["sh", "-c", script], **kw)


# --- the server's certificate ---

@pytest.mark.parametrize("host,why", [("expired.api.test", "expired"), ("selfsigned.api.test", "self-signed"),
                                      ("wrongname.api.test", "mismatch")])
def test_a_bad_certificate_is_a_502_and_nothing_is_sent(sbx, world, host, why):
    world.mark()
    allow = f"  allow:\n    - {{host: {host}, inspect: true}}\n    - {{host: api.test, inspect: true}}\n"
    r = run(sbx, allow, f"curl -sS -D- https://{host}/bad -H 'X-A: token'; echo; curl -sS https://api.test/good")
    assert " 502" in r.out and "x-sbx-denied: upstream_certificate" in r.out.lower() and why in r.out.lower(), r
    assert not world.log("origin", path="/bad") and world.log("origin", path="/good"), r
    assert sbx.events(action="deny", reason="upstream_certificate", fqdn_pinned=host)


def test_no_client_is_told_to_trust_what_the_host_does_not(sbx, world):
    """Without termination the same server is the client's to refuse: both ways it is refused."""
    r = run(sbx, "  allow: [selfsigned.api.test]\n", "curl -sS https://selfsigned.api.test/")
    assert r.rc == 60, r


def make_pair(pair):
    """PAIR.pem, a certificate of private.api.test that the host does not trust, and PAIR.key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    pair + ".key", "-out", pair + ".pem", "-days", "2", "-subj", "/CN=own", "-addext",
                    "subjectAltName=DNS:private.api.test"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in (pair + ".pem", pair + ".key"):
        os.chmod(path, 0o644)


@contextlib.contextmanager
def s_server(world, pair, *args):
    """openssl s_server in the world, at the address of api.test and port 9443: it listens."""
    proc = subprocess.Popen(world.ns() + ["openssl", "s_server", "-accept", "203.0.113.80:9443", "-cert", pair + ".pem", "-key",
                                          pair + ".key", *args],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert "ACCEPT\n" in iter(proc.stdout.readline, ""), "openssl s_server ended"
        yield
    finally:
        proc.kill()
        proc.communicate()


@pytest.fixture
def private(sbx, world):
    """A server for private.api.test:9443 that wants a client's certificate."""
    make_pair(f"{sbx.tmp}/own")
    with s_server(world, f"{sbx.tmp}/own", "-Verify", "1", "-verify_return_error", "-CAfile", f"{sbx.tmp}/own.pem", "-www"):
        yield


def test_an_authority_of_ones_own_and_a_client_certificate(sbx, world, private):
    entry = "    - {host: private.api.test, ports: 9443, inspect: true%s}\n"
    ca, mtls = f"  extra_ca: {sbx.tmp}/own.pem\n", f", mtls: {{cert: {sbx.tmp}/own.pem, key: {sbx.tmp}/own.key}}"
    curl = "curl -sS --retry 5 --retry-delay 1 --retry-connrefused -o /dev/null -w '%{http_code}\\n' https://private.api.test:9443/"
    good = run(sbx, ca + "  allow:\n" + entry % mtls, curl)
    assert good.out == "200\n", good
    without_ca = run(sbx, "  allow:\n" + entry % mtls, curl.replace("--retry 5", "--retry 0"))
    assert without_ca.out == "502\n" and sbx.events(reason="upstream_certificate"), without_ca
    without_certificate = run(sbx, ca + "  allow:\n" + entry % "", curl.replace("--retry 5", "--retry 0"))
    assert without_certificate.out == "502\n", without_certificate


@pytest.mark.parametrize("version,status", [("tls1_1", 502), ("tls1_2", 200), ("tls1_3", 200)])
def test_a_server_of_one_version(sbx, world, version, status):
    with s_server(world, f"{world.dir}/leaf", "-" + version, "-cipher", "DEFAULT@SECLEVEL=0", "-www"):
        r = run(sbx, "  allow:\n    - {host: other.api.test, ports: 9443, inspect: true}\n",
                "curl -sS -D- https://other.api.test:9443/")
    assert r.out.split()[1] == str(status), r
    if status == 200:
        assert f"Protocol  : TLSv1.{version[-1]}" in r.out, r
    else:
        assert "x-sbx-denied: upstream_failed" in r.out.lower(), r
        assert "no TLS connection to other.api.test:9443: tlsv1 alert protocol version. Nothing was sent" in r.out, r
        assert sbx.events(action="deny", reason="upstream_failed", fqdn_pinned="other.api.test")


def test_a_client_certificate_with_another_key(sbx, world):
    """The command does not start, and the line says why; with its own key it does."""
    for name in ("own", "other"):
        make_pair(f"{sbx.tmp}/{name}")
    entry = "  allow:\n    - {host: api.test, mtls: {cert: %s/own.pem, key: %s/%s.key}}\n"
    bad = run(sbx, entry % (sbx.tmp, sbx.tmp, "other"), "echo ran")
    assert (bad.rc, bad.out) == (125, ""), bad
    assert "mtls of 'api.test': the key does not belong to the client certificate" in bad.err, bad
    assert sbx.leftovers() == []
    good = run(sbx, entry % (sbx.tmp, sbx.tmp, "own"), "echo ran")
    assert (good.rc, good.out) == (0, "ran\n"), good


# --- the sandbox's authority ---

def test_the_authority_is_the_sandboxs_own_and_bound_to_its_names(sbx):
    script = ("openssl s_client -connect api.test:443 -servername api.test -showcerts </dev/null 2>/dev/null | "
              "openssl x509 -noout -issuer -ext subjectAltName,basicConstraints -enddate; "
              "awk '/BEGIN/{c=\"\"} {c=c $0 \"\\n\"} END{printf \"%s\", c}' $SSL_CERT_FILE | "
              "openssl x509 -noout -subject -ext nameConstraints,basicConstraints,keyUsage -text")
    outs = [run(sbx, "  allow:\n    - {host: api.test, inspect: true}\n", script) for _ in range(2)]
    for r in outs:
        assert "DNS:api.test" in r.out and "CA:FALSE" in r.out and "CA:TRUE, pathlen:0" in r.out, r
        assert re.search(r"Permitted:\s+DNS:api.test", r.out) and "sbx sandbox" in r.out, r
        assert "NIST CURVE: P-256" in r.out, r
    keys = [re.search(r"pub:\s+([0-9a-f:\s]+)ASN1", r.out)[1] for r in outs]
    assert keys[0] != keys[1]


def test_resumption_and_tls_versions(sbx):
    allow = "  allow:\n    - {host: api.test, inspect: true}\n"
    for version, expected in (("-tls1_2", "200"), ("-tls1_3", "200"), ("-tls1_1", "")):
        r = run(sbx, allow, f"printf 'GET / HTTP/1.0\\r\\nHost: api.test\\r\\n\\r\\n' | openssl s_client {version} -quiet -ign_eof "
                "-connect api.test:443 -servername api.test 2>/dev/null | head -1")
        assert expected in r.out and (expected or not r.out), (version, r)
    r = run(sbx, allow, "openssl s_client -connect api.test:443 -servername api.test -tls1_2 -sess_out /tmp/s </dev/null >/dev/null 2>&1; "
            "openssl s_client -connect api.test:443 -servername api.test -tls1_2 -sess_in /tmp/s </dev/null 2>/dev/null | grep -c Reused")
    assert r.out == "1\n", r


def test_a_leaf_is_refused_by_another_trust_store(sbx, world):
    """The authority of the world is the only one that this client trusts: the server's own certificate is good."""
    world.mark()
    shutil.copy(f"{world.dir}/ca.pem", f"{sbx.work}/other.pem")
    curl = "curl -sS --cacert %s -o /dev/null -w '%%{http_code}\\n' https://api.test/%s"
    refused = run(sbx, "  allow:\n    - {host: api.test, inspect: true}\n", curl % ("other.pem", "refused"))
    assert refused.rc == 60 and "unable to get local issuer certificate" in refused.err, refused
    trusted = run(sbx, "  allow:\n    - {host: api.test, inspect: true}\n", curl % ("$SSL_CERT_FILE", "trusted"))
    assert trusted.out == "200\n", trusted
    untouched = run(sbx, "  allow:\n    - {host: api.test, passthrough: true}\n", curl % ("other.pem", "untouched"))
    assert untouched.out == "200\n", untouched
    assert [e["path"] for e in world.log("origin")] == ["/trusted", "/untouched"]


def test_two_leaves_share_one_key(sbx):
    script = "".join(f"openssl s_client -connect {host}:443 -servername {host} </dev/null 2>/dev/null | tee /tmp/leaf | "
                     "openssl x509 -noout -pubkey; openssl x509 -in /tmp/leaf -noout -fingerprint -ext subjectAltName; "
                     for host in ("api.test", "other.api.test"))
    allow = "  allow:\n    - {host: api.test, inspect: true}\n    - {host: other.api.test, inspect: true}\n"
    keys = []
    for _ in range(2):
        r = run(sbx, allow, script)
        assert "DNS:api.test\n" in r.out and "DNS:other.api.test\n" in r.out, r
        assert len(set(re.findall("Fingerprint=(.*)", r.out))) == 2, r
        first, second = re.findall("-----BEGIN PUBLIC KEY-----\n(.*?)\n-----END", r.out, re.DOTALL)
        assert first == second
        keys.append(first)
    assert keys[0] != keys[1]  # of another sandbox


# Inside: a session of the first host is offered to each of the hosts. Prints whether the hello has it (RFC 8446
# section 4.2.11: pre_shared_key, extension 41, is the last one), whether it was resumed, and the answer's status.
RESUME = """import ssl, socket, sys
offered = []
def note(_conn, direction, _version, _content, kind, data):
    if direction == "write" and kind == ssl._TLSMessageType.CLIENT_HELLO:
        at = 39 + data[38]
        at += 2 + int.from_bytes(data[at:at + 2], "big")
        at += 3 + data[at]
        kinds = []
        while at < len(data):
            kinds.append(int.from_bytes(data[at:at + 2], "big"))
            at += 4 + int.from_bytes(data[at + 2:at + 4], "big")
        offered.append(kinds[-1] == 41)
ctx = ssl.create_default_context()
ctx.minimum_version = ssl.TLSVersion.TLSv1_3
ctx._msg_callback = note
def ask(host, session=None):
    with ctx.wrap_socket(socket.create_connection((host, 443), 10), server_hostname=host, session=session) as s:
        s.sendall(b"GET / HTTP/1.0\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
        status = s.recv(4096).split()[1].decode()
        print(host, s.version(), offered[-1], s.session_reused, status)
        return s.session
session = ask(sys.argv[1])
for host in sys.argv[1:]:
    ask(host, session)
"""


@pytest.mark.parametrize("hosts", [("api.test", "other.api.test"), origin.LONG_NAMES], ids=["short", "long"])
def test_a_ticket_is_good_for_its_host_alone(sbx, hosts):
    sbx.put("resume.py", RESUME)
    r = run(sbx, "".join(["  allow:\n", *(f"    - {{host: {h}, inspect: true}}\n" for h in hosts)]),
            f"/usr/bin/python3 resume.py {' '.join(hosts)}")
    assert r.out == (f"{hosts[0]} TLSv1.3 False False 200\n"
                     f"{hosts[0]} TLSv1.3 True True 200\n"
                     f"{hosts[1]} TLSv1.3 True False 200\n"), r


def test_passthrough_is_untouched(sbx):
    r = run(sbx, "  allow:\n    - {host: api.test, passthrough: true}\n    - {host: h2.api.test, inspect: true}\n",
            "for h in api.test h2.api.test; do openssl s_client -connect $h:443 -servername $h </dev/null 2>/dev/null | "
            "openssl x509 -noout -issuer; done")
    assert r.out.splitlines()[0] == "issuer=CN = sbx test CA" and "sbx sandbox" in r.out.splitlines()[1], r


# --- what comes back ---

INSPECT = "  allow:\n    - {host: api.test, inspect: true}\n    - {host: h2.api.test, inspect: true}\n"


def test_bodies_are_left_alone(sbx):
    r = run(sbx, INSPECT, "curl -sS -D- --raw https://api.test/chunked; curl -sS https://api.test/close; "
            "curl -sS --http2 -D- https://h2.api.test/chunked; curl -sS https://api.test/cut; echo rc $?; curl -sS https://api.test/nonsense")
    assert "5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nX-Sum: 42\r\n\r\nuntil the end" in r.out.replace("\n", "\r\n").replace("\r\r", "\r"), r
    assert "x-sum: 42" in r.out and "only this" in r.out and ("rc 18" in r.out or "rc 56" in r.out), r
    assert "the server's response is not well-formed" in r.out, r


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_gzip_bodies_are_not_touched(sbx, host):
    sbx.profile("tls", "name: tls\nextends: none\nnetwork:\n  mode: fetch\n  allow:\n    - %s\nsecrets:\n  - {name: T, from: 'env:T', hosts: [%s]}\n" % (host, host))
    r = sbx.run(["--profile", "tls"], ["sh", "-c", f"curl -sS https://{host}/gzip | gzip -dc"], env={"T": SECRET})
    assert json.loads(r.out)["path"] == "/gzip", r
    assert gzip  # the origin's side


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_events_arrive_as_they_are_sent(sbx, host):
    sbx.profile("tls", "name: tls\nextends: none\nnetwork:\n  mode: fetch\n  allow:\n    - %s\nsecrets:\n  - {name: T, from: 'env:T', hosts: [%s]}\n" % (host, host))
    r = sbx.run(["--profile", "tls"], ["sh", "-c", f"curl -sSN https://{host}/sse | while read line; do [ -n \"$line\" ] && echo $(date +%s%N) $line; done"],
                env={"T": SECRET})
    times = [int(line.split()[0]) / 1e9 for line in r.out.splitlines()]
    assert len(times) == 3 and times[1] - times[0] > 0.2 and times[2] - times[1] > 0.2, r


def test_100_continue(sbx, world):
    world.mark()
    network = "  allow:\n    - {host: api.test, access: {methods: [POST], paths: [/yes]}}\n"
    script = ("head -c 2000000 /dev/zero > /tmp/b; for p in yes no; do curl -sS -o /dev/null -w '%{http_code} %{size_upload}\\n' "
              "-H 'Expect: 100-continue' --expect100-timeout 10 --data-binary @/tmp/b https://api.test/$p; done")
    r = run(sbx, network, script)
    assert r.out == "200 2000000\n403 0\n", r
    assert len(world.log("origin", path="/yes")) == 1 and not world.log("origin", path="/no")


# Functions under the names and the version that git asks for, which jump to the libcurl of OpenSSL.
SHIM = """#define _GNU_SOURCE
#include <dlfcn.h>
#define F(n) static void *p_##n __attribute__((used)); __attribute__((naked)) void n(void) { __asm__("jmp *p_" #n "(%%rip)"); }
%s
__attribute__((constructor)) static void load(void) {
  void *lib = dlopen("libcurl.so.4", RTLD_NOW);
#undef F
#define F(n) p_##n = dlsym(lib, #n);
%s
}
"""


def make_openssl_libcurl(directory):
    """Debian's git is built with the libcurl of GnuTLS; a library of that name that is OpenSSL's."""
    symbols = subprocess.run(["nm", "-D", "--undefined-only", "/usr/lib/git-core/git-remote-https"], check=True,
                             capture_output=True, text=True).stdout
    names = sorted({word.split("@")[0] for word in symbols.split() if word.startswith("curl_")})
    assert len(names) > 10, symbols
    calls = "\n".join(f"F({n})" for n in names)
    for name, text in (("shim.c", SHIM % (calls, calls)), ("shim.map", "CURL_GNUTLS_3 { global: curl_*; local: *; };\n")):
        with open(os.path.join(directory, name), "w") as f:
            f.write(text)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-fcf-protection=none", "-o", f"{directory}/libcurl-gnutls.so.4",
                    f"{directory}/shim.c", f"-Wl,--version-script={directory}/shim.map,-soname,libcurl-gnutls.so.4", "-ldl"],
                   check=True)


def test_git_of_openssl(sbx, www):
    if os.uname().machine != "x86_64":
        pytest.skip("the jumps are x86-64's")
    make_openssl_libcurl(sbx.work)
    r = run(sbx, "  allow:\n    - {host: allowed.test, access: read-only}\n",
            "git clone -q https://allowed.test/repo.git /tmp/a && export LD_LIBRARY_PATH=$PWD && "
            "git clone -q https://allowed.test/repo.git /tmp/b && git -C /tmp/b log --oneline; "
            "GIT_CURL_VERBOSE=1 git ls-remote https://allowed.test/repo.git 2>&1 | grep -c 'TLSv1.3 (OUT), TLS handshake'")
    assert "first" in r.out and r.out.split()[-1] != "0", r
