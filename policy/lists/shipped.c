/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lists that hold without any configuration, with the reasons for their entries and for missing
 * ones. */

#include "policy/lists/shipped.h"

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
 * Single components, exact bytes. Each name is only a credential, and no build or server of a
 * project needs it. Not here (sbx-profile(5), MASKS, has the reasons for users):
 * - .env: the program under development reads its settings there, and would not run without it.
 * - .npmrc, .config, .cargo, .m2: projects have them, with a registry's address and no secret.
 * - *.pem, *.key: certificates, CA bundles and the fixtures of every TLS library.
 * - id_*: only the names that ssh-keygen gives (id_map.c is a source file).
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
	/* names that tell the content */
	".credentials",
	".secrets",
	"credentials",
	"credentials.json",
	"credentials.toml",
	"secrets",
	NULL,
};

/*
 * Most of these could do no harm inside (no capabilities, no_new_privs, seccomp). They are refused
 * so that the message names the reason, and no strange failure follows later. The list has the
 * names that people type and the names that the links resolve to (iptables is xtables-nft-multi,
 * modprobe is kmod).
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

/* Terminals, languages, switches of tools. No variable that shell startup files put tokens in, and
 * no *_OPTIONS: NODE_OPTIONS and the like name files that are not visible inside. */
const char *const sbx_shipped_env_pass[] = {
	"TERM",	       "COLORTERM", "TERM_PROGRAM",	 "NO_COLOR",
	"FORCE_COLOR", "CLICOLOR",  "CLICOLOR_FORCE",	 "COLUMNS",
	"LINES",       "LANG",	    "LANGUAGE",		 "LC_*",
	"TZ",	       "CI",	    "SOURCE_DATE_EPOCH", NULL,
};

/*
 * Devices for computing that are made to be shared by users who do not trust each other. The host's
 * owner may add others: dri/card* and nvidia-modeset (the first one to open a card may become its
 * master, and read and set the screen), kvm (a large part of the kernel, which seccomp's table does
 * not filter), fuse and net/tun (useless without privileges that no sandbox has), video* and sound
 * (cameras and microphones), ttyS*, ttyUSB* and usb (any device may be connected). Nobody should
 * add mem, port, tty*, console, input, uinput, uhid, vhost*, vfio, loop-control, mapper/control,
 * sg*, nvme*, hidraw*, watchdog*: each of them gives control of the machine.
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

/* A debugger sees only the sandbox's own processes. The host's owner decides on the other groups:
 * they open kernel code that breakouts have used, or let files stay that others may run. */
const char *const sbx_shipped_seccomp_allow[] = { "ptrace", NULL };
