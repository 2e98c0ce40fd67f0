import cv2
import httpx
import numpy as np
import pytest

from api.app import create_app
from api.settings import Settings
from datasets.layouts.toy import make_sample
from examples import studio_screenshots
from examples.studio import COUNT, SIZE, _send_toy_photographs
from tests.api.live_server import served
from tests.marks import needs_chromium


def test_the_click_is_inside_a_defect_that_has_no_label():
    index = studio_screenshots.DEFECTIVE
    x, y = studio_screenshots.innermost_pixel(index)
    assert np.asarray(make_sample(index, size=SIZE).mask)[y, x] > 0
    assert COUNT // 2 <= index < COUNT


@pytest.mark.slow
@needs_chromium
def test_pages_are_shown_and_a_training_is_ordered(tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    keys.write_text(f"local:{'0' * 64}\n")
    settings = {"models": tmp_path / "models", "allow_no_model": True, "local_role": "engineer"}
    settings |= {"record": "required", "record_folder": tmp_path / "record", "train_keys": keys}

    def order_only(page, url):
        page.goto(f"{url}/train?data_set=1")
        page.locator("#new [type=submit]:enabled").click()
        page.locator("#job-state[data-state=queued]").wait_for()

    monkeypatch.setattr(studio_screenshots, "show_training", order_only)  # no worker trains here
    with served(create_app(Settings.model_validate(settings))) as (host, port):
        url = f"http://{host}:{port}"
        _send_toy_photographs(url)
        studio_screenshots.main([url, str(tmp_path / "out")])
        counts = httpx.get(f"{url}/v1/data-sets").json()["data_sets"][0]["counts"]
    assert counts["unlabelled"] == COUNT // 2  # nothing was saved
    width, height = studio_screenshots.WINDOW
    for name in ("datasets", "label", "train"):
        assert cv2.imread(str(tmp_path / "out" / f"{name}.jpg")).shape == (height, width, 3)
