/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Control groups, the part that needs no kernel: names, files and values. PURE. */
#include "sys/cgroup/cgroup_plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CPU_PERIOD_US	 100000
#define CPU_QUOTA_MIN_US 1000 /* kernel/sched/core.c: min_cfs_quota_period */

static const char *const controller_names[] = {
	[SBX_CGROUP_CPU] = "cpu",
	[SBX_CGROUP_MEMORY] = "memory",
	[SBX_CGROUP_PIDS] = "pids",
	[SBX_CGROUP_IO] = "io",
};
_Static_assert(SBX_N_ELEMENTS(controller_names) == SBX_N_CGROUP_CONTROLLERS,
	       "a name per controller");

const char *sbx_cgroup_controller_str(enum sbx_cgroup_controller c)
{
	return controller_names[c];
}

bool sbx_cgroup_parse_own(const char *text, char *ret_own, size_t n)
{
	while (text && *text) {
		size_t n_line = strcspn(text, "\n");

		if (strncmp(text, "0::/", 4) == 0) {
			const char *own = text + 3;
			size_t n_own = n_line - 3;

			/* "/..": above the root of our cgroup namespace. " (deleted)": removed
			 * under us. */
			if (n_own >= n || strncmp(own, "/..", 3) == 0 ||
			    (n_own > 10 && strncmp(own + n_own - 10, " (deleted)", 10) == 0))
				return false;
			memcpy(ret_own, own, n_own);
			ret_own[n_own] = '\0';
			return true;
		}
		text += n_line + (text[n_line] == '\n');
	}
	return false;
}

uint32_t sbx_cgroup_parse_controllers(const char *text)
{
	uint32_t bits = 0;

	while (text && *text) {
		size_t n = strcspn(text, " \n");

		for (size_t i = 0; i < SBX_N_ELEMENTS(controller_names); i++)
			if (n == strlen(controller_names[i]) &&
			    strncmp(text, controller_names[i], n) == 0)
				bits |= SBX_CGROUP_BIT(i);
		text += n + (text[n] != '\0');
	}
	return bits;
}

bool sbx_cgroup_is_unit(const char *name)
{
	static const char *const suffixes[] = { ".service", ".scope", ".slice",
						".socket",  ".mount", ".swap" };
	size_t n = strlen(name);

	for (size_t i = 0; i < SBX_N_ELEMENTS(suffixes); i++) {
		size_t n_suffix = strlen(suffixes[i]);

		if (n > n_suffix && strcmp(name + n - n_suffix, suffixes[i]) == 0)
			return true;
	}
	return false;
}

__attribute__((format(printf, 5, 6))) static void
put(struct sbx_cgroup_write *v, size_t *n, enum sbx_cgroup_controller c, const char *file,
    const char *fmt, ...)
{
	va_list ap;

	v[*n] = (struct sbx_cgroup_write){ .file = file, .controller = c };
	va_start(ap, fmt);
	if (vsnprintf(v[*n].value, sizeof(v[*n].value), fmt, ap) >= (int)sizeof(v[*n].value))
		abort(); /* numbers and words of our own always fit */
	va_end(ap);
	(*n)++;
}

size_t sbx_cgroup_plan(const struct sbx_cgroup_limits *l, uint32_t controllers,
		       struct sbx_cgroup_write v[SBX_CGROUP_WRITES_MAX])
{
	size_t n = 0;

	if (l->memory_bytes && controllers & SBX_CGROUP_BIT(SBX_CGROUP_MEMORY)) {
		put(v, &n, SBX_CGROUP_MEMORY, "memory.max", "%" PRIu64, l->memory_bytes);
		/* No swap: it would add to the limit. The sandbox is killed as a whole: half a
		 * sandbox is of no use. */
		put(v, &n, SBX_CGROUP_MEMORY, "memory.swap.max", "0");
		v[n - 1].optional = true; /* a kernel without swap has no such file */
		put(v, &n, SBX_CGROUP_MEMORY, "memory.oom.group", "1");
		v[n - 1].optional = true; /* Linux 4.19 */
	}
	if (l->cpus_milli && controllers & SBX_CGROUP_BIT(SBX_CGROUP_CPU)) {
		uint64_t quota = (uint64_t)l->cpus_milli * (CPU_PERIOD_US / 1000);

		put(v, &n, SBX_CGROUP_CPU, "cpu.max", "%" PRIu64 " %d",
		    quota < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : quota, CPU_PERIOD_US);
	}
	if (l->pids && controllers & SBX_CGROUP_BIT(SBX_CGROUP_PIDS))
		put(v, &n, SBX_CGROUP_PIDS, "pids.max", "%" PRIu64,
		    (uint64_t)l->pids + SBX_CGROUP_PIDS_OURS);
	if (l->io_weight && controllers & SBX_CGROUP_BIT(SBX_CGROUP_IO)) {
		put(v, &n, SBX_CGROUP_IO, "io.weight", "default %" PRIu32, l->io_weight);
		v[n - 1].optional = true; /* the file needs a disk scheduler with weights */
	}
	return n;
}

int64_t sbx_cgroup_parse_value(const char *text, const char *key)
{
	const char *space = strchr(key, ' ');
	size_t n_word = space ? (size_t)(space - key) : strlen(key);

	for (const char *line = text; line && *line;) {
		size_t n_line = strcspn(line, "\n");
		const char *value = NULL;

		if (n_line > n_word && strncmp(line, key, n_word) == 0 && line[n_word] == ' ') {
			value = line + n_word + 1;
			if (space) { /* PSI: "some avg10=0.00 ... total=12345" */
				const char *at = strstr(value, space + 1);
				size_t n_key = strlen(space + 1);

				value = at && at < line + n_line && at[n_key] == '=' ?
						at + n_key + 1 :
						NULL;
			}
		}
		if (value && *value >= '0' && *value <= '9') {
			char *end;
			unsigned long long x = strtoull(value, &end, 10);

			return x > INT64_MAX ? INT64_MAX : (int64_t)x;
		}
		line += n_line + (line[n_line] == '\n');
	}
	return -1;
}
