"""Writes the API reference of the documentation site from the service's own OpenAPI document."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from mkdocs.structure.files import File, Files

from api.app import create_app
from api.settings import Settings

Schema = Mapping[str, Any]

FOLDER = Path(__file__).parent
PAGE, PLACE, DOCUMENT = "api.md", "*The documentation site shows the reference here.*", "openapi.json"
PROBLEM, PROBLEM_MEANING = "application/problem+json", "a problem, as its [code](serving.md#errors) says"
LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "contentEncoding": "{}",
    "default": "default `{}`",
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the OpenAPI document, so that readers can generate a client from it."""
    files.append(File.generated(config, DOCUMENT, content=json.dumps(describe_service(), indent=1)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Inserts the reference into its page."""
    return markdown.replace(PLACE, render(describe_service())) if page.file.src_uri == PAGE else markdown


def describe_service() -> dict[str, Any]:
    """Returns the OpenAPI document of a service without keys; no model is loaded for it."""
    return create_app(Settings(model=Path("model"))).openapi()


def render(document: Schema) -> str:
    """Returns every path and every object of `document`, in Markdown."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        comment_start_string="<#",  # "{#" starts the anchor of a heading
    )
    environment.filters.update(type=name_type, limits=name_limits, cell=_cell, anchor=_anchor)
    environment.filters.update(bodies=group_bodies, answers=group_answers)
    template = environment.get_template("api_reference.jinja")
    return template.render(operations=list(operations(document)), schemas=named_schemas(document))


def operations(document: Schema) -> Iterator[dict[str, Any]]:
    """Yields every operation, with its path and its method."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield {"parameters": [], "requestBody": None, **operation, "path": path, "method": method.upper()}


def named_schemas(document: Schema) -> dict[str, Schema]:
    """Returns all named objects by name: the components, and objects defined inside paths."""
    found: dict[str, Schema] = dict(document["components"]["schemas"])

    def collect(node: Any) -> None:
        if _is_named(node):
            found.setdefault(node["title"], node)
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            collect(part)

    collect(document["paths"])
    return dict(sorted(found.items()))


def name_type(schema: Schema) -> str:
    """Returns the type of a value in Markdown; a named object is a link to its table."""
    if "$ref" in schema or _is_named(schema):
        name = schema["$ref"].rpartition("/")[2] if "$ref" in schema else schema["title"]
        return f"[{name}](#{_anchor(f'schema {name}')})"
    if "anyOf" in schema:
        return " or ".join(map(name_type, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "properties" in schema:
        return "; ".join(f"`{name}`: {name_type(member)}" for name, member in schema["properties"].items())
    return _name_plain_type(schema)


def _name_plain_type(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"list: {', '.join(map(name_type, schema['prefixItems']))}"
    if "items" in schema:
        return f"list of {name_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {name_type(schema['additionalProperties'])}"
    return "file" if schema.get("format") == "binary" else str(schema.get("type", "any"))


def name_limits(schema: Schema) -> str:
    """Returns the limits and the default of a value."""
    stated = {} if "prefixItems" in schema else schema
    given = {name: value for name, value in stated.items() if not isinstance(value, dict | NoneType)}
    words = [text.format(given[name]) for name, text in LIMITS.items() if name in given]
    return ", ".join([*words, *filter(None, map(name_limits, schema.get("anyOf", ())))])


def group_bodies(content: Mapping[str, Any]) -> dict[str, str]:
    """Returns type of the body → its content types."""
    grouped: dict[str, list[str]] = {}
    for kind, body in content.items():
        grouped.setdefault(name_type(body.get("schema", {})), []).append(f"`{kind}`")
    return {what: ", ".join(kinds) for what, kinds in grouped.items()}


def group_answers(responses: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Lists status, meaning and body of each answer; all problems share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for status, answer in sorted(responses.items()):
        content, headers = answer.get("content", {}), answer.get("headers", {})
        meaning = PROBLEM_MEANING if PROBLEM in content else answer["description"]
        meaning += "".join(f"; header `{name}`: {header['description']}" for name, header in headers.items())
        body = "<br>".join(f"{what}: {kinds}" for what, kinds in group_bodies(content).items())
        rows.setdefault((meaning, body), []).append("any other" if status == "default" else status)
    return [(", ".join(statuses), *row) for row, statuses in rows.items()]


def _is_named(node: Any) -> bool:
    return isinstance(node, dict) and "properties" in node and isinstance(node.get("title"), str)


def _anchor(text: str) -> str:
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text.lower()).split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
