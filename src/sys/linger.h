/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_LINGER_H
#define SBX_SYS_LINGER_H

#include <poll.h>
#include <stdint.h>

/*
 * poll(2) that does not sleep at once: for @linger_us it asks again and again, and lets others run in between
 * (sched_yield(2)). For answers that are a few hundred microseconds away: who sleeps on an otherwise idle
 * processor of a virtual machine lets it halt, and to wake it took 50 us on a quiet host and 250 on a busy one,
 * several times in each start. As poll(2), errno included; @linger_us at most a few thousand.
 */
int sbx_linger_poll(struct pollfd *fds, nfds_t n, int timeout_ms, uint32_t linger_us);

#endif
