# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real clients, unmodified, against servers in the world: each works when allowed and not otherwise."""
import shutil

import pytest


CA = "/etc/ssl/certs/ca-certificates.crt"
CLIENTS = {
    "curl": (["curl", "-fsS", "https://allowed.test/hello"], '"host": "allowed.test"'),
    "curl-http": (["curl", "-fsS", "http://allowed.test/hello"], '"tls": false'),
    "curl-http2": (["curl", "-fsS", "--http2", "https://allowed.test/hello"], '"tls": true'),
    "curl-post": (["curl", "-fsS", "-d", "@inside.py", "http://allowed.test/"], '"method": "POST"'),
    "wget": (["wget", "-qO-", "https://allowed.test/hello"], '"host": "allowed.test"'),
    "git": (["sh", "-c", "git clone -q https://allowed.test/repo.git /tmp/r && git -C /tmp/r log --oneline"],
            "first"),
    "ssh-shaped": (["python3", "inside.py", "tcp", "allowed.test", "22", "hello\\n"], "SSH-2.0"),
    "urllib": (["python3", "-c", "import urllib.request as u; "
                "print(u.urlopen('https://allowed.test/x').read().decode())"], '"path": "/x"'),
    "asyncio": (["python3", "-c", "import asyncio,ssl\nasync def f():\n"
                 " r,w=await asyncio.open_connection('allowed.test',443,ssl=ssl.create_default_context())\n"
                 " w.write(b'GET /a HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n')\n"
                 " print((await r.read()).decode())\nasyncio.run(f())"], '"path": "/a"'),
    "node": (["node", "-e", "fetch('https://allowed.test/n').then(r=>r.text()).then(console.log)"
              ".catch(e=>{console.error(e);process.exit(1)})"], '"path": "/n"'),
    "pip": (["sh", "-c", "python3 -m pip install -q --no-cache-dir --disable-pip-version-check --target /tmp/p "
             "--index-url https://allowed.test/simple sbxdemo && PYTHONPATH=/tmp/p python3 -c "
             "'import sbxdemo; print(sbxdemo.value)'"], "42"),
    "npm": (["sh", "-c", "cd /tmp && npm install --no-audit --no-fund --loglevel=error "
             "--registry https://allowed.test/ sbx-demo && node -p 'require(\"sbx-demo\")'"], "42"),
}


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("allowed", [True, False])
def test_client(sbx, www, name, allowed):
    argv, expected = CLIENTS[name]
    tool = {"node": "node", "npm": "npm", "pip": "pip3", "wget": "wget", "git": "git"}.get(name, "curl")
    assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"
    names = ["allowed.test", "files.test", "allowed.test:22"] if allowed else ["denied.test"]
    args = [a for n in names for a in ("--allow", n)]
    r = sbx.run(args, argv, env={"NODE_EXTRA_CA_CERTS": CA, "SSL_CERT_FILE": CA, "PIP_CERT": CA}, timeout=120)
    if allowed:
        assert r.rc == 0 and expected in r.out, r
    else:
        assert expected not in r.out, r
        assert sbx.events(action="deny", fqdn_pinned="allowed.test")
