"""The route of the trends."""

import pytest

from tests.api.conftest import PNG, problem


def test_trends_of_the_last_days(recorder, part):
    recorder.post("/v1/inspect?station=a&metadata=%7B%22lot%22%3A7%7D", content=part, headers=PNG)
    found = recorder.get("/v1/trends").json()
    assert (len(found["periods"]), found["periods"][-1]["defective"]) == (30, 1)
    assert found["classes"] == [{"label": "scratch", "count": 1}]
    for query, count in (("metadata=lot:7", 1), ("metadata=lot:8", 0), ("station=b", 0), ("by=month", 1)):
        periods = recorder.get(f"/v1/trends?{query}").json()["periods"]
        assert sum(period["inspected"] for period in periods) == count
    assert len(recorder.get("/v1/trends?by=week&first=2026-01-01&last=2026-01-31").json()["periods"]) == 5


TOO_MANY = "first=2020-01-01&last=2026-01-01"
REVERSED = "first=2026-02-02&last=2026-02-01"


@pytest.mark.parametrize("query", [TOO_MANY, REVERSED, "by=year", "first=x", "metadata=lot"])
def test_a_malformed_request_is_rejected(recorder, query):
    assert problem(recorder.get(f"/v1/trends?{query}")) == (400, "bad_parameter")
