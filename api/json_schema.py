"""JSON schemas of request bodies that the endpoints read themselves."""

from typing import Any

from pydantic import BaseModel

BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
"""A file."""


def describe_body(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` in one piece, because OpenAPI looks for its parts elsewhere."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        members = {name: inline(value) for name, value in node.items() if name != "$ref"}
        return members if "$ref" not in node else inline(parts[node["$ref"].rpartition("/")[2]]) | members

    return dict(inline(schema))
