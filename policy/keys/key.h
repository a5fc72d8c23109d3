/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_KEYS_KEY_H
#define SBX_POLICY_KEYS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/profile/profile.h"

/*
 * The keys of profiles, of the system policy and of jobs, as tables. Reading, defaults, printing,
 * error messages, --limit and the manual's list of keys use these; a new key is a new row.
 */

enum sbx_key_type {
	SBX_KEY_BLOCK = 0, /* a mapping with keys of its own; offset: of their struct */
	SBX_KEY_STRING,	   /* char * */
	SBX_KEY_PROSE,	   /* char *; white space folded */
	SBX_KEY_SIZE,	   /* uint64_t, bytes */
	SBX_KEY_TIME,	   /* uint64_t, milliseconds */
	SBX_KEY_CPUS,	   /* uint32_t, thousandths */
	SBX_KEY_COUNT,	   /* uint32_t */
	SBX_KEY_WORD,	   /* an enum or uint32_t: the index in words */
	SBX_KEY_SWITCH,	   /* bool: the index in words */
	SBX_KEY_STRINGS,   /* struct sbx_str_list */
	SBX_KEY_WORDS,	   /* a command line: the same, and tabs and newlines are allowed */
	SBX_KEY_NET_LIST,  /* struct sbx_net_list */
	/* A count and an array, or two fields, of struct sbx_profile: offset is 0. */
	SBX_KEY_MOUNTS,
	SBX_KEY_ENV,
	SBX_KEY_RESOLVERS,
	SBX_KEY_PROXY,
	SBX_KEY_PROBES,
	SBX_KEY_PORTS,	 /* char *: "443,8443" from a number, a string or a list of them */
	SBX_KEY_EXTENDS, /* nothing: merged before all other keys */
	SBX_KEY_EITHER,	 /* char *: a string; or a mapping, read by block into the same struct */
	SBX_KEY_NAMES,	 /* struct sbx_str_list: from one string or a list */
	SBX_KEY_HEADERS, /* struct sbx_str_list: "Name: value", from a mapping */
	SBX_KEY_SECRETS, /* as MOUNTS */
	SBX_N_KEY_TYPES,
};

struct sbx_key_block;

struct sbx_key {
	const char *name;
	enum sbx_key_type type;
	bool any_char;		     /* STRING: tabs and newlines are allowed, because names of
				      * files may have them */
	size_t offset;		     /* of the value in the struct the block is read into */
	uint64_t min, max;	     /* bounds of a number; max: entries of a list */
	uint64_t def;		     /* default of a WORD or SWITCH; a number's is 0: not set */
	const char *const *words;    /* WORD, SWITCH: NULL-terminated */
	const char *const *def_list; /* STRINGS: the list if the key is missing; NULL-terminated */
	const char *const *besides;  /* STRINGS: values that always hold, for the manual */
	/* STRING, STRINGS, WORDS, ENV (names): the problem with a value, or NULL. */
	const char *(*check)(const char *value);
	/* STRINGS, WORDS: the same, for a message with details. 0, SBX_PROFILE_E_INVALID with @err,
	 * -ENOMEM. */
	int (*judge)(const char *value, struct sbx_err *err);
	const struct sbx_key_block
		*block;	  /* BLOCK, EITHER: its keys; of a list: an item's keys */
	const char *help; /* for the manual */
	/* STRING, EITHER, STRINGS: a wrong value may be a secret in the place of its source.
	 * Messages show this form instead. */
	const char *unseen;
};

struct sbx_key_block {
	const char *path; /* "network.dns", "" at the top: for messages */
	const struct sbx_key *keys;
	size_t n_keys;
};

extern const struct sbx_key_block sbx_profile_keys;
extern const struct sbx_key_block sbx_system_keys;
extern const struct sbx_key_block sbx_job_keys; /* of struct sbx_job (job.c) */
extern const struct sbx_key_block sbx_limits_keys; /* of struct sbx_limit_values */

/* Items that are mappings: read into these, then composed. */
struct sbx_net_item {
	char *host, *cidr, *ports;
	uint32_t protocol, check; /* index in words; 0 not said */
	bool private_ok;
	/* for sbx-tls */
	char *access; /* the word */
	struct sbx_str_list methods, paths, headers;
	bool inspect, passthrough, websocket;
	uint64_t max_request_bytes;
	char *cert, *key;
};

struct sbx_secret_item {
	char *name, *from, *inject, *inject_header, *header, *prefix;
	struct sbx_str_list from_command, command, hosts, in, methods, paths;
	bool keep_present, detect;
	uint32_t signing; /* index in words; 0 not said */
};

struct sbx_probe_item {
	char *dns_refused, *dns_allowed, *connect_refused, *connect_name, *path_absent,
		*path_readonly;
	char *expect;
};

extern const struct sbx_key_block sbx_net_item_keys;
extern const struct sbx_key_block sbx_mount_keys; /* of struct sbx_mount_entry */
extern const struct sbx_key_block sbx_probe_item_keys;
extern const struct sbx_key_block sbx_secret_item_keys;

/* The row of that name, or NULL. */
const struct sbx_key *sbx_key_find(const struct sbx_key_block *block, const char *name);
/* "network.mode", "name": the key in messages. Returns @buf. */
#define SBX_KEY_PATH_MAX 64
const char *sbx_key_path(const struct sbx_key_block *block, const struct sbx_key *key, char *buf,
			 size_t n_buf);
/* Frees the strings and lists of the struct @base, which was read by @block. The types of struct
 * sbx_profile alone (MOUNTS, ENV, ...) stay. */
void sbx_key_fini(const struct sbx_key_block *block, void *base);
/* A description of the type's values, for messages and the manual: "a size such as 512M". */
const char *sbx_key_form(enum sbx_key_type type);

#endif
