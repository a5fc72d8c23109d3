# SPDX-License-Identifier: LGPL-2.1-or-later
"""sbxd is out of reach from inside a sandbox of attach cgroup, which shares the host's network namespace."""
import os

from sbxd import service
from test_attach import BASE, host, sbx, start  # noqa: F401
from test_sbxd_access import LOOK, PORT, TCP, reached


def test_nothing_inside_reaches_the_service(sbx):  # noqa: F811
    sbx.put("look.py", LOOK, own=True)
    path = os.path.join(sbx.work, "api.sock")  # in a directory that the sandbox has
    sbx.profile("closed", BASE)
    sbx.profile("open", BASE + f"  loopback_ports: [{PORT}]\n")
    with service(sbx, [*TCP, "--socket", path], root=True, where=path) as s:
        os.chmod(path, 0o666)
        for granted in sbx.work, os.path.join(sbx.work, "look.py"), path:  # what is root's is not
            os.chown(granted, sbx.world.user.pw_uid, sbx.world.user.pw_gid)
        assert reached(sbx, None, path) == {path: "200", f"127.0.0.1:{PORT}": "401"}
        assert reached(sbx, ["--profile", "closed"], path, root=True) == {
            path: "403 peer", f"127.0.0.1:{PORT}": "ECONNREFUSED"}
        # a port that the profile lists is reached, and takes a token like every caller
        assert reached(sbx, ["--profile", "open"], path, root=True)[f"127.0.0.1:{PORT}"] == "401"
        assert s.get("/healthz")
