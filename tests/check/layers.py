# SPDX-License-Identifier: LGPL-2.1-or-later
"""A folder is a layer; this is what it may include (docs/ARCHITECTURE has the picture)."""

import re

import circles
import common

# The include path of a folder's headers, and the folders that it may include.
ARROWS = {
    "base": set(),
    "wire": {"base"},
    "http": {"base", "wire"},
    "ipc": {"base"},
    "control": {"base", "ipc"},
    "sys": {"base"},
    "policy": {"base"},
    "cli": {"base", "policy"},
    "store": {"base"},
    "broker": {"base", "wire", "ipc", "policy", "sys"},
    "tls": {"base", "wire", "http", "ipc", "sys"},
    "launcher": {"base", "cli", "http", "ipc", "control", "policy", "sys", "store"},
    "ctl": {"base", "cli", "http", "ipc", "control", "policy", "store", "sys", "launcher"},  # the launcher's functions answer
    "daemon": {"base", "cli", "ipc", "control", "policy", "store", "sys", "launcher"},
}

# A layer's rooms: its folders, each a library or the program, and the rooms that each may include.
ROOMS = {
    "broker": {
        "names": set(),
        "core": {"names"},
        "io": {"core", "names"},
        "dns": {"io", "core", "names"},
        "tcp": {"dns", "io", "core", "names"},
        "udp": {"dns", "io", "core", "names"},
        "main": {"tcp", "udp", "dns", "io", "core", "names"},
    },
    "tls": {
        "cert": set(),
        "conn": {"cert"},
        "http1": {"conn", "cert"},
        "http2": {"conn", "cert"},
        "main": {"http1", "http2", "conn", "cert"},
    },
    "policy": {
        "forms": set(),
        "lists": set(),
        "profile": {"forms"},
        "keys": {"profile", "lists", "forms"},
        "decide": {"keys", "profile", "lists", "forms"},
    },
    "sys": {
        "fs": set(),
        "process": {"fs"},
        "systemd": set(),
        "seccomp": set(),
        "net": set(),
        "cgroup": {"process", "fs"},
        "nft": {"cgroup", "net"},
    },
    "ctl": {
        "doctor": set(),
        "print": set(),
        "frame": {"print"},
        "exec": {"live", "frame", "print"},
        "live": {"frame", "print"},
        "data": {"live", "frame", "print"},
        "answers": {"doctor", "live", "frame", "print"},
        "service": {"data", "frame", "print"},
        "main": {"service", "data", "answers", "doctor", "exec", "live", "frame", "print"},
    },
    "daemon": {
        "api": set(),
        "hub": set(),
        "access": {"api"},
        "http": {"access", "api"},
        "resources": {"hub", "http", "access", "api"},
        "rows": {"resources", "hub", "http", "access", "api"},
        "output": set(),
        "start": {"output", "resources", "hub", "http", "access", "api"},
        "main": {"start", "rows", "resources", "hub", "http", "access", "api"},
    },
    "launcher": {
        "process": set(),
        "loop": set(),
        "control": {"loop"},
        "host": {"process"},
        "rules": {"host", "process"},
        "secrets": {"host", "process"},
        "view": {"host", "process"},
        "rootfs": {"view", "host", "process"},
        "attach": set(),
        "user": {"rootfs", "view", "host", "process"},
        "grants": {"user", "rootfs", "view", "host", "process"},
        "protect": {"rootfs", "view", "host", "process"},
        "commands": {"rules", "rootfs", "view", "host", "process"},
        "plan": {"rules", "commands", "protect", "grants", "user", "attach", "rootfs", "view", "secrets", "host", "process"},
        "setup": {"init", "plan", "attach", "rootfs", "view", "secrets", "host", "process"},  # init_argv.h
        "helpers": {"plan", "protect", "grants", "rootfs", "view", "host", "process"},
        "keep": {"plan", "grants", "rootfs", "view", "host", "process"},
        "explain": set(),
        "learn": {"loop", "record", "setup", "plan", "view", "host", "process"},
        "journal": {"host", "process"},
        "record": {"journal", "rules", "setup", "plan", "view", "host", "process"},
        "tree": {"plan", "rootfs", "view", "host", "process"},
        "stage": {"tree", "setup", "plan", "protect", "rootfs", "view", "host", "process"},
        "cleanup": {"record", "helpers", "plan", "protect", "rootfs", "view", "host", "process"},
        "review": {"record", "setup", "plan", "view", "host", "process"},
        "resources": {"cleanup", "setup", "plan", "attach", "view", "secrets", "host", "process"},
        "exec": {"loop", "setup", "plan", "commands", "rootfs", "view", "host", "process"},
        "live": {"rules", "loop", "resources", "stage", "record", "cleanup", "setup", "plan", "attach", "view", "host", "process"},
        "serve": {"control", "live", "exec", "resources", "stage", "setup", "plan", "host", "process"},
        "run": {"explain", "review", "serve", "control", "rules", "learn", "live", "exec", "loop", "resources", "stage", "helpers", "keep", "record", "cleanup",
                "setup", "plan", "rootfs", "view", "secrets", "host", "process"},
        "cli": {"review", "rules", "learn", "run", "control", "live", "exec", "loop", "resources", "keep", "stage", "helpers", "record", "cleanup",
                "setup", "plan", "protect", "grants",
                "rootfs", "view", "secrets", "host", "process"},
        "init": set(),
    },
}

# Another layer's rooms that a layer may include, where not all.
ACROSS = {
    ("ctl", "launcher"): {"cleanup", "cli", "commands", "explain", "host", "plan", "record", "rules", "stage", "view"},
}

ROOM_MAX = 16  # files, so that a room is seen at a glance

# Headers of libraries, and the layers that may know them.
LIBRARIES = {
    "sqlite3.h": {"store"},
    "yaml.h": {"policy"},
    "libpsl.h": {"policy"},
    "idn2.h": {"policy"},
    "sha2.h": {"policy", "http", "store"},
    "ares.h": {"broker"},
    "event2/": {"broker", "launcher", "daemon", "tls"},
    "openssl/": {"tls"},
    "nghttp2/": {"tls"},
    "jansson.h": {"launcher", "control", "ctl", "daemon", "store"},
    "seccomp.h": {"sys"},
    "sys/capability.h": {"sys"},
    "libmnl/": {"sys"},
    "systemd/": {"launcher"},
    "libnftnl/": {"sys"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def layer_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def room_of(path):
    """The folder of a file or header below its layer's; "" for one that is in no room."""
    parts = path.removeprefix("src/").split("/")
    return parts[1] if len(parts) > 2 else ""


def judge_room(layer, room, header):
    """Why @room of @layer may not include @header, which is of the same layer; None when it may."""
    target = room_of(header)
    if layer not in ROOMS or target == room or target in ROOMS[layer].get(room, ()):
        return None
    return f'{layer}/{room} may not include "{header}"'


def judge(layer, room, quote, header):
    """Why @room of @layer may not include @header; None when it may."""
    if quote == "<":
        for prefix, layers in LIBRARIES.items():
            if header == prefix or (prefix.endswith("/") and header.startswith(prefix)):
                if layer not in layers:
                    return f"<{header}> belongs to {', '.join(sorted(layers))}"
        return None
    if "/" not in header:
        return f'"{header}" is not written with its folder'
    target = header.split("/")[0]
    if target == layer:
        return judge_room(layer, room, header)
    rooms = ACROSS.get((layer, target))
    if rooms is not None and room_of(header) not in rooms:
        return f'{layer} may not include "{header}"'
    if target in ARROWS.get(layer, set()):
        return None
    return f'{layer} may not include "{header}"'


def check(tap, root, _build):
    by_layer, rooms = {}, {}
    for path in common.files(root, common.LAYER_DIRS, ".c", ".h"):
        layer = layer_of(path)
        problems = by_layer.setdefault(layer, [])
        if layer not in ARROWS:
            problems.append(f"{path}: {layer} is no layer that tests/check/layers.py knows")
        if layer in ROOMS and room_of(path) not in ROOMS[layer]:
            problems.append(f"{path}: is in no room of {layer} that tests/check/layers.py knows")
        if layer in ROOMS:
            rooms.setdefault(path.rsplit("/", 1)[0], []).append(path)
        text = common.read(root, path)
        for quote, header in INCLUDE.findall(text):
            why = judge(layer, room_of(path), quote, header)
            if why:
                problems.append(f"{path}: {why}")
    tap.ok(bool(by_layer), "there are layers to look at")
    large = [f"{room}: {len(paths)} files" for room, paths in sorted(rooms.items()) if len(paths) > ROOM_MAX]
    tap.ok(not large, f"no room has more than {ROOM_MAX} files", large)
    for layer, arrows in sorted(ROOMS.items()):
        tap.ok(not circles.circles(arrows), f"the arrows of {layer}'s rooms make no circle")
    for layer, problems in sorted(by_layer.items()):
        tap.ok(not problems, f"layer {layer} includes what it may", problems)


if __name__ == "__main__":
    common.main(check)
