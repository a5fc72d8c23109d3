/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/systemd/notify.h"

#include <errno.h>
#include <string.h>

#include "sys/systemd/datagram.h"

int sbx_notify_send(const char *address, const char *state)
{
	size_t n = strlen(state);

	if (!address || !address[0])
		return SBX_NOTIFY_E_ABSENT;
	if (n == 0 || n > SBX_NOTIFY_STATE_MAX)
		return -EMSGSIZE;
	return sbx_datagram_send(address, state, n, SBX_NOTIFY_WAIT_MS);
}
