"""The comparison of HTTP answers with an evaluation finds differences and failures."""

import csv

import httpx
import pytest

from benchmarks import http_agreement
from segdec.errors import RunError
from segdec.images import encode_png
from tests.api.conftest import part_image

ROWS = [{"name": name, "predicted_label": "good", "score": "0.25"} for name in ("a", "b")]


@pytest.fixture
def compare(monkeypatch, tmp_path):
    """Compares `ROWS` with a service."""
    image = tmp_path / "a.png"
    image.write_bytes(encode_png(part_image()))

    client = httpx.Client

    def run(respond):
        transport = httpx.MockTransport(respond)
        monkeypatch.setattr(httpx, "Client", lambda **words: client(transport=transport, **words))
        return http_agreement.compare(ROWS, {"a": image, "b": image}, "http://127.0.0.1:9")

    return run


@pytest.mark.parametrize(
    ("label", "score", "expected"),
    [("good", 0.25, ([], 0.0)), ("dent", 0.25, (["a", "b"], 0.0)), ("good", 0.75, ([], 0.5))],
)
def test_differences_are_found(compare, label, score, expected):
    answer = {"decision": {"label": label, "score": score}}
    assert compare(lambda _: httpx.Response(200, json=answer)) == expected


def test_a_failed_request_is_an_error(compare):
    with pytest.raises(RunError, match="422 too small"):
        compare(lambda _: httpx.Response(422, text="too small"))


@pytest.mark.slow
def test_an_evaluated_run_is_compared(finished_run, monkeypatch, capsys):
    from training.evaluate import evaluate_run

    evaluate_run(finished_run, "test")
    with (finished_run / "predictions.csv").open() as file:
        count = len(list(csv.reader(file))) - 1

    def compare(rows, files, _url):
        assert len(rows) == count and all(row["name"] in files for row in rows)
        return [], 0.0

    monkeypatch.setattr(http_agreement, "compare", compare)
    monkeypatch.setattr("sys.argv", ["http_agreement", str(finished_run)])
    assert http_agreement.main() == 0
    assert f"{count} of {count} labels agree" in capsys.readouterr().out
