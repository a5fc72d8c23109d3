# SPDX-License-Identifier: LGPL-2.1-or-later
"""The two renderings of a ruleset are the same ruleset: the netlink batch is loaded in one namespace,
the text by nft(8) in another, and the kernel's listings are equal. And: no conntrack."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import test_user as make_test_user

NFT_CASE = os.path.join(os.environ.get("SBX_BUILDDIR", "."), "tests", "system", "nft_case")
CASES = ["offline", "offline-dns", "fetch", "fetch-udp", "fetch-no-ipv6", "fetch-cidrs", "full"]
COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"

# An open connection over loopback, and the count while it lasts.
TALK = f"""
import socket
server = socket.create_server(("127.0.0.1", 8080))
client = socket.create_connection(("127.0.0.1", 8080))
print(open("{COUNT}").read().strip())
"""


@pytest.fixture(scope="module", params=["root", "user"])
def run(request, tmp_path_factory):
    """Runs a shell script in fresh user and network namespaces, with nft_case in its directory."""
    directory = tmp_path_factory.mktemp("nft-" + request.param)
    shutil.copy(NFT_CASE, directory)
    for path in (directory, directory.parent, directory.parent.parent):
        os.chmod(path, 0o755)
    argv = ["unshare", "-Urn", "sh", "-ec"]
    if request.param == "user":
        user = make_test_user()
        argv = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] + argv

    def run_script(script, stdin=""):
        r = subprocess.run(argv + [script], cwd=directory, input=stdin, text=True, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert r.returncode == 0, r.stderr
        return r.stdout

    return run_script


def test_every_case_is_listed(run):
    assert run("./nft_case names").split() == CASES


@pytest.mark.parametrize("case", CASES)
def test_listings_are_equal(run, case):
    text = run(f"./nft_case text {case}")
    by_batch = run(f"./nft_case load {case}; nft list ruleset")
    by_text = run("nft -f -; nft list ruleset", stdin=text)
    assert by_batch == by_text
    assert "table inet sbx" in by_batch and "policy drop" in by_batch
    json_by_batch = json.loads(run(f"./nft_case load {case}; nft -j list ruleset"))
    json_by_text = json.loads(run("nft -f -; nft -j list ruleset", stdin=text))
    assert json_by_batch == json_by_text
    # Down to the kernel's instructions.
    debug = "nft --debug=netlink list ruleset"
    assert run(f"./nft_case load {case}; {debug}") == run(f"nft -f -; {debug}", stdin=text)


def test_different_cases_differ(run):
    """The comparison can fail."""
    listings = {run(f"./nft_case load {case}; nft list ruleset") for case in CASES}
    assert len(listings) == len(CASES)


def test_no_conntrack(run):
    if not os.path.exists(COUNT):
        pytest.skip("this kernel counts no connections (no nf_conntrack)")
    traffic = f"ip link set lo up; python3 -c '{TALK}'"
    assert run(f"./nft_case load full; {traffic}") == "0\n"
    # The twin: one rule that looks at connection states, and the same traffic is tracked.
    rule = "nft insert rule inet sbx output ct state new accept"
    tracked = run(f"./nft_case load full; {rule}; {traffic}")
    assert int(tracked) > 0


def test_loading_is_fast(run):
    """A batch of some twenty rules: a few hundred microseconds; a process would take milliseconds."""
    times = sorted(int(run("./nft_case time fetch")) for _ in range(15))
    assert times[len(times) // 2] < 2000, times
