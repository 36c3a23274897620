#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""schema.py SCHEMA JSON... : hold documents against a JSON Schema of draft 2020-12, and more
strictly than a reader may: a key that the schema does not name is a complaint too."""
import json
import sys

import jsonschema


def close(node):
    """Objects with named properties take no others."""
    if isinstance(node, dict):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            close(value)
    elif isinstance(node, list):
        for value in node:
            close(value)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    close(schema)
    validator = jsonschema.Draft202012Validator(schema)
    bad = False
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        for error in validator.iter_errors(document):
            path = "/".join(str(p) for p in error.absolute_path)
            print(f"{name}: {path}: {error.message[:200]}")
            bad = True
    return bad


sys.exit(main())
