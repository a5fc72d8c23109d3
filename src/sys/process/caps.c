/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Capabilities, by the system calls themselves: processes that only drop their capabilities (the
 * broker, the factory, sbx-init) need no library for that. The kernel interface is capget(2)
 * version 3 with 64 bits in two halves.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/process/proc.h"

#define CAPS_MAX 64 /* bits in a set; the kernel answers EINVAL past its last one */

static int get_header(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

int sbx_caps_read(struct sbx_caps *ret_caps)
{
	struct __user_cap_data_struct d[2] = { { 0 } };
	struct sbx_caps caps;
	int r = get_header(d);

	if (r < 0)
		return r;
	caps = (struct sbx_caps){
		.effective = d[0].effective | (uint64_t)d[1].effective << 32,
		.permitted = d[0].permitted | (uint64_t)d[1].permitted << 32,
		.inheritable = d[0].inheritable | (uint64_t)d[1].inheritable << 32,
	};
	for (int cap = 0; cap < CAPS_MAX; cap++) {
		int bounding = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (bounding < 0)
			break;
		if (bounding > 0)
			caps.bounding |= 1ull << cap;
		/* An ambient capability is permitted and inheritable as well (capabilities(7)). */
		if ((caps.permitted & caps.inheritable & (1ull << cap)) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) > 0)
			caps.ambient |= 1ull << cap;
	}
	*ret_caps = caps;
	return 0;
}

int sbx_caps_permitted(uint64_t *ret_mask)
{
	struct __user_cap_data_struct d[2] = { { 0 } };
	int r = get_header(d);

	if (r == 0)
		*ret_mask = d[0].permitted | (uint64_t)d[1].permitted << 32;
	return r;
}

int sbx_caps_effective(uint64_t *ret_mask)
{
	struct __user_cap_data_struct d[2] = { { 0 } };
	int r = get_header(d);

	if (r == 0)
		*ret_mask = d[0].effective | (uint64_t)d[1].effective << 32;
	return r;
}

int sbx_caps_use(bool all)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };
	int r = get_header(d);

	for (int half = 0; half < 2; half++)
		d[half].effective = all ? d[half].permitted : 0;
	return r < 0 ? r : syscall(SYS_capset, &header, d) < 0 ? -errno : 0;
}

static void drop_bounding(uint64_t keep_mask)
{
	for (int cap = 0; cap < CAPS_MAX; cap++)
		if (!(keep_mask & (1ull << cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break; /* EPERM; or EINVAL: past the last capability */
}

int sbx_caps_keep(uint64_t keep_mask)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	/* The bounding set first: changing it takes CAP_SETPCAP, which may be among the
	 * capabilities to drop. Without it the set stays as it is. If no_new_privs is set already,
	 * the bounding set is useless, and its 40 calls are saved. */
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		drop_bounding(keep_mask);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (int half = 0; half < 2; half++)
		d[half].effective = d[half].permitted = (uint32_t)(keep_mask >> (32 * half));
	return syscall(SYS_capset, &header, d) < 0 ? -errno : 0;
}
