# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real clients, unmodified, against servers in the world: each works when allowed and not otherwise."""
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest


@pytest.fixture(scope="session")
def www(world):
    """A git repository, a Python package index and an npm registry, as files."""
    root = os.path.join(world.dir, "www")
    os.makedirs(root, exist_ok=True)
    git = os.path.join(root, "repo.git")
    work = os.path.join(world.dir, "repo")
    env = {**os.environ, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
           "GIT_COMMITTER_EMAIL": "t@t", "HOME": world.dir}
    for argv in (["init", "-q", work], ["-C", work, "commit", "-q", "--allow-empty", "-m", "first"],
                 ["clone", "-q", "--bare", work, git], ["-C", git, "update-server-info"]):
        subprocess.run(["git", *argv], check=True, env=env)
    # pip: one wheel
    import zipfile
    wheel = os.path.join(root, "simple", "sbxdemo")
    os.makedirs(wheel)
    name = "sbxdemo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel, name), "w") as z:
        z.writestr("sbxdemo.py", "value = 42\n")
        z.writestr("sbxdemo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sbxdemo\nVersion: 1.0\n")
        z.writestr("sbxdemo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                   "Tag: py3-none-any\n")
        z.writestr("sbxdemo-1.0.dist-info/RECORD", "")
    with open(os.path.join(wheel, "index.html"), "w") as f:
        f.write(f'<a href="/simple/sbxdemo/{name}">{name}</a>')
    # npm: one package
    tgz = io.BytesIO()
    with tarfile.open(fileobj=tgz, mode="w:gz") as t:
        for path, text in (("package/package.json", '{"name":"sbx-demo","version":"1.0.0"}'),
                           ("package/index.js", "module.exports = 42\n")):
            info = tarfile.TarInfo(path)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    os.makedirs(os.path.join(root, "sbx-demo"), exist_ok=True)
    with open(os.path.join(root, "sbx-demo", "sbx-demo-1.0.0.tgz"), "wb") as f:
        f.write(tgz.getvalue())
    with open(os.path.join(root, "sbx-demo", "index.html"), "w") as f:
        json.dump({"name": "sbx-demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "sbx-demo", "version": "1.0.0", "dist": {
                "tarball": "https://files.test/sbx-demo/sbx-demo-1.0.0.tgz",
                "shasum": hashlib.sha1(tgz.getvalue()).hexdigest()}}}}, f)
    return root


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
    # One try: by itself npm tries a failed lookup again after 10 s and after 60 s more.
    "npm": (["sh", "-c", "cd /tmp && npm install --no-audit --no-fund --loglevel=error --fetch-retries=0 "
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
