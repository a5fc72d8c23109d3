# SPDX-License-Identifier: LGPL-2.1-or-later

dist_doc_DATA = \
	README.md NEWS.md SECURITY.md \
	%reldir%/AGENTS.md \
	%reldir%/API.md \
	%reldir%/ARCHITECTURE.md \
	%reldir%/CONTROL.md \
	%reldir%/control.schema.json \
	%reldir%/grafana-dashboard.json \
	%reldir%/HACKING.md \
	%reldir%/openapi.json \
	%reldir%/PROTECTED.md \
	%reldir%/RULES.md \
	%reldir%/RUNNERS.md \
	%reldir%/SBXD.md \
	%reldir%/SECCOMP.md \
	%reldir%/SECRETS.md \
	%reldir%/DATABASE.md \
	%reldir%/SLURM.md \
	%reldir%/SYSTEMD.md \
	%reldir%/THREATS.md \
	%reldir%/sbxctl.schema.json

imagesdir = $(docdir)/images
dist_images_DATA = \
	%reldir%/images/refusals.png \
	%reldir%/images/sandboxes.png

architecturedir = $(docdir)/architecture
dist_architecture_DATA = \
	%reldir%/architecture/attach.md \
	%reldir%/architecture/flow.md \
	%reldir%/architecture/ipc.md \
	%reldir%/architecture/run.md

# The schemas of the API's answers, which sbxd reads at its start.
dist_pkgdata_DATA = %reldir%/api-schemas.json
