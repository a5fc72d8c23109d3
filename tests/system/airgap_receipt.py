# SPDX-License-Identifier: LGPL-2.1-or-later
"""
airgap_receipt.py SOCKET PROFILE HOST PORT: the receipt of the air gap, from a running sbxd. HOST speaks HTTP on PORT. Standard
library only.

Starts a sandbox without internet access: HOST must be refused within five seconds, while loopback answers. Then the
gap is opened: HOST must answer. A sandbox with the profile's defaults must reach HOST at once. Prints a line for each;
exit status 1 if one of them is not so.
"""
import http.client
import json
import socket
import sys
import time

REACH = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
    s.sendall(b"HEAD / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % sys.argv[1].encode())
    if not s.recv(1):
        sys.exit("refused: closed")
except OSError as e:
    sys.exit(f"refused: {e}")
print("reached")
"""
LOOPBACK = """
import socket
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname(), 5)
c.sendall(b"x")
assert s.accept()[0].recv(1) == b"x"
print("reached")
"""


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("sbx", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Receipt:
    def __init__(self, path, profile, host, port):
        self.path, self.profile, self.target = path, profile, [host, port]
        self.good = True

    def ask(self, method, path, body=None):
        c = Connection(self.path)
        c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status >= 300:
            sys.exit(f"{method} {path}: {r.status} {data.decode()}")
        return json.loads(data) if data else None

    def start(self, **body):
        return "/sandboxes/" + self.ask("POST", "/sandboxes", {"profile": self.profile, **body})["id"]

    def line(self, name, good, seconds, text):
        self.good &= good
        print(f"{'ok' if good else 'NOT OK'}  {name}  ({seconds:.2f} s: {text.strip()})", flush=True)

    def probe(self, name, sandbox, script, words, reached, at_most_s):
        begin = time.monotonic()
        r = self.ask("POST", sandbox + "/exec", {"command": ["python3", "-c", script, *words]})
        seconds = time.monotonic() - begin
        self.line(name, (r["status"] == 0) == reached and seconds < at_most_s, seconds, r["stdout"] + r["stderr"])

    def run(self):
        gapped = self.start(allow_internet_access=False)
        try:
            self.probe("air-gapped: refused", gapped, REACH, self.target, False, 5)
            self.probe("air-gapped: loopback answers", gapped, LOOPBACK, [], True, 5)
            begin = time.monotonic()
            now = self.ask("PUT", gapped + "/network", {"air_gapped": False})
            self.line("air gap opened", not now["air_gapped"], time.monotonic() - begin, f"generation {now['generation']}")
            self.probe("opened: reached", gapped, REACH, self.target, True, 5)
            other = self.start()
            self.probe("a default sandbox: reached", other, REACH, self.target, True, 5)
            self.ask("DELETE", other)
        finally:
            self.ask("DELETE", gapped)
        return 0 if self.good else 1


if __name__ == "__main__":
    sys.exit(Receipt(*sys.argv[1:5]).run())
