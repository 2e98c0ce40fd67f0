import csv

import httpx
import pytest

from benchmarks import http_agreement
from segdec.errors import RunError


@pytest.fixture(scope="module")
def evaluated(finished_run):
    from training.evaluate import evaluate_run

    evaluate_run(finished_run, "test")
    return finished_run


def answer_from(rows, **changes):
    """A stand-in for `ask` that says what the rows say, apart from `changes` for the first of them."""
    waiting = iter(rows)

    def ask(_client, _path):
        row = next(waiting)
        said = {"label": row["predicted_label"], "score": float(row["score"])}
        return {**said, **changes} if row is rows[0] else said

    return ask


@pytest.mark.parametrize(
    ("changes", "differing", "difference"),
    [({}, 0, 0.0), ({"label": "unheard of"}, 1, 0.0), ({"score": 7.0}, 0, 6.0)],
)
def test_differences_are_found(evaluated, monkeypatch, changes, differing, difference):
    rows = http_agreement.read_predictions(evaluated)
    with (evaluated / "predictions.csv").open() as file:
        assert len(rows) == len(list(csv.reader(file))) - 1 > 0
    paths = http_agreement.photographs(evaluated)
    monkeypatch.setattr(http_agreement, "ask", answer_from(rows, **changes))
    names, largest = http_agreement.compare(rows, paths, "http://127.0.0.1:9")
    assert names == [row["name"] for row in rows[:differing]]
    assert largest == 0.0 if not difference else largest > difference


@pytest.mark.parametrize(
    ("answer", "message"), [(httpx.ConnectError("refused"), "No answer from"), (httpx.Response(422), "422")]
)
def test_a_service_that_does_not_answer_is_an_error(evaluated, answer, message):
    def respond(_request):
        if isinstance(answer, Exception):
            raise answer
        return answer

    path = next(iter(http_agreement.photographs(evaluated).values()))
    with (
        httpx.Client(transport=httpx.MockTransport(respond), base_url="http://127.0.0.1:9") as client,
        pytest.raises(RunError, match=message),
    ):
        http_agreement.ask(client, path)


def test_the_request_is_the_documented_one(evaluated):
    path = next(iter(http_agreement.photographs(evaluated).values()))

    def answer(request):
        assert request.url.path == "/v1/predict"
        assert request.content == path.read_bytes()
        return httpx.Response(200, json={"decision": {"label": "good", "score": 0.25}})

    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://127.0.0.1:9") as client:
        assert http_agreement.ask(client, path) == {"label": "good", "score": 0.25}
