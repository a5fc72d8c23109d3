# SPDX-License-Identifier: LGPL-2.1-or-later
"""A refusal is in the database within one second of the packet, and a flood of them is folded and counted."""
import json
import time

import pytest

SOON_S = 1.0

# Refused tries for two seconds; the time before each of them.
SCRIPT = """
import json, socket, time
tries = []
end = time.time() + 2
while time.time() < end:
    tries.append(time.time())
    try:
        {try_}
    except OSError:
        pass
    time.sleep(0.03)
print(json.dumps(tries))
"""


@pytest.mark.parametrize("try_,match", [
    ("socket.create_connection(('203.0.113.77', 443), timeout=1).close()", "remote_ip = '203.0.113.77'"),
    ("socket.getaddrinfo('nowhere.denied.test', 443)", "fqdn_pinned = 'nowhere.denied.test'"),
    ("socket.create_connection(('allowed.test', 81), timeout=1).close()", "fqdn_pinned = 'allowed.test'"),
], ids=["address", "name", "port"])
def test_soon(sbx, try_, match):
    assert sbx.run([], ["true"]).rc == 0
    p = sbx.popen(["--allow", "allowed.test:443"], ["/usr/bin/python3", "-c", SCRIPT.replace("{try_}", try_)])
    seen, query = [], f"SELECT coalesce(sum(raw_pkts), 0) AS n, count(*) AS rows FROM sandbox_egress_event WHERE action = 'deny' AND {match}"
    while p.poll() is None:
        at = time.time()
        seen.append((at, sbx.rows(query)[0]["n"]))
        time.sleep(0.02)
    out, err = p.communicate(timeout=30)
    assert p.returncode == 0, err
    tries = json.loads(out)
    assert len(tries) > 20 and seen[-1][0] - tries[0] > 1.5
    late = [(at, n, due) for at, n in seen for due in [sum(t < at - SOON_S for t in tries)] if n < due]
    assert not late, (late[:3], len(late))
    total = sbx.rows(query)[0]
    # one or two packets for each try; some rows a second
    assert len(tries) <= total["n"] <= 4 * len(tries) and total["rows"] <= 24, (total, len(tries))
