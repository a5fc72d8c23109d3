/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the socket that reports refused packets (linux/netfilter/nfnetlink_log.h). The stage makes
 * it with its privileges; the broker reads it (nflog.c), which needs none.
 *
 * One message configures everything. A queue threshold of 1 sends each packet at once, so no packet
 * waits in the kernel when the broker is told to stop. NFULNL_CFG_F_SEQ numbers the packets before
 * they are queued, so packets lost to a full queue leave a gap that is counted (sbx_nflog_lost).
 * The receive buffer is as large as the kernel lets us make it.
 */
#include "sys/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"
#include "sys/net/nlmsg.h"

#define RCVBUF_BYTES  (4 * 1024 * 1024) /* about 5,000 packets */
#define MESSAGE_BYTES 512 /* the kernel's allocation per packet: its default is a page */
#define CONFIG_SEQ    1

static int on_config_answer(const struct nlmsghdr *nlh, void *userdata)
{
	(void)userdata;
	return nlh->nlmsg_seq == CONFIG_SEQ ? sbx_netlink_error(nlh) : 0;
}

static int configure(int fd, uint16_t group, uint32_t copy_range)
{
	const struct nlmsghdr nlh = {
		.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.nlmsg_seq = CONFIG_SEQ,
	};
	const struct nfgenmsg nfg = {
		.nfgen_family = AF_UNSPEC,
		.version = NFNETLINK_V0,
		.res_id = htons(group),
	};
	const struct nfulnl_msg_config_cmd cmd = { .command = NFULNL_CFG_CMD_BIND };
	const struct nfulnl_msg_config_mode mode = {
		.copy_range = htonl(copy_range),
		.copy_mode = NFULNL_COPY_PACKET,
	};
	const uint16_t flags = htons(NFULNL_CFG_F_SEQ);
	uint8_t buf[256];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	size_t begin = sbx_nlmsg_begin(&w, &nlh, &nfg, sizeof(nfg));
	int r;

	sbx_nlattr_put(&w, NFULA_CFG_CMD, &cmd, sizeof(cmd));
	sbx_nlattr_put(&w, NFULA_CFG_MODE, &mode, sizeof(mode));
	sbx_nlattr_put_u32(&w, NFULA_CFG_NLBUFSIZ, htonl(MESSAGE_BYTES));
	sbx_nlattr_put_u32(&w, NFULA_CFG_TIMEOUT, htonl(1)); /* 10 ms; never waited for */
	sbx_nlattr_put_u32(&w, NFULA_CFG_QTHRESH, htonl(1));
	sbx_nlattr_put(&w, NFULA_CFG_FLAGS, &flags, sizeof(flags));
	sbx_nlmsg_end(&w, begin);
	r = w.failed ? -EMSGSIZE : sbx_netlink_send(fd, buf, w.pos);
	return r < 0 ? r : sbx_netlink_read(fd, CONFIG_SEQ, on_config_answer, NULL);
}

int sbx_net_nflog_open(uint16_t group, uint32_t copy_range)
{
	SBX_AUTO_CLOSE int fd = -1;
	int r = sbx_net_netlink_open(NETLINK_NETFILTER), size = RCVBUF_BYTES;

	if (r < 0)
		return r;
	fd = r;
	/* SO_RCVBUFFORCE exceeds net.core.rmem_max where we have CAP_NET_ADMIN in the initial
	 * user namespace. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	r = configure(fd, group, copy_range);
	if (r < 0)
		return r;
	if (fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}
