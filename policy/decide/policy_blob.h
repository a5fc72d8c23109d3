/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_POLICY_BLOB_H
#define SBX_POLICY_DECIDE_POLICY_BLOB_H

#include <stddef.h>
#include <stdint.h>

/*
 * The compiled policy as bytes: a header, then sections of fixed-size records. Host byte order (it
 * never leaves the machine; the magic number would not match). Every reference is an index into a
 * section; sbx_policy_load() checks each one, deciding then trusts them.
 *
 * There are tables for each layer (enum sbx_layer). Rules are sorted so that the rules of one key
 * (a name, the names below a name, or a network) stand together, by priority, deny before allow. A
 * slot of a hash table names such a run. A name is hashed from its right end, so that one pass over
 * the name gives the hash of every suffix.
 *
 * The last two sections say where rules come from. They are no part of the policy's meaning, and
 * its hash leaves them out.
 */

#define SBX_BLOB_MAGIC	   UINT64_C(0x0163696c6f706273) /* "sbpolic", 1 */
#define SBX_BLOB_VERSION   4
#define SBX_BLOB_BYTES_MAX (64u << 20)

enum sbx_blob_section {
	SBX_BLOB_RULES = 0,  /* struct sbx_blob_rule */
	SBX_BLOB_PORTS,	     /* struct sbx_blob_ports */
	SBX_BLOB_NAME_FLOOR, /* struct sbx_blob_name_slot: a hash table, 0 or a power of two */
	SBX_BLOB_NAME_RULE,
	SBX_BLOB_NAME_LIVE,
	SBX_BLOB_NAME_PROFILE,
	SBX_BLOB_GROUPS_FLOOR, /* struct sbx_blob_group: per family and prefix, longest first */
	SBX_BLOB_GROUPS_RULE,
	SBX_BLOB_GROUPS_LIVE,
	SBX_BLOB_GROUPS_PROFILE,
	SBX_BLOB_GROUPS_ADMIT,
	SBX_BLOB_CIDR_SLOTS,  /* struct sbx_blob_cidr_slot: the tables of all groups */
	SBX_BLOB_FIREWALL,    /* struct sbx_blob_firewall: allowed networks, one port range each */
	SBX_BLOB_REQUESTS,    /* bytes: what sbx-tls enforces, as text; only the hash reads it */
	SBX_BLOB_STRINGS,     /* bytes; the last is NUL */
	SBX_BLOB_ORIGINS,     /* struct sbx_blob_origin: of each rule */
	SBX_BLOB_ORIGIN_TEXT, /* bytes; the last is NUL */
	SBX_N_BLOB_SECTIONS,
};

struct sbx_blob_header {
	uint64_t magic;
	uint32_t version;
	uint32_t n_bytes; /* all of the blob */
	uint64_t generation;
	uint8_t mode;		/* enum sbx_mode */
	uint8_t air_gap;	/* 0, 1 */
	uint8_t default_action; /* enum sbx_action: allow or deny */
	uint8_t of_workspace;	/* 1: the workspace set default_action, for mode full too */
	uint8_t max_labels;	/* of the longest key: no need to look at longer suffixes */
	uint8_t live_allows;	/* 1: the live lists allow something */
	uint8_t live_requests;	/* 1: a live rule says something of requests */
	uint8_t zero;
	uint32_t n_terminated; /* entries whose flows sbx-tls carries */
	uint32_t zero2;
	struct {
		uint32_t offset; /* from the start of the blob, a multiple of 8 */
		uint32_t n;	 /* records */
	} sections[SBX_N_BLOB_SECTIONS];
};

#define SBX_BLOB_TCP	       1
#define SBX_BLOB_UDP	       2
#define SBX_BLOB_CHECK_BY_PORT 255

struct sbx_blob_rule {
	uint32_t text;	/* string: as written */
	uint32_t ports; /* first record */
	uint16_t n_ports;
	uint8_t protos; /* SBX_BLOB_TCP, SBX_BLOB_UDP or both */
	uint8_t action; /* allow or deny */
	uint8_t check;	/* enum sbx_check or SBX_BLOB_CHECK_BY_PORT */
	uint8_t private_ok;
	uint8_t family; /* 4 or 6: addr and prefix are a network; 0: a name */
	uint8_t prefix;
	uint8_t addr[16];
	uint32_t terminate; /* 1 to n_terminated; 0: not terminated */
	uint32_t priority;  /* of layer RULE; else 0 */
	uint8_t layer;	    /* enum sbx_layer, FLOOR to ADMIT */
	uint8_t asks_only;  /* 1: it allows nothing, but flows to its names are terminated */
	uint8_t zero[2];
	uint32_t requests; /* string: of a live rule, what it says of requests; 0: nothing */
};

struct sbx_blob_origin {
	int64_t row;	/* of the database; 0: it is none */
	uint32_t label; /* of ORIGIN_TEXT: the text for people; 0: the rule's */
	uint32_t file;	/* of ORIGIN_TEXT; 0: not known */
	uint32_t line;	/* 0: @file is no file, but a flag or a command */
	uint32_t zero;
};

struct sbx_blob_ports {
	uint16_t first, last; /* 1 <= first <= last */
};

/* A run of rules; n 0: none. */
struct sbx_blob_run {
	uint32_t first, n;
};

struct sbx_blob_name_slot {
	uint32_t hash;	/* upper half */
	uint32_t key;	/* string */
	uint32_t n_key; /* bytes, without a NUL; 0: the slot is empty */
	struct sbx_blob_run exact, below;
};

struct sbx_blob_group {
	uint8_t family, prefix;
	uint16_t zero;
	uint32_t first_slot;
	uint32_t n_slots; /* a power of two */
};

struct sbx_blob_cidr_slot {
	uint8_t addr[16];
	struct sbx_blob_run run; /* n 0: the slot is empty */
};

struct sbx_blob_firewall {
	uint32_t rule;
	uint16_t first, last;
};

/* --- hashing; the compiler and the decider must agree --- */

#define SBX_HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a, one byte: names are fed from their last byte to their first. */
static inline uint64_t sbx_hash_byte(uint64_t h, uint8_t c)
{
	return (h ^ c) * UINT64_C(0x100000001b3);
}

/* FNV's low bits are weak: mix before using (splitmix64's finalizer). */
static inline uint64_t sbx_hash_end(uint64_t h)
{
	h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
	return h ^ (h >> 31);
}

/* @addr's 16 bytes, already masked. */
uint64_t sbx_hash_addr(const uint8_t addr[16]);
/* Clear the bits behind @prefix. */
void sbx_mask_addr(uint8_t addr[16], unsigned prefix);

/* The records' sizes, and a section's share of the blob. */
extern const size_t sbx_blob_record_size[SBX_N_BLOB_SECTIONS];

#endif
