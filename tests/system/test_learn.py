# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbx-run --learn: the profile that is written extends the one used by what was wanted, and with it nothing of that is
refused. The command cannot choose what the file says beyond names, nor write where the file is."""
import os
import re

import pytest

from conftest import USER
from ctl import ctl

GIT = "cd /tmp && GIT_TERMINAL_PROMPT=0 git clone -q https://allowed.test/repo.git r && git -C r log --format=%s"
PIP = ("cd /tmp && python3 -m venv --without-pip v && pip --disable-pip-version-check --python v/bin/python install -q "
       "--retries 0 --index-url https://allowed.test/simple/ sbxdemo && v/bin/python -c 'import sbxdemo; print(sbxdemo.value)'")
NPM = ("export npm_config_update_notifier=false; mkdir /tmp/n && cd /tmp/n && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --fetch-retries=0 "
       "--registry https://allowed.test/ sbx-demo && node -p 'require(\"sbx-demo\")'")


@pytest.fixture
def learn(sbx, tmp_path_factory):
    """Runs a command with --learn; the file is among the profiles of the test's configuration."""
    sbx.profile("strict", "extends: none\nnetwork: {mode: fetch, allow: [v4.test]}\n")
    os.chown(os.path.join(sbx.config, "profiles"), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    sbx.learned = os.path.join(sbx.config, "profiles", "learned.yaml")

    def run(script, *args, profile="strict", **kw):
        r = sbx.run(["--profile", profile, "--learn", sbx.learned, *args], ["sh", "-c", script], **kw)
        text = ""
        if os.path.exists(sbx.learned):
            with open(sbx.learned) as f:
                text = f.read()
            if 'extends: "strict"' in text:
                is_good(sbx, text)
        return r, text
    return run


def is_good(sbx, text):
    """sbxctl profile check takes it, and above each line its evidence stands as a comment."""
    r = ctl(sbx, "profile", "check", sbx.learned)
    assert (r.rc, r.out) == (0, f"{sbx.learned}: valid\n"), (r, text)
    evidence = False
    for line in text.splitlines():
        if line.startswith("    - "):
            assert evidence, (line, text)
        evidence = line.startswith("    # ") and (evidence or bool(re.match(r" +# \d+x, first \S+Z, last \S+Z: ", line)))


def entries(text):
    return re.findall(r"^    - (.*)$", text, re.M)


def again(sbx, script, **kw):
    return sbx.run(["--profile", "learned"], ["sh", "-c", script], **kw)


@pytest.mark.parametrize("script,out", [(GIT, "first\n"), (PIP, "42\n"), (NPM, "42\n")], ids=["git", "pip", "npm"])
def test_allowed_and_learned(sbx, www, learn, script, out):
    """With --learn-allow the command does its work; with the profile that it taught, it does so again."""
    r = sbx.run(["--profile", "strict"], ["sh", "-c", script])
    assert r.rc != 0 and "refused" in r.err, r
    r, text = learn(script, "--learn-allow")
    assert (r.rc, r.out) == (0, out) and "refused" not in r.err, (r, text)
    assert '"allowed.test:443"' in entries(text) and '"v4.test' not in text, text

    twin = again(sbx, script)
    assert (twin.rc, twin.out) == (0, out) and "refused" not in twin.err, (twin, text)


def test_directory_is_missing(sbx):
    r = sbx.run(["--profile", "none", "--learn", "missing/learned.yaml"], ["true"])
    assert (r.rc, r.err) == (125, "sbx-run: --learn: cannot write missing/learned.yaml: make its directory first (mkdir -p)\n")
    os.mkdir(os.path.join(sbx.work, "missing"))
    os.chown(os.path.join(sbx.work, "missing"), sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    r = sbx.run(["--profile", "none", "--bind", "/var/tmp", "--learn", "missing/learned.yaml"], ["true"])
    assert "make its directory" not in r.err, r


def test_refused_and_learned(sbx, www, learn):
    """The profile is enforced: the name alone is known, and the entry is for the ports of an entry without ports."""
    r, text = learn(GIT)
    assert r.rc != 0 and not sbx.events(action="allow"), r
    assert entries(text) == ['"allowed.test"'] and "its name alone" in text and 'extends: "strict"' in text, text
    assert re.search(r"# \d+x, first \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, last .*: default_deny", text), text
    twin = again(sbx, GIT)
    assert (twin.rc, twin.out) == (0, "first\n"), (twin, text)


def test_ports_and_protocols(sbx, learn):
    """The places reached by --learn-allow is in the profile with its port; floors, deny entries and private addresses are not."""
    sbx.profile("strict", "extends: none\nnetwork: {mode: fetch, allow: [v4.test], deny: [denied.test]}\n")
    script = ("for u in https://allowed.test/ http://wild.test/ https://v4.test/ https://denied.test/ https://ipinfo.io/ "
              "https://private.test/ http://198.51.100.200/; do curl -ksS -m 5 -o /dev/null $u; done; true")
    r, text = learn(script, "--learn-allow")
    assert r.rc == 0, r
    assert entries(text) == ['"198.51.100.200:80"', '"allowed.test:443"', '"wild.test:80"'], (text, r)
    comments = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))
    for word in ("denied.test", "ipinfo.io", "private.test", "v4.test port 443 (tcp)"):
        assert word in comments, (word, text)
    twin = again(sbx, script)
    refused = {m for m in re.findall(r"refused \d+x ([^ :]*)", twin.err)}
    assert refused == {"denied.test", "ipinfo.io", "private.test"}, twin


def test_siblings_are_suggested_in_a_comment(sbx, learn):
    names = ["", "h2.", "grpc.", "other."]
    r, text = learn("for n in a b c d e; do curl -sS https://$n.api.test/; done; true")
    assert r.rc == 0 and entries(text) == [f'"{n}.api.test"' for n in "abcde"], text
    assert '    # - "*.api.test"' in text and "# 5 of these" in text, (text, names)
    r, text = learn("for n in a b; do curl -sS https://$n.api.test/; done; true", "--learn-force")
    assert entries(text) == ['"a.api.test"', '"b.api.test"'] and "*.api.test" not in text, text


def test_requests_of_a_terminated_host(sbx, learn):
    """A refused method is added to those that the entry admits; the run with it is not refused."""
    sbx.profile("strict", "extends: none\nnetwork: {mode: fetch, allow: [{host: api.test, access: read-only}]}\n")
    script = "curl -sS -o /dev/null -w '%{http_code} ' https://api.test/a; curl -sS -o /dev/null -w '%{http_code}' -d x https://api.test/b/c"
    r, text = learn(script)
    assert r.out == "200 403", r
    assert entries(text) == ['{host: "api.test", access: {methods: ["GET", "HEAD", "OPTIONS", "POST"]}}'], text
    assert "POST /b/c" in text and "broader than" in text, text
    assert again(sbx, script).out == "200 200", text


def test_allowed_beside_a_terminated_host(sbx, learn):
    """Requests stay judged, names are carried, and literal addresses are refused and learned."""
    sbx.profile("strict", "extends: none\nnetwork: {mode: fetch, allow: [{host: api.test, access: read-only}]}\n")
    script = ("curl -sS -o /dev/null -w '%{http_code} ' -d x https://api.test/a; "
              "for u in https://allowed.test/ http://198.51.100.200/; do curl -ksS -m 5 -o /dev/null $u; done; true")
    r, text = learn(script, "--learn-allow")
    assert r.rc == 0 and r.out == "403 ", r
    assert entries(text) == ['"198.51.100.200:80"', '"allowed.test:443"',
                             '{host: "api.test", access: {methods: ["GET", "HEAD", "OPTIONS", "POST"]}}'], (text, r)
    twin = again(sbx, script)
    assert twin.out == "200 " and "refused" not in twin.err, twin


def test_with_the_shipped_profile(sbx, learn):
    r, text = learn("curl -sS -o /dev/null https://allowed.test/", "--learn-allow", profile="default")
    assert r.rc == 0 and entries(text) == ['"allowed.test:443"'], (r, text)


def test_requests_by_path(sbx, learn):
    sbx.profile("strict", "extends: none\nnetwork: {mode: fetch, allow: [{host: api.test, "
                "access: {methods: [GET], paths: [/a]}}]}\n")
    script = "for p in a b/c d/; do curl -sS -o /dev/null -w '%{http_code} ' https://api.test/$p; done"
    r, text = learn(script)
    assert r.out == "200 403 403 ", r
    # "/d/" would hold for all below it
    assert entries(text) == ['{host: "api.test", access: {methods: ["GET"], paths: ["/a", "/b/c"]}}'], text
    assert "no entry is written for this request" in text, text
    assert again(sbx, script).out == "200 200 403 ", text


# Names as no entry can have them, sent as DNS queries.
HOSTILE = r"""
import socket, struct
for label in (b'a\n    - "evil.test"\n#', b'x"]}\nextends: full', b'\x1b[2J', b'*', b'%s%n', b'"', b"'", b'a b', b'\xff\xfe'):
    name = bytes([len(label)]) + label + b'\x04test\x00'
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect(('127.0.0.1', 53))
    s.send(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + name + struct.pack('>HH', 1, 1))
    try:
        s.recv(512)
    except OSError:
        pass
"""


def test_hostile_names(sbx, learn):
    """No byte of a name becomes YAML, and the arguments of the command are escaped."""
    sbx.put("hostile.py", HOSTILE)
    r = sbx.run(["--profile", "strict", "--learn", sbx.learned], ["sh", "-c", "cat /etc/resolv.conf; /usr/bin/python3 hostile.py; "
                                                                 "curl -sS https://ok.allowed.test/", "x\nextends: full"])
    with open(sbx.learned, "rb") as f:
        raw = f.read()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]", raw), raw
    text = raw.decode()
    assert entries(text) == ['"ok.allowed.test"'], (text, r)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert lines == ['extends: "strict"', "network:", "  allow:", '    - "ok.allowed.test"'], text


def test_never_over_a_file(sbx, learn):
    r, first = learn("curl -sS https://allowed.test/; true")
    assert r.rc == 0 and first, r
    r, text = learn("curl -sS https://wild.test/; touch ran; true")
    assert r.rc == 125 and "--learn-force" in r.err and text == first and not os.path.exists(sbx.work + "/ran"), r
    r, text = learn("curl -sS https://wild.test/; true", "--learn-force")
    assert r.rc == 0 and entries(text) == ['"wild.test"'], (r, text)
    os.unlink(sbx.learned)
    os.symlink("/etc/passwd", sbx.learned)
    r, _ = learn("true", "--learn-force")
    assert r.rc == 125 and os.path.islink(sbx.learned), r


def test_a_file_that_appears_meanwhile(sbx, learn):
    p = sbx.popen(["--profile", "strict", "--learn", sbx.learned], ["sh", "-c", "echo ready; read x"], stdin=-1)
    assert p.stdout.readline() == "ready\n"
    with open(sbx.learned, "w") as f:
        f.write("mine")
    out, err = p.communicate("go\n", 60)
    assert p.returncode == 0 and "File exists" in err, err
    with open(sbx.learned) as f:
        assert f.read() == "mine"
    assert os.listdir(os.path.dirname(sbx.learned)).count("learned.yaml") == 1
    assert not [n for n in os.listdir(os.path.dirname(sbx.learned)) if n.startswith(".")]


@pytest.mark.parametrize("grant", ["cwd", "bind", "below", "home"])
def test_not_where_the_command_writes(sbx, learn, grant):
    place = os.path.join(sbx.tmp, "place")
    os.makedirs(place + "/sub")
    for d in place, place + "/sub":
        os.chown(d, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
    args, at = {"cwd": ([], sbx.work), "bind": (["--bind", place], place), "below": (["--bind", place], place + "/sub"),
                "home": (["--home", place], place)}[grant]
    r = sbx.run(["--profile", "strict", *args, "--learn", at + "/l.yaml"], ["true"])
    assert r.rc == 125 and "the command writes in" in r.err and not os.path.exists(at + "/l.yaml"), r
    if grant == "bind":
        twin = sbx.run(["--profile", "strict", "--ro-bind", place, "--learn", at + "/l.yaml"], ["true"])
        assert twin.rc == 0 and os.path.exists(at + "/l.yaml"), twin


def test_what_cannot_be_combined(sbx, learn):
    for args, word in ((["--learn-allow"], "is for --learn"), (["--learn", sbx.learned, "--air-gap"], "air-gap"),
                       (["--learn", sbx.learned, "--learn-allow", "--profile", "none"], "is offline"),
                       (["--learn", sbx.learned, "--profile", os.path.join(sbx.config, "profiles/strict.yaml")], "by its name"),
                       (["--learn", os.path.join(sbx.config, "profiles", "strict.yaml"), "--profile", "strict", "--learn-force"],
                        "choose another")):
        r = sbx.run(args, ["true"])
        assert r.rc == 125 and word in r.err and r.err.count("\n") == 1, (args, r)
        assert not os.path.exists(sbx.learned)


def test_an_offline_profile(sbx, www, learn):
    """The stub of an offline sandbox refuses each name, and tells it; the learned profile has a network."""
    r, text = learn(GIT, profile="none")
    if not entries(text):
        pytest.fail(text)
    assert r.rc != 0 and "mode: fetch" in text and entries(text) == ['"allowed.test"'], text
    assert again(sbx, GIT).out == "first\n", text


def test_nothing_wanted(sbx, learn):
    r, text = learn("true")
    assert r.rc == 0 and "Nothing was refused" in text and entries(text) == [], text
    assert again(sbx, "echo ran").out == "ran\n"


def test_by_root(sbx, learn):
    """Root's own file, in a directory of root's."""
    sbx.own(0)
    r = sbx.run(["--profile", "strict", "--learn", sbx.learned], ["sh", "-c", "curl -sS https://allowed.test/; true"], root=True)
    assert r.rc == 0, r
    with open(sbx.learned) as f:
        assert entries(f.read()) == ['"allowed.test"']
    assert os.stat(sbx.learned).st_uid == 0 and os.stat(sbx.learned).st_mode & 0o077 == 0, USER


# --- programs ---

def test_programs(sbx, learn):
    """Each exec is seen with where it led, in the sandbox and below it; nothing of that is an entry."""
    r, text = learn("cat /dev/null; env no-such-program; python3 -c 'import subprocess; subprocess.run([\"/usr/bin/id\"])'; ./plain; true")
    assert r.rc == 0, r
    for word in ("executed: /usr/bin/cat", "executed: /usr/bin/env", "executed: /usr/bin/id", "looked for in vain: /usr/bin/no-such-program",
                 "executed: /usr/bin/python3"):
        assert re.search(rf"^# \d+x, first .*, last .*: {re.escape(word)}$", text, re.M), (word, text, r)
    assert "commands:" not in text and "sh" in text, text


def test_an_allow_list_grows(sbx, learn):
    """A program that the list did not have is an entry by its path; with it, it runs."""
    sbx.profile("strict", "extends: none\ncommands: {allow: [sh, cat]}\n")
    script = "cat /dev/null; /usr/bin/id -u >/dev/null && echo ran"
    r, text = learn(script)
    assert r.out == "" and "Permission denied" in r.err, r
    assert entries(text) == ['"/usr/bin/id"'] and "not on the commands.allow list" in text, text
    assert again(sbx, script).out == "ran\n", text


def test_a_masked_program(sbx, learn):
    sbx.profile("strict", "extends: none\ncommands: {deny: [id]}\n")
    r, text = learn("/usr/bin/id; true")
    assert r.rc == 0 and "not executable: /usr/bin/id" in text and "commands:" not in text, (r, text)


def test_hostile_paths(sbx, learn):
    """Paths come from the sandbox: they are escaped, in comments alone."""
    sbx.profile("strict", "extends: none\ncommands: {allow: [sh, python3, cp]}\n")
    sbx.put("exec.py", "import os\nfor n in (b'/tmp/a\\nnetwork: {mode: full}', b'/tmp/b\\\"]', b'/tmp/\\x1b[2J', b'/tmp/*', b'/tmp/../usr/bin/id', b'x' * 4090):\n"
            "    if os.fork() == 0:\n        try:\n            os.execv(n, [b'x'])\n        except OSError:\n            os._exit(0)\n    os.wait()\n")
    r, text = learn("cp /usr/bin/python3 '/tmp/*'; cp /usr/bin/python3 '/tmp/b\"]'; python3 exec.py")
    assert r.rc == 0, r
    with open(sbx.learned, "rb") as f:
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]", f.read())
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert lines == ['extends: "strict"'], text
    assert "programs that are not listed" in text, text  # the long one
    assert again(sbx, "echo ran").out == "ran\n"


def test_many_programs(sbx, learn):
    """Two thousand execs, at once and in a row: each goes on, and each is counted."""
    script = "for i in $(seq 20); do (for k in $(seq 50); do /bin/echo x; /bin/true; done) & done; wait"
    r, text = learn(script, timeout=200)
    assert r.rc == 0 and r.out == "x\n" * 1000, (r.rc, len(r.out), r.err)
    assert re.search(r"^# 1000x, .*: executed: /bin/echo$", text, re.M), text


def test_programs_of_roots_sandbox(sbx, learn):
    sbx.own(0)
    r = sbx.run(["--profile", "strict", "--learn", sbx.learned], ["id", "-u"], root=True)
    assert r.rc == 0, r
    with open(sbx.learned) as f:
        assert "Programs were not seen" in f.read()


def test_no_exec_is_watched_without_learn(sbx):
    """The twin: an ordinary sandbox has no filter more than it had."""
    count = ["sh", "-c", "grep Seccomp_filters /proc/self/status"]
    plain = sbx.run(["--profile", "none"], count).out
    learning = sbx.run(["--profile", "none", "--learn", sbx.state + "/l.yaml"], count).out
    assert int(learning.split()[1]) == int(plain.split()[1]) + 1, (plain, learning)
