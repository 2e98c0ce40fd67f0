"""Names of downloaded files."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from api.http.downloads import save_as
from api.record.file_names import name_export, name_report
from api.record.filters import Filters
from api.record.shifts import Span

TOKYO = ZoneInfo("Asia/Tokyo")
BEGIN, NOW = datetime(2027, 1, 2, 21, tzinfo=UTC), datetime(2027, 1, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "filters", "expected"),
    [
        ("shift", {}, "segdec-shift-2027-01-03-0600"),
        ("day", {"station": "cam 1/left"}, "segdec-day-2027-01-03-cam_1_left"),
        ("week", {"tag": ("lot", "47/11")}, "segdec-week-2026-W53-lot-47_11"),
        ("lot", {"tag": ("supplier", "Müller"), "station": "a"}, "segdec-supplier-Müller-a"),
    ],
)
def test_reports_are_named_by_period_and_filters(kind, filters, expected):
    assert name_report(kind, Span(BEGIN, NOW), TOKYO, **filters) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "until-2027-01-04-1406"),
        (
            {"since": BEGIN, "until": NOW, "verdict": "defect"},
            "from-2027-01-03-0600-until-2027-01-04-1406-defect",
        ),
        (
            {"label": "scratch", "station": "../etc", "reviewed": False},
            "until-2027-01-04-1406-scratch-.._etc-not_reviewed",
        ),
        ({"part_id": '"\r\n\u2028', "version": "3"}, "until-2027-01-04-1406-____-version-3"),
        ({"reviewer": 100 * "x", "min_distance": 0.5}, f"until-2027-01-04-1406-{40 * 'x'}-distance-0.5"),
        ({"tag": ("lot", "L1"), "reviewed": True}, "until-2027-01-04-1406-lot-L1-reviewed"),
    ],
)
def test_exports_are_named_by_period_and_filters(filters, expected):
    assert name_export(Filters(**filters), TOKYO, NOW) == f"segdec-inspections-{expected}"


def test_names_with_other_characters_are_encoded():
    assert save_as("a-1.csv") == {"Content-Disposition": 'attachment; filename="a-1.csv"'}
    value = "attachment; filename=\"M_ller.csv\"; filename*=UTF-8''M%C3%BCller.csv"
    assert save_as("Müller.csv") == {"Content-Disposition": value}
