"""The OpenAPI document is right, and the service keeps to it whatever is generated from it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from api.app import create_app
from api.settings import Settings
from tests.api.conftest import StubPredictor
from tests.api.live_server import served
from tests.marks import slow_case

STATUSES = {200, 400, 403, 404, 413, 415, 422, 504}
NAMES = {"name": "unnamed", "version": "stable"}
"""What is served; a generated name never hits it."""


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """The document of a service that answers on a socket."""
    import schemathesis  # takes a second, so not while tests are collected
    from schemathesis.config import SchemathesisConfig

    app = create_app(Settings.model_validate({"model": Path("unused")}), StubPredictor())
    with served(app) as (host, port):
        schema = schemathesis.openapi.from_dict(app.openapi(), config=SchemathesisConfig(seed=1))
        schema.config.update(base_url=f"http://{host}:{port}")
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


@pytest.mark.parametrize("examples", [2, slow_case(50)])
def test_answers_are_as_documented(schema, examples):
    from schemathesis.generation import GenerationMode

    statuses: Counter[int] = Counter()
    with closing(requests.Session()) as session:
        for operation in (found.ok() for found in schema.get_all_operations()):
            modes = [GenerationMode.POSITIVE]
            if operation.body or operation.query or operation.headers:  # else nothing can be wrong
                modes.append(GenerationMode.NEGATIVE)
            for mode in modes:
                ask(operation, mode, examples, session, statuses)
    assert {200, 400, 403, 404} <= set(statuses)


def ask(operation: Any, mode: Any, examples: int, session: requests.Session, statuses: Counter) -> None:
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
        checks.negative_data_rejection,
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
            case.path_parameters.update({name: NAMES[name] for name in case.path_parameters})
        answer = case.call(session=session)
        assert answer.status_code in STATUSES
        statuses[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    send()
