# SPDX-License-Identifier: LGPL-2.1-or-later
"""signing: aws-sigv4: botocore inside signs with placeholders; the origin gets signatures of the real key pair."""
import hashlib
import hmac
import json
import urllib.parse

import pytest

ID, KEY = "AKIDEXAMPLE0123456789", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
PROFILE = """name: tls
extends: none
network:
  mode: fetch
  allow: [api.test, h2.api.test]
secrets:
  - {name: PAIR, from: "env:PAIR", hosts: [api.test, h2.api.test], signing: aws-sigv4}
"""
BOTO = """import os, sys, json
import botocore.session
s = botocore.session.get_session()
pair = os.environ["PAIR"]
s.set_credentials(pair, pair)
host = "https://" + sys.argv[1]
kw = {"region_name": "eu-west-1", "endpoint_url": host}
def call(f, **k):
    try:
        f(**k)
    except Exception as e:
        print(type(e).__name__, str(e)[:300])
call(s.create_client("sts", **kw).get_caller_identity)
call(s.create_client("dynamodb", **kw).get_item, TableName="table", Key={"k": {"S": "v" * 1000}})
call(s.create_client("s3", **kw).put_object, Bucket="bucket", Key="a key/with spaces", Body=b"hello" * 100)
call(s.create_client("s3", **kw).list_objects_v2, Bucket="bucket", Prefix="a/b c")
"""


def check_signature(request, host):
    """Recomputed from the IAM user guide's description, with the real key."""
    headers = dict(request["headers"])
    auth = headers["authorization"]
    fields = dict(part.strip().split("=", 1) for part in auth.removeprefix("AWS4-HMAC-SHA256 ").split(","))
    key_id, date, region, service, _ = fields["Credential"].split("/")
    assert key_id == ID, auth
    headers["host"] = host
    body_hash = headers.get("x-amz-content-sha256") or hashlib.sha256(request["body"].encode("latin-1")).hexdigest()
    path, _, query = request["path"].partition("?")
    if service != "s3":
        path = urllib.parse.quote(path)
    pairs = sorted((k, v) for k, _, v in (p.partition("=") for p in query.split("&") if p))
    canonical = "\n".join([request["method"], path, "&".join(f"{k}={v}" for k, v in pairs),
                           *(f"{h}:{' '.join(headers[h].split())}" for h in fields["SignedHeaders"].split(";")), "",
                           fields["SignedHeaders"], body_hash])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], f"{date}/{region}/{service}/aws4_request",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    sign = lambda k, m: hmac.new(k, m.encode(), hashlib.sha256).digest()  # noqa: E731
    key = sign(sign(sign(sign(b"AWS4" + KEY.encode(), date), region), service), "aws4_request")
    assert hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"], (canonical, request)
    return service


@pytest.mark.parametrize("host", ["api.test", "h2.api.test"])
def test_botocore(sbx, world, host):
    sbx.profile("tls", PROFILE)
    world.mark()
    r = sbx.run(["--profile", "tls"], ["/usr/bin/python3", "-c", BOTO, host], env={"PAIR": f"{ID}:{KEY}"}, timeout=120)
    assert KEY not in r.out + r.err and "denied" not in r.out.lower(), r
    services = {check_signature(e, host) for e in world.log("origin")}
    assert services == {"sts", "dynamodb", "s3"}, (services, r.out, r.err)


BODY = """curl -sS -o /dev/null -w '%{http_code} ' --http%HTTP% -X POST https://%HOST%/ \
  -H "Authorization: AWS4-HMAC-SHA256 Credential=$PAIR/20260101/us-east-1/sts/aws4_request, SignedHeaders=host;x-amz-date, Signature=00" \
  -H 'X-Amz-Date: 20260101T000000Z' --data-binary @/tmp/b"""


@pytest.mark.parametrize("host,http", [("api.test", "1.1"), ("h2.api.test", "2")])
def test_bodies_that_are_signed(sbx, world, host, http):
    """Bodies of every size up to 1 MiB are held and signed; a longer one is refused, and so is a client that gives another
    secret's placeholder in it."""
    sbx.profile("tls", PROFILE + '  - {name: OTHER, from: "env:OTHER", hosts: [api.test]}\n')
    world.mark()
    curl = BODY.replace("%HTTP%", http).replace("%HOST%", host)
    script = (f"for n in 1 16384 1048576 1048577; do head -c $n /dev/zero | tr '\\0' a > /tmp/b; {curl}; done; "
              f"echo $OTHER > /tmp/b; {curl}; echo plain > /tmp/b; {curl} -H 'Transfer-Encoding: chunked'; {curl} -H 'Expect: 100-continue'")
    r = sbx.run(["--profile", "tls"], ["sh", "-c", script], env={"PAIR": f"{ID}:{KEY}", "OTHER": "x" * 40}, timeout=60)
    assert r.out.split() == ["200", "200", "200", "413", "403", "200", "200"], r
    requests = world.log("origin")
    assert [len(e["body"]) for e in requests] == [1, 16384, 100000, 6, 6], [len(e["body"]) for e in requests]
    for e in requests:
        if len(e["body"]) < 100000:  # the log cuts there
            assert check_signature(e, host) == "sts"


def test_bodies_that_wait(sbx):
    """40 streams hold 1 MiB each: those past 32 MiB are refused, and the others are served. Then there is room again."""
    sbx.profile("tls", PROFILE)
    sbx.copy("raw_h2.py")
    head = [[":method", "POST"], [":scheme", "https"], [":authority", "h2.api.test"], [":path", "/big/1"],
            ["x-amz-date", "20260101T000000Z"],
            ["authorization", "AWS4-HMAC-SHA256 Credential=$TOKEN$/20260101/us-east-1/sts/aws4_request, "
                              "SignedHeaders=host;x-amz-date, Signature=00"]]
    names = [str(i) for i in range(40)]
    steps = [step for n in names for step in (["open", n, head, False], ["data", n, "x" * (1 << 20), False])]
    steps += [["ping"]] + [step for n in names[:32] for step in (["data", n, "", True], ["wait", n])]
    steps += [["open", "last", head, False], ["data", "last", "x" * (1 << 20), True], ["wait", "last"]]
    sbx.put("cases.json", json.dumps([{"host": "h2.api.test", "steps": steps}]))
    r = sbx.run(["--profile", "tls"], ["sh", "-c", "TOKEN=$PAIR exec /usr/bin/python3 raw_h2.py cases.json"],
                env={"PAIR": f"{ID}:{KEY}"}, timeout=100)
    assert r.rc == 0, r
    [r] = json.loads(r.out)
    found = {n: dict(s["headers"]).get(":status") for n, s in r["streams"].items()}
    assert r["end"] is None and found == {**{n: "503" if int(n) >= 32 else "200" for n in names}, "last": "200"}, (r["end"], found)
