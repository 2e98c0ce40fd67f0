import pytest

from training.run.durations import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (59.96, "60.0 s"), (200, "3 min 20 s"), (3900, "1 h 05 min")]
)
def test_durations(seconds, text):
    assert format_duration(seconds) == text
