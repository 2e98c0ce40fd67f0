"""Each error that a user of the pages can meet has a text in the language of the page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.page_texts import API

CODE_POSITIONS = {"RequestError": 1, "service_unavailable": 0}
"""Functions that make an error, with the position of its code."""
IN_COMPUTED_CODES = {
    "review_off",
    "labels_changed",
    "thresholds_changed",
    "truncated_image",
    "not_found",
    "draining",
    "internal_error",
}
"""Codes that the calls do not state."""
OF_PROGRAMS = {
    *("bad_base64", "bad_form", "bad_header_length", "bad_json", "bad_path", "bad_predictions", "bad_tensor"),
    *("chunk_not_found", "damaged_chunk", "event_not_found", "event_waits", "file_not_found"),
    *("file_too_large", "idempotency_mismatch", "key_in_text", "lease_lost", "missing_chunks"),
    *("missing_file", "no_corrected_mask", "no_default_model"),
    *("no_mask_classes", "no_panel", "no_result", "not_a_png", "picture_too_large"),
    *(
        "precondition_required",
        "proposals_replaced",
        "setting_not_found",
    ),
    *("too_many_files", "too_many_images", "too_many_values", "two_models", "unknown_tensor"),
    *("unsupported_content_encoding", "mask_size", "nothing_inspected"),
}
"""Errors of machines, of workers, and of requests that the pages do not make."""


def codes(source: str) -> Iterator[str]:
    """Yields the codes of errors that a module states."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        stated = [one.value for one in node.keywords if one.arg == "code" and name == "ImageError"]
        if name in CODE_POSITIONS:
            stated += node.args[CODE_POSITIONS[name] :][:1]
        yield from (
            one.value for one in stated if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )


def modules() -> list[Path]:
    segdec = API.parent / "segdec"
    read = ("images.py", "imaging/*.py", "inference/*.py", "mask_decoding.py")
    return [*API.rglob("*.py"), *(path for pattern in read for path in segdec.glob(pattern))]


@pytest.fixture(scope="module")
def translated() -> set[str]:
    script = (API / "static/shared/problem_text.js").read_text("utf-8")
    found = re.findall(r"^  (\w+): \(\w*\) => translate", script, re.MULTILINE)
    assert len(found) == len(set(found)), "a code has two texts"
    return set(found)


def test_each_error_of_the_pages_has_a_text(translated):
    stated = {code for path in modules() for code in codes(path.read_text("utf-8"))}
    assert len(stated) > 100
    missing = stated - translated - OF_PROGRAMS
    assert missing == set(), "Add them to api/static/shared/problem_text.js."
    assert translated - stated == IN_COMPUTED_CODES, "No error has these codes."
    assert OF_PROGRAMS - stated == set() and OF_PROGRAMS & translated == set()


def test_codes_are_found():
    source = 'RequestError(404, "a", "b")\nservice_unavailable("c", "d", 1)\nImageError("e", code="f")'
    assert list(codes(source)) == ["a", "c", "f"]
