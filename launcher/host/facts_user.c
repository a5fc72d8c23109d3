/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the sandbox's user.
 *
 * An ordinary user's sandbox runs as that user. Root's runs as the user of --user, else as the user
 * of SUDO_UID, else with a uid of the pool (uid_pool.h) that nobody else has. The search in the
 * pool begins at a place given by the sandbox's id, so that parallel starts seldom try the same
 * uid. Kernel uid 0 is refused whatever the way it was asked for, and so is its group: a mount that
 * root's group may write would be writable from inside.
 *
 * A user that is not in /etc/passwd may be known to the name service switch, by getent. That costs
 * a process, so all questions that root's run may have go into one call (struct lookup).
 */
#include "launcher/host/facts_user.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/reserved_path.h"
#include "launcher/process/getent.h"
#include "sys/fs/path_normalise.h"

#define BROKER_USER "sbx-broker"

void sbx_user_fini(struct sbx_user *u)
{
	free(u->name);
	free(u->home);
	free(u->shell);
	memset(u, 0, sizeof(*u));
}

static int copy_user(const struct passwd *pw, struct sbx_user *ret_user)
{
	struct sbx_user u = { .uid = pw->pw_uid, .gid = pw->pw_gid };

	u.name = strdup(pw->pw_name);
	u.home = strdup(pw->pw_dir ? pw->pw_dir : "");
	u.shell = strdup(pw->pw_shell ? pw->pw_shell : "");
	if (!u.name || !u.home || !u.shell) {
		sbx_user_fini(&u);
		return -ENOMEM;
	}
	*ret_user = u;
	return 0;
}

/* A decimal id that fits uid_t and is not (uid_t)-1, which means "no change" to setresuid(2). */
static bool parse_id(const char *s, uid_t *ret_id)
{
	char *end;
	unsigned long n;

	if (!s || s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno || *end || n >= UINT32_MAX)
		return false;
	*ret_id = (uid_t)n;
	return true;
}

/* One line of passwd(5); it is taken apart. */
static bool parse_line(char *line, struct passwd *ret_pw)
{
	char *field[7];

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < SBX_N_ELEMENTS(field); i++) {
		field[i] = strsep(&line, ":");
		if (!field[i])
			return false;
	}
	*ret_pw = (struct passwd){ .pw_name = field[0], .pw_dir = field[5], .pw_shell = field[6] };
	return field[0][0] && parse_id(field[2], &ret_pw->pw_uid) &&
	       parse_id(field[3], &ret_pw->pw_gid);
}

/* @name NULL: by @uid. Read line by line: fgetpwent(3) costs a system call per entry. */
static int find_in_file(const char *name, uid_t uid, struct sbx_user *ret_user)
{
	SBX_AUTO_FCLOSE FILE *file = fopen("/etc/passwd", "re");
	SBX_AUTO_FREE char *line = NULL;
	struct passwd pw;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		if (parse_line(line, &pw) &&
		    (name ? strcmp(pw.pw_name, name) == 0 : pw.pw_uid == uid))
			return copy_user(&pw, ret_user);
	return 1;
}

#define AHEAD_MAX (SBX_GETENT_KEYS_MAX - 1)

/* One query to getent. */
struct lookup {
	char ahead[AHEAD_MAX][32]; /* keys to be asked about together with the first */
	size_t n_ahead;
	bool asked;
	char text[SBX_GETENT_TEXT_MAX]; /* the first answer */
};

static bool was_asked(const struct lookup *l, const char *key)
{
	for (size_t i = 0; l->asked && i < l->n_ahead; i++)
		if (strcmp(l->ahead[i], key) == 0)
			return true;
	return false;
}

int sbx_user_in_text(const char *text, const char *name, uid_t uid, struct sbx_user *ret_user)
{
	SBX_AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *line;
	struct passwd pw;

	if (!copy)
		return -ENOMEM;
	while ((line = strsep(&rest, "\n"))) {
		if (parse_line(line, &pw) &&
		    (name ? strcmp(pw.pw_name, name) == 0 : pw.pw_uid == uid))
			return copy_user(&pw, ret_user);
	}
	return 1;
}

static int ask_getent(struct lookup *l, const char *name, uid_t uid, struct sbx_user *ret_user)
{
	const char *keys[SBX_GETENT_KEYS_MAX];
	char number[32], text[SBX_GETENT_TEXT_MAX];
	size_t n = 0;
	int r;

	snprintf(number, sizeof(number), "%u", uid);
	keys[n++] = name ? name : number;
	if (keys[0][0] == '-') /* an option to getent; nobody is called so */
		return 1;
	if (was_asked(l, keys[0]))
		return sbx_user_in_text(l->text, name, uid, ret_user);
	for (size_t i = 0; !l->asked && i < l->n_ahead; i++)
		if (strcmp(l->ahead[i], keys[0]) != 0)
			keys[n++] = l->ahead[i];
	r = sbx_getent_passwd(SBX_GETENT, keys, n, SBX_GETENT_TIMEOUT_MS, text);
	if (r < 0)
		return r;
	if (!l->asked)
		memcpy(l->text, text, sizeof(text));
	l->asked = true;
	return sbx_user_in_text(text, name, uid, ret_user);
}

static int find(struct lookup *l, const char *name, uid_t uid, struct sbx_user *ret_user)
{
	int r = find_in_file(name, uid, ret_user);

	if (r == 1 && !sbx_nsswitch_files_only(SBX_NSSWITCH))
		r = ask_getent(l, name, uid, ret_user);
	return r;
}

int sbx_user_by_uid(uid_t uid, struct sbx_user *ret_user)
{
	struct lookup l = { .n_ahead = 0 };

	return find(&l, NULL, uid, ret_user);
}

/* May the sandbox, or its broker, have @uid? 0 and it is ours; 1 no; -errno. */
static int try_uid(struct lookup *l, struct sbx_facts *f, uid_t uid, struct sbx_err *err)
{
	struct sbx_user u;
	int r;

	if (uid == f->uid || sbx_uid_pool_is_known(f->uid_pool, uid))
		return 1;
	r = find(l, NULL, uid, &u);
	if (r == 0)
		sbx_user_fini(&u);
	if (r <= 0)
		return r == 0 ? 1 : r;
	r = sbx_uid_pool_lease(f->uid_pool, uid, err);
	return r > 0 ? 1 : r;
}

/* A uid of the pool that nobody has, @f->uid neither. 0, 1 with @err, -errno. */
static int pick_uid(struct lookup *l, struct sbx_facts *f, const char *otherwise, uid_t *ret_uid,
		    struct sbx_err *err)
{
	const struct sbx_id_range *range = sbx_uid_pool_range(f->uid_pool);

	for (uint32_t i = 0; i <= range->last - range->first; i++) {
		uid_t uid = sbx_uid_pool_candidate(range, f->id, i);
		int r = try_uid(l, f, uid, err);

		if (r == 0)
			*ret_uid = uid;
		if (r <= 0)
			return r;
	}
	sbx_err_set(err,
		    "no uid of uid_pool %u-%u is free: end sandboxes, give it a larger range in "
		    "system.yaml, or %s",
		    range->first, range->last, otherwise);
	return 1;
}

static bool usable_shell(const char *shell)
{
	const char *base = strrchr(shell, '/');

	return shell[0] == '/' && strcmp(base, "/nologin") != 0 && strcmp(base, "/false") != 0;
}

/* The name goes into a synthetic passwd file: nothing that could start a second field or line. */
static bool usable_name(const char *name)
{
	return name[0] && strlen(name) <= 64 && !strpbrk(name, ":\n\r/ ");
}

/* The home goes into that file, too. */
static bool usable_home(const char *home)
{
	for (; *home; home++)
		if ((unsigned char)*home < 0x20 || *home == 0x7f || *home == ':')
			return false;
	return true;
}

/* Take over a user; its home must be a place a sandbox can have. */
static int take_user(struct sbx_facts *f, struct sbx_user *u, struct sbx_err *err)
{
	f->uid = u->uid;
	f->gid = u->gid;
	f->home = usable_home(u->home) ? sbx_path_normalise(u->home) : NULL;
	if (!f->home ||
	    sbx_reserved_path_problem(f->home, true)) { /* service users live in odd places */
		free(f->home);
		f->home = strdup(SBX_THROWAWAY_HOME);
	}
	f->shell = usable_shell(u->shell) ? sbx_steal_ptr(&u->shell) : strdup("/bin/sh");
	f->user_name = usable_name(u->name) ? sbx_steal_ptr(&u->name) : strdup("sandbox");
	sbx_user_fini(u);
	if (!f->home || !f->shell || !f->user_name)
		return -ENOMEM;
	if (f->uid == 0 || (f->privileged && f->gid == 0)) {
		sbx_err_set(
			err,
			"the sandbox never runs as root (%s 0): name an ordinary user with --user",
			f->uid == 0 ? "uid" : "gid");
		return 1;
	}
	return 0;
}

/* A uid that the user database does not know. */
static int take_unknown(struct sbx_facts *f, uid_t uid, gid_t gid, struct sbx_err *err)
{
	struct sbx_user u = { .uid = uid, .gid = gid };

	u.name = strdup("sandbox");
	u.home = strdup(SBX_THROWAWAY_HOME);
	u.shell = strdup("/bin/sh");
	if (!u.name || !u.home || !u.shell) {
		sbx_user_fini(&u);
		return -ENOMEM;
	}
	return take_user(f, &u, err);
}

/* A number named by root that the user database does not know. The pool may have leased it to
 * another sandbox. */
static int take_number(struct sbx_facts *f, uid_t uid, gid_t gid, struct sbx_err *err)
{
	int r = f->privileged ? sbx_uid_pool_share(f->uid_pool, uid, err) : 0;

	if (r > 0)
		sbx_err_set(err,
			    "uid %u is another sandbox's, from uid_pool: name a user, or a number "
			    "outside of it",
			    uid);
	return r != 0 ? r : take_unknown(f, uid, gid, err);
}

static int user_asked_for(struct lookup *l, const char *name, struct sbx_facts *f,
			  struct sbx_err *err)
{
	struct sbx_user u = { .uid = (uid_t)-1 };
	bool number = false;
	int r = find(l, name, 0, &u);

	if (r == 1 && parse_id(name, &u.uid)) {
		uid_t uid = u.uid;

		r = find(l, NULL, uid, &u);
		number = r == 1;
		u.uid = uid;
	}
	if (r == 1 && !number)
		sbx_err_set(err, "--user '%s': there is no such user", name);
	if (r < 0 || (r == 1 && !number))
		return r;
	if (!f->privileged && u.uid != f->caller_uid) {
		sbx_err_set(err, "--user '%s': only root may run a sandbox as somebody else", name);
		sbx_user_fini(&u);
		return 1;
	}
	if (!f->privileged) /* the caller keeps its group */
		u.gid = f->caller_gid;
	else if (number)
		u.gid = u.uid;
	return number ? take_number(f, u.uid, u.gid, err) : take_user(f, &u, err);
}

static int user_of_caller(struct lookup *l, struct sbx_facts *f, struct sbx_err *err)
{
	struct sbx_user u;
	int r = find(l, NULL, f->caller_uid, &u);

	if (r < 0)
		return r;
	if (r == 1)
		return take_unknown(f, f->caller_uid, f->caller_gid, err);
	u.gid = f->caller_gid;
	return take_user(f, &u, err);
}

static int user_of_sudo(struct lookup *l, uid_t uid, gid_t gid, struct sbx_facts *f,
			struct sbx_err *err)
{
	struct sbx_user u;
	int r = find(l, NULL, uid, &u);

	if (r < 0)
		return r;
	if (r == 1)
		return take_number(f, uid, gid, err);
	u.gid = gid;
	return take_user(f, &u, err);
}

static int user_of_pool(struct lookup *l, struct sbx_facts *f, struct sbx_err *err)
{
	uid_t uid = 0;
	int r = pick_uid(l, f, "name a user with --user", &uid, err);

	if (r != 0)
		return r;
	f->throwaway_user = true;
	return take_unknown(f, uid, uid, err);
}

static int broker_user(struct lookup *l, struct sbx_facts *f, struct sbx_err *err)
{
	struct sbx_user u;
	uid_t uid = 0;
	int r;

	f->broker_uid = f->uid;
	f->broker_gid = f->gid;
	if (!f->privileged)
		return 0;
	r = find(l, BROKER_USER, 0, &u);
	if (r < 0)
		return r;
	if (r == 0) {
		f->broker_uid = u.uid;
		f->broker_gid = u.gid;
		sbx_user_fini(&u);
		if (f->broker_uid != 0 && f->broker_gid != 0 && f->broker_uid != f->uid)
			return 0;
		sbx_err_set(err,
			    "user '" BROKER_USER "' has uid or gid 0, or is the command's own");
		return 1;
	}
	r = pick_uid(l, f, "create the user '" BROKER_USER "'", &uid, err);
	if (r != 0)
		return r;
	f->broker_uid = uid;
	f->broker_gid = uid;
	return 0;
}

static int load_pool(struct sbx_facts *f, struct sbx_err *err)
{
	if (!f->uid_pool)
		f->uid_pool = sbx_uid_pool_new(NULL, NULL);
	return f->uid_pool ? sbx_uid_pool_load(f->uid_pool, "/etc", err) : -ENOMEM;
}

/* Root's run will ask for the broker's user and for the first two uids of the pool (the second
 * where the first is taken, or is the command's). */
static void look_ahead(struct lookup *l, const struct sbx_facts *f)
{
	if (!f->privileged)
		return;
	sbx_text_fit(l->ahead[0], sizeof(l->ahead[0]), "%s", BROKER_USER);
	for (uint32_t i = 0; i < 2; i++)
		snprintf(l->ahead[1 + i], sizeof(l->ahead[1 + i]), "%u",
			 sbx_uid_pool_candidate(sbx_uid_pool_range(f->uid_pool), f->id, i));
	l->n_ahead = 3;
}

int sbx_facts_user(const struct sbx_options *o, const char *sudo_uid, const char *sudo_gid,
		   struct sbx_facts *f, struct sbx_err *err)
{
	struct lookup l = { .n_ahead = 0 };
	uid_t uid;
	gid_t gid;
	int r;

	if (f->privileged) {
		r = load_pool(f, err);
		if (r != 0)
			return r;
	}
	look_ahead(&l, f);
	if (o->user)
		r = user_asked_for(&l, o->user, f, err);
	else if (!f->privileged)
		r = user_of_caller(&l, f, err);
	else if (parse_id(sudo_uid, &uid) && parse_id(sudo_gid, &gid) && uid != 0 && gid != 0)
		r = user_of_sudo(&l, uid, gid, f, err);
	else
		r = user_of_pool(&l, f, err);
	if (r == 0)
		r = broker_user(&l, f, err);
	if (r < 0)
		sbx_err_set(err, "the user database cannot be asked (" SBX_GETENT " passwd): %s",
			    strerror(-r));
	return r;
}
