# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tools that people work with, unmodified, in a sandbox: each does its real work, and its result is checked.

As an ordinary user's sandbox and as root's (a uid of the pool, id-mapped grants), in the granted current directory
and in the scratch home. The packages are those of `./bootstrap packages test tools npm`.
"""
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import zlib

import pytest

from conftest import USER


def need(*tools):
    for tool in tools:
        assert shutil.which(tool, path="/usr/bin:/bin"), f"{tool} is not installed: ./bootstrap check installs it"


class Place:
    """A directory to work in, inside: the granted one ("work") or the scratch home ("home")."""

    def __init__(self, sbx, root, where):
        self.sbx, self.root, self.where = sbx, root, where
        if root:
            sbx.own(0)

    def put(self, files):
        """{path: text}: into src of the granted directory, whose owner is the test user."""
        for path, text in files.items():
            path = os.path.join(self.sbx.work, "src", path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        self.own()

    def own(self):
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.sbx.work], check=True)

    def sh(self, script, files=None, args=("--profile", "none"), timeout=120, **kw):
        """Run the script with `set -e` in this place, with src beside it; its output."""
        self.put(files or {"empty": ""})
        start = "set -e\n" if self.where == "work" else "set -e\ncp -R src ~/src; cd\n"
        r = self.sbx.run(args, ["bash", "-c", start + script], root=self.root, timeout=timeout, **kw)
        assert r.rc == 0, f"{r.rc}\n{r.out}\n{r.err}"
        return r.out

    def outside(self, *argv):
        """Run a command as the user on the host, in the granted directory; its output."""
        return subprocess.run(["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *argv], check=True,
                              cwd=self.sbx.work, env=self.sbx.env(), capture_output=True, text=True).stdout


PLACES = [(root, where) for root in (False, True) for where in ("work", "home")]


@pytest.fixture(params=PLACES, ids=lambda p: ("root" if p[0] else "user") + "-" + p[1])
def place(sbx, request):
    return Place(sbx, *request.param)


# --- git ---

def test_git_in_a_repository_that_was_there(sbx):
    """All of daily work at the top of the granted directory, in a repository made outside. The protection of its
    configuration is not in the way, and is in no commit or package."""
    need("git", "npm")
    place = Place(sbx, False, "work")
    place.put({"a": "one\n"})
    place.outside("sh", "-ec", "git init -q -b main .; git config user.name t; git config user.email t@t; cp src/a a; "
                  "git add a; git commit -qm one; "
                  "echo '{\"name\": \"app\", \"version\": \"1.0.0\"}' >package.json")
    out = place.sh("""
        echo two >>a; git commit -qam two
        git checkout -q -b topic; echo t >t; git add t; git commit -qm topic; git tag v1
        git checkout -q main; echo three >>a; git commit -qam three
        git rebase -q main topic; git log --format=%s
        echo change >>a; git stash -q; git diff --quiet; git stash pop -q; git diff --stat | head -1; git checkout -q a
        git worktree add -q wt main; cat wt/a; git worktree remove wt
        git merge-base --is-ancestor main topic; git gc -q --prune=now; git fsck --strict
        git branch -q -d main; git add -A; git diff --cached --name-only; git commit -qm rest; git status --porcelain
        npm pack --silent; cp -a . /tmp/copy; git -C /tmp/copy log --format=%s -1""",
                   {"a": "one\n"})
    assert out.split("\n") == ["topic", "three", "two", "one", " a | 1 +", "one", "two", "three", "inside.py",
                               "package.json", "src/a", "app-1.0.0.tgz", "rest", ""], out
    assert place.outside("git", "log", "--format=%s", "topic") == "rest\ntopic\nthree\ntwo\none\n"
    assert place.outside("git", "fsck", "--strict", "--no-dangling") == ""


def test_git(place, www):
    out = place.sh("""
        git config --global user.name t; git config --global user.email t@t; git config --global init.defaultBranch main
        git config --global protocol.file.allow always
        git init -q proj; echo 1 >proj/a; git -C proj add a; git -C proj commit -qm one
        git clone -q --bare proj bare.git
        git clone -q "file://$PWD/bare.git" c1; cd c1
        echo 2 >>a; git commit -qam two; git push -q origin HEAD:main HEAD:topic
        git submodule --quiet add "file://$PWD/../bare.git" sub; git commit -qm sub; git push -q; cd ..
        git clone -q --recurse-submodules "file://$PWD/bare.git" c2; cat c2/sub/a
        cd c2; git fetch -q; git checkout -q topic; git rebase -q origin/main; git log --format=%s; cd ..
        git clone -q https://allowed.test/repo.git web; git -C web log --format=web-%s
        git -C c2 gc -q; git -C c2 fsck --strict --no-dangling""",
                   args=["--allow", "allowed.test"])
    assert out == "1\n2\nsub\ntwo\none\nweb-first\n"


# --- npm and node ---

NATIVE = {
    "native/package.json": '{"name": "sbx-native", "version": "1.2.3", "main": "index.js", "bin": {"sbx-native": "cli.js"}, '
                           '"scripts": {"postinstall": "cc -O1 -o native native.c"}}',
    "native/native.c": '#include <stdio.h>\nint main(void) { return puts("compiled") < 0; }\n',
    "native/index.js": 'exports.run = () => require("child_process").execFileSync(__dirname + "/native").toString();\n',
    "native/cli.js": '#!/usr/bin/env node\nprocess.stdout.write("cli " + require("./index.js").run());\n',
    "app/package.json": '{"name": "app", "version": "1.0.0", "scripts": {"build": "sbx-native | tr a-z A-Z >built"}}',
}


def test_npm(place):
    """A package with a native part, packed, installed, run by npx and by a script, and installed from the lock."""
    need("npm", "node", "cc")
    out = place.sh("""
        cp -R src/app .; npm pack --silent ./src/native; cd app
        npm install --no-audit --no-fund --loglevel=error --foreground-scripts=false ../sbx-native-1.2.3.tgz >/dev/null
        node -p 'require("sbx-native").run().trim()'
        npx --no-install sbx-native
        npm run --silent build; cat built
        rm -r node_modules; npm ci --no-audit --no-fund --loglevel=error >/dev/null; node_modules/.bin/sbx-native""",
                   NATIVE)
    assert out == "sbx-native-1.2.3.tgz\ncompiled\ncli compiled\nCLI COMPILED\ncli compiled\n"


NODE = r"""
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const cluster = require("cluster"), http = require("http"), cp = require("child_process");
if (!isMainThread) {
	Atomics.add(new Int32Array(workerData), 0, 1);
	parentPort.postMessage("done");
} else if (process.argv[2] === "forked") {
	process.on("message", m => { process.send(m * 2); process.disconnect(); });
} else if (cluster.isWorker) {
	http.createServer((_, res) => res.end("worker " + cluster.worker.id)).listen(0, "127.0.0.1");
} else {
	(async () => {
		const shared = new SharedArrayBuffer(4);
		await Promise.all([1, 2, 3, 4].map(() => new Promise((done, failed) =>
			new Worker(__filename, { workerData: shared }).on("message", done).on("error", failed))));
		console.log("threads", new Int32Array(shared)[0]);
		console.log("fork", await new Promise(done => {
			const child = cp.fork(__filename, ["forked"]);
			child.on("message", done);
			child.send(21);
		}));
		console.log("cluster", await new Promise(done => {
			cluster.fork();
			cluster.on("listening", (_, a) => http.get({ host: "127.0.0.1", port: a.port }, res =>
				res.on("data", d => done(d.toString()))));
		}));
		for (const w of Object.values(cluster.workers)) w.kill();
	})();
}
"""


def test_node(place):
    need("node")
    assert place.sh("node src/all.js", {"all.js": NODE}) == "threads 4\nfork 42\ncluster worker 1\n"


# --- python ---

PIP = {
    "demo/setup.py": 'from setuptools import setup\nsetup(name="sbxdemo", version="1.0", py_modules=["sbxdemo"], '
                     'entry_points={"console_scripts": ["sbxdemo = sbxdemo:main"]})\n',
    "demo/sbxdemo.py": 'import sys\ndef main(): print("demo", sys.prefix != sys.base_prefix)\n',
}


def test_pip(place):
    """No network: a wheel from sources, into a virtual environment and into the home."""
    need("pip3")
    out = place.sh("""
        export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1
        python3 -m pip wheel -q --no-build-isolation -w wheels ./src/demo; ls wheels
        python3 -m venv v; v/bin/pip install -q --find-links wheels sbxdemo; v/bin/sbxdemo
        python3 -m pip install -q --user --break-system-packages --find-links wheels sbxdemo 2>/dev/null
        ~/.local/bin/sbxdemo""", PIP)
    assert out == "sbxdemo-1.0-py3-none-any.whl\ndemo True\ndemo False\n"


PROCESSES = r"""
import asyncio, concurrent.futures, multiprocessing, threading
from multiprocessing import shared_memory

def square(x):
    return x * x

def child(queue, lock, name):
    with lock:
        memory = shared_memory.SharedMemory(name=name)
        memory.buf[-1] = 7
        memory.close()
    queue.put("put")

def main():
    for method in ("fork", "spawn", "forkserver"):
        c = multiprocessing.get_context(method)
        with c.Pool(2) as pool:
            squares = pool.map(square, range(4))
        queue, lock = c.Queue(), c.Lock()
        memory = shared_memory.SharedMemory(create=True, size=96 << 20)  # a container's /dev/shm has 64M
        memory.buf[:] = b"x" * memory.size
        p = c.Process(target=child, args=(queue, lock, memory.name))
        p.start()
        print(method, squares, queue.get(), memory.buf[memory.size - 1], flush=True)
        p.join()
        memory.close()
        memory.unlink()
    with multiprocessing.Manager() as manager:
        d = manager.dict(a=1)
        d["b"] = 2
        print("manager", dict(d))
    with concurrent.futures.ProcessPoolExecutor(2) as e:
        print("executor", list(e.map(square, range(3))))
    with concurrent.futures.ThreadPoolExecutor(64) as e:
        print("threads", sum(e.map(square, range(100))))

    async def run():
        p = await asyncio.create_subprocess_exec("tr", "a-z", "A-Z", stdin=-1, stdout=-1)
        out, _ = await p.communicate(b"asyncio")
        print(out.decode(), p.returncode)
    asyncio.run(run())

if __name__ == "__main__":
    main()
"""


def test_python_processes(place):
    out = place.sh("python3 src/processes.py; ls /dev/shm", {"processes.py": PROCESSES})
    squares = "[0, 1, 4, 9] put 7\n"
    assert out == f"fork {squares}spawn {squares}forkserver {squares}manager {{'a': 1, 'b': 2}}\nexecutor [0, 1, 4]\n" \
        "threads 328350\nASYNCIO 0\n"


WAL = r"""
import os, sqlite3, subprocess, sys
db = sqlite3.connect("wal.db")
print(db.execute("PRAGMA journal_mode=WAL").fetchone()[0])
db.execute("CREATE TABLE t(x)")
writers = [subprocess.Popen(["sqlite3", "-cmd", ".timeout 20000", "wal.db"], stdin=subprocess.PIPE) for _ in range(2)]
for w in writers:
    w.stdin.write(b"INSERT INTO t VALUES(1);\n" * 50)
    w.stdin.close()
print([w.wait() for w in writers], os.path.getsize("wal.db-wal") > 0, os.path.exists("wal.db-shm"))
print(db.execute("SELECT sum(x) FROM t").fetchone(), db.execute("PRAGMA integrity_check").fetchone()[0])
"""


def test_sqlite_with_a_write_ahead_log(place):
    """Its index is memory that processes share through a file of the granted directory."""
    out = place.sh("python3 src/wal.py; ls wal.db*", {"wal.py": WAL})
    assert out == "wal\n[0, 0] True True\n(100,) ok\nwal.db\n"
    if place.where == "work":
        assert place.outside("sqlite3", "wal.db", "SELECT count(*) FROM t") == "100\n"


# --- compilers ---

PROJECT = {
    "Makefile": """
CFLAGS = -O2 -pipe -Wall -flto=auto
N = 1 2 3 4 5 6 7 8
main: main.o libpart.a libshared.so
	$(CXX) $(CFLAGS) -o $@ main.o -L. -lpart -lshared -Wl,-rpath,'$$ORIGIN' -pthread
main.o: main.cc
	$(CXX) $(CFLAGS) -c -o $@ main.cc
libpart.a: $(N:%=part%.o)
	gcc-ar rcs $@ $^
libshared.so: shared.c
	$(CC) -shared -fPIC -pipe -o $@ $<
part%.o: part.c
	$(CC) $(CFLAGS) -DN=$* -c -o $@ $<
asan: shared.c asan.c
	$(CC) -g -fsanitize=address,undefined -o $@ $^
""",
    "part.c": "#define F(n) G(n)\n#define G(n) part##n\nint F(N)(void) { return N; }\n",
    "shared.c": "int shared(void) { return 6; }\n",
    "asan.c": '#include <stdlib.h>\nint shared(void);\nint main(int n, char **v) { char *p = malloc(shared()); (void)v;\n'
              "\tp[n == 1 ? 0 : 6] = 1; free(p); return 0; }\n",
    "main.cc": """
#include <iostream>
#include <stdexcept>
#include <thread>
extern "C" { int part1(void); int part8(void); int shared(void); }
int main()
{
	int n = 0;
	std::thread t([&] { n = part1() + part8() + shared(); });
	t.join();
	try { throw std::runtime_error("caught"); }
	catch (const std::exception &e) { std::cout << e.what() << ' ' << n << '\\n'; }
}
""",
}


def test_make(place):
    """Link-time optimisation under make's jobserver; a shared object; sanitizers, which find what is to be found."""
    need("gcc", "g++", "make")
    out = place.sh("""
        cp -R src proj; cd proj; make -s -j4 main; ./main; make -q main && echo done
        touch shared.c; make -n main | grep -c '^[cg]'; make -s asan
        ./asan; ./asan x 2>&1 | grep -o heap-buffer-overflow | head -1""", PROJECT)
    assert out == "caught 15\ndone\n2\nheap-buffer-overflow\n"


# --- terminals ---

class Terminal:
    """A command on a pty, as a person at a terminal of this size has it."""

    def __init__(self, argv, env, rows, cols):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            os.execvpe(argv[0], argv, env)
        self.seen, self.all = "", ""

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536).decode("utf-8", "replace")
        except OSError:
            data = ""
        self.seen += data
        self.all += data
        return data != ""

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def expect(self, text, seconds=30, again=None):
        """Read up to the text. `again` are keys to press when it is quiet, until the text comes: nothing says when a
        job is in the foreground, and what the terminal makes a signal of takes the typed line with it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            if again and not select.select([self.fd], [], [], 0.3)[0]:
                self.send(again)
            if not self.read(1) or time.monotonic() > end:
                pytest.fail(f"no {text!r} in {self.seen!r}, after {self.all!r}")
        self.seen = self.seen.split(text, 1)[1]

    def end(self, seconds=30):
        """Reads until the end; the exit status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(1):
            pass
        done = 0
        while not done and time.monotonic() < end:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.02)
        if not done:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            pytest.fail(f"still running: {self.all!r}")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def terminal(place, argv, rows=40, cols=100):
    place.put({"empty": ""})
    if place.where == "home":
        argv = ["sh", "-c", 'cd; exec "$@"', "sh", *argv]
    args = ["--profile", "none", "--env", "PS1=ready> ", "--env", "PATH=/usr/bin:/bin"]
    return Terminal(place.sbx.argv(args, argv, root=place.root),
                    place.sbx.env({"TERM": "xterm-256color"}, user=not place.root), rows, cols)


def test_job_control(place):
    """Stop, background, foreground and interrupt, of a job and of a pipeline; size and its change."""
    t = terminal(place, ["bash", "--norc", "-i"])
    t.expect("ready> ")
    t.send("stty size\n")
    t.expect("40 100")
    t.send("sleep 300 | cat\n")
    t.expect("sleep 300 | cat\r\n")
    t.expect("Stopped", again="\x1a")
    t.send("bg; jobs\n")
    t.expect("Running")
    t.send("fg\n")
    t.expect("sleep 300 | cat\r\n")
    t.expect("ready> ", again="\x03")
    t.send("echo status=$?.\n")
    t.expect("status=130.")
    t.send("sleep 300 & jobs -l; kill %1; wait %1; echo killed=$?.\n")
    t.expect("killed=143.")
    t.resize(31, 91)
    t.send("stty size; trap 'echo W$((40+2))' WINCH; echo trapped\n")
    t.expect("31 91")
    t.expect("trapped\r\n")
    t.resize(32, 92)
    t.expect("W42", again="\n")
    t.send("exit 7\n")
    assert t.end() == 7


def test_vim(place):
    """Opened, typed into, written; as large as the terminal, also when that changes; a shell from within."""
    need("vim")
    t = terminal(place, ["sh", "-c", "vim text && cat text size"])
    t.expect('"text" [New]')
    t.send("ihello\nw\u00f6rld\x1b")
    time.sleep(0.3)  # or vim takes what follows for a key's code
    t.send(":call writefile([&lines . 'x' . &columns . ' ' . &encoding], 'size') | echo 'a-' . (40 + 2)\r")
    t.expect("a-42")
    t.resize(31, 91)
    # vim looks for a change of size when it is told or something is typed; told between the two, it waits for a key.
    t.expect("\x1b[H\x1b[2J", again="h")
    t.send(":call writefile([&lines . 'x' . &columns], 'size', 'a') | echo 'b-' . (40 + 2)\r")
    t.expect("b-42")
    t.send(":r !echo from-$((40+2))\r")
    t.expect("from-42")
    t.send(":wq\r")
    assert t.end() == 0 and "hello\r\nw\u00f6rld\r\nfrom-42\r\n40x100 utf-8\r\n31x91\r\n" in t.all, t.all
    if place.where == "work":
        assert place.outside("cat", "text") == "hello\nw\u00f6rld\nfrom-42\n"


def test_tmux(place):
    """A server, a session and a pane with a shell, which is on a pty of its own."""
    need("tmux")
    out = place.sh(r"""
        export TERM=xterm-256color; tmux -f src/tmux.conf new-session -d -x 80 -y 24 sh
        tmux send-keys 'echo; stty size; echo pane-$((40+2))' Enter
        for i in $(seq 100); do tmux capture-pane -p >pane; grep -q '^pane-42' pane && break; sleep 0.1; done
        grep -E '^(24 80|pane-42)' pane; tmux kill-server""",
                   {"tmux.conf": "set -g status off\n"})
    assert out == "24 80\npane-42\n"


# --- a browser ---

def first_pixel(png):
    """Size and first pixel of an 8-bit PNG: the one that no filter changes."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack("!IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6)
    data, at = b"", 8
    while at < len(png):
        n, name = struct.unpack("!I4s", png[at:at + 8])
        if name == b"IDAT":
            data += png[at + 8:at + 8 + n]
        at += 12 + n
    return (width, height), tuple(zlib.decompress(data)[1:4])


PAGE = """<!DOCTYPE html><title>t</title><body style="margin:0;background:rgb(210,105,30)"><p id=p></p><script>
p.textContent = "computed " + 6 * 7; fetch("/hello").then(r => r.json()).then(j => p.textContent += " " + j.host)
</script>"""


@pytest.mark.parametrize("root", [False, True])
def test_chromium(sbx, world, www, root):
    """Headless and without its own sandbox, which needs namespaces; by name, and no further than names allow."""
    need("chromium")
    with open(os.path.join(www, "page.html"), "w") as f:
        f.write(PAGE)
    place = Place(sbx, root, "work")
    out = place.sh("""
        c="chromium --headless --no-sandbox --ignore-certificate-errors --window-size=320,200"
        $c --dump-dom 'data:text/html,<p id=p></p><script>p.textContent="data "+6*7</script>' 2>err
        $c --virtual-time-budget=5000 --dump-dom https://allowed.test/page.html 2>>err
        $c --screenshot=shot.png http://allowed.test/page.html 2>>err
        echo next; $c --dump-dom https://denied.test/page.html 2>err; grep -o 'net::ERR_[A-Z_]*' err | sort -u""",
                   args=["--allow", "allowed.test"])
    allowed, denied = out.split("next\n")
    assert ">data 42<" in allowed and ">computed 42 allowed.test<" in allowed, out
    # it takes itself to be disconnected where only lo has an address, and says that of a name it cannot find
    assert denied in ("net::ERR_INTERNET_DISCONNECTED\n", "net::ERR_NAME_NOT_RESOLVED\n"), out
    assert sbx.events(action="allow", fqdn_pinned="allowed.test", remote_port=443)
    assert sbx.events(action="deny", fqdn_pinned="denied.test")
    with open(os.path.join(sbx.work, "shot.png"), "rb") as f:
        assert first_pixel(f.read()) == ((320, 200), (210, 105, 30))
