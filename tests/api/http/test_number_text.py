"""Numbers, times and ETags in paths, queries and headers: another text is another value."""

from urllib.parse import quote

import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, part_image, problem


@pytest.fixture(scope="module")
def recorded(unchanged):
    """A service with one inspection."""
    unchanged.post("/v1/inspect", content=encode_png(part_image()), headers=PNG)
    return unchanged


@pytest.mark.parametrize("text", ["01", "00", "+1", " 1", "1 ", "1_0", "1.0", "１", "٣"])
@pytest.mark.parametrize("path", ["/{}", "?before={}", "?limit={}", "/1/overlay?side={}"])
def test_whole_numbers(recorded, path, text):
    answer = recorded.get("/v1/records" + path.format(quote(text)))
    assert problem(answer) == (400, "bad_parameter")
    assert "Expected a whole number such as 17" in answer.json()["detail"]


@pytest.mark.parametrize("text", ["1_0", "0_1", " 1", "0x1", "infinity", "nan", "1e", "."])
def test_decimal_numbers(recorded, part, text):
    for query, headers in ({"threshold": text}, {}), ({}, {"X-Deadline-Ms": text}):
        answer = recorded.post("/v1/predict", content=part, params=query, headers=PNG | headers)
        assert problem(answer) == (400, "bad_parameter")


@pytest.mark.parametrize("text", ["0.5", ".5", "5e-1", "1", "0", "0.50"])
def test_usual_decimal_numbers_are_accepted(recorded, part, text):
    answer = recorded.post(f"/v1/predict?threshold={text}", content=part, headers=PNG).json()
    assert answer["decision"]["threshold"] == float(text)


@pytest.mark.parametrize("text", ["2026", "20261125", "1764028800", "+1", "0"])
def test_numbers_are_not_times(recorded, text):
    paths = "/v1/records?since={}", "/v1/review/statistics?until={}", "/v1/records/days/{}"
    for answer in [recorded.get(path.format(quote(text))) for path in paths]:
        assert problem(answer) == (400, "bad_parameter")


@pytest.mark.parametrize(
    "time", ["2026-11-25T06:00:00+01:00", "2026-11-25T06:00+0100", "2026-11-25 06:00:00.5+01:00"]
)
def test_plus_of_an_offset_may_arrive_as_a_space(recorded, time):
    path = "/v1/review/statistics?since={0}&until={0}"
    expected = recorded.get(path.format(quote(time))).json()
    assert expected["since"].startswith("2026-11-25T06:00:00")
    assert recorded.get(path.format(time)).json() == expected


@pytest.mark.parametrize(
    "time", ["2026-11-25 01:00", "2026-11-25T06:00 99:00", "2026-11-25T06:00 x", "2026-11-25T06:00:00  01:00"]
)
def test_another_space_in_a_time_is_rejected(recorded, time):
    assert problem(recorded.get(f"/v1/records?since={quote(time)}")) == (400, "bad_parameter")


@pytest.mark.parametrize(
    ("value", "status"),
    [
        *[(value, 409) for value in ('"0"', 'W/"0"', '"7", "0"', '"a,b" ,W/"0"', "*")],  # there is no review
        *[(value, 412) for value in ('"00"', '"+0"', '"-0"', '"0_0"', '"0.0"', '"1", "2"', '""')],
        *[(value, 400) for value in ("0", '"0', '" 0"', '"0" "1"', 'w/"0"', '"0",*', '"0";', "")],
    ],
)
def test_etags_are_compared_as_text(recorded, value, status):
    answer = recorded.request("DELETE", "/v1/records/1/review", headers={"If-Match": value})
    assert answer.status_code == status, answer.text


def test_etags_in_several_headers_are_one_list(recorded):
    headers = [("If-Match", '"7"'), ("If-Match", '"0"')]
    assert problem(recorded.request("DELETE", "/v1/records/1/review", headers=headers)) == (
        409,
        "not_reviewed",
    )
