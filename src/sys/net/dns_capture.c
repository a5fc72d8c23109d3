/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leads the DNS of a cgroup's sockets to one server, by three programs in the kernel's own
 * instructions (bpf(2)). They are written by hand: there are thirty instructions, and no compiler
 * for them at run time.
 *
 *   connect4   an IPv4 socket that connects to port 53 of any address is connected to the stub
 *   sendmsg4   a datagram to port 53 of any address goes to the stub; the address that was asked is
 *              kept by the socket's cookie
 *   recvmsg4   an answer of the stub gets the address that was asked last as its source (the answer
 *              on a connected socket comes from its peer)
 *
 * A socket that asks two servers before it reads one answer sees both answers come from the second.
 * Resolvers that do that take the answers for forged and ask again.
 */
#include "sys/net/dns_capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define DNS_PORT    53
#define SOCKETS_MAX 512 /* sockets remembered; the one that asked longest ago is dropped first */

/* --- instructions --- */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), \
			    .imm = (int32_t)(i) })
#define MOV_REG(d, s)	    INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_IMM(d, i)	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define MOV32_IMM(d, i)	    INSN(BPF_ALU | BPF_MOV | BPF_K, d, 0, 0, i) /* upper half zero */
#define ADD_IMM(d, i)	    INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define LOAD32(d, s, o)	    INSN(BPF_LDX | BPF_W | BPF_MEM, d, s, o, 0)
#define STORE32(d, o, s)    INSN(BPF_STX | BPF_W | BPF_MEM, d, s, o, 0)
#define STORE64(d, o, s)    INSN(BPF_STX | BPF_DW | BPF_MEM, d, s, o, 0)
#define CALL(f)		    INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define JEQ_IMM(d, i, o)    INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, i)
#define JNE_IMM(d, i, o)    INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define JNE_REG(d, s, o)    INSN(BPF_JMP | BPF_JNE | BPF_X, d, s, o, 0)
#define EXIT()		    INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Load a map by its fd: two instructions. */
#define MAP(d, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

#define ADDR  offsetof(struct bpf_sock_addr, user_ip4)
#define PORT  offsetof(struct bpf_sock_addr, user_port)
#define PROTO offsetof(struct bpf_sock_addr, protocol)

#define PASS MOV_IMM(0, 1), EXIT()

static int bpf(int cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

static int load(enum bpf_attach_type where, const struct bpf_insn *v, size_t n)
{
	static const char license[] = "LGPL-2.1-or-later";
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR;
	attr.expected_attach_type = where;
	attr.insns = (uintptr_t)v;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t)license;
	memcpy(attr.prog_name, "sbx_dns", sizeof("sbx_dns"));
	return bpf(BPF_PROG_LOAD, &attr);
}

/* The cgroup holds the program from now on: its fd may be closed. */
static int put(int cgroup_fd, enum bpf_attach_type where, const struct bpf_insn *v, size_t n)
{
	SBX_AUTO_CLOSE int fd = load(where, v, n);
	union bpf_attr attr;

	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)cgroup_fd;
	attr.attach_bpf_fd = (uint32_t)fd;
	attr.attach_type = where;
	attr.attach_flags = BPF_F_ALLOW_MULTI; /* programs of cgroups above and below run too */
	return bpf(BPF_PROG_ATTACH, &attr);
}

static int new_map(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_LRU_HASH;
	attr.key_size = sizeof(uint64_t);
	attr.value_size = sizeof(uint64_t);
	attr.max_entries = SOCKETS_MAX;
	return bpf(BPF_MAP_CREATE, &attr);
}

/* --- the programs: r6 is the context, r7 an address --- */

static int put_connect(int cgroup_fd, uint32_t stub)
{
	const struct bpf_insn v[] = {
		MOV_REG(6, 1),
		LOAD32(0, 6, PORT),
		JNE_IMM(0, htons(DNS_PORT), 5),
		LOAD32(0, 6, PROTO),
		JEQ_IMM(0, IPPROTO_TCP, 1),
		JNE_IMM(0, IPPROTO_UDP, 2),
		MOV32_IMM(7, stub),
		STORE32(6, ADDR, 7),
		PASS,
	};

	return put(cgroup_fd, BPF_CGROUP_INET4_CONNECT, v, SBX_N_ELEMENTS(v));
}

static int put_sendmsg(int cgroup_fd, uint32_t stub, int map_fd)
{
	const struct bpf_insn v[] = {
		MOV_REG(6, 1),
		LOAD32(0, 6, PORT),
		JNE_IMM(0, htons(DNS_PORT), 15),
		LOAD32(7, 6, ADDR),
		MOV_REG(1, 6),
		CALL(BPF_FUNC_get_socket_cookie),
		STORE64(10, -8, 0),
		STORE64(10, -16, 7),
		MAP(1, map_fd),
		MOV_REG(2, 10),
		ADD_IMM(2, -8),
		MOV_REG(3, 10),
		ADD_IMM(3, -16),
		MOV_IMM(4, BPF_ANY),
		CALL(BPF_FUNC_map_update_elem),
		MOV32_IMM(7, stub),
		STORE32(6, ADDR, 7),
		PASS,
	};

	return put(cgroup_fd, BPF_CGROUP_UDP4_SENDMSG, v, SBX_N_ELEMENTS(v));
}

static int put_recvmsg(int cgroup_fd, uint32_t stub, int map_fd)
{
	const struct bpf_insn v[] = {
		MOV_REG(6, 1),
		LOAD32(0, 6, PORT),
		JNE_IMM(0, htons(DNS_PORT), 14),
		LOAD32(0, 6, ADDR),
		MOV32_IMM(7, stub),
		JNE_REG(0, 7, 11),
		MOV_REG(1, 6),
		CALL(BPF_FUNC_get_socket_cookie),
		STORE64(10, -8, 0),
		MAP(1, map_fd),
		MOV_REG(2, 10),
		ADD_IMM(2, -8),
		CALL(BPF_FUNC_map_lookup_elem),
		JEQ_IMM(0, 0, 2),
		LOAD32(7, 0, 0),
		STORE32(6, ADDR, 7),
		PASS,
	};

	return put(cgroup_fd, BPF_CGROUP_UDP4_RECVMSG, v, SBX_N_ELEMENTS(v));
}

int sbx_dns_capture(int cgroup_fd, const struct sbx_addr *stub)
{
	SBX_AUTO_CLOSE int map_fd = -1;
	uint32_t addr;
	int r;

	if (stub->family != 4)
		return -EINVAL;
	memcpy(&addr, stub->b, sizeof(addr)); /* network byte order, like the context */
	map_fd = new_map();
	if (map_fd < 0)
		return map_fd;
	/* Load the program for answers first: no question may be redirected before its answer
	 * can be. */
	r = put_recvmsg(cgroup_fd, addr, map_fd);
	if (r == 0)
		r = put_sendmsg(cgroup_fd, addr, map_fd);
	return r == 0 ? put_connect(cgroup_fd, addr) : r;
}
