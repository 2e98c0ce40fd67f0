"""Valid ids of clients are used; other ids are replaced, and the answer gives the reason."""

import json
import logging

import pytest

from api.http.middleware.request_id import MAX_LENGTH
from api.logs import make_formatter

TAKEN = ["line 3, part #17 (left)", '{"part": "1"}', "a=b; c", "~" * MAX_LENGTH]
REFUSED = [
    ("x" * (MAX_LENGTH + 1), "129 characters"),
    ("Teil-ä", "beyond printable ASCII"),
    ("a\tb", "beyond printable ASCII"),
]


def ask(client, caplog, sent: str):
    """Returns the answer and the log line."""
    caplog.set_level(logging.INFO, logger="api")
    answer = client.get("/nothing", headers=[(b"X-Request-ID", sent.encode("latin-1"))])
    (record,) = [record for record in caplog.records if record.name == "api.http.middleware.access"]
    return answer, record


@pytest.mark.parametrize("sent", TAKEN)
def test_printable_id_is_used(client, caplog, sent):
    answer, record = ask(client, caplog, sent)
    assert answer.headers["X-Request-ID"] == answer.json()["request_id"] == sent
    assert "X-Request-ID-Refused" not in answer.headers
    assert json.loads(make_formatter("json").format(record))["request_id"] == sent


@pytest.mark.parametrize(("sent", "reason"), REFUSED)
def test_other_id_is_replaced_and_the_answer_says_why(client, caplog, sent, reason):
    answer, record = ask(client, caplog, sent)
    given = answer.headers["X-Request-ID"]
    assert len(given) == 32
    said = answer.headers["X-Request-ID-Refused"]
    assert reason in said
    assert "Expected 1 to 128 printable ASCII characters" in said
    assert said.isascii()
    assert record.request_id == given
    assert record.sent_id == sent[:MAX_LENGTH].encode("unicode_escape").decode()
    for log_format in ("json", "text"):
        line = make_formatter(log_format).format(record)
        assert line.isprintable(), line


def test_request_without_an_id_gets_one(client):
    for headers in ({}, {"X-Request-ID": ""}):
        answer = client.get("/nothing", headers=headers)
        assert len(answer.headers["X-Request-ID"]) == 32
        assert "X-Request-ID-Refused" not in answer.headers
