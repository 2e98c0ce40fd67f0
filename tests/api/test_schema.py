"""The OpenAPI document is right, and the service keeps to it whatever is generated from it."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from fastapi import FastAPI

from api.app import create_app
from api.settings import Settings
from segdec.images import encode_png
from tests.api.conftest import PNG, StubPredictor, part_image
from tests.api.live_server import served

TRAIN_KEY = "of-a-worker"
STATUSES = {200, 201, 202, 204, 400, 403, 404, 409, 413, 415, 422, 504}
PHOTOGRAPH = encode_png(part_image())
NAMES = {
    **{"name": "unnamed", "version": "stable"},
    **{"data_set_id": 1, "photograph_id": 1, "number": 1, "job_id": 1},
    "sha256": hashlib.sha256(PHOTOGRAPH).hexdigest(),
}
"""What is served; a generated name rarely hits it."""


@contextmanager
def document_of(app: FastAPI) -> Iterator[Any]:
    """The document of a service that answers on a socket, for tests that ask it."""
    import schemathesis  # takes a second, so not while tests are collected
    from schemathesis.config import SchemathesisConfig

    with served(app) as (host, port):
        schema = schemathesis.openapi.from_dict(app.openapi(), config=SchemathesisConfig(seed=1))
        schema.config.update(base_url=f"http://{host}:{port}")
        yield schema


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """Of a service without a record."""
    with document_of(
        create_app(Settings.model_validate({"model": Path("unused")}), StubPredictor())
    ) as schema:
        yield schema


@pytest.fixture(scope="module")
def data_sets_schema(tmp_path_factory) -> Iterator[Any]:
    """Of a service with a data set, which has a photograph and a version."""
    record = {"record": "required", "record_folder": tmp_path_factory.mktemp("record")}
    settings = {"model": Path("unused"), "local_role": "engineer", **record}
    with document_of(create_app(Settings.model_validate(settings), StubPredictor())) as schema:
        base = f"{schema.config.base_url}/v1/data-sets"
        requests.post(base, json={"name": "a", "classes": ["dent"]}).raise_for_status()
        requests.post(f"{base}/1/photographs", PHOTOGRAPH, headers=PNG).raise_for_status()
        annotation = {"label": "good", "based_on": None}
        requests.put(f"{base}/1/photographs/1/annotation", json=annotation).raise_for_status()
        requests.post(f"{base}/1/versions", json={}).raise_for_status()
        # Each archive starts a process, and only a few may wait.
        yield schema.include(path_regex="^/v1/data-sets").exclude(path_regex="/archives$")


@pytest.fixture(scope="module")
def training_schema(tmp_path_factory) -> Iterator[Any]:
    """Of a service with a training job that a worker has leased; engineers need no key."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "train.keys").write_text(f"gpu:{hashlib.sha256(TRAIN_KEY.encode()).hexdigest()}")
    settings = {"model": Path("unused"), "local_role": "engineer", "train_keys": folder / "train.keys"}
    settings |= {"record": "required", "record_folder": folder}
    with document_of(create_app(Settings.model_validate(settings), StubPredictor())) as schema:
        base = f"{schema.config.base_url}/v1"
        requests.post(f"{base}/data-sets", json={"name": "a", "classes": ["dent"]}).raise_for_status()
        photographs, annotation = f"{base}/data-sets/1/photographs", {"label": "good", "based_on": None}
        for number in (1, 2, 3):
            image = encode_png(part_image(brightness=number))
            requests.post(photographs, image, headers=PNG).raise_for_status()
            requests.put(f"{photographs}/{number}/annotation", json=annotation).raise_for_status()
        requests.post(f"{base}/data-sets/1/versions", json={}).raise_for_status()
        job = {"data_set": 1, "data_set_version": 1, "model": "brackets"}
        requests.post(f"{base}/training/jobs", json=job).raise_for_status()
        yield schema


def test_document_is_valid(schema):
    schema.validate()
    document = schema.raw_schema
    assert references(document) == {
        f"#/components/schemas/{name}" for name in document["components"]["schemas"]
    }
    paths = document["paths"]
    assert all(operation["description"] for path in paths.values() for operation in path.values())
    bodies = paths["/v1/predict"]["post"]["requestBody"]["content"]
    assert {"image/png", "image/tiff", "multipart/form-data", "application/json"} <= set(bodies)


def references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(references, node))
    if not isinstance(node, dict):
        return set()
    return {node["$ref"]} if "$ref" in node else references(list(node.values()))


def test_answers_about_models_are_as_documented(schema):
    assert {200, 404} <= set(ask_all(schema.include(path_regex="^/v1/models"), 2))


@pytest.mark.slow
def test_answers_are_as_documented(schema):
    assert {200, 400, 403, 404} <= set(ask_all(schema, 10))


@pytest.mark.slow
def test_answers_about_data_sets_are_as_documented(data_sets_schema):
    assert {200, 201, 400, 404, 409} <= set(ask_all(data_sets_schema, 8, is_strict=False))


@pytest.mark.slow
def test_answers_about_training_are_as_documented(training_schema):
    paths = "^/v1/training/(jobs|workers)"
    engineer = training_schema.include(path_regex=paths, method=["GET", "POST"])
    assert {200, 400, 404, 409} <= set(ask_all(engineer, 8, is_strict=False))
    worker = training_schema.include(path_regex="^/v1/training/worker/")
    key = {"X-API-Key": TRAIN_KEY}
    assert {400, 409} <= set(ask_all(worker, 8, is_strict=False, headers=key))


@pytest.mark.slow
def test_deletions_of_trainings_are_as_documented(training_schema):
    """After the other tests of the job."""
    deletion = training_schema.include(path_regex="^/v1/training/jobs", method="DELETE")
    assert {404} <= set(ask_all(deletion, 5, is_strict=False)) <= {204, 400, 404, 409}


def ask_all(
    schema: Any, examples: int, *, is_strict: bool = True, headers: dict[str, str] | None = None
) -> Counter[int]:
    """Sends generated requests to every operation; returns the statuses of the answers.

    `is_strict`: whether the service rejects every request that violates the document; most routes accept
    unknown parameters. `headers` are sent with each request.
    """
    from schemathesis.generation import GenerationMode

    statuses: Counter[int] = Counter()
    with closing(requests.Session()) as session:
        for operation in (found.ok() for found in schema.get_all_operations()):
            modes = [GenerationMode.POSITIVE]
            if operation.body or operation.query or operation.headers:  # else nothing can be wrong
                modes.append(GenerationMode.NEGATIVE)
            for mode in modes:
                ask(operation, mode, examples, session, statuses, is_strict=is_strict, headers=headers or {})
    return statuses


def ask(
    operation: Any,
    mode: Any,
    examples: int,
    session: requests.Session,
    statuses: Counter,
    *,
    is_strict: bool,
    headers: dict[str, str],
) -> None:
    """Sends generated requests and compares the answers with the document."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from schemathesis.specs.openapi import checks

    CHECKS = [  # noqa: N806
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        *([checks.negative_data_rejection] if is_strict else []),
    ]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def send(case: schemathesis.Case, known: bool) -> None:
        if known:
            case.path_parameters.update({name: NAMES[name] for name in case.path_parameters.keys() & NAMES})
        if headers:  # instead of generated keys
            case.headers.pop("Authorization", None)
            case.headers.update(headers)
        answer = case.call(session=session)
        assert answer.status_code in STATUSES
        statuses[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    send()
