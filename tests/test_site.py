import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

FILE = Path(__file__).parents[1] / "docs" / "site_pages.py"
spec = importlib.util.spec_from_file_location("site_pages", FILE)
site_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site_pages)


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[a](docs/serving.md#load)", "[a](serving.md#load)"),
        ("README.md", "[a](CONTRIBUTING.md)", "[a](design.md)"),
        ("README.md", "[Apache-2.0](LICENSE) holds", "Apache-2.0 holds"),
        ("docs/serving.md", "[a](performance.md)", "[a](performance.md)"),
        ("docs/serving.md", "[a](../deploy/README.md)", "[a](deployment.md)"),
        ("docs/serving.md", "[a](../README.md#use-the-model)", "[a](index.md#use-the-model)"),
        ("docs/serving.md", "[a](https://a.b/c.md), [b](#load)", "[a](https://a.b/c.md), [b](#load)"),
        ("docs/performance.md", "![plot](performance.svg)", "![plot](performance.svg)"),
    ],
)
def test_links_get_the_form_that_the_site_has(source, text, expected):
    assert site_pages.translate(text, source) == expected


def test_every_page_is_there():
    for source in site_pages.PAGES.values():
        assert (site_pages.ROOT / source).is_file()
