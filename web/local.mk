# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The page of sbxd: build.sh copies the sources to web/work in the build directory and lets npm and Vite
# make web/dist there. A tarball has the page in web/page, which is then taken as it is.
#
#   make web         builds the page by npm, also where a tarball brought it
#   make check-web   the page in Chromium, over a service that only seems to be one (test/mock)

webdir = $(pkgdatadir)/web

SBX_WEB_PARTS = \
	%reldir%/.npmrc \
	%reldir%/build.sh \
	%reldir%/index.html \
	%reldir%/package-lock.json \
	%reldir%/package.json \
	%reldir%/tsconfig.json \
	%reldir%/vite.config.mjs \
	%reldir%/public/icon.svg \
	%reldir%/src/api/client.ts \
	%reldir%/src/api/events.ts \
	%reldir%/src/api/hooks.ts \
	%reldir%/src/api/live.ts \
	%reldir%/src/api/output.ts \
	%reldir%/src/api/rules.ts \
	%reldir%/src/api/types.ts \
	%reldir%/src/app/app.tsx \
	%reldir%/src/app/content.tsx \
	%reldir%/src/app/login.tsx \
	%reldir%/src/app/nav.tsx \
	%reldir%/src/app/route.ts \
	%reldir%/src/app/session.ts \
	%reldir%/src/main.tsx \
	%reldir%/src/parts/airgap.tsx \
	%reldir%/src/parts/badge.tsx \
	%reldir%/src/parts/confirm.tsx \
	%reldir%/src/parts/dialog.tsx \
	%reldir%/src/parts/events.tsx \
	%reldir%/src/parts/explained.tsx \
	%reldir%/src/parts/field.tsx \
	%reldir%/src/parts/foreign.tsx \
	%reldir%/src/parts/format.ts \
	%reldir%/src/parts/note.tsx \
	%reldir%/src/parts/plot.tsx \
	%reldir%/src/parts/reason.tsx \
	%reldir%/src/parts/table.tsx \
	%reldir%/src/parts/time.tsx \
	%reldir%/src/style/base.css \
	%reldir%/src/style/cards.css \
	%reldir%/src/style/forms.css \
	%reldir%/src/style/layout.css \
	%reldir%/src/style/parts.css \
	%reldir%/src/style/tables.css \
	%reldir%/src/style/views.css \
	%reldir%/src/views/explain.tsx \
	%reldir%/src/views/profiles.tsx \
	%reldir%/src/views/refusals/columns.tsx \
	%reldir%/src/views/refusals/draft.tsx \
	%reldir%/src/views/refusals/events.tsx \
	%reldir%/src/views/refusals/series.tsx \
	%reldir%/src/views/refusals/view.tsx \
	%reldir%/src/views/reviews.tsx \
	%reldir%/src/views/rules/default.tsx \
	%reldir%/src/views/rules/dialog.tsx \
	%reldir%/src/views/rules/draft_tester.tsx \
	%reldir%/src/views/rules/list.tsx \
	%reldir%/src/views/rules/table.tsx \
	%reldir%/src/views/rules/tester.tsx \
	%reldir%/src/views/rules/view.tsx \
	%reldir%/src/views/sandbox/events.tsx \
	%reldir%/src/views/sandbox/facts.tsx \
	%reldir%/src/views/sandbox/flows.tsx \
	%reldir%/src/views/sandbox/limits.tsx \
	%reldir%/src/views/sandbox/network.tsx \
	%reldir%/src/views/sandbox/output.tsx \
	%reldir%/src/views/sandbox/policy.tsx \
	%reldir%/src/views/sandbox/selftest.tsx \
	%reldir%/src/views/sandbox/usage.tsx \
	%reldir%/src/views/sandbox/view.tsx \
	%reldir%/src/views/sandboxes/columns.tsx \
	%reldir%/src/views/sandboxes/first.tsx \
	%reldir%/src/views/sandboxes/usage.ts \
	%reldir%/src/views/sandboxes/view.tsx

SBX_WEB_TESTS = \
	%reldir%/test/actions.test.mjs \
	%reldir%/test/browser.mjs \
	%reldir%/test/chromium.mjs \
	%reldir%/test/driver.mjs \
	%reldir%/test/keyboard.test.mjs \
	%reldir%/test/looks.test.mjs \
	%reldir%/test/output.test.mjs \
	%reldir%/test/trouble.test.mjs \
	%reldir%/test/mock/contract.mjs \
	%reldir%/test/mock/main.mjs \
	%reldir%/test/mock/routes.mjs \
	%reldir%/test/mock/rules.mjs \
	%reldir%/test/mock/server.mjs \
	%reldir%/test/mock/state.mjs

EXTRA_DIST += $(SBX_WEB_PARTS) $(SBX_WEB_TESTS)

# Status 69: the packages could not be had. Unless the page was asked for, that is no error.
SBX_WEB_BUILD = $(SHELL) '$(srcdir)/%reldir%/build.sh' '$(srcdir)/%reldir%' %reldir%/work

if SBX_WEB
SBX_WEB_STAMP = %reldir%/web.stamp
else
SBX_WEB_STAMP =
endif

all-local: $(SBX_WEB_STAMP)

# Of the tests as well: those of the service drive the page by a program among them, in work/test.
%reldir%/web.stamp: $(SBX_WEB_PARTS) $(SBX_WEB_TESTS)
	$(AM_V_at)$(MKDIR_P) %reldir% && rm -rf %reldir%/dist
	$(AM_V_GEN)if test -e '$(srcdir)/%reldir%/page/index.html'; then \
		cp -R '$(srcdir)/%reldir%/page' %reldir%/dist && chmod -R u+w %reldir%/dist; \
	else \
		$(SBX_WEB_BUILD) >%reldir%/build.log 2>&1; status=$$?; \
		if test $$status -ne 0; then \
			tail -n 20 %reldir%/build.log >&2; \
			echo "the page of sbxd was not built: %reldir%/build.log; make web tries again" >&2; \
			test $$status -eq 69 && test '$(SBX_WEB_IS_REQUIRED)' = no; \
		fi; \
	fi
	$(AM_V_at)touch $@

web:
	$(MKDIR_P) %reldir%
	$(SBX_WEB_BUILD)
	touch %reldir%/web.stamp

# The files that Vite makes have fixed names (vite.config.mjs).
SBX_WEB_FILES = index.html page.js page.css icon.svg licenses.txt
install-web:
	@test ! -e %reldir%/dist/index.html || { \
		$(MKDIR_P) '$(DESTDIR)$(webdir)' && \
		cd %reldir%/dist && $(INSTALL_DATA) $(SBX_WEB_FILES) '$(DESTDIR)$(webdir)'; }

if SBX_WEB
install-data-local: $(SBX_WEB_STAMP) install-web
endif

uninstall-local:
	@for file in $(SBX_WEB_FILES); do rm -f "$(DESTDIR)$(webdir)/$$file"; done

dist-hook: $(SBX_WEB_STAMP)
	@if test -e %reldir%/dist/index.html; then \
		$(MKDIR_P) '$(distdir)/%reldir%/page' && cp %reldir%/dist/* '$(distdir)/%reldir%/page'; \
	else \
		echo 'the tarball is without the page of sbxd: it was not built here' >&2; \
	fi

WEB_TESTS =
check-web: web
	@rm -rf %reldir%/screenshots && $(MKDIR_P) %reldir%/screenshots
	cd %reldir%/work && set -- $(WEB_TESTS); test $$# -gt 0 || set -- test/*.test.mjs; \
		SBX_WEB_OPENAPI='$(abs_top_srcdir)/docs/openapi.json' \
		SBX_WEB_DIST='$(abs_builddir)/%reldir%/dist' SBX_WEB_SCREENSHOTS='$(abs_builddir)/%reldir%/screenshots' \
		$(NODE) --test --test-reporter=tap "$$@"

clean-web:
	rm -rf %reldir%/work %reldir%/dist %reldir%/screenshots
	rm -f %reldir%/web.stamp %reldir%/build.log

.PHONY: web install-web check-web clean-web
