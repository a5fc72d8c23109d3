/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges whether a path may be granted to a sandbox (docs/architecture/run.md, Grants).
 *
 * path_resolve.c finds out which object a path means and what its real name is; here that name is
 * judged. The first check that fails is the answer: form (absolute, no `..`), blocked segments as
 * asked, resolution, blocked segments as resolved, the symlinks on the way, forbidden objects, the
 * allowed prefixes, the type. "Missing" comes last, for a path that would otherwise pass: the
 * caller may create it.
 *
 * No symlink on the way may lead through a blocked segment. A symlink in an allowed prefix may be
 * any user's: its writer can only choose among allowed objects, and its target is judged too. A
 * symlink outside is followed only if root, the sandbox's user or the owner of the object made it:
 * /home -> /data/home, a profile of nix, the user's own ~/ws.
 *
 * The host's owner writes the prefixes and the home directory, which may contain symlinks (/home ->
 * /data/home): a prefix that does not match as written is resolved and tried again. It admits
 * nothing when it does not resolve, or leads through a symlink in a directory that can be granted:
 * a sandbox could have made that symlink and widened the prefix.
 *
 * Through a control socket a process outside with more privileges does something for the client. A
 * sandbox that holds the socket's directory can connect, also over a read-only mount (which refuses
 * only writing files). Control sockets are known by path and need not exist: the daemon may start
 * later. The list is no boundary by itself (prefixes are); it keeps a wide prefix from giving the
 * host away.
 */
#include "sys/fs/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/fs/path_resolve.h"

/* A `*` at the end of a component stands for any rest of that component. */
static const struct {
	const char *path, *what;
} control_sockets[] = {
	{ "/run/docker.sock", "Docker" },
	{ "/var/run/docker.sock", "Docker" },
	{ "/run/docker/*", "Docker" },
	{ "/run/podman/podman.sock", "Podman" },
	{ "/run/containerd/containerd.sock", "containerd" },
	{ "/run/k3s/containerd/containerd.sock", "containerd" },
	{ "/run/k0s/*", "k0s" },
	{ "/run/crio/crio.sock", "CRI-O" },
	{ "/run/cri-dockerd.sock", "Docker" },
	{ "/var/lib/kubelet/device-plugins/kubelet.sock", "kubelet" },
	{ "/var/lib/kubelet/pod-resources/kubelet.sock", "kubelet" },
	{ "/run/buildkit/buildkitd.sock", "BuildKit" },
	{ "/run/libvirt/libvirt-sock", "libvirt" },
	{ "/run/snapd.socket", "snapd" },
	{ "/var/lib/lxd/unix.socket", "LXD" },
	{ "/var/lib/incus/unix.socket", "Incus" },
	{ "/var/snap/lxd/common/lxd/unix.socket", "LXD" },
	{ "/nix/var/nix/daemon-socket/socket", "the Nix daemon" },
	{ "/var/guix/daemon-socket/socket", "the Guix daemon" },
	{ "/run/systemd/private", "systemd" },
	{ "/run/systemd/notify", "systemd" },
	{ "/run/systemd/journal/socket", "the journal" },
	{ "/run/systemd/userdb/*", "systemd's user database" },
	{ "/run/systemd/resolve/io.systemd.Resolve", "the host's resolver" },
	{ "/run/nscd/socket", "the host's name cache" },
	{ "/var/lib/sss/pipes/*", "SSSD" },
	{ "/run/dbus/system_bus_socket", "the D-Bus system bus" },
	{ "/run/udev/control", "udev" },
	{ "/run/pcscd/pcscd.comm", "the smart card daemon" },
	{ "/run/cups/cups.sock", "CUPS" },
	{ "/run/avahi-daemon/socket", "Avahi" },
	{ "/run/tailscale/tailscaled.sock", "Tailscale" },
	{ "/run/wpa_supplicant/*", "wpa_supplicant" },
	{ "/run/screen/S-*", "GNU screen" },
	{ "/run/sbx/*/control", "sbx" },
	/* Sockets of every user's session: /tmp as a whole is never granted. */
	{ "/tmp/.X11-unix/X*", "X11" },
	{ "/tmp/.ICE-unix/*", "the session manager" },
	{ "/tmp/ssh-*/agent.*", "ssh-agent" },
	{ "/tmp/gpg-*/S.gpg-agent", "gpg-agent" },
	{ "/tmp/keyring-*/*", "the keyring" },
	{ "/tmp/tmux-*/*", "tmux" },
	{ "/tmp/spire-agent/public/api.sock", "SPIRE" },
};

/* Below the home directory, and only those that exist: a home without them may be granted for
 * reading. The check for blocked segments refuses a socket behind one. */
static const char *const home_sockets[] = {
	".docker/run/docker.sock",
	".docker/desktop/docker.sock",
	".colima/docker.sock",
	".colima/default/docker.sock",
	".orbstack/run/docker.sock",
	".rd/docker.sock", /* Rancher Desktop */
	".1password/agent.sock",
	".bitwarden-ssh-agent.sock",
	".gnupg/S.gpg-agent",
	".gnupg/S.gpg-agent.ssh",
	".gnupg/S.gpg-agent.extra",
	".ssh/agent", /* OpenSSH 10.1 */
	".emacs.d/server/server",
	".screen",
};

static const struct {
	const char *path, *why;
} forbidden_roots[] = {
	{ "/proc", "the sandbox has its own" },
	{ "/sys", "the sandbox has its own" },
	{ "/dev", "the sandbox has its own" },
	{ "/run/user", "the sockets of sessions are there: buses, agents, engines" },
};

bool sbx_path_in_prefix(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	if (n == 1 && prefix[0] == '/')
		return path[0] == '/';
	return n > 0 && strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const char *sbx_path_blocked_segment(const char *path, const char *const *blocked)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		for (const char *const *b = blocked; n && b && *b; b++)
			if (strlen(*b) == n && memcmp(*b, p, n) == 0)
				return *b;
		p += n + (p[n] == '/');
	}
	return NULL;
}

static bool component_matches(const char *pattern, size_t n_pattern, const char *s, size_t n)
{
	if (n_pattern > 0 && pattern[n_pattern - 1] == '*')
		return n >= n_pattern - 1 && memcmp(s, pattern, n_pattern - 1) == 0;
	return n == n_pattern && memcmp(s, pattern, n) == 0;
}

/* Is @path @pattern or an ancestor of it? Both absolute and normalised; `*` in @pattern. */
static bool is_ancestor(const char *path, const char *pattern)
{
	if (strcmp(path, "/") == 0)
		return true;
	while (*path) {
		size_t n = strcspn(++path, "/"), m = strcspn(++pattern, "/");

		if (!component_matches(pattern, m, path, n))
			return false;
		path += n;
		pattern += m;
		if (*path && !*pattern)
			return false; /* @path is below the socket, where no file can be */
	}
	return true;
}

static int check_asked(const char *source, const struct sbx_path_rules *rules, struct sbx_err *err)
{
	const char *segment;

	if (source[0] != '/') {
		sbx_err_set(err, "'%s' is not an absolute path", source);
		return SBX_PATH_E_RELATIVE;
	}
	for (const char *p = source; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && memcmp(p, "..", 2) == 0) {
			sbx_err_set(err, "'%s' contains '..': write the path it means", source);
			return SBX_PATH_E_DOTDOT;
		}
		p += n + (p[n] == '/');
	}
	segment = sbx_path_blocked_segment(source, rules->blocked_segments);
	if (segment) {
		sbx_err_set(err, "'%s' contains the blocked segment '%s'", source, segment);
		return SBX_PATH_E_SEGMENT;
	}
	return 0;
}

/* How messages name the object: "source" or "source, which is resolved". */
static const char *describe(const char *source, const char *resolved, char *buf, size_t n_buf)
{
	if (strcmp(source, resolved) == 0)
		sbx_text_cut(buf, n_buf, "'%s'", source);
	else
		sbx_text_cut(buf, n_buf, "'%s', which is '%s',", source, resolved);
	return buf;
}

bool sbx_path_exists(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
}

static bool home_holds_socket(const char *path, const char *home, const char *const *blocked)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(home_sockets); i++) {
		char socket[PATH_MAX];
		int n = snprintf(socket, sizeof(socket), "%s/%s", home, home_sockets[i]);

		if (n < (int)sizeof(socket) && sbx_path_in_prefix(socket, path) &&
		    !sbx_path_blocked_segment(home_sockets[i], blocked) && sbx_path_exists(socket))
			return true;
	}
	return false;
}

static int check_home(const char *what, const char *path, const char *home,
		      const struct sbx_path_rules *rules, struct sbx_err *err)
{
	if (rules->writable && sbx_path_in_prefix(home, path)) {
		sbx_err_set(err,
			    "%s is %s and cannot be granted writable: grant a directory below it",
			    what,
			    strcmp(home, path) == 0 ? "the home directory"
						    : "above the home directory");
		return SBX_PATH_E_FORBIDDEN;
	}
	if (home_holds_socket(path, home, rules->blocked_segments)) {
		sbx_err_set(
			err,
			"%s holds the control socket of a container engine or key agent: grant a "
			"directory below or beside it",
			what);
		return SBX_PATH_E_FORBIDDEN;
	}
	return 0;
}

/* Check against the home directory as written and, where it leads through symlinks, as resolved. */
static int check_homes(const char *what, const char *path, const struct sbx_path_rules *rules,
		       struct sbx_err *err)
{
	const char *asked = rules->home;
	struct sbx_resolved home;
	int r;

	if (!asked || asked[0] != '/')
		return 0;
	r = check_home(what, path, asked, rules, err);
	if (r != 0 || sbx_path_is_resolved(asked) || sbx_path_resolve(asked, NULL, &home) != 0)
		return r;
	if (strcmp(home.path, asked) != 0)
		r = check_home(what, path, home.path, rules, err);
	sbx_resolved_fini(&home);
	return r;
}

/* /var/run is /run: a symlink on most hosts, which resolution has followed by now, and a
 * directory on some. */
static const char *as_run(const char *path)
{
	return sbx_path_in_prefix(path, "/var/run") ? path + strlen("/var") : path;
}

static int check_sockets(const char *what, const char *path, const struct sbx_path_rules *rules,
			 struct sbx_err *err)
{
	const char *socket = NULL, *of = NULL;

	for (size_t i = 0; i < SBX_N_ELEMENTS(control_sockets) && !socket; i++)
		if (is_ancestor(path, control_sockets[i].path) ||
		    is_ancestor(as_run(path), control_sockets[i].path)) {
			socket = control_sockets[i].path;
			of = control_sockets[i].what;
		}
	for (size_t i = 0; i < rules->n_sockets && !socket; i++)
		if (sbx_path_in_prefix(rules->sockets[i].path, path)) {
			socket = rules->sockets[i].path;
			of = rules->sockets[i].said;
		}
	if (!socket)
		return 0;
	sbx_err_set(err,
		    "%s holds the control socket of %s (%s), a way out of the sandbox: grant a "
		    "directory below or beside it",
		    what, of, socket);
	return SBX_PATH_E_FORBIDDEN;
}

static int check_forbidden(const char *what, const char *path, const struct sbx_path_rules *rules,
			   struct sbx_err *err)
{
	int r;

	if (rules->writable && strcmp(path, "/") == 0) {
		sbx_err_set(err, "%s cannot be granted writable: grant a directory below it", what);
		return SBX_PATH_E_FORBIDDEN;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(forbidden_roots); i++)
		if (sbx_path_in_prefix(as_run(path), forbidden_roots[i].path)) {
			sbx_err_set(err, "%s is in %s: %s", what, forbidden_roots[i].path,
				    forbidden_roots[i].why);
			return SBX_PATH_E_FORBIDDEN;
		}
	r = check_sockets(what, path, rules, err);
	return r == 0 ? check_homes(what, path, rules, err) : r;
}

/* --- prefixes, and the symlinks on the way --- */

/* Is @path in @prefix, as written or as resolved? @ret_prefix is the resolution; pass it to
 * sbx_resolved_fini(). */
static bool is_in(const char *path, const char *prefix, struct sbx_resolved *ret_prefix)
{
	*ret_prefix = (struct sbx_resolved){ .fd = -1 };
	if (sbx_path_in_prefix(path, prefix))
		return true;
	return prefix[0] == '/' && sbx_path_resolve(prefix, NULL, ret_prefix) == 0 &&
	       !ret_prefix->missing && sbx_path_in_prefix(path, ret_prefix->path);
}

static bool is_in_any(const char *path, const struct sbx_path_rules *rules)
{
	bool found = false;

	for (const char *const *p = rules->prefixes; p && *p && !found; p++) {
		struct sbx_resolved r;

		found = is_in(path, *p, &r);
		sbx_resolved_fini(&r);
	}
	return found;
}

static bool only_root(const struct sbx_path_steering *s)
{
	return s->by == 0 && !s->by_others;
}

/* Is the link in a directory that a sandbox can be granted writable? The home directory and the
 * directories above it cannot be. */
static bool may_be_a_sandbox_s(const struct sbx_path_hop *hop, const struct sbx_path_rules *rules)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(hop->at, '/');

	if (only_root(&hop->steering))
		return false;
	sbx_text_fit(dir, sizeof(dir), "%.*s", slash == hop->at ? 1 : (int)(slash - hop->at),
		     hop->at);
	return is_in_any(dir, rules) && !(rules->home && sbx_path_in_prefix(rules->home, dir));
}

bool sbx_path_prefix_admits(const char *path, const char *prefix,
			    const struct sbx_path_rules *rules)
{
	struct sbx_resolved r;
	bool admits = is_in(path, prefix, &r);

	for (size_t i = 0; i < r.n_hops && admits; i++)
		admits = !may_be_a_sandbox_s(&r.hops[i], rules);
	sbx_resolved_fini(&r);
	return admits;
}

static bool is_third_party(const struct sbx_path_steering *s, uid_t owner)
{
	return s->by_others || (s->by != 0 && s->by != geteuid() && s->by != owner);
}

static int check_hop(const char *source, const struct sbx_path_hop *hop,
		     const struct sbx_path_rules *rules, uid_t owner, struct sbx_err *err)
{
	const char *segment = sbx_path_blocked_segment(hop->text, rules->blocked_segments);

	if (segment) {
		sbx_err_set(err,
			    "'%s' leads through the symlink '%s' to '%s', which contains the "
			    "blocked segment '%s'",
			    source, hop->at, hop->text, segment);
		return SBX_PATH_E_SEGMENT;
	}
	if (!is_third_party(&hop->steering, owner) || is_in_any(hop->at, rules))
		return 0;
	sbx_err_set(err,
		    "'%s' leads through the symlink '%s', which is outside the allowed prefixes "
		    "and can be changed by others: name what it leads to",
		    source, hop->at);
	return SBX_PATH_E_PREFIX;
}

static int check_hops(const char *source, const struct sbx_path_rules *rules,
		      const struct sbx_resolved *found, struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < found->n_hops && r == 0; i++)
		r = check_hop(source, &found->hops[i], rules, found->st.st_uid, err);
	return r;
}

static int check_prefix(const char *what, const char *path, const struct sbx_path_rules *rules,
			struct sbx_err *err)
{
	char list[SBX_ERR_MSG_MAX / 2] = "";
	size_t n = 0;

	/* Compare with the prefixes as written first: resolving them takes time. */
	for (const char *const *p = rules->prefixes; p && *p; p++)
		if (sbx_path_in_prefix(path, *p))
			return 0;
	for (const char *const *p = rules->prefixes; p && *p; p++) {
		if (sbx_path_prefix_admits(path, *p, rules))
			return 0;
		if (n < sizeof(list) - 1)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
					      *p);
	}
	sbx_err_set(err, "%s is outside the allowed prefixes (%s)", what,
		    list[0] ? list : "there are none");
	return SBX_PATH_E_PREFIX;
}

static int check_type(const char *what, const struct sbx_resolved *found, struct sbx_err *err)
{
	const char *type;

	switch (found->st.st_mode & S_IFMT) {
	case S_IFDIR:
	case S_IFREG:
		return 0;
	case S_IFSOCK:
		type = "a socket";
		break;
	case S_IFIFO:
		type = "a fifo";
		break;
	case S_IFCHR:
	case S_IFBLK:
		type = "a device";
		break;
	default:
		type = "of an unknown type";
		break;
	}
	sbx_err_set(err, "%s is %s: only directories and regular files can be granted", what, type);
	return SBX_PATH_E_TYPE;
}

static int check_found(const char *source, const struct sbx_path_rules *rules,
		       const struct sbx_resolved *found, struct sbx_err *err)
{
	const char *segment = sbx_path_blocked_segment(found->path, rules->blocked_segments);
	char what[2 * PATH_MAX];
	int r;

	describe(source, found->path, what, sizeof(what));
	if (segment) {
		sbx_err_set(err, "%s contains the blocked segment '%s'", what, segment);
		return SBX_PATH_E_SEGMENT;
	}
	r = check_hops(source, rules, found, err);
	if (r == 0)
		r = check_forbidden(what, found->path, rules, err);
	if (r == 0)
		r = check_prefix(what, found->missing ? found->parent : found->path, rules, err);
	if (r != 0)
		return r;
	if (!found->missing)
		return check_type(what, found, err);
	sbx_err_set(err, "%s does not exist", what);
	return SBX_PATH_E_MISSING;
}

int sbx_path_judge(const char *source, const struct sbx_path_rules *rules, struct sbx_err *err,
		   struct sbx_path *ret_path)
{
	struct sbx_resolved found;
	int r;

	r = check_asked(source, rules, err);
	if (r != 0)
		return r;
	r = sbx_path_resolve(source, err, &found);
	if (r != 0)
		return r;
	r = check_found(source, rules, &found, err);
	if (r == 0 || r == SBX_PATH_E_MISSING) {
		*ret_path = (struct sbx_path){ .fd = -1, .resolved = sbx_steal_ptr(&found.path) };
		if (r == 0) {
			ret_path->fd = sbx_fd_steal(&found.fd);
			ret_path->st = found.st;
			ret_path->steering = found.steering;
		}
	}
	sbx_resolved_fini(&found);
	return r;
}

int sbx_path_check_home(const struct sbx_path *path, const char *home, bool writable,
			struct sbx_err *err)
{
	const struct sbx_path_rules rules = { .home = home, .writable = writable };
	char what[PATH_MAX + 2];

	sbx_text_cut(what, sizeof(what), "'%s'", path->resolved);
	return check_homes(what, path->resolved, &rules, err);
}

/* Like realpath(3), which reads each component; the kernel knows the whole path. malloc'ed or
 * NULL. */
static char *real_path(const char *path)
{
	SBX_AUTO_CLOSE int fd = -1;
	char link[32], real[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (sbx_path_is_resolved(path))
		return strdup(path);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real));
	/* "(unreachable)/..." and "/... (deleted)" are no paths */
	if (n <= 0 || n >= (ssize_t)sizeof(real) || real[0] != '/' || fstat(fd, &st) < 0 ||
	    st.st_nlink == 0)
		return realpath(path, NULL);
	return strndup(real, (size_t)n);
}

char *sbx_path_real_location(const char *dir)
{
	SBX_AUTO_FREE char *existing = strdup(dir);

	while (existing) {
		char *real = real_path(existing), *slash = strrchr(existing, '/'), *s;

		if (real) {
			const char *rest = dir + strlen(existing);

			if (!*rest)
				return real;
			if (asprintf(&s, "%s%s", strcmp(real, "/") == 0 ? "" : real, rest) < 0)
				s = NULL;
			free(real);
			return s;
		}
		if (!slash || slash == existing)
			return strdup(dir);
		*slash = '\0';
	}
	return NULL;
}

void sbx_path_fini(struct sbx_path *p)
{
	if (!p)
		return;
	p->fd = sbx_fd_close(p->fd);
	free(p->resolved);
	p->resolved = NULL;
}
