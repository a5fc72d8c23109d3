/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lists that hold without any configuration, with the reasons for what is and is not on
 * them. */

#include "policy/shipped.h"

#include <stddef.h>

const char *const sbx_shipped_floors[] = {
	/* A service that tells the caller's address and place: the usual first step of a leak. */
	"ipinfo.io",
	"*.ipinfo.io",

	/* Cloud metadata services give credentials to every process on the machine that asks.
	 * The address class denies their addresses in every embedding as well (base/addr.h). */
	"169.254.169.254", /* AWS, Azure, GCP, OpenStack, DigitalOcean, Oracle, IBM, ... */
	"169.254.170.2",   /* AWS ECS task credentials */
	"100.100.100.200", /* Alibaba Cloud */
	"168.63.129.16",   /* Azure's wire server */
	"192.0.0.192",	   /* Oracle Cloud (classic) */
	"fd00:ec2::254",   /* AWS over IPv6 */

	"metadata",		    /* GCP, by the search domain */
	"metadata.google.internal", /* GCP */
	"*.metadata.google.internal",
	"metadata.goog", /* GCP's public-looking alias */
	"*.metadata.goog",
	"instance-data",	      /* AWS, by the search domain */
	"instance-data.ec2.internal", /* AWS */
	"metadata.azure.internal",    /* Azure */
	"metadata.packet.net",	      /* Equinix Metal */
	"metadata.platformequinix.com",
	"metadata.tencentyun.com", /* Tencent Cloud */
	"metadata.exoscale.com",   /* Exoscale */
	"metadata.cloud.ibm.com",  /* IBM Cloud VPC */
	"*.metadata.cloud.ibm.com",
	"rancher-metadata", /* Rancher */
	NULL,
};

/*
 * Single components only, exact bytes: what is nothing but a credential, and what no build or server of a project needs.
 * Not here, on purpose (sbx-profile(5), MASKS, has the reasons for people):
 * .env: the program that is developed reads its settings there; without it, a dev server is another program.
 * .npmrc, .config, .cargo, .m2: projects have them, with a registry's address and nothing secret.
 * *.pem, *.key: certificates, CA bundles and the fixtures of every TLS library.
 * id_*: only the names that ssh-keygen gives (id_map.c is a source file).
 */
const char *const sbx_shipped_blocked_segments[] = {
	/* keys and agents */
	".ssh",
	".gnupg",
	".password-store",
	"id_dsa",
	"id_ecdsa",
	"id_ecdsa_sk",
	"id_ed25519",
	"id_ed25519_sk",
	"id_rsa",
	".pki",
	"keyrings",
	/* clouds and clusters; ~/.config/gcloud is caught by its last component */
	".aws",
	".azure",
	".boto",
	".kube",
	".s3cfg",
	".terraform.d",
	".vault-token",
	"gcloud",
	/* registries, forges, databases */
	".docker",
	".git-credentials",
	".netrc",
	".my.cnf",
	".pgpass",
	".pypirc",
	/* sessions */
	".Xauthority",
	".ICEauthority",
	".mozilla",
	".thunderbird",
	/* said in so many words */
	".credentials",
	".secrets",
	"credentials",
	"credentials.json",
	"credentials.toml",
	"secrets",
	NULL,
};

/*
 * Most of these could do no harm inside (no capabilities, no_new_privs, seccomp); they are refused
 * so that the refusal names the reason instead of a strange failure later. Both what people type
 * and what the links resolve to (iptables is xtables-nft-multi, modprobe is kmod).
 */
const char *const sbx_shipped_commands_deny[] = {
	/* other identities */
	"sudo",
	"sudoedit",
	"su",
	"doas",
	"pkexec",
	"run0",
	"runuser",
	"newgrp",
	"sg",
	"newuidmap",
	"newgidmap",
	/* packet filters */
	"iptables",
	"iptables-legacy",
	"iptables-nft",
	"iptables-restore",
	"iptables-save",
	"ip6tables",
	"ip6tables-legacy",
	"ip6tables-nft",
	"ip6tables-restore",
	"ip6tables-save",
	"xtables-legacy-multi",
	"xtables-nft-multi",
	"nft",
	"ebtables",
	"ebtables-nft",
	"arptables",
	"arptables-nft",
	"ipset",
	"conntrack",
	"ufw",
	"firewall-cmd",
	/* mounts and namespaces */
	"mount",
	"umount",
	"fusermount",
	"fusermount3",
	"losetup",
	"swapon",
	"swapoff",
	"pivot_root",
	"switch_root",
	"chroot",
	"nsenter",
	"unshare",
	/* the kernel */
	"insmod",
	"modprobe",
	"rmmod",
	"kmod",
	"kexec",
	/* the machine */
	"reboot",
	"shutdown",
	"halt",
	"poweroff",
	"telinit",
	"systemctl",
	"systemd-run",
	"loginctl",
	"machinectl",
	NULL,
};

/* Terminals, languages, switches of tools. Nothing that a shell's start-up puts tokens in, and no
 * *_OPTIONS: NODE_OPTIONS and its kind name files that are not visible inside. */
const char *const sbx_shipped_env_pass[] = {
	"TERM",	       "COLORTERM", "TERM_PROGRAM",	 "NO_COLOR",
	"FORCE_COLOR", "CLICOLOR",  "CLICOLOR_FORCE",	 "COLUMNS",
	"LINES",       "LANG",	    "LANGUAGE",		 "LC_*",
	"TZ",	       "CI",	    "SOURCE_DATE_EPOCH", NULL,
};

/*
 * What computes and is made to be shared by users who do not trust each other. Not here, and for the host's owner to
 * list: dri/card* and nvidia-modeset (who opens a card first may become its master, and read and set the screen), kvm
 * (a large part of the kernel that seccomp's table then says nothing about), fuse and net/tun (of no use without rights
 * that no sandbox has), video*, sound (cameras and microphones), ttyS*, ttyUSB*, usb (whatever is at the other end).
 * Nobody should list mem, port, tty*, console, input, uinput, uhid, vhost*, vfio, loop-control, mapper/control, sg*,
 * nvme*, hidraw*, watchdog*: each of them is the machine.
 */
const char *const sbx_shipped_devices[] = {
	"/dev/nvidia[0-9]*",
	"/dev/nvidiactl",
	"/dev/nvidia-uvm*",
	"/dev/nvidia-caps/*", /* MIG */
	"/dev/dri/renderD*",
	"/dev/kfd",	     /* AMD ROCm, beside renderD* */
	"/dev/accel/accel*", /* neural accelerators */
	"/dev/dxg",	     /* WSL */
	NULL,
};

/* A debugger sees the sandbox's own processes and no others. The rest is the host's owner's to weigh: it opens
 * kernel code that breakouts were built on, or leaves something outside. */
const char *const sbx_shipped_seccomp_allow[] = { "ptrace", NULL };
