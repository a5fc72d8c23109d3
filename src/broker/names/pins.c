/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Synthetic pins. PURE.
 *
 * Index and address are computed from each other, so only name -> index needs a table: open
 * addressing with linear probing over 32-bit slots (index + 1; 0 is empty), doubled at three
 * quarters full, and a plain array index -> name. Nothing is ever removed. The sandbox chooses the
 * names and can make them collide. That slows down only its own broker: at most n_max probes a
 * name.
 *
 *   v4: 198.18.0.0 + 256 * (index / 254) + 1 + index % 254
 *   v6: fd00:5b:1:: + 1 + index
 */

#include "broker/names/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_PER_BLOCK 254u
#define SLOTS_FIRST	64u

struct sbx_pins {
	uint32_t n_max;
	uint32_t n;	  /* names[0..n) are in use */
	uint32_t n_names; /* capacity of names */
	char **names;
	uint32_t n_slots; /* a power of two */
	uint32_t *slots;
};

int sbx_pins_new(uint32_t n_max, struct sbx_pins **ret_pins)
{
	SBX_CLEANUP(sbx_pins_freep) struct sbx_pins *pins = calloc(1, sizeof(*pins));

	if (!pins)
		return -ENOMEM;
	pins->n_max = n_max < SBX_PINS_MAX ? n_max : SBX_PINS_MAX;
	pins->n_slots = SLOTS_FIRST;
	pins->slots = calloc(pins->n_slots, sizeof(*pins->slots));
	if (!pins->slots)
		return -ENOMEM;
	*ret_pins = sbx_steal_ptr(&pins);
	return 0;
}

struct sbx_pins *sbx_pins_free(struct sbx_pins *pins)
{
	if (!pins)
		return NULL;
	for (uint32_t i = 0; i < pins->n; i++)
		free(pins->names[i]);
	free(pins->names);
	free(pins->slots);
	free(pins);
	return NULL;
}

uint32_t sbx_pins_count(const struct sbx_pins *pins)
{
	return pins->n;
}

/* FNV-1a, 32 bits. */
static uint32_t hash_name(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

/* The slot that holds @name, or the empty one where it would go. */
static uint32_t find_slot(const struct sbx_pins *pins, const char *name)
{
	uint32_t mask = pins->n_slots - 1, i = hash_name(name) & mask;

	while (pins->slots[i] && strcmp(pins->names[pins->slots[i] - 1], name) != 0)
		i = (i + 1) & mask;
	return i;
}

static int grow_slots(struct sbx_pins *pins)
{
	SBX_AUTO_FREE uint32_t *old = NULL;
	uint32_t *slots = calloc((size_t)pins->n_slots * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	old = pins->slots;
	pins->slots = slots;
	pins->n_slots *= 2;
	for (uint32_t i = 0; i < pins->n; i++)
		pins->slots[find_slot(pins, pins->names[i])] = i + 1;
	return 0;
}

static int grow_names(struct sbx_pins *pins)
{
	uint32_t n = pins->n_names ? pins->n_names * 2 : SLOTS_FIRST;
	char **names = realloc(pins->names, n * sizeof(*names));

	if (!names)
		return -ENOMEM;
	pins->names = names;
	pins->n_names = n;
	return 0;
}

int sbx_pins_add(struct sbx_pins *pins, const char *name, uint32_t *ret_index)
{
	uint32_t slot = find_slot(pins, name);
	char *copy;

	if (pins->slots[slot]) {
		*ret_index = pins->slots[slot] - 1;
		return 0;
	}
	if (pins->n >= pins->n_max)
		return SBX_PINS_E_EXHAUSTED;
	if (pins->n >= pins->n_slots / 4 * 3) {
		if (grow_slots(pins) < 0)
			return -ENOMEM;
		slot = find_slot(pins, name);
	}
	if (pins->n == pins->n_names && grow_names(pins) < 0)
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	pins->names[pins->n] = copy;
	pins->slots[slot] = ++pins->n;
	*ret_index = pins->n - 1;
	return 0;
}

static void put_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct sbx_addr sbx_pins_addr4(uint32_t index)
{
	struct sbx_addr a = sbx_synthetic4.addr;
	uint32_t offset = 256 * (index / HOSTS_PER_BLOCK) + 1 + index % HOSTS_PER_BLOCK;

	put_u32(a.b, get_u32(a.b) + offset);
	return a;
}

struct sbx_addr sbx_pins_addr6(uint32_t index)
{
	struct sbx_addr a = sbx_synthetic6.addr;

	put_u32(a.b + 12, index + 1);
	return a;
}

bool sbx_pins_is_synthetic(const struct sbx_addr *addr)
{
	return sbx_cidr_contains(&sbx_synthetic4, addr) || sbx_cidr_contains(&sbx_synthetic6, addr);
}

/* The index that @addr would have, or UINT32_MAX for an address that no pin ever gets. */
static uint32_t index_of(const struct sbx_addr *addr)
{
	uint32_t offset;

	if (sbx_cidr_contains(&sbx_synthetic4, addr)) {
		offset = get_u32(addr->b) - get_u32(sbx_synthetic4.addr.b);
		if (offset % 256 == 0 || offset % 256 == 255)
			return UINT32_MAX;
		return offset / 256 * HOSTS_PER_BLOCK + offset % 256 - 1;
	}
	if (sbx_cidr_contains(&sbx_synthetic6, addr)) {
		for (size_t i = 6; i < 12; i++)
			if (addr->b[i])
				return UINT32_MAX;
		return get_u32(addr->b + 12) - 1; /* :: itself wraps to UINT32_MAX */
	}
	return UINT32_MAX;
}

const char *sbx_pins_name(const struct sbx_pins *pins, const struct sbx_addr *addr)
{
	uint32_t index = index_of(addr);

	return index < pins->n ? pins->names[index] : NULL;
}
