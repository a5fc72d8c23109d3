/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The name and mail address that the user's git signs commits with. The sandbox has another home,
 * and git refuses to commit without them.
 *
 * They are read as data from the user's own two files, never from a workspace and never by
 * executing git. Inside they are in git's system-wide configuration (GIT_CONFIG_SYSTEM), which is
 * the weakest: the configuration of a repository, and the sandbox's own ~/.gitconfig, win.
 * Variables like GIT_AUTHOR_NAME would win over both.
 */
#include "launcher/user/git_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define FILE_MAX 65536

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_key_char(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static const char *skip_line(const char *s)
{
	return s + strcspn(s, "\n");
}

/* The character that follows a backslash; '\0': none that git knows. */
static char unescape(char c)
{
	return c == 'n'		       ? '\n'
	       : c == 't'	       ? '\t'
	       : c == 'b'	       ? '\b'
	       : c == '"' || c == '\\' ? c
				       : '\0';
}

/* The value at *s, to the end of its line. *ret_fits: it is not too long, and has no control
 * characters. False: git refuses such a value. */
static bool read_value(const char **s, char *out, size_t n, bool *ret_fits)
{
	const char *c = *s + strspn(*s, " \t");
	size_t at = 0, end = 0; /* end: after the last character that counts */
	bool quoted = false;

	*ret_fits = true;
	for (; *c && *c != '\n'; c++) {
		char one = *c;

		if (one == '"') {
			quoted = !quoted;
			end = at;
			continue;
		}
		if (!quoted && (one == '#' || one == ';'))
			break;
		if (one == '\r' && c[1] == '\n')
			continue;
		if (one == '\\' && c[1] == '\n') {
			c++;
			continue;
		}
		if (one == '\\') {
			one = unescape(*++c);
			if (!one)
				return false;
		}
		if (one != '\t' && ((unsigned char)one < ' ' || one == 0x7f))
			*ret_fits = false;
		if (at + 1 >= n)
			*ret_fits = false;
		else
			out[at++] = one;
		if (quoted || (*c != ' ' && *c != '\t'))
			end = at;
	}
	out[end] = '\0';
	*s = skip_line(c);
	return !quoted;
}

/* "[user]", at *s after its '['. -1: git refuses such a line. */
static int read_section(const char **s)
{
	const char *begin = *s, *end = begin;
	bool quoted = false;

	for (; *end && *end != '\n' && (quoted || *end != ']'); end++) {
		if (*end == '"')
			quoted = !quoted;
		else if (quoted && *end == '\\' && end[1] && end[1] != '\n')
			end++;
	}
	if (*end != ']')
		return -1;
	*s = end + 1;
	return end - begin == 4 && strncasecmp(begin, "user", 4) == 0;
}

bool sbx_git_identity_parse(const char *text, struct sbx_git_identity *id)
{
	struct sbx_git_identity found = *id;
	bool in_user = false;

	for (const char *s = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0); *s;) {
		char value[sizeof(found.name)] = "";
		const char *key = s;
		size_t n_key;
		bool fits = true;

		if (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n') {
			s++;
			continue;
		}
		if (*s == '#' || *s == ';') {
			s = skip_line(s);
			continue;
		}
		if (*s == '[') {
			int section;

			s++;
			section = read_section(&s);
			if (section < 0)
				return false;
			in_user = section;
			continue;
		}
		if (!is_alpha(*s))
			return false;
		while (is_key_char(*s))
			s++;
		n_key = (size_t)(s - key);
		s += strspn(s, " \t\r");
		if (*s != '=' && *s != '\n' && *s != '\0')
			return false;
		if (*s != '=') { /* git reads it as true, which is no name */
			s = skip_line(s);
			continue;
		}
		s++;
		if (!read_value(&s, value, sizeof(value), &fits))
			return false;
		if (!in_user || !fits)
			continue;
		if (n_key == 4 && strncasecmp(key, "name", 4) == 0)
			sbx_text_fit(found.name, sizeof(found.name), "%s", value);
		if (n_key == 5 && strncasecmp(key, "email", 5) == 0)
			sbx_text_fit(found.email, sizeof(found.email), "%s", value);
	}
	*id = found;
	return true;
}

/* Between quotes. */
static void quote(const char *value, char *out, size_t n)
{
	size_t at = 0;

	for (; *value && at + 2 < n; value++) {
		if (*value == '"' || *value == '\\')
			out[at++] = '\\';
		out[at++] = *value;
	}
	out[at] = '\0';
}

char *sbx_git_identity_print(const struct sbx_git_identity *id)
{
	char name[2 * sizeof(id->name) + 1], email[2 * sizeof(id->email) + 1], *out;

	quote(id->name, name, sizeof(name));
	quote(id->email, email, sizeof(email));
	return asprintf(&out, "[include]\n\tpath = /etc/gitconfig\n[user]\n%s%s%s%s%s%s",
			name[0] ? "\tname = \"" : "", name, name[0] ? "\"\n" : "",
			email[0] ? "\temail = \"" : "", email, email[0] ? "\"\n" : "") < 0
		       ? NULL
		       : out;
}

/* Do not wait for a fifo, and read only a regular file. */
static void read_file(const char *path, struct sbx_git_identity *id)
{
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	SBX_AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= FILE_MAX)
		return;
	text = malloc(FILE_MAX);
	n = text ? read(fd, text, FILE_MAX - 1) : -1;
	if (n < 0)
		return;
	text[n] = '\0';
	sbx_git_identity_parse(text, id);
}

void sbx_git_identity_read(const struct sbx_facts *f, struct sbx_git_identity *ret_id)
{
	static const char *const names[] = { ".config/git/config",
					     ".gitconfig" }; /* the later one counts */
	char path[PATH_MAX];

	*ret_id = (struct sbx_git_identity){ 0 };
	for (size_t i = 0; i < SBX_N_ELEMENTS(names) && !f->throwaway_user; i++)
		if (snprintf(path, sizeof(path), "%s/%s", f->home, names[i]) < (int)sizeof(path))
			read_file(path, ret_id);
}
