/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scalars. The same conversion serves YAML, --limit and printing, so a printed value can be parsed.
 */

#include "policy/keys/key_scalar.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/forms/suggest.h"
#include "policy/forms/units.h"
#include "policy/profile/profile.h"

/* The types of numbers: how each is written, and its width in the struct. */
static const struct number_kind {
	int (*parse)(const char *s, uint64_t *ret_v);
	const char *(*format)(uint64_t v, char *buf, size_t n_buf);
	bool wide; /* uint64_t, otherwise uint32_t */
} number_kinds[SBX_N_KEY_TYPES] = {
	[SBX_KEY_SIZE] = { sbx_size_parse, sbx_size_format, true },
	[SBX_KEY_TIME] = { sbx_time_parse, sbx_time_format, true },
	[SBX_KEY_CPUS] = { sbx_cpus_parse, sbx_cpus_format, false },
	[SBX_KEY_COUNT] = { sbx_count_parse, sbx_count_format, false },
};

bool sbx_key_is_scalar(const struct sbx_key *key)
{
	switch (key->type) {
	case SBX_KEY_STRING:
	case SBX_KEY_PROSE:
	case SBX_KEY_WORD:
	case SBX_KEY_SWITCH:
		return true;
	default:
		return number_kinds[key->type].parse != NULL;
	}
}

const char *sbx_key_range(const struct sbx_key *key, char *buf, size_t n_buf)
{
	const struct number_kind *kind = &number_kinds[key->type];
	char low[SBX_UNIT_STR_MAX], high[SBX_UNIT_STR_MAX];
	size_t pos = 0;

	buf[0] = '\0';
	if (kind->format) {
		sbx_text_cut(buf, n_buf, "%s to %s", kind->format(key->min, low, sizeof(low)),
			     kind->format(key->max, high, sizeof(high)));
		return buf;
	}
	for (const char *const *w = key->words; w && *w && pos < n_buf; w++) {
		if (**w)
			pos += (size_t)snprintf(buf + pos, n_buf - pos, "%s%s", pos ? ", " : "",
						*w);
	}
	return buf;
}

static int set_number(const struct sbx_key_block *block, const struct sbx_key *key,
		      const char *text, void *base, struct sbx_err *err)
{
	const struct number_kind *kind = &number_kinds[key->type];
	char path[SBX_KEY_PATH_MAX], range[2 * SBX_UNIT_STR_MAX + 8];
	uint8_t *field = (uint8_t *)base + key->offset;
	uint64_t v;
	int r = kind->parse(text, &v);

	sbx_key_path(block, key, path, sizeof(path));
	if (r == -EINVAL) {
		sbx_err_set(err, "%s: '%s' is not %s", path, text, sbx_key_form(key->type));
		return SBX_PROFILE_E_INVALID;
	}
	if (r < 0 || v < key->min || v > key->max) {
		sbx_err_set(err, "%s: '%s' is out of range (%s)", path, text,
			    sbx_key_range(key, range, sizeof(range)));
		return SBX_PROFILE_E_INVALID;
	}
	if (kind->wide)
		*(uint64_t *)(void *)field = v;
	else
		*(uint32_t *)(void *)field = (uint32_t)v;
	return 0;
}

static int set_word(const struct sbx_key_block *block, const struct sbx_key *key, const char *text,
		    void *base, struct sbx_err *err)
{
	char path[SBX_KEY_PATH_MAX], words[128], hint[64];
	uint8_t *field = (uint8_t *)base + key->offset;
	struct sbx_suggest s;

	for (uint32_t i = 0; *text && key->words[i]; i++) {
		if (strcmp(text, key->words[i]) != 0)
			continue;
		if (key->type == SBX_KEY_SWITCH)
			*(bool *)field = i != 0;
		else
			*(uint32_t *)(void *)field = i;
		return 0;
	}
	s = sbx_suggest(text);
	for (uint32_t i = 0; *text && key->words[i]; i++)
		sbx_suggest_offer(&s, key->words[i]);
	sbx_err_set(err, "%s: '%s' is not one of %s%s",
		    sbx_key_path(block, key, path, sizeof(path)), text,
		    sbx_key_range(key, words, sizeof(words)),
		    sbx_suggest_text(&s, hint, sizeof(hint)));
	return SBX_PROFILE_E_INVALID;
}

/* Runs of white space become one space, and none is left at the ends. In place. */
static void fold(char *s)
{
	char *out = s;

	for (const char *in = s; *in; in++) {
		if (!isspace((unsigned char)*in))
			*out++ = *in;
		else if (out > s && out[-1] != ' ')
			*out++ = ' ';
	}
	if (out > s && out[-1] == ' ')
		out--;
	*out = '\0';
}

static int set_string(const struct sbx_key_block *block, const struct sbx_key *key,
		      const char *text, void *base, struct sbx_err *err)
{
	char **field = (char **)(void *)((uint8_t *)base + key->offset), path[SBX_KEY_PATH_MAX];
	SBX_AUTO_FREE char *copy = strdup(text);
	const char *why = NULL;

	if (!copy)
		return -ENOMEM;
	if (key->type == SBX_KEY_PROSE)
		fold(copy);
	else if (!*copy)
		why = "must not be empty";
	else if (!key->any_char && strpbrk(copy, "\t\n"))
		why = "tabs and newlines are not allowed";
	if (!why && key->check)
		why = key->check(copy);
	if (why) {
		sbx_key_path(block, key, path, sizeof(path));
		if (key->unseen)
			sbx_err_set(err, "%s: %s: write %s", path, why, key->unseen);
		else
			sbx_err_set(err, "%s: '%s': %s", path, copy, why);
		return SBX_PROFILE_E_INVALID;
	}
	free(*field);
	*field = sbx_steal_ptr(&copy);
	return 0;
}

int sbx_key_set(const struct sbx_key_block *block, const struct sbx_key *key, const char *text,
		void *base, struct sbx_err *err)
{
	assert(sbx_key_is_scalar(key) || key->type == SBX_KEY_EITHER);
	if (key->type == SBX_KEY_STRING || key->type == SBX_KEY_PROSE ||
	    key->type == SBX_KEY_EITHER)
		return set_string(block, key, text, base, err);
	if (key->type == SBX_KEY_WORD || key->type == SBX_KEY_SWITCH)
		return set_word(block, key, text, base, err);
	return set_number(block, key, text, base, err);
}

uint64_t sbx_key_number(const struct sbx_key *key, const void *base)
{
	const uint8_t *field = (const uint8_t *)base + key->offset;

	if (!number_kinds[key->type].format)
		return 0;
	return number_kinds[key->type].wide ? *(const uint64_t *)(const void *)field
					    : *(const uint32_t *)(const void *)field;
}

const char *sbx_key_get(const struct sbx_key *key, const void *base, char *buf, size_t n_buf)
{
	const uint8_t *field = (const uint8_t *)base + key->offset;
	uint64_t v;

	switch (key->type) {
	case SBX_KEY_STRING:
	case SBX_KEY_PROSE:
		return *(char *const *)(const void *)field;
	case SBX_KEY_SWITCH:
		v = *(const bool *)field;
		return v == key->def ? NULL : key->words[v];
	case SBX_KEY_WORD:
		v = *(const uint32_t *)(const void *)field;
		return v == key->def ? NULL : key->words[v];
	default:
		v = sbx_key_number(key, base);
		return v == 0 ? NULL : number_kinds[key->type].format(v, buf, n_buf);
	}
}
