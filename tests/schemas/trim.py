"""Makes a schema for the tests from the official definition of a custom resource.

    python tests/schemas/trim.py DEFINITION.yaml tests/schemas/NAME.json.gz

What is left out are descriptions and all versions but the last one that is served.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml


def trim(definition: Any) -> Any:
    """The schema, which also refuses fields that it does not know."""
    served = [version for version in definition["spec"]["versions"] if version["served"]]
    return strict(served[-1]["schema"]["openAPIV3Schema"])


def strict(schema: Any) -> Any:
    """A part of it; a mapping of fields may have one that is called `description`."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    texts = {"description"} if isinstance(schema.get("description"), str) else set()
    kept = {key: strict(part) for key, part in schema.items() if key not in texts}
    if "properties" in kept and not kept.get("x-kubernetes-preserve-unknown-fields"):
        kept.setdefault("additionalProperties", False)
    return kept


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    text = json.dumps(trim(yaml.safe_load(source.read_text(encoding="utf-8"))), separators=(",", ":"))
    target.write_bytes(gzip.compress(text.encode(), mtime=0))
