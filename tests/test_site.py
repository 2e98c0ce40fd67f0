import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from api.settings import Settings
from segdec.images import DEFAULT_MAX_PIXELS, MAX_PIXEL_LIMIT

pytest.importorskip("mkdocs")

ROOT = Path(__file__).parents[1]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site_pages, api_reference = load("site_pages"), load("api_reference")


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[a](docs/serving.md#load)", "[a](serving.md#load)"),
        ("README.md", "[a](CONTRIBUTING.md)", "[a](design.md)"),
        ("README.md", "[docs/training.md](docs/training.md#speed)", "[Training](training.md#speed)"),
        ("README.md", "[Apache-2.0](LICENSE) holds", "Apache-2.0 holds"),
        ("docs/serving.md", "[a](performance.md)", "[a](performance.md)"),
        ("docs/serving.md", "[a](../deploy/README.md)", "[a](deployment.md)"),
        ("docs/serving.md", "[a](../README.md#use-the-model)", "[a](index.md#use-the-model)"),
        ("docs/serving.md", "[a](https://a.b/c.md), [b](#load)", "[a](https://a.b/c.md), [b](#load)"),
        ("docs/performance.md", "![plot](performance.svg)", "![plot](performance.svg)"),
        ("README.md", "![picture](docs/result.jpg)", "![picture](result.jpg)"),
    ],
)
def test_links_get_the_form_that_the_site_has(source, text, expected):
    assert site_pages.translate(text, source) == expected


# === The API reference ===


@pytest.fixture(scope="module")
def document():
    return api_reference.describe_service()


@pytest.fixture(scope="module")
def sections(document):
    """What stands below each heading, without its anchor."""
    parts = re.split(r"^#{2,3} (.*?) \{#.*\}$", api_reference.render(document), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_operation_stands_on_the_page_with_all_that_it_takes_and_answers(document, sections):
    paths = document["paths"].items()
    operations = [(path, method, one) for path, methods in paths for method, one in methods.items()]
    assert len(operations) >= 20
    for path, method, operation in operations:
        text = sections[f"{method.upper()} `{path}`"]
        assert operation["description"] in text
        assert all(f"| `{parameter['name']}`" in text for parameter in operation.get("parameters", []))
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        assert all(f"`{kind}`" in text for body in bodies for kind in body.get("content", {}))
        codes = set(operation["responses"]) - {"default"}
        assert codes <= set(
            re.findall(r"\b[1-5]\d\d\b", "".join(re.findall(r"^\| \d.*?\|", text, re.MULTILINE)))
        )


def test_every_object_stands_on_the_page_with_its_members(document, sections):
    for name, schema in document["components"]["schemas"].items():
        assert all(f"| `{member}`" in sections[name] for member in schema["properties"]), name
    assert "`image` | [EncodedImage](#schema-encodedimage)" in sections["JsonImage"]  # stands inside its path


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": "string", "format": "binary"}, "file"),
        ({"$ref": "#/components/schemas/Answer"}, "[Answer](#schema-answer)"),
        (
            {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
            "list of number or null",
        ),
        ({"enum": ["png", "rle"], "type": "string"}, "`png`, `rle`"),
        ({"type": "array", "prefixItems": [{"type": "integer"}] * 2}, "list: integer, integer"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({"type": "object", "properties": {"file": {"format": "binary"}}}, "`file`: file"),
        ({}, "any"),
    ],
)
def test_types_in_words(schema, expected):
    assert api_reference.name_type(schema) == expected


def test_limits_in_words():
    bounded = {"anyOf": [{"minimum": 0, "maximum": 1}, {"type": "null"}], "default": "png"}
    assert api_reference.name_limits(bounded) == "default `png`, ≥ 0, ≤ 1"


# === Limits ===


def test_limits_are_those_of_the_settings():
    text = (ROOT / "docs" / "limits.md").read_text("utf-8")
    service = {name: field.default for name, field in Settings.model_fields.items()}
    assert f"| {DEFAULT_MAX_PIXELS / 1e6:.0f} megapixels unless" in text
    assert f"says otherwise, {MAX_PIXEL_LIMIT / 1e6:.0f} at most" in text
    assert (
        f"{service['max_pixels'] / 1e6:.1f} megapixels, a side of {service['max_side']:,} px, a body of "
        f"{service['max_body_bytes'] // 2**20} MiB, {service['max_batch_files']} photographs a request"
    ) in text


# === The site ===


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere_and_offers_the_document(tmp_path, document):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    loads = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?((?:https?:)?//[^\">\s]+)")
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 10
    assert {address for page in pages for address in loads.findall(page.read_text("utf-8"))} == set()
    assert json.loads((tmp_path / "openapi.json").read_text("utf-8")) == document
