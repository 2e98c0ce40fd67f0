"""Detection of silent stations."""

from datetime import UTC, datetime, timedelta

import pytest

from api.line.silent_stations import StationActivity, find_silent

NOW = datetime(2026, 1, 15, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "inspected", "silent", "expected"),
    [
        *((8, 8 * 3600, 300, False), (8, 8 * 3600, 301, True)),  # one a second: five minutes may always pass
        (8, 8 * 60, 600, False),  # one a minute: ten of them may
        (8, 8 * 60, 601, True),
        (2, 7200, 3600, False),  # in two hours of a day: not regular
        (3, 19, 20_000, False),  # too few
    ],
)
def test_silence_is_compared_with_the_usual_gap(hours, inspected, silent, expected):
    day = StationActivity("a", hours, inspected, NOW - timedelta(seconds=silent))
    assert bool(list(find_silent([day], NOW))) is expected
