"""Takes the screenshots of the documentation of the pages Data sets, Label and Train.

    make studio
    python -m examples.studio_screenshots http://127.0.0.1:8000 docs

The service is that of a new `make studio`, with its toy data set. The command clicks on a defect without
saving it, and orders a training of three minutes, of which it takes a picture at its end. It requires
Chromium.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from playwright.sync_api import Browser, Page

from datasets.layouts.toy import make_sample
from examples.headless_browser import running_chromium
from examples.screenshots import JPEG_QUALITY
from examples.studio import COUNT, SIZE
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_bytes_atomic

WINDOW = (1440, 900)
DEFECTIVE = COUNT // 2 + 1
"""Index of a defective photograph without a label."""
MINUTES = 3
TRAINING_MS = 600_000
"""Time after which a training must be done."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Takes the screenshots."""
    parser = argparse.ArgumentParser(description="Takes screenshots of the pages of a new `make studio`.")
    parser.add_argument("url", help="of the service, for example http://127.0.0.1:8000")
    parser.add_argument("out", type=Path, help="output folder")
    options = parser.parse_args(arguments)
    with clean_exit(), running_chromium() as browser:
        take_screenshots(browser, options.url.rstrip("/"), options.out)


def take_screenshots(browser: Browser, url: str, out: Path) -> None:
    """Writes a screenshot of each of the three pages as JPEG."""
    width, height = WINDOW
    out.mkdir(parents=True, exist_ok=True)
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    for name, show in (("datasets", show_data_set), ("label", show_label), ("train", show_training)):
        show(page, url)
        page.wait_for_load_state("networkidle")
        write_bytes_atomic(out / f"{name}.jpg", page.screenshot(type="jpeg", quality=JPEG_QUALITY))


def show_data_set(page: Page, url: str) -> None:
    """Opens the toy data set."""
    page.goto(f"{url}/datasets?id=1")
    page.locator("#pictures .picture").first.scroll_into_view_if_needed()
    page.locator("#pictures img").first.wait_for()
    page.evaluate("scrollTo(0, 0)")


def show_label(page: Page, url: str) -> None:
    """Opens a defective photograph without a label, and marks its defect with a click."""
    page.goto(f"{url}/label?data_set=1&photograph={DEFECTIVE + 1}")
    page.locator("main[data-picture=shown]").wait_for()
    box = page.locator("#picture").bounding_box()
    assert box is not None
    x, y = innermost_pixel(DEFECTIVE)
    scale = box["width"] / SIZE
    page.keyboard.press("s")
    page.mouse.click(box["x"] + (x + 0.5) * scale, box["y"] + (y + 0.5) * scale)
    page.locator("#save:enabled").wait_for()


def show_training(page: Page, url: str) -> None:
    """Orders a training and waits for its end."""
    page.goto(f"{url}/train?data_set=1")
    page.locator("#new [name=minutes]").fill(str(MINUTES))
    page.locator("#new [type=submit]:enabled").click()
    page.locator("#job-state[data-state=done]").wait_for(timeout=TRAINING_MS)
    page.locator("#loss canvas").wait_for()


def innermost_pixel(index: int) -> tuple[int, int]:
    """Returns x and y of the pixel of a toy defect that is farthest from its edge."""
    mask = np.asarray(make_sample(index, size=SIZE).mask) > 0
    depth = cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    y, x = np.unravel_index(int(depth[1:-1, 1:-1].argmax()), mask.shape)
    return int(x), int(y)


if __name__ == "__main__":
    main()
