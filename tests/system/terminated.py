# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests of HTTP/1 to terminated hosts, byte by byte: written here with marks for placeholders, filled in and sent
inside (raw_tls.py), and the replies read."""
import json
import re

# Runs inside, where the placeholders are known: $NAME$ stands for one, #NAME# for its length, #BODY# for
# that of the bytes behind the head, and [text, n] for the text in chunks of n bytes. Sent whole, in bytes,
# or, for "cuts", once for each way to cut the head into two pieces.
MAKE = """import json, os, sys
def fill(p):
    if isinstance(p, list):
        text, n = fill(p[0]), p[1]
        parts = [text[i:i + n] for i in range(0, len(text), n)]
        return ''.join(f'{len(c):x}\\r\\n{c}\\r\\n' for c in parts) + '0\\r\\n\\r\\n'
    for n in json.loads(sys.argv[1]):
        p = p.replace(f'${n}$', os.environ[n]).replace(f'#{n}#', str(len(os.environ[n])))
    return p.replace('#BODY#', str(len(p.partition('\\r\\n\\r\\n')[2])))
def ways(templates, how):
    filled = [fill(p) for p in templates]
    text = ''.join(filled)
    if how == 'cuts':
        return [[text[:i], text[i:]] for i in range(1, (text.find('\\r\\n\\r\\n') + 4 or len(text)))]
    return [list(text) if how == 'bytes' else filled]
cases = [[host, port, tls, p] for host, port, tls, t, how in json.load(open('templates.json')) for p in ways(t, how)]
json.dump(cases, open('/tmp/cases.json', 'w'))
"""


class Inside:
    """Runs cases in a sandbox of the profile. No value of @values may come back."""

    def __init__(self, sbx, profile, values):
        self.sbx, self.values = sbx, values
        sbx.profile("tls", profile)
        sbx.copy("raw_tls.py")
        sbx.put("make.py", MAKE)

    def __call__(self, cases):
        self.sbx.put("templates.json", json.dumps(cases))
        r = self.sbx.run(["--profile", "tls"], ["sh", "-c", '/usr/bin/python3 make.py "$0" && /usr/bin/python3 raw_tls.py '
                                                "/tmp/cases.json", json.dumps(list(self.values))],
                         env=self.values, timeout=200)
        assert r.rc == 0, r
        for value in self.values.values():
            assert value not in r.out and json.dumps(value)[1:-1] not in r.out, r
        return json.loads(r.out)


def case(request, host="api.test", port=443, tls=True, how="whole"):
    return [host, port, tls, [request] if isinstance(request, str) else request, how]


def req(line, *headers, host="api.test", body="", close=True):
    return "\r\n".join([line, f"Host: {host}", *(["Connection: close"] if close else []), *headers]) + "\r\n\r\n" + body


def status(reply):
    return int(reply[0].split(" ", 2)[1]) if reply[0].startswith("HTTP/1.") else reply[1]


def statuses(reply):
    """Of all responses of a connection."""
    return [int(s) for s in re.findall(r"HTTP/1\.1 (\d{3}) ", reply[0])]


def reason(reply):
    for line in reply[0].split("\r\n"):
        if line.lower().startswith("x-sbx-denied: "):
            return line[14:]
    return None


def message(reply):
    """Header fields (lower case) and body of the one response; its length or its chunks must be right to the byte."""
    head, _, rest = reply[0].partition("\r\n\r\n")
    fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in head.split("\r\n")[1:])}
    if "content-length" in fields:
        assert "transfer-encoding" not in fields and len(rest) == int(fields["content-length"]), reply
        return fields, rest
    assert fields.get("transfer-encoding") == "chunked", reply
    body = ""
    while True:
        size, _, rest = rest.partition("\r\n")
        n = int(size.partition(";")[0], 16)
        if n == 0:
            assert rest.endswith("\r\n"), reply
            return fields, body
        assert rest[n:n + 2] == "\r\n", reply
        body, rest = body + rest[:n], rest[n + 2:]
