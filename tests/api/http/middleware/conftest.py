import logging
from collections.abc import Callable
from typing import Any

import pytest

FACTS = ("request_id", "client", "method", "path", "status", "problem", "key", "photograph", "label", "score")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    """Returns the lines of the access log, as their fields."""
    caplog.set_level(logging.INFO, logger="api")

    def read() -> list[dict[str, Any]]:
        records = [record for record in caplog.records if record.name == "api.http.middleware.access"]
        assert all(record.duration_ms >= 0 for record in records if record.msg == "request")
        return [{name: vars(record)[name] for name in FACTS if name in vars(record)} for record in records]

    return read


@pytest.fixture
def recorder(serve, make_app, tmp_path):
    with serve(make_app(record="required", record_folder=tmp_path / "record")) as client:
        yield client
