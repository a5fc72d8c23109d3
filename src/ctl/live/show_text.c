/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/live/show_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/print/form.h"

struct text {
	char *s;
	size_t n;
	FILE *f;
	size_t n_parts;
};

static bool begin(struct text *t)
{
	t->f = open_memstream(&t->s, &t->n);
	return t->f != NULL;
}

/* Separates the next part from those before. */
static FILE *part(struct text *t)
{
	fputs(t->n_parts++ ? ", " : "", t->f);
	return t->f;
}

static char *finish(struct text *t)
{
	if (fclose(t->f) != 0 || t->n_parts == 0) {
		free(t->s);
		t->s = NULL;
	}
	return t->s;
}

char *sbx_show_network(const json_t *network)
{
	const char *mode = json_string_value(json_object_get(network, "mode"));
	const char *attach = json_string_value(json_object_get(network, "attach"));
	const json_t *resolver;
	struct text t = { 0 };
	size_t i;

	if (!mode || !begin(&t))
		return NULL;
	fputs(mode, part(&t));
	if (attach)
		fprintf(part(&t), "attach %s", attach);
	json_array_foreach(json_object_get(network, "resolvers"), i, resolver)
	{
		const char *address = json_string_value(json_object_get(resolver, "address"));

		if (address)
			fprintf(part(&t), "resolver %s", address);
	}
	return finish(&t);
}

/* --- limits --- */

static bool ends_in(const char *key, const char *suffix, size_t *ret_len)
{
	size_t n = strlen(key), k = strlen(suffix);
	bool yes = n > k && strcmp(key + n - k, suffix) == 0;

	*ret_len = yes ? n - k : n;
	return yes;
}

/* "memory 1.0 GiB" of "memory_bytes" */
static void quantity(FILE *f, const char *key, json_int_t v)
{
	char buf[SBX_FORM_MAX];
	size_t n;

	if (ends_in(key, "_bytes", &n))
		fprintf(f, "%.*s %s", (int)n, key, sbx_form_bytes((uint64_t)v, buf));
	else if (ends_in(key, "_ms", &n))
		fprintf(f, "%.*s %gs", (int)n, key, (double)v / 1000);
	else if (ends_in(key, "_milli", &n))
		fprintf(f, "%.*s %g", (int)n, key, (double)v / 1000);
	else
		fprintf(f, "%s %lld", key, (long long)v);
}

char *sbx_show_limits(const json_t *limits)
{
	struct text t = { 0 };
	const char *key;
	json_t *limit;

	if (!json_is_object(limits) || !begin(&t))
		return NULL;
	json_object_foreach((json_t *)(uintptr_t)limits, key, limit)
	{
		const json_t *asked = json_object_get(limit, "asked");
		const json_t *ceiling = json_object_get(limit, "ceiling");
		const char *by = json_string_value(json_object_get(limit, "enforced_by"));
		bool lower = json_is_integer(ceiling) &&
			     (!json_is_integer(asked) ||
			      json_integer_value(ceiling) < json_integer_value(asked));

		if (!json_is_integer(asked) && !lower)
			continue;
		quantity(part(&t), key, json_integer_value(lower ? ceiling : asked));
		if (by)
			fprintf(t.f, " (%s%s)", strcmp(by, "nothing") == 0 ? "enforced by " : "",
				by);
	}
	return finish(&t);
}

/* --- usage, self-test --- */

char *sbx_show_usage(const json_t *usage)
{
	static const char *const counts[] = { "pids_peak", "pids_refused", "oom_kills" };
	static const char *const names[] = { "processes at most", "forks refused", "OOM kills" };
	const json_t *cpu = json_object_get(usage, "cpu_us");
	const json_t *memory = json_object_get(usage, "memory_peak_bytes");
	char buf[SBX_FORM_MAX];
	struct text t = { 0 };

	if (!json_is_object(usage) || !begin(&t))
		return NULL;
	if (json_is_integer(cpu))
		fprintf(part(&t), "cpu %.2fs", (double)json_integer_value(cpu) / 1e6);
	if (json_is_integer(memory))
		fprintf(part(&t), "memory at most %s",
			sbx_form_bytes((uint64_t)json_integer_value(memory), buf));
	for (size_t i = 0; i < SBX_N_ELEMENTS(counts); i++) {
		const json_t *n = json_object_get(usage, counts[i]);

		if (json_integer_value(n) > 0)
			fprintf(part(&t), "%s %lld", names[i], (long long)json_integer_value(n));
	}
	return finish(&t);
}

char *sbx_show_selftest(const json_t *selftest)
{
	const json_t *probe;
	struct text t = { 0 };
	size_t i, n_ok = 0;

	if (!json_is_array(selftest) || json_array_size(selftest) == 0 || !begin(&t))
		return NULL;
	json_array_foreach(selftest, i, probe)
	{
		const char *name = json_string_value(json_object_get(probe, "probe"));
		const char *detail = json_string_value(json_object_get(probe, "detail"));

		if (json_is_true(json_object_get(probe, "ok")))
			n_ok++;
		else
			fprintf(part(&t), "%s FAILED (%s)", name ? name : "?",
				detail ? detail : "?");
	}
	fprintf(part(&t), "%zu probe%s passed", n_ok, n_ok == 1 ? "" : "s");
	return finish(&t);
}
