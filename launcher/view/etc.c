/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The synthetic /etc.
 *
 * Every bind costs bwrap a walk over the mount table. So /etc is one bind of one directory that was
 * put together before, and not a dozen binds and files per run: measured 0.14 ms against 0.62. The
 * directory is named by a hash over the names, sizes and times of the files that it was copied
 * from. When the host's /etc changes, the next run finds no directory of the new name, and makes
 * it.
 *
 * It holds: the entries of the table below, copied, and only files that everyone on the host may
 * read (so ssl/private stays out, also when root does the copying); configuration in which people
 * keep passwords is left out when it looks as if it had one; resolv.conf and nsswitch.conf of our
 * own; symlinks into /run/sbx for the four files that differ from sandbox to sandbox; and what
 * browsers have to be told. Never: shadow, sudoers, ssh, machine-id, the host's name, users and
 * hosts.
 *
 * A copy is made under a temporary name and renamed, so a half-made copy is never found. A run that
 * makes a new directory removes those that are over 30 days old.
 */
#include "launcher/view/etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/facts.h"
#include "launcher/process/runtime_dir.h"

#define FORMAT		 "sbx-etc 4" /* goes into the key: change it when what is made changes */
#define FILE_BYTES_MAX	 (8u << 20)
#define TREE_BYTES_MAX	 (64u << 20)
#define TREE_ENTRIES_MAX 16384u
#define TREE_DEPTH_MAX	 8
#define KEEP_SECONDS	 (30 * 24 * 3600)
#define KEY_LEN		 32 /* hex digits */

/* --- what is in it --- */

static const char *const taken[] = {
	/* sorted: bsearch */
	"GNUstep",
	"ImageMagick-6",
	"ImageMagick-7",
	"OpenCL",
	"R",
	"X11",
	"alternatives",
	"bash.bashrc",
	"bash_completion",
	"bash_completion.d",
	"ca-certificates",
	"ca-certificates.conf",
	"chromium",
	"chromium.d",
	"crypto-policies",
	"dconf",
	"debian_version",
	"dictionaries-common",
	"emacs",
	"ethertypes",
	"fonts",
	"gai.conf",
	"ghostscript",
	"gimp",
	"gitconfig",
	"glvnd",
	"groff",
	"groovy",
	"gtk-2.0",
	"gtk-3.0",
	"gtk-4.0",
	"host.conf",
	"inputrc",
	"issue",
	"java",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"libreoffice",
	"locale.alias",
	"locale.conf",
	"localtime",
	"login.defs",
	"lsb-release",
	"lynx",
	"magic",
	"magic.mime",
	"mailcap",
	"manpath.config",
	"matplotlibrc",
	"maven",
	"mime.types",
	"mono",
	"nanorc",
	"networks",
	"npmrc",
	"odbcinst.ini",
	"openmpi",
	"os-release",
	"papersize",
	"perl",
	"php",
	"pip.conf",
	"pki",
	"profile",
	"protocols",
	"python",
	"redhat-release",
	"rpc",
	"screenrc",
	"services",
	"sgml",
	"shells",
	"skel",
	"ssl",
	"terminfo",
	"texmf",
	"timezone",
	"tmux.conf",
	"vdpau_wrapper.cfg",
	"vim",
	"vulkan",
	"wgetrc",
	"xattr.conf",
	"xml",
	"zsh",
};

/* Versioned: "fpc-3.2.2.cfg", "java-17-openjdk", "python3.11". */
static const char *const taken_prefixes[] = { "firefox",	   "fpc",    "gnucobol", "java-",
					      "postgresql-common", "python3" };

/* Files in which people write passwords and tokens. */
static const char *const screened[] = {
	"apikeys", /* of chromium.d */
	"gitconfig",
	"npmrc",
	"php.ini",
	"pip.conf",
	"settings.xml", /* of maven */
	"wgetrc",
};

static const struct made {
	const char *name, *link, *text; /* one of the two */
} made[] = {
	{ "group", "../run/sbx/group", NULL },
	{ "hostname", "../run/sbx/hostname", NULL },
	{ "hosts", "../run/sbx/hosts", NULL },
	{ "mtab", "../proc/self/mounts", NULL },
	{ "nsswitch.conf", NULL,
	  "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
	  "protocols: files\nservices: files\nethers: files\nrpc: files\n" },
	{ "passwd", "../run/sbx/passwd", NULL },
	{ "resolv.conf", "../run/sbx/resolv.conf", NULL },
};

/* Put into programs' directories, beside what the host has there. Chrome greets every server with a
 * random Encrypted Client Hello, which nothing outside of the server tells from one that hides a
 * name: the broker refuses both. */
#define NO_ECH "{\"EncryptedClientHelloEnabled\": false}\n"

static const struct {
	const char *path, *text;
} added[] = {
	{ "chromium/policies/managed/sbx.json", NO_ECH },
	{ "opt/chrome/policies/managed/sbx.json", NO_ECH },
	{ "opt/chrome_for_testing/policies/managed/sbx.json", NO_ECH },
};

bool sbx_etc_is_made(const char *name, const char **ret_link)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(made); i++)
		if (strcmp(made[i].name, name) == 0) {
			*ret_link = made[i].link;
			return true;
		}
	return false;
}

const char *sbx_etc_made_at(size_t i, const char **ret_link, const char **ret_text)
{
	if (i >= SBX_N_ELEMENTS(made))
		return NULL;
	*ret_link = made[i].link;
	*ret_text = made[i].text;
	return made[i].name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool sbx_etc_has(const char *name)
{
	char first[NAME_MAX + 1];
	const char *key = first;
	size_t n = strcspn(name, "/");

	if (n == 0 || n >= sizeof(first))
		return false;
	memcpy(first, name, n);
	first[n] = '\0';
	if (bsearch(&key, taken, SBX_N_ELEMENTS(taken), sizeof(taken[0]), compare_names))
		return true;
	for (size_t i = 0; i < SBX_N_ELEMENTS(taken_prefixes); i++)
		if (strncmp(first, taken_prefixes[i], strlen(taken_prefixes[i])) == 0)
			return true;
	return false;
}

static bool is_screened(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(screened); i++)
		if (strcmp(screened[i], name) == 0)
			return true;
	return false;
}

void sbx_etc_names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static DIR *open_dir(int fd, const char *name)
{
	int own = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (!dir)
		sbx_fd_close(own);
	return dir;
}

int sbx_etc_names(int host_etc_fd, char ***ret_names, size_t *ret_n)
{
	SBX_AUTO_CLOSEDIR DIR *dir = open_dir(host_etc_fd, ".");
	const struct dirent *e;
	const char *link;
	char **names;
	size_t n = 0;

	if (!dir)
		return -errno;
	names = calloc(SBX_ETC_NAMES_MAX, sizeof(*names));
	if (!names)
		return -ENOMEM;
	while (n < SBX_ETC_NAMES_MAX && (e = readdir(dir))) {
		if (!sbx_etc_has(e->d_name) || sbx_etc_is_made(e->d_name, &link))
			continue;
		names[n] = strdup(e->d_name);
		if (!names[n++]) {
			sbx_etc_names_free(names, n);
			return -ENOMEM;
		}
	}
	qsort(names, n, sizeof(*names), compare_names);
	*ret_names = names;
	*ret_n = n;
	return 0;
}

/* --- the key --- */

/* FNV-1a, twice with different beginnings. The inputs are the host's own: the key must tell changes
 * apart, and need not withstand an attack. */
struct key {
	uint64_t a, b;
};

#define KEY_BEGINS { 0xcbf29ce484222325u, 0x84222325cbf29ce4u }

static void key_add(struct key *k, const void *p, size_t n)
{
	const uint8_t *s = p;

	for (size_t i = 0; i < n; i++) {
		k->a = (k->a ^ s[i]) * 0x100000001b3u;
		k->b = (k->b ^ s[i] ^ 0x5b) * 0x100000001b3u;
	}
}

static void key_add_stat(struct key *k, const struct stat *st)
{
	key_add(k, &st->st_dev, sizeof(st->st_dev));
	key_add(k, &st->st_ino, sizeof(st->st_ino));
	key_add(k, &st->st_mode, sizeof(st->st_mode));
	key_add(k, &st->st_size, sizeof(st->st_size));
	key_add(k, &st->st_ctim, sizeof(st->st_ctim));
}

/* @name and all directories and files below it, within the bounds of the copying. A symlink below
 * @name is never changed, only replaced, and that changes the time of its directory. The target of
 * @name itself may be copied. */
static void key_add_tree(struct key *k, int fd, const char *name, int depth, size_t *left)
{
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;
	const struct dirent *e;
	struct stat st;

	key_add(k, name, strlen(name) + 1);
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	key_add_stat(k, &st);
	if (S_ISLNK(st.st_mode) && fstatat(fd, name, &st, 0) == 0) {
		key_add_stat(k, &st);
		return;
	}
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 && depth < TREE_DEPTH_MAX)
		dir = open_dir(fd, name);
	while (dir && *left > 0 && (e = readdir(dir))) {
		(*left)--;
		if (e->d_type != DT_LNK && strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			key_add_tree(k, dirfd(dir), e->d_name, depth + 1, left);
	}
}

static void key_text(int etc_fd, char *const *names, size_t n, char ret_hex[KEY_LEN + 1])
{
	struct key k = KEY_BEGINS;
	size_t left = TREE_ENTRIES_MAX;

	key_add(&k, FORMAT, sizeof(FORMAT));
	for (size_t i = 0; i < n; i++)
		key_add_tree(&k, etc_fd, names[i], 0, &left);
	snprintf(ret_hex, KEY_LEN + 1, "%016llx%016llx", (unsigned long long)k.a,
		 (unsigned long long)k.b);
}

/* --- copying --- */

struct budget {
	size_t bytes, entries;
};

/* Finds a password in a URL, or a word that a secret follows. */
static bool looks_secret(const char *text)
{
	static const char *const words[] = { "_auth", "password", "passwd", "token", "secret" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++)
		if (strcasestr(text, words[i]))
			return true;
	for (const char *s = strstr(text, "://"); s; s = strstr(s + 3, "://"))
		if (s[3 + strcspn(s + 3, "@/ \t\r\n\"'")] == '@')
			return true;
	return false;
}

static int write_file(int dst, const char *name, const void *p, size_t n, mode_t mode)
{
	SBX_AUTO_CLOSE int fd =
		openat(dst, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const char *s = p;

	if (fd < 0)
		return -errno;
	while (n > 0) {
		ssize_t w = write(fd, s, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		s += w;
		n -= (size_t)w;
	}
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Leaves out a file that cannot be copied: an odd file in /etc must not stop a run. */
static int copy_file(int src, const char *name, int dst, int flags, struct budget *budget)
{
	SBX_AUTO_CLOSE int fd =
		openat(src, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
	    st.st_size > FILE_BYTES_MAX || (size_t)st.st_size > budget->bytes)
		return 0;
	budget->bytes -= (size_t)st.st_size;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t r = read(fd, text + n, (size_t)st.st_size - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	text[n] = '\0';
	if (is_screened(name) && looks_secret(text))
		return 0;
	return write_file(dst, name, text, n, 0444 | (st.st_mode & 0111));
}

/* Links into what the sandbox has stay links; others are copied as what they lead to. */
static int copy_link(int src, const char *name, int dst, int depth, struct budget *budget)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(src, name, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (depth == 0 && strncmp(text, "/usr/", 5) != 0 && strncmp(text, "/etc/", 5) != 0 &&
	    strncmp(text, "../usr/", 7) != 0 && (text[0] == '/' || strstr(text, "..")))
		return copy_file(src, name, dst, 0, budget);
	return symlinkat(text, dst, name) < 0 ? -errno : 0;
}

static int copy_dir(int src, const char *name, int dst, int depth, struct budget *budget);

static int copy_entry(int src, const char *name, int dst, int depth, struct budget *budget)
{
	struct stat st;

	if (budget->entries == 0 || fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	budget->entries--;
	if (S_ISREG(st.st_mode))
		return copy_file(src, name, dst, O_NOFOLLOW, budget);
	if (S_ISLNK(st.st_mode))
		return copy_link(src, name, dst, depth, budget);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005 && depth < TREE_DEPTH_MAX)
		return copy_dir(src, name, dst, depth + 1, budget);
	return 0;
}

static int copy_dir(int src, const char *name, int dst, int depth, struct budget *budget)
{
	SBX_AUTO_CLOSEDIR DIR *dir = open_dir(src, name);
	SBX_AUTO_CLOSE int to = -1;
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return 0;
	if (mkdirat(dst, name, 0700) < 0)
		return -errno;
	to = openat(dst, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return -errno;
	while (r == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = copy_entry(dirfd(dir), e->d_name, to, depth, budget);
	if (r == 0 && fchmod(to, 0755) < 0)
		r = -errno;
	return r;
}

/* Leaves the host's own file of that name, or anything odd on the way to it, as it is. */
static int add_below(int dst, const char *path, const char *text)
{
	SBX_AUTO_CLOSE int dir = openat(dst, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	for (size_t n; path[n = strcspn(path, "/")]; path += n + 1) {
		SBX_AUTO_FREE char *name = strndup(path, n);
		int next;

		if (dir < 0 || !name)
			return dir < 0 ? -errno : -ENOMEM;
		if (mkdirat(dir, name, 0755) == 0)
			r = fchmodat(dir, name, 0755, 0); /* whatever the umask */
		else
			r = errno == EEXIST ? 0 : -1;
		if (r < 0)
			return -errno;
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
		sbx_fd_close(dir);
		dir = next;
	}
	r = write_file(dir, path, text, strlen(text), 0444);
	return r == -EEXIST ? 0 : r;
}

static int fill(int etc_fd, char *const *names, size_t n, int dst)
{
	struct budget budget = { TREE_BYTES_MAX, TREE_ENTRIES_MAX };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = copy_entry(etc_fd, names[i], dst, 0, &budget);
	for (size_t i = 0; i < SBX_N_ELEMENTS(made) && r == 0; i++) {
		if (made[i].link)
			r = symlinkat(made[i].link, dst, made[i].name) < 0 ? -errno : 0;
		else
			r = write_file(dst, made[i].name, made[i].text, strlen(made[i].text), 0444);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(added) && r == 0; i++)
		r = add_below(dst, added[i].path, added[i].text);
	if (r == 0 && fchmod(dst, 0755) < 0)
		r = -errno;
	if (r == 0)
		syncfs(dst); /* or a power cut could leave the right name on empty files */
	return r;
}

/* --- the cache --- */

static void remove_tree(int parent, const char *name)
{
	SBX_AUTO_CLOSEDIR DIR *dir = open_dir(parent, name);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(dirfd(dir), e->d_name, 0) < 0)
			remove_tree(dirfd(dir), e->d_name);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* Is it a name of ours: the key of a directory, or the temporary name of one? Other entries are
 * never touched, so a wrong directory in the cache's place (behind a symlink) loses nothing. */
static bool is_ours(const char *name)
{
	size_t n = strspn(name, "0123456789abcdef");

	if (strncmp(name, "new-", 4) == 0)
		return strlen(name) == 4 + 12;
	return n == KEY_LEN && !name[n];
}

static void prune(int cache)
{
	SBX_AUTO_CLOSEDIR DIR *dir = open_dir(cache, ".");
	const struct dirent *e;
	struct stat st;
	time_t now = time(NULL);

	while (dir && (e = readdir(dir)))
		if (is_ours(e->d_name) &&
		    fstatat(cache, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode) && st.st_ctime < now - KEEP_SECONDS)
			remove_tree(cache, e->d_name);
}

/* Returns an fd; -ENOENT; -EPERM: another user made the directory or may write to it. */
static int open_made(int cache, const char *key)
{
	SBX_AUTO_CLOSE int fd = openat(cache, key, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 0022))
		return -EPERM;
	return sbx_fd_steal(&fd);
}

static int make(int cache, const char *key, const struct sbx_view *v, const char *id,
		char *const *names, size_t n)
{
	SBX_AUTO_CLOSE int fd = -1;
	char temporary[64];
	int r;

	prune(cache);
	sbx_text_fit(temporary, sizeof(temporary), "new-%s", id);
	remove_tree(cache, temporary);
	if (mkdirat(cache, temporary, 0700) < 0)
		return -errno;
	fd = openat(cache, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : fill(v->host_etc_fd, names, n, fd);
	if (r == 0 && renameat2(cache, temporary, cache, key, RENAME_NOREPLACE) < 0 &&
	    errno != EEXIST)
		r = -errno;
	remove_tree(cache, temporary); /* nothing, when it was renamed */
	return r;
}

static int open_cache(const char *dir)
{
	int r = sbx_runtime_mkdir(dir, 0711), fd;

	if (r < 0)
		return r;
	fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The sandbox's user must reach the directory: bwrap resolves the path again, with that user's
 * ids. */
static int check_reachable(const struct sbx_facts *f, const char *dir, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_lookup_ids_restore) struct sbx_lookup_ids saved = { 0 };
	int r;

	if (!f->privileged)
		return 0;
	r = sbx_lookup_ids_use_sandbox(f, &saved);
	if (r < 0)
		return r;
	if (faccessat(AT_FDCWD, dir, X_OK, AT_EACCESS) == 0)
		return 0;
	sbx_err_set(err, "uid %u cannot reach %s: give the directories above it o+x (chmod o+x)",
		    f->uid, dir);
	return -EACCES;
}

static bool has_etc(const struct sbx_view *v)
{
	for (size_t i = v->n_mounts; i > 0; i--)
		if (v->mounts[i - 1].kind == SBX_MOUNT_ETC)
			return true;
	return false;
}

/* Takes @fd. */
static int set_source(struct sbx_path *source, int fd, const char *dir, const char *key)
{
	source->fd = fd;
	if (asprintf(&source->resolved, "%s/%s", dir, key) < 0)
		source->resolved = NULL;
	if (source->resolved && fstat(fd, &source->st) == 0)
		return 0;
	sbx_path_fini(source);
	return -ENOMEM;
}

int sbx_etc_prepare(const struct sbx_view *v, const struct sbx_facts *f, const char *dir,
		    struct sbx_path *ret_source, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int cache = -1;
	char key[KEY_LEN + 1], **names;
	size_t n;
	int r;

	if (!has_etc(v) || ret_source->fd >= 0)
		return 0;
	cache = open_cache(dir);
	if (cache < 0) {
		sbx_err_set(err, "cannot make %s: %s", dir, strerror(-cache));
		return cache;
	}
	r = check_reachable(f, dir, err);
	if (r == 0)
		r = sbx_etc_names(v->host_etc_fd, &names, &n);
	if (r < 0) {
		sbx_err_set(err, "cannot read the host's /etc: %s", strerror(-r));
		return r;
	}
	key_text(v->host_etc_fd, names, n, key);
	r = open_made(cache, key);
	if (r == -ENOENT) {
		r = make(cache, key, v, f->id, names, n);
		if (r == 0)
			r = open_made(cache, key);
	}
	sbx_etc_names_free(names, n);
	if (r < 0) {
		sbx_err_set(err, "cannot make the sandbox's /etc in %s: %s", dir, strerror(-r));
		return r;
	}
	return set_source(ret_source, r, dir, key);
}
