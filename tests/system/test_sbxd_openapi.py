# SPDX-License-Identifier: LGPL-2.1-or-later
"""
openapi.json: it keeps the rules of OpenAPI 3.1, and is true. Each route is called as it says, and with requests that
it does not allow: those are problems that name the member, and nothing makes the service fail.
"""
import json
import os
import random
import re
import time
import urllib.parse

import jsonschema
import pytest

from sbxd import service

METHODS = ("get", "post", "put", "patch", "delete")
SCHEMA_KEYS = {"type", "description", "properties", "required", "additionalProperties", "items", "enum", "oneOf", "$ref", "pattern",
               "minimum", "maximum", "maxLength", "minLength", "maxItems", "format", "const"}
# Ids, SQL, paths, shells, templates, lengths, bytes.
NASTY = ["'", "' OR '1'='1", "1; DROP TABLE sandbox;--", "%27", "..", "../../etc/passwd", "..%2f..%2fetc", "/etc/passwd", "-", "--help",
         "-x", "$(id)", "`id`", "{{7*7}}", "%s%n", "%00", "\u202e", "é", "\U0001f600", "a" * 5000, "0", "-1", "1e3", "9" * 30, "null",
         "000000000000", "*", "?", "#", "\\", "\t", "\n", "\x7f", "<script>alert(1)</script>", ""]


# --- the document ---

def document(sbx):
    with service(sbx) as s:
        return s.openapi


def refs(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for v in node.values():
            yield from refs(v)
    elif isinstance(node, list):
        for v in node:
            yield from refs(v)


def resolve(doc, ref):
    assert ref.startswith("#/"), ref
    node = doc
    for part in ref[2:].split("/"):
        node = node[part]
    return node


def check_schema(schema):
    """A schema of the 2020-12 dialect, with the keywords that the documents here use."""
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema) <= SCHEMA_KEYS, schema
    assert set(schema.get("required", ())) <= set(schema.get("properties", {})), schema
    for part in [*schema.get("properties", {}).values(), *schema.get("oneOf", ()),
                 *(schema[k] for k in ("items", "additionalProperties") if isinstance(schema.get(k), dict))]:
        check_schema(part)


def operations(doc):
    for path, item in doc["paths"].items():
        assert set(item) <= set(METHODS), path
        for method, op in item.items():
            yield method.upper(), path, op


def test_the_document_keeps_the_rules(sbx):
    doc = document(sbx)
    assert re.fullmatch(r"3\.1\.\d+", doc["openapi"]) and doc["info"]["title"] and doc["info"]["version"]
    assert set(doc) <= {"openapi", "info", "servers", "paths", "components", "security", "tags"}
    assert set(doc["components"]) <= {"schemas", "securitySchemes"}
    for name, schema in doc["components"]["schemas"].items():
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
        check_schema(schema)
    for ref in refs(doc):
        assert resolve(doc, ref)
    for scheme in doc["components"]["securitySchemes"].values():
        assert scheme["type"] in ("http", "apiKey")
    ids = [op["operationId"] for _, _, op in operations(doc)]
    assert len(set(ids)) == len(ids)
    templates = [re.sub(r"\{[^}]*\}", "{}", path) for path in doc["paths"]]
    assert len(set(templates)) == len(templates)


def test_the_operations_keep_the_rules(sbx):
    doc = document(sbx)
    schemes = set(doc["components"]["securitySchemes"])
    for method, path, op in operations(doc):
        assert path.startswith("/") and op["summary"] and op["x-role"] in ("none", "viewer", "operator", "admin")
        names = [(p["name"], p["in"]) for p in op["parameters"]]
        assert len(set(names)) == len(names)
        assert {n for n, where in names if where == "path"} == set(re.findall(r"\{([^}]+)\}", path))
        for p in op["parameters"]:
            assert p["in"] in ("path", "query", "header") and (p["in"] != "path" or p["required"] is True)
            check_schema(p["schema"])
        assert all(re.fullmatch(r"[1-5]\d\d|default", status) for status in op["responses"]) and op["responses"]
        for response in op["responses"].values():
            assert response["description"]
            for content in response.get("content", {}).values():
                check_schema(content.get("schema", {}))
        if "requestBody" in op:
            assert method in ("POST", "PUT", "PATCH")
            content = op["requestBody"]["content"]["application/json"]
            check_schema(content["schema"])
            if "example" in content:
                jsonschema.Draft202012Validator(content["schema"]).validate(content["example"])
        for requirement in op.get("security", doc["security"]):
            assert set(requirement) <= schemes


def test_the_installed_document_is_the_services(sbx):
    with open(os.path.join(os.environ["SBX_SRCDIR"], "docs/openapi.json"), encoding="utf-8") as f:
        assert json.load(f) == document(sbx)


# --- driven from it ---

def fill(path, value="000000000000"):
    return re.sub(r"\{[^}]*\}", urllib.parse.quote(value, safe=""), path)


def good(schema):
    """A value that the schema allows."""
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {k: good(v) for k, v in schema.get("properties", {}).items() if k in schema.get("required", ())}
    return {"string": "a", "integer": max(1, schema.get("minimum", 1)), "boolean": True, "array": []}[kind]


def wrong(schema):
    """Values that the schema forbids."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    values = [v for k, v in (("string", "x"), ("integer", 1), ("boolean", True), ("array", ["x"]), ("object", {"x": {}}), ("null", None))
              if k not in kinds]
    yield from values
    if "string" in kinds:
        yield "x" * (schema.get("maxLength", 1024) + 1)
        yield "a\u0007b"
        if "enum" in schema:
            yield "none of these"
    if "integer" in kinds:
        yield from (1.5, schema.get("minimum", 0) - 1, schema.get("maximum", 2**63 - 1) + 1, 10**30)
    if "array" in kinds:
        yield ["x"] * (schema.get("maxItems", 256) + 1)
        yield ["ok", 1]
    if "object" in kinds and isinstance(schema.get("additionalProperties"), dict):
        yield {"x": 1}


def bad_bodies(schema):
    """(body, the member that is wrong)"""
    base = good(schema)
    for name in schema.get("required", ()):
        yield {k: v for k, v in base.items() if k != name}, name
    yield {**base, "no_such_member": 1}, "no_such_member"
    for name, part in schema["properties"].items():
        if part.get("type") in ("object", ["object", "null"]) and "properties" in part:
            for body, inner in bad_bodies(part):
                yield {**base, name: body}, f"{name}.{inner}"
        if part.get("type") == "array" and "properties" in part["items"]:
            for body, inner in bad_bodies(part["items"]):
                yield {**base, name: [body]}, f"{name}[0].{inner}"
        for value in wrong(part):
            yield {**base, name: value}, name


def skips(op):
    """It would end the service's own session or follow for ever; other tests call it."""
    return op["operationId"] in ("logout", "postLogout")


def call(s, method, path, body=None):
    """Its answer, held against the document; later, if the caller was too quick."""
    while (a := s.send(method, path, body)[1]).status == 429:
        time.sleep(0.2)
    s.hold(method, path, a)
    return a


def test_wrong_bodies_name_the_member(sbx):
    n = 0
    with service(sbx) as s:
        for method, path, op in operations(s.openapi):
            if "requestBody" not in op:
                continue
            for body, name in bad_bodies(op["requestBody"]["content"]["application/json"]["schema"]):
                a = call(s, method, fill(path), body)
                assert 400 <= a.status < 500, (method, path, body, a)
                if a.status in (400, 422):
                    assert a.json.get("field", "").startswith(name) or a.json.get("field") == "body", (method, path, body, a)
                n += 1
        assert s.get("/healthz") and n > 40


def test_wrong_parameters_name_the_parameter(sbx):
    with service(sbx) as s:
        for method, path, op in operations(s.openapi):
            if method != "GET":
                continue
            a = call(s, method, fill(path) + "?no_such_parameter=1")
            assert a.status == 400 and a.json["field"] == "no_such_parameter", (path, a)
            for p in op["parameters"]:
                if p["in"] == "query" and p["schema"].get("type") == "integer":
                    a = call(s, method, fill(path) + f"?{p['name']}=x")
                    assert a.status == 400 and a.json["field"] == p["name"], (path, a)


def test_every_route_is_reachable(sbx):
    """Each answers in the way that the document says (Api.hold), whatever it is asked about is not there."""
    with service(sbx) as s:
        for method, path, op in operations(s.openapi):
            if skips(op):
                continue
            body = op.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = body.get("example", good(body["schema"]) if body else None)
            a = call(s, method, fill(path), body)
            assert a.status < 500 and a.status not in (405, 415), (method, path, a)
            assert a.status != 404 or "{" in path, (method, path, a)
        assert s.get("/healthz")


@pytest.mark.parametrize("seed", range(4))
def test_nothing_makes_it_fail(sbx, seed):
    """Random paths, parameters and bodies: never a 5xx, and the service lives."""
    rng = random.Random(seed)

    def value(depth=0):
        return rng.choice([lambda: rng.choice(NASTY), lambda: rng.choice([0, -1, 1, 2**63 - 1, -2**63, 10**40, 1.5, True, False, None]),
                           lambda: [value(depth + 1) for _ in range(rng.randrange(4))] if depth < 3 else [],
                           lambda: {rng.choice(NASTY): value(depth + 1) for _ in range(rng.randrange(4))} if depth < 3 else {}])()

    def loosely(schema):
        """Mostly what the schema allows, with strings that hurt."""
        if rng.random() < 0.15:
            return value()
        kind = schema.get("type", "string")
        kind = rng.choice(kind) if isinstance(kind, list) else kind
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if kind == "object":
            return {k: loosely(v) for k, v in schema.get("properties", {}).items()
                    if k in schema.get("required", ()) or rng.random() < 0.5}
        return {"string": lambda: rng.choice(NASTY), "integer": lambda: rng.choice([0, 1, 80, 10**6]),
                "boolean": lambda: rng.random() < 0.5, "array": lambda: [rng.choice(NASTY) for _ in range(rng.randrange(3))],
                "null": lambda: None}[kind]()

    with service(sbx) as s:
        rows = [(m, p, op) for m, p, op in operations(s.openapi) if not skips(op)]
        for _ in range(150):
            method, path, op = rng.choice(rows)
            where = re.sub(r"\{[^}]*\}", lambda _: urllib.parse.quote(rng.choice(NASTY), safe=rng.choice(["", "/%"])), path)
            names = [p["name"] for p in op["parameters"] if p["in"] == "query"]
            if names and rng.random() < 0.7:
                where += "?" + "&".join(f"{n}={urllib.parse.quote(rng.choice(NASTY), safe='')}"
                                        for n in rng.sample(names, rng.randrange(1, min(4, len(names) + 1))))
            if not re.fullmatch(r"[\x21-\x7e]+", where):
                continue  # Python's client does not send it
            body = None
            if "requestBody" in op:
                body = json.dumps(loosely(op["requestBody"]["content"]["application/json"]["schema"]))
                if rng.random() < 0.1:
                    at = rng.randrange(len(body) + 1)
                    body = body[:at] + rng.choice(["\x00", "}", "\"", "\\ud800"]) + body[at:]
            a = call(s, method, where, body)
            assert a.status < 500, (seed, method, where, body, a)
        assert s.get("/healthz")
