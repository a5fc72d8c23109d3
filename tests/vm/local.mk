# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The machine with systemd and cgroup v2: what a build host may lack.
#
#   make check-vm       pytest in the machine, over tests/vm/guest: root, qemu-system-x86, mmdebstrap
#   tests/vm/run -- CMD a command there
#
# The machine's image is made once, in vm/ of the build directory; one boot per call.

EXTRA_DIST += \
	%reldir%/build-image \
	%reldir%/guest/conftest.py \
	%reldir%/guest/machine.py \
	%reldir%/guest/scope.sh \
	%reldir%/guest/test_apart.py \
	%reldir%/guest/test_attach.py \
	%reldir%/guest/test_freeze.py \
	%reldir%/guest/test_limits.py \
	%reldir%/guest/test_sbxd.py \
	%reldir%/guest/test_sbxd_units.py \
	%reldir%/guest/test_slurm.py \
	%reldir%/guest/test_starts.py \
	%reldir%/guest/test_units.py \
	%reldir%/in-guest \
	%reldir%/packages \
	%reldir%/run

# Files of tests/vm/guest, all when empty; how long the machine may live, on a host that is busy with other
# things. pytest is told first, so that it can still write down what it knows.
VM_TESTS =
VM_SECONDS = 1380
check-vm: all install-for-tests
	@rm -rf check-vm.xml vm/results
	@set --; for file in $(VM_TESTS); do set -- "$$@" "tests/vm/guest/$$file"; done; \
	[ $$# -gt 0 ] || set -- tests/vm/guest; \
	status=0; \
	'$(abs_srcdir)/%reldir%/run' -b '$(abs_builddir)' -o vm/results -t $(VM_SECONDS) -- \
		env SBX_INST='$(prefix)' PYTHONDONTWRITEBYTECODE=1 \
		timeout -s INT -k 30 "$$(($(VM_SECONDS) - 90))" /usr/bin/python3 -m pytest \
		-p no:cacheprovider -ra --durations=10 --junitxml=/out/check-vm.xml $(PYTEST_FLAGS) "$$@" || status=$$?; \
	cp vm/results/check-vm.xml . 2>/dev/null || true; \
	exit "$$status"

clean-vm:
	rm -rf vm check-vm.xml
.PHONY: check-vm clean-vm
