/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Helper of test_attach_rules.py and of the bench: the operations of sys/nft/nft_attach.h in this
 * network namespace. `attach_case` prints how it is called.
 */
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "sys/net/net.h"
#include "sys/net/sock_cut.h"
#include "tests/unit/attach_cases.h"

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

#define LISTED_MAX 64

static int usage(void)
{
	fputs("attach_case names | text CASE PATH | load CASE CGROUP\n"
	      "            add ID LEVEL CGROUP "
	      "[floor=CIDR|loopback=PORT|dns=ADDR|group=N|admit=CIDR|\n"
	      "                                 cidr=CIDR|refuse=CIDR|full]...\n"
	      "            pin ID AGE/ADDR/PROTO/PORT/MS...\n"
	      "            remove ID LEVEL CGROUP | list | gc DIR | exists DIR CGROUP\n"
	      "            change ID LEVEL CGROUP OPTION... to OPTION... [narrow|widen]\n"
	      "            cut ID CGROUP[,CGROUP]... OPTION... [rules]\n"
	      "            many N LEVEL FIRST | nflog SEED | race ID LEVEL CGROUP TIMES\n",
	      stderr);
	return 2;
}

static int done(int r, const struct sbx_err *err)
{
	if (r < 0)
		fprintf(stderr, "attach_case: %s (%s)\n", err->msg, strerror(-r));
	return r < 0;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

struct options {
	struct sbx_attach_input in;
	struct sbx_cidr floors[LISTED_MAX];
	struct sbx_attach_cidr admitted[LISTED_MAX], cidrs[LISTED_MAX];
	uint16_t ports[LISTED_MAX];
};

static int parse_cidr(const char *text, bool refuse, struct sbx_attach_cidr *ret)
{
	*ret = (struct sbx_attach_cidr){ .port_last = UINT16_MAX, .proto = SBX_PROTO_OTHER,
					 .refuse = refuse };
	return sbx_cidr_parse(text, &ret->cidr);
}

static int parse_option(struct options *o, const char *arg)
{
	struct sbx_attach_input *in = &o->in;

	if (strncmp(arg, "floor=", 6) == 0 && in->n_floors < LISTED_MAX)
		return sbx_cidr_parse(arg + 6, &o->floors[in->n_floors++]);
	if (strncmp(arg, "loopback=", 9) == 0 && in->n_loopback_ports < LISTED_MAX)
		o->ports[in->n_loopback_ports++] = (uint16_t)atoi(arg + 9);
	else if (strncmp(arg, "group=", 6) == 0)
		in->nflog_group = (uint16_t)atoi(arg + 6);
	else if (strncmp(arg, "dns=", 4) == 0)
		return sbx_addr_parse(arg + 4, &in->dns_addr);
	else if (strncmp(arg, "admit=", 6) == 0 && in->n_admitted < LISTED_MAX)
		return parse_cidr(arg + 6, false, &o->admitted[in->n_admitted++]);
	else if (strncmp(arg, "cidr=", 5) == 0 && in->n_cidrs < LISTED_MAX)
		return parse_cidr(arg + 5, false, &o->cidrs[in->n_cidrs++]);
	else if (strncmp(arg, "refuse=", 7) == 0 && in->n_cidrs < LISTED_MAX)
		return parse_cidr(arg + 7, true, &o->cidrs[in->n_cidrs++]);
	else if (strcmp(arg, "full") == 0)
		in->all_destinations = true;
	else
		return -EINVAL;
	return 0;
}

static void options_init(struct options *o, const char *id, uint32_t level, uint64_t cgroup)
{
	*o = (struct options){ .in = { .id = id, .level = level, .cgroup_id = cgroup,
				       .dns_port = 53, .floors = o->floors,
				       .admitted = o->admitted, .cidrs = o->cidrs,
				       .loopback_ports = o->ports } };
}

static int add(int fd, int argc, char **argv)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };
	struct options o;

	options_init(&o, argv[0], (uint32_t)atoi(argv[1]), strtoull(argv[2], NULL, 10));
	for (int i = 3; i < argc; i++)
		if (parse_option(&o, argv[i]) < 0)
			return usage();
	if (sbx_attach_ruleset_new(&o.in, &rs) < 0)
		return usage();
	return done(sbx_attach_add(rs, fd, &err), &err);
}

/* The rules of the first options become those behind "to". "narrow": only until both hold;
 * "widen": from there. */
static int change(int fd, int argc, char **argv)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *from = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *both = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *to = NULL;
	static struct options o[2];
	bool narrow = strcmp(argv[argc - 1], "narrow") == 0;
	bool widen = strcmp(argv[argc - 1], "widen") == 0;
	struct sbx_err err = { 0 };
	int which = 0, r = 0;

	for (int i = 0; i < 2; i++)
		options_init(&o[i], argv[0], (uint32_t)atoi(argv[1]), strtoull(argv[2], NULL, 10));
	for (int i = 3; i < argc - (narrow || widen); i++) {
		if (strcmp(argv[i], "to") == 0)
			which = 1;
		else if (parse_option(&o[which], argv[i]) < 0)
			return usage();
	}
	if (sbx_attach_ruleset_new(&o[0].in, &from) < 0 ||
	    sbx_attach_ruleset_new(&o[1].in, &to) < 0 ||
	    sbx_attach_narrow_new(&o[0].in, &o[1].in, &both) < 0)
		return usage();
	if (!widen)
		r = sbx_attach_change(from, both, fd, &err);
	if (r == 0 && !narrow)
		r = sbx_attach_change(both, to, fd, &err);
	return done(r, &err);
}

struct judged {
	struct sbx_attach_input in;
	struct sbx_attach_pin pins[LISTED_MAX];
	size_t n_pins;
};

static void note_pin(void *userdata, const struct sbx_attach_pin *p)
{
	struct judged *j = userdata;

	if (j->n_pins < LISTED_MAX)
		j->pins[j->n_pins++] = *p;
}

static bool stays(void *userdata, const struct sbx_sock_flow *f)
{
	const struct judged *j = userdata;
	bool pinned = false;

	for (size_t i = 0; i < j->n_pins; i++)
		pinned |= sbx_addr_equal(&j->pins[i].addr, &f->remote) &&
			  j->pins[i].proto == f->proto && j->pins[i].port == f->remote_port;
	return sbx_attach_lets_go_on(&j->in, f, pinned);
}

/* Ends the flows of the cgroups that these rules and the pins do not let pass; prints how many were
 * ended, how many are left, and the time in us. */
static int cut(int fd, int argc, char **argv)
{
	SBX_AUTO_CLOSE int diag = sbx_net_netlink_open(NETLINK_SOCK_DIAG);
	uint64_t cgroups[SBX_SOCK_CUT_CGROUPS_MAX];
	bool rules = strcmp(argv[argc - 1], "rules") == 0;
	double start = now_us();
	struct sbx_sock_cut c;
	static struct options o;
	static struct judged j;
	size_t n = 0;
	int r;

	options_init(&o, argv[0], 1, 1);
	for (int i = 2; i < argc - rules; i++)
		if (parse_option(&o, argv[i]) < 0)
			return usage();
	for (char *t = strtok(argv[1], ","); t; t = strtok(NULL, ","))
		cgroups[n++] = strtoull(t, NULL, 10);
	j.in = o.in;
	r = sbx_attach_pins_each(argv[0], fd, note_pin, &j);
	if (r == 0)
		r = sbx_sock_cut(diag, cgroups, n, !rules, stays, &j, &c);
	if (r == 0)
		printf("%zu %zu %.0f\n", c.n_ended, c.n_left, now_us() - start);
	return done(r, &(struct sbx_err){ 0 });
}

static int parse_pin(char *text, struct sbx_attach_pin *p)
{
	char *age = strtok(text, "/"), *addr = strtok(NULL, "/"), *proto = strtok(NULL, "/");
	char *port = strtok(NULL, "/"), *ms = strtok(NULL, "/");

	if (!ms)
		return -EINVAL;
	*p = (struct sbx_attach_pin){
		.proto = strcmp(proto, "tcp") == 0 ? SBX_PROTO_TCP : SBX_PROTO_UDP,
		.port = (uint16_t)atoi(port),
		.age = strcmp(age, "old") == 0 ? SBX_ATTACH_OLD : SBX_ATTACH_CURRENT,
		.timeout_ms = strtoull(ms, NULL, 10),
	};
	return sbx_addr_parse(addr, &p->addr);
}

static int pin(int fd, int argc, char **argv)
{
	struct sbx_attach_pin v[LISTED_MAX];
	struct sbx_err err = { 0 };

	if (argc - 1 > LISTED_MAX)
		return usage();
	for (int i = 1; i < argc; i++)
		if (parse_pin(argv[i], &v[i - 1]) < 0)
			return usage();
	return done(sbx_attach_pin(argv[0], v, (size_t)(argc - 1), fd, &err), &err);
}

static int list(int fd)
{
	static struct sbx_attach_entry v[4096];
	int n = sbx_attach_list(fd, v, SBX_N_ELEMENTS(v));

	for (int i = 0; i < n; i++)
		printf("%s %u %llu\n", v[i].id, (unsigned)v[i].level,
		       (unsigned long long)v[i].cgroup_id);
	return n < 0;
}

/* Sandboxes of cgroups that no one is in, for the bench; prints the microseconds each took. */
static int many(int fd, unsigned first, unsigned n, uint32_t level)
{
	double start = now_us();

	for (unsigned i = first; i < first + n; i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
		struct sbx_attach_input in = attach_case_find("names")->in;
		struct sbx_err err = { 0 };
		char id[16];

		snprintf(id, sizeof(id), "%x", 0x10000 + i);
		in.id = id;
		in.level = level;
		in.cgroup_id = UINT64_C(1) << 40 | i;
		if (sbx_attach_ruleset_new(&in, &rs) < 0 || sbx_attach_add(rs, fd, &err) < 0)
			return done(-EIO, &err);
	}
	printf("%.0f\n", n ? (now_us() - start) / n : 0);
	return 0;
}

/* Add and remove, again and again: several of these side by side must all succeed. */
static int race(int fd, const char *id, uint32_t level, uint64_t cgroup_id, int times)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	struct sbx_attach_input in = attach_case_find("names")->in;
	struct sbx_err err = { 0 };
	int r = 0;

	in.id = id;
	in.level = level;
	in.cgroup_id = cgroup_id;
	if (sbx_attach_ruleset_new(&in, &rs) < 0)
		return usage();
	for (int i = 0; r == 0 && i < times; i++) {
		r = sbx_attach_add(rs, fd, &err);
		if (r == 0)
			r = sbx_attach_remove(id, level, cgroup_id, fd, &err);
	}
	return done(r, &err);
}

static void print_packet(void *userdata, const struct sbx_nflog_packet *p)
{
	char buf[SBX_ADDR_STR_MAX];

	(void)userdata;
	printf("%s %u %u\n", sbx_addr_format(&p->dst, buf, sizeof(buf)), p->l4proto, p->dport);
}

/* "group N", then a line for every packet until stdin ends. */
static int nflog(uint64_t seed)
{
	uint16_t group = 0;
	SBX_AUTO_CLOSE int fd = sbx_attach_nflog_open(seed, 128, &group);
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = 0, .events = POLLIN } };

	if (fd < 0) {
		fprintf(stderr, "attach_case: %s\n", strerror(-fd));
		return 1;
	}
	printf("group %u\n", group);
	fflush(stdout);
	while (poll(fds, 2, -1) > 0) {
		char buf[8192];
		ssize_t n;

		while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
			sbx_nflog_parse(sbx_span(buf, (size_t)n), print_packet, NULL);
		fflush(stdout);
		if (fds[1].revents)
			break;
	}
	return 0;
}

static int gc(int fd, const char *dir)
{
	SBX_AUTO_CLOSE int cgroup2 = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sbx_err err = { 0 };
	int n = sbx_attach_gc(fd, cgroup2, &err);

	if (n >= 0)
		printf("%d\n", n);
	return done(n, &err);
}

static int exists(const char *dir, uint64_t id)
{
	SBX_AUTO_CLOSE int cgroup2 = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	printf("%d\n", sbx_attach_cgroup_exists(cgroup2, id));
	return 0;
}

static int cases(int fd, char **argv)
{
	const struct attach_case *c = attach_case_find(argv[1]);
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_attach_input in;
	struct sbx_err err = { 0 };

	if (!c)
		return usage();
	in = c->in;
	if (strcmp(argv[0], "load") == 0)
		in.cgroup_id = strtoull(argv[2], NULL, 10);
	else
		in.cgroup_path = argv[2];
	if (sbx_attach_ruleset_new(&in, &rs) < 0)
		return usage();
	if (in.cgroup_id)
		return done(sbx_attach_add(rs, fd, &err), &err);
	text = sbx_nft_ruleset_text(rs);
	if (!text)
		return 1;
	fputs(text, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	const char *command = argc > 1 ? argv[1] : "";
	struct sbx_err err = { 0 };

	if (fd < 0)
		return done(fd, &err);
	if (strcmp(command, "names") == 0) {
		for (size_t i = 0; i < SBX_N_ELEMENTS(attach_cases); i++)
			puts(attach_cases[i].name);
		return 0;
	}
	if ((strcmp(command, "text") == 0 || strcmp(command, "load") == 0) && argc == 4)
		return cases(fd, argv + 1);
	if (strcmp(command, "add") == 0 && argc >= 5)
		return add(fd, argc - 2, argv + 2);
	if (strcmp(command, "change") == 0 && argc >= 6)
		return change(fd, argc - 2, argv + 2);
	if (strcmp(command, "cut") == 0 && argc >= 4)
		return cut(fd, argc - 2, argv + 2);
	if (strcmp(command, "pin") == 0 && argc >= 4)
		return pin(fd, argc - 2, argv + 2);
	if (strcmp(command, "remove") == 0 && argc == 5)
		return done(sbx_attach_remove(argv[2], (uint32_t)atoi(argv[3]),
					      strtoull(argv[4], NULL, 10), fd, &err),
			    &err);
	if (strcmp(command, "list") == 0 && argc == 2)
		return list(fd);
	if (strcmp(command, "gc") == 0 && argc == 3)
		return gc(fd, argv[2]);
	if (strcmp(command, "exists") == 0 && argc == 4)
		return exists(argv[2], strtoull(argv[3], NULL, 10));
	if (strcmp(command, "many") == 0 && argc == 5)
		return many(fd, (unsigned)atoi(argv[4]), (unsigned)atoi(argv[2]),
			    (uint32_t)atoi(argv[3]));
	if (strcmp(command, "nflog") == 0 && argc == 3)
		return nflog(strtoull(argv[2], NULL, 10));
	if (strcmp(command, "race") == 0 && argc == 6)
		return race(fd, argv[2], (uint32_t)atoi(argv[3]), strtoull(argv[4], NULL, 10),
			    atoi(argv[5]));
	return usage();
}
