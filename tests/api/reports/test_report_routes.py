"""The route of the reports."""

import pytest

from api.reports.report_request import MEDIA_TYPES
from tests.api.conftest import PNG, problem
from tests.api.reports.test_reports import excel_texts


def test_reports_are_downloaded(recorder, part):
    recorder.post("/v1/inspect?metadata=%7B%22lot%22%3A7%7D", content=part, headers=PNG)
    for kind in ("shift", "week", "lot"):
        answer = recorder.get(f"/v1/reports/{kind}?metadata=lot:7&format=xlsx")
        assert answer.content.startswith(b"PK") and answer.headers["Content-Type"] == MEDIA_TYPES["xlsx"]
    answer = recorder.get("/v1/reports/day")
    assert answer.content.startswith(b"%PDF-") and answer.headers["Content-Type"] == "application/pdf"
    excel = recorder.get("/v1/reports/day?format=xlsx&at=2026-02-28T23:59:59Z")
    assert excel.content.startswith(b"PK")
    assert excel.headers["Content-Disposition"] == 'attachment; filename="segdec-day-2026-02-28.xlsx"'


def test_reports_and_notes_are_in_the_requested_language(unchanged):
    for code, word in (("de", "Zeitraum"), ("en", "Period")):
        report = unchanged.get(f"/v1/reports/day?format=xlsx&language={code}")
        assert word in excel_texts(report.content)[0][0]
    detail = unchanged.get("/v1/review/statistics?language=xx").json()["detail"]
    assert detail == "The language is xx. Expected one of: en, de."
    assert unchanged.get("/v1/review/statistics?language=de").status_code == 200


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lot", (400, "lot_without_metadata")),
        ("lot?metadata=lot:none", (404, "lot_not_found")),
        ("year", (400, "bad_parameter")),
        ("day?at=noon", (400, "bad_parameter")),
        ("day?format=doc", (400, "bad_parameter")),
        ("day?language=xx", (400, "bad_parameter")),
    ],
)
def test_a_malformed_request_is_rejected(unchanged, path, expected):
    assert problem(unchanged.get(f"/v1/reports/{path}")) == expected
