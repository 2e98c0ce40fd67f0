"""Each error that a user of the pages can meet has a text in the language of the page."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pytest

from api.messages.catalogues import DEFAULT, read_catalogues
from tests.api.page_texts import API, name_of

CODE_POSITIONS = {
    "RequestError": 1,
    "service_unavailable": 0,
    "ImageError": 1,
    "Cause": 0,
    "ProblemResponse": 2,
}
"""Functions that make an error, or what is stored about one, with the position of its code."""
COMPUTED = {
    # A code that is passed on is stated elsewhere.
    "api/messages/causes.py": {"self.code": [], "error.code": []},
    "api/data_sets/proposal_job.py": {"error.code": []},
    "api/errors.py": {"code": [], "error.code": []},
    "api/inspecting/encoded_photograph.py": {"error.code": []},
    "api/inspecting/protocol_v2/input_tensors.py": {"code": ["bad_parameter", "bad_json"]},
    "api/inspecting/protocol_v2/v2_routes.py": {"error.code": []},
    "datasets/causes.py": {"error.code": []},
    # These are stated here.
    "api/accounts/access.py": {"f'{key_role}_off'": ["review_off", "admin_off", "predict_off", "train_off"]},
    "api/accounts/keys.py": {
        "code": ["missing_key", "unknown_key"],
        "f'{role}_off'": ["review_off", "admin_off", "predict_off", "train_off"],
        "f'not_{role}'": ["not_review", "not_admin", "not_predict", "not_train"],
    },
    "api/data_sets/archive_import.py": {
        "'photograph_unusable' if line['left_out'] else 'shape_unusable'": [
            "photograph_unusable",
            "shape_unusable",
        ]
    },
    "api/http/admission.py": {"self.code": ["log_ins_full", "queue_full", "exports_full"]},
    "api/http/middleware/cross_site.py": {"CODE": ["cross_site"]},
    "api/models/file_update.py": {
        "f'{self.kind}_changed'": ["aliases_changed", "confirmations_changed", "thresholds_changed"],
        "f'{self.kind}_fixed'": ["aliases_fixed", "confirmations_fixed", "thresholds_fixed"],
    },
    "api/models/aliases.py": {"code": ["no_candidate", "no_previous"]},
    "api/record/record.py": {"f'picture_{state}'": ["picture_expiring", "picture_expired", "picture_lost"]},
    "api/training/job_routes.py": {"code": ["no_report", "no_predictions"]},
    "api/training/worker_routes.py": {"leased.code": ["worker_version", "worker_has_job"]},
    "api/inspecting/service.py": {"code": ["draining", "stalled", "not_ready"]},
    "datasets/reading.py": {"code": ["mask_of_other_size", "mask_before_rotation"]},
    "segdec/imaging/integrity.py": {"code": ["truncated_image", "corrupt_image"]},
    "segdec/imaging/tiff_directory.py": {"code": ["corrupt_image", "too_many_pixels", "unsupported_type"]},
    "segdec/imaging/tiff_samples.py": {
        "f'unsupported_{code}'": ["unsupported_depth", "unsupported_channels"]
    },
}
"""Codes that are computed, by module and expression."""
OF_PROGRAMS = {
    *("bad_base64", "bad_form", "bad_header_length", "bad_json", "bad_path", "bad_predictions", "bad_tensor"),
    *("chunk_not_found", "damaged_chunk", "event_not_found", "event_waits", "file_not_found"),
    *("file_too_large", "idempotency_mismatch", "key_in_text", "lease_lost", "missing_chunks"),
    *("missing_file", "no_corrected_mask", "no_default_model"),
    *("no_mask_classes", "no_panel", "no_result", "not_a_png", "picture_too_large"),
    *("job_replaced", "precondition_required", "setting_not_found"),
    *("too_many_files", "too_many_images", "too_many_values", "two_models", "unknown_tensor"),
    *("unsupported_content_encoding", "mask_size", "nothing_inspected"),
    *("client_gone", "cross_site", "unknown_host"),
}
"""Errors of machines, of workers, and of requests that the pages do not make."""


@cache
def calls(source: str) -> list[tuple[str, ast.Call]]:
    """Returns the calls in a module that make errors, each with the name of its function."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [(name_of(node.func), node) for node in found if name_of(node.func) in CODE_POSITIONS]


def code_expressions(source: str) -> Iterator[ast.expr]:
    """Yields the expressions in a module that are codes of errors."""
    for name, node in calls(source):
        yield from node.args[CODE_POSITIONS[name] :][:1]
        yield from (one.value for one in node.keywords if one.arg == "code")


def codes(source: str, computed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yields the codes of errors that a module states; `computed` has those of its other expressions."""
    for found in code_expressions(source):
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            yield found.value
        else:
            yield from computed[ast.unparse(found)]


@cache
def modules() -> Mapping[str, str]:
    """Returns the sources of the modules whose errors a page can show, by their names."""
    root = API.parent
    read = ("images.py", "imaging/*.py", "inference/*.py", "mask_decoding.py")
    found = [*API.rglob("*.py"), *(root / "datasets").rglob("*.py")]
    found += [path for pattern in read for path in (root / "segdec").glob(pattern)]
    sources = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in found}
    return {name: text for name, text in sources.items() if any(f"{one}(" in text for one in CODE_POSITIONS)}


@pytest.fixture(scope="module", params=[code for code in read_catalogues() if code != DEFAULT])
def translated(request) -> dict[str, set[str]]:
    """The names of the values in the text of each code."""
    codes = read_catalogues()[request.param].codes
    return {code: set(re.findall(r"\{(\w+)\}", text)) for code, text in codes.items()}


def test_each_error_of_the_pages_has_a_text(translated):
    stated = {code for name, source in modules().items() for code in codes(source, COMPUTED.get(name, {}))}
    assert len(stated) > 150
    missing = stated - translated.keys() - OF_PROGRAMS
    assert missing == set(), "Add them to `codes` in api/messages/languages."
    assert translated.keys() - stated == {"not_found"}, "No error has these codes."  # of the framework
    assert OF_PROGRAMS - stated == set() and OF_PROGRAMS & translated.keys() == set()


def test_no_computed_code_is_listed_that_no_module_has():
    expressions = {
        name: {ast.unparse(one) for one in code_expressions(source)} for name, source in modules().items()
    }
    listed = ((name, one) for name, computed in COMPUTED.items() for one in computed)
    assert [(name, one) for name, one in listed if one not in expressions.get(name, ())] == []


def test_errors_about_what_does_not_exist_name_no_address_of_the_api():
    texts = {
        text
        for source in modules().values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(text := node.value, str)
    }
    assert len(texts) > 1000
    assert [text for text in texts if re.search(r"(See|of) GET\b", text)] == []


# === Values ===


def stated_values(source: str) -> Iterator[tuple[str, set[str]]]:
    """Yields code and names of the values of each `Cause` and `RequestError` with a literal code."""
    assigned = [
        (node.lineno, node.targets[0].id, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]

    def keys_of(values: ast.expr) -> set[str]:
        if isinstance(values, ast.Name):  # of a dict
            before = (one for one in assigned if one[0] < values.lineno and one[1] == values.id)
            values = max(before, key=lambda one: one[0])[2]
        assert isinstance(values, ast.Dict), f"line {values.lineno}: the values are not a dict"
        return {ast.literal_eval(key) for key in values.keys if key}

    for kind, node in calls(source):
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if kind == "Cause":
            code, values = [*node.args, *given.values(), ast.Dict([], [])][:2]
            if isinstance(code, ast.Constant):
                yield code.value, keys_of(values)
        elif kind == "RequestError" and isinstance(node.args[1], ast.Constant):
            unpacked = keys_of(given.pop(None)) if None in given else set()
            yield node.args[1].value, {*given, *unpacked}


def test_errors_have_the_values_of_their_texts(translated):
    given = [found for source in modules().values() for found in stated_values(source)]
    assert len(given) > 200
    known = {"detail", "seconds"}
    missing = [(code, translated[code] - names - known) for code, names in given if code in translated]
    assert [(code, names) for code, names in missing if names] == []


# === The tests themselves ===


def test_codes_are_found():
    source = """RequestError(404, "a", "b")
service_unavailable("c", "d", 1)
ImageError("e", code="f")
Cause("g", {"h": 1})
Cause(code="i")
RequestError(404, f"not_{role}", "j")"""
    assert list(codes(source, {"f'not_{role}'": ["k", "l"]})) == ["a", "c", "f", "g", "i", "k", "l"]
    with pytest.raises(KeyError):
        list(codes(source, {}))
    source = """values = {"a": 1}
Cause("b", values)
Cause(code="c")
RequestError(400, "d", "{a} {e}", **values, e=2)"""
    assert list(stated_values(source)) == [("b", {"a"}), ("c", set()), ("d", {"a", "e"})]
