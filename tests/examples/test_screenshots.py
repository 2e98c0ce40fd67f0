import cv2
import pytest

from datasets.layouts.toy import write_toy
from examples import screenshots
from tests.marks import needs_chromium


def test_one_of_eleven_photographs_has_a_defect(tmp_path):
    write_toy(tmp_path / "toy", 60, size=32)
    arriving = screenshots.arriving_photographs(tmp_path / "toy")
    assert len(arriving) == screenshots.EARLIER + screenshots.RECENT
    assert [item.label > 0 for item in arriving[:11]] == [False] * 5 + [True] + [False] * 5


@pytest.mark.slow
@needs_chromium
def test_each_page_has_a_screenshot(tiny_artifact, tmp_path, monkeypatch):
    write_toy(tmp_path / "toy", 60, size=32)
    monkeypatch.setattr(screenshots, "EARLIER", 8)
    monkeypatch.setattr(screenshots, "RECENT", 4)
    monkeypatch.setattr(screenshots.Past, "left", 12)
    monkeypatch.setattr(
        screenshots, "READY", dict.fromkeys(screenshots.READY, "main")
    )  # it may find no defect
    report = tmp_path / "report.html"
    report.write_text("<p>Report</p>")
    screenshots.main([str(tiny_artifact), str(tmp_path / "toy"), str(tmp_path), "--report", str(report)])
    for name, (width, height) in screenshots.SIZES.items():
        assert cv2.imread(str(tmp_path / f"{name}.jpg")).shape == (height, width, 3)
