/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sockets of the caller's session, from its environment. The environment knows places that a
 * list of paths cannot know. A variable without a clear value is ignored, because the prefixes and
 * the known paths (sys/fs/path.c) hold in any case.
 */
#include "launcher/user/session_sockets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/view/draft.h"
#include "sys/fs/path_normalise.h"

enum form {
	PATH,  /* the whole value */
	FIRST, /* up to the first ':' or ',': GPG_AGENT_INFO, TMUX */
	URL,   /* unix:/path, unix:///path; other schemes are no files */
	DBUS,  /* the D-Bus specification, "Server Addresses": unix:path=/p,guid=1;unix:dir=/d */
};

static const struct {
	const char *variable;
	enum form form;
	const char *below; /* "" or the rest of the path after the value */
} rows[] = {
	{ "SSH_AUTH_SOCK", PATH, "" },
	{ "GPG_AGENT_INFO", FIRST, "" },
	{ "GNUPGHOME", PATH, "/S.gpg-agent" },
	{ "DBUS_SESSION_BUS_ADDRESS", DBUS, "" },
	{ "DBUS_SYSTEM_BUS_ADDRESS", DBUS, "" },
	{ "AT_SPI_BUS_ADDRESS", DBUS, "" },
	{ "DOCKER_HOST", URL, "" },
	{ "CONTAINER_HOST", URL, "" },
	{ "CONTAINERD_ADDRESS", PATH, "" },
	{ "CONTAINERD_ADDRESS", URL, "" },
	{ "BUILDKIT_HOST", URL, "" },
	{ "NIX_REMOTE", URL, "" },
	{ "SPIFFE_ENDPOINT_SOCKET", URL, "" },
	{ "PULSE_SERVER", URL, "" },
	{ "PULSE_RUNTIME_PATH", PATH, "/native" },
	{ "PIPEWIRE_RUNTIME_DIR", PATH, "/pipewire-0" },
	{ "WAYLAND_DISPLAY", PATH, "" },
	{ "SWAYSOCK", PATH, "" },
	{ "I3SOCK", PATH, "" },
	{ "NIRI_SOCKET", PATH, "" },
	{ "KITTY_LISTEN_ON", URL, "" },
	{ "WEZTERM_UNIX_SOCKET", PATH, "" },
	{ "TMUX", FIRST, "" },
	{ "SCREENDIR", PATH, "/S" },
	{ "NVIM", PATH, "" },
	{ "VSCODE_IPC_HOOK_CLI", PATH, "" },
	{ "VSCODE_GIT_IPC_HANDLE", PATH, "" },
	{ "NOTIFY_SOCKET", PATH, "" },
	/* if it is not /run/user */
	{ "XDG_RUNTIME_DIR", PATH, "/bus" },
	{ "XDG_RUNTIME_DIR", PATH, "/systemd/private" },
	{ "XDG_RUNTIME_DIR", PATH, "/gnupg/S.gpg-agent" },
	{ "XDG_RUNTIME_DIR", PATH, "/keyring/ssh" },
	{ "XDG_RUNTIME_DIR", PATH, "/gcr/ssh" },
	{ "XDG_RUNTIME_DIR", PATH, "/podman/podman.sock" },
	{ "XDG_RUNTIME_DIR", PATH, "/pulse/native" },
	{ "XDG_RUNTIME_DIR", PATH, "/at-spi/bus" },
};

static bool is_known_anyway(const char *path)
{
	return sbx_path_in_prefix(path, "/run/user") || sbx_path_in_prefix(path, "/var/run/user");
}

static int add_one(struct sbx_session_sockets *s, char **path, const char *variable)
{
	if (s->n >= SBX_SESSION_SOCKETS_MAX)
		return -E2BIG;
	s->v[s->n++] = (struct sbx_path_socket){ .path = sbx_steal_ptr(path), .said = variable };
	return 0;
}

/* Add the path of the variable and, if symlinks lead elsewhere, the path that they lead to. */
static int add(struct sbx_session_sockets *s, const char *path, const char *below,
	       const char *variable)
{
	SBX_AUTO_FREE char *whole = NULL, *asked = NULL, *real = NULL;
	int r = 0;

	/* The value itself may be a symlink there: some people make one for an agent whose place
	 * changes. */
	if (path[0] != '/' || (*below && is_known_anyway(path)))
		return 0;
	if (asprintf(&whole, "%s%s", path, below) < 0) {
		whole = NULL;
		return -ENOMEM;
	}
	asked = sbx_path_normalise(whole); /* NULL: it has a `..` */
	real = sbx_path_real_location(asked ? asked : whole);
	if (!real)
		return -ENOMEM;
	if (asked && strcmp(asked, real) != 0 && !is_known_anyway(asked))
		r = add_one(s, &asked, variable);
	return r == 0 && !is_known_anyway(real) ? add_one(s, &real, variable) : r;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Replace %XX in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			*out++ = (char)(hex(s[1]) << 4 | hex(s[2]));
			s += 2;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* Modifies @value. */
static int add_dbus(struct sbx_session_sockets *s, char *value, const char *variable)
{
	static const char *const keys[] = { "path=", "dir=", "tmpdir=" };
	char *address, *pair;
	int r = 0;

	while (r == 0 && (address = strsep(&value, ";"))) {
		if (strncmp(address, "unix:", 5) != 0)
			continue;
		address += 5;
		while (r == 0 && (pair = strsep(&address, ",")))
			for (size_t i = 0; i < SBX_N_ELEMENTS(keys) && r == 0; i++) {
				size_t n = strlen(keys[i]);

				if (strncmp(pair, keys[i], n) != 0)
					continue;
				unescape(pair + n);
				r = add(s, pair + n, i == 0 ? "" : "/dbus-", variable);
			}
	}
	return r;
}

static int add_row(struct sbx_session_sockets *s, size_t i, const char *value)
{
	SBX_AUTO_FREE char *copy = strdup(value);
	char *path = copy;

	if (!copy)
		return -ENOMEM;
	switch (rows[i].form) {
	case PATH:
		break;
	case FIRST:
		copy[strcspn(copy, ":,")] = '\0';
		break;
	case URL:
		path = strncmp(copy, "unix:", 5) == 0 ? copy + 5 : copy + strlen(copy);
		break;
	case DBUS:
		return add_dbus(s, copy, rows[i].variable);
	}
	return add(s, path, rows[i].below, rows[i].variable);
}

int sbx_session_sockets_find(const struct sbx_facts *f, struct sbx_session_sockets *ret_s)
{
	int r = 0;

	ret_s->n = 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows) && r == 0; i++) {
		const char *value = sbx_facts_getenv(f, rows[i].variable);

		if (value && value[0])
			r = add_row(ret_s, i, value);
	}
	return r;
}

void sbx_session_sockets_fini(struct sbx_session_sockets *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].path);
	s->n = 0;
}
