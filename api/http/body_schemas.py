"""JSON schemas of bodies that routes read themselves, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel

BINARY_SCHEMA: dict[str, Any] = {"type": "string", "format": "binary"}
"""A file."""


def inline_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the JSON schema of `model` without `$defs`, which OpenAPI keeps in another place."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        members = {name: inline(value) for name, value in node.items() if name != "$ref"}
        if "$ref" not in node:
            return members
        return inline(definitions[node["$ref"].rpartition("/")[2]]) | members

    return dict(inline(schema))


def describe_json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the part of an operation in the OpenAPI document that describes its JSON body."""
    content = {"application/json": {"schema": inline_schema(model)}}
    return {"requestBody": {"required": True, "content": content}}
