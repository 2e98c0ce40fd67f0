"""A simulated person who uses only the pages, in Chromium; clicks and keys are counted."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from mimetypes import guess_type

import cv2
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import FilePayload, Locator, Page, Request, Response

from benchmarks.clicks import Bools, choose_click, measure_iou
from segdec.errors import RunError

GOOD_IOU = 0.7
MAX_CLICKS = 6
"""The person saves a mask that has this IoU, or after this number of clicks."""
PAUSE_AFTER_CLICK_MS = 300
"""The person looks at the outline before the next action: the page draws it after the answer has arrived."""
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Labelled:
    """What the person has labelled.

    Attributes:
        good: Number of photographs labelled as good.
        ious: IoU of each saved mask with the true one.
    """

    good: int
    ious: Sequence[float]


class PageUser:
    """A person in front of a page.

    Attributes:
        clicks, keys: Numbers of clicks and of pressed keys so far. A file dialog counts as one click.
    """

    def __init__(self, page: Page) -> None:
        self.clicks = self.keys = 0
        self._page = page

    # === Steps ===

    def create_data_set(self, url: str, name: str, classes: str) -> None:
        """Opens the page Data sets and creates a data set."""
        self._page.goto(f"{url}/datasets")
        self._type("#new-data-set [name=name]", name)
        self._type("#new-data-set [name=classes]", classes)
        self._click(self._page.get_by_role("button", name="Create data set"))
        self._wait_for("#steps [aria-current=step]", "Add photographs")

    def add_photographs(self, photographs: Sequence[tuple[str, bytes]]) -> None:
        """Chooses files, under the given names, and waits until all are in the data set."""
        self._choose_files("#files", photographs)
        self._wait_for("#summary", re.compile(rf"^{len(photographs)} photographs"))

    def label(self, find_truth: Callable[[str], Bools | None]) -> Labelled:
        """Labels all photographs in the order of the page; the true mask is None for a good one."""
        self._click(self._page.locator("#steps [aria-current=step]"))
        good, ious, name = 0, list[float](), self._next_photograph(None)
        while name is not None:
            truth = find_truth(name)
            if truth is None:
                self._press("g")
                good += 1
            else:
                if not ious:
                    self._press("s")  # the page keeps the tool
                ious.append(self._mark_defect(truth))
            name = self._next_photograph(name)
        self._wait_for("#unlabelled", re.compile("^0 "))
        return Labelled(good, ious)

    def train(self, minutes: float, encoder: str | None) -> str:
        """Orders a training, and waits for its end; returns the rating with the first sentence of its reason.

        Raises:
            RunError: If the training fails.
        """
        self._click(self._page.locator("#next-step"))
        self._click(self._page.locator("#steps [aria-current=step]", has_text="Train a model"))
        self._wait_for("#version-note", re.compile("labelled photographs"))
        self._type("#new [name=minutes]", f"{minutes:g}")
        if encoder is not None:
            self._click(self._page.locator("#new summary"))
            self._type("#new [name=encoder]", encoder)
        self._click(self._page.locator("#new [type=submit]"))
        states = ", ".join(f"#job-state[data-state={state}]" for state in ENDED)
        ended = self._page.locator(states)
        ended.wait_for(timeout=60_000 * (2 * minutes + 15))
        if ended.get_attribute("data-state") != "done":
            reason = self._page.locator("#job-reason").inner_text()
            raise RunError(f"The training ended as {ended.inner_text()!r}. {reason}")
        rating = self._page.locator("#rating")
        level, reason = rating.locator("strong").inner_text(), rating.locator("p").first.inner_text()
        return f"rated {level}. {reason.partition('. ')[0].rstrip('.')}"

    def open_report(self) -> None:
        """Opens the report of the training and closes its tab."""
        with self._page.context.expect_page() as opened:
            self._click(self._page.locator("#report"))
        opened.value.locator("h1, h2").first.wait_for()
        opened.value.close()

    def use_model(self) -> None:
        """Uses the model of the training, and opens the page that inspects with it."""
        self._click(self._page.locator("#job-buttons button", has_text="Use the model"))
        self._click(self._page.locator("#job-buttons a", has_text="Inspect a photograph"))
        self._wait_for("#model", re.compile(r"\S"))  # before that, the page does not read files

    def inspect(self, photograph: tuple[str, bytes]) -> str:
        """Chooses one photograph on the page Inspect; returns the verdict that the page shows."""
        self._choose_files("#files", [photograph])
        verdict = self._page.locator("#history [data-result]:not([data-result=busy]) .tag").first
        verdict.wait_for()
        return verdict.inner_text()

    # === Labels ===

    def _next_photograph(self, former: str | None) -> str | None:
        """Waits for another photograph than the former one; returns its name, or None if none is left."""
        same = "" if former is None else f":not(:has(#name:text-is({json.dumps(former)})))"
        shown = f"main[data-state=task][data-picture=shown]{same}"
        found = self._page.locator(f"main[data-state=empty], {shown}")
        found.wait_for()
        if found.get_attribute("data-state") == "empty":
            return None
        return self._page.locator("#name").inner_text()

    def _mark_defect(self, truth: Bools) -> float:
        """Clicks until the mask is good, and saves it; returns the IoU of the saved mask."""
        mask = np.zeros_like(truth)
        for _ in range(MAX_CLICKS):
            click = choose_click(truth, mask)
            if click is None or measure_iou(truth, mask) >= GOOD_IOU:
                break
            with self._page.expect_response(_is_segment) as answered:
                self._click_photograph(click.x, click.y, truth.shape[1], is_defect=click.is_defect)
            mask = paste_region(truth.shape, answered.value.json())
            self._page.wait_for_timeout(PAUSE_AFTER_CLICK_MS)
        with self._page.expect_request(_is_annotation) as sent:
            self._press("Enter")
        saved = (sent.value.post_data_json or {}).get("mask")
        return 0.0 if saved is None else measure_iou(truth, _decode(saved) > 0)

    def _click_photograph(self, x: int, y: int, width: int, *, is_defect: bool) -> None:
        box = self._page.locator("#picture").bounding_box()
        if box is None:
            raise RunError("The page Label shows no photograph to click on.")
        scale = box["width"] / width
        place = box["x"] + (x + 0.5) * scale, box["y"] + (y + 0.5) * scale
        self._page.mouse.click(*place, button="left" if is_defect else "right")
        self.clicks += 1

    # === Input ===

    def _click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1

    def _press(self, key: str) -> None:
        self._page.keyboard.press(key)
        self.keys += 1

    def _type(self, selector: str, text: str) -> None:
        self._page.locator(selector).fill(text)
        self.clicks += 1
        self.keys += len(text)

    def _choose_files(self, selector: str, files: Sequence[tuple[str, bytes]]) -> None:
        sent = [
            FilePayload(name=name, mimeType=guess_type(name)[0] or "application/octet-stream", buffer=content)
            for name, content in files
        ]
        self._page.locator(selector).set_input_files(sent)
        self.clicks += 1

    def _wait_for(self, selector: str, text: str | re.Pattern[str]) -> None:
        self._page.locator(selector, has_text=text).first.wait_for()


@contextmanager
def opened_page() -> Iterator[Page]:
    """Opens a window of Chromium.

    Raises:
        ConfigError: If Chromium is not installed.
        RunError: If a page does not show what the person waits for.
    """
    from playwright.sync_api import Error

    from examples.headless_browser import running_chromium

    with running_chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, locale="en")
        page.set_default_timeout(120_000)
        try:
            yield page
        except Error as error:
            raise RunError(f"{page.url} did not show what was expected: {error}") from error


def paste_region(shape: tuple[int, ...], region: dict[str, object]) -> Bools:
    """Returns the mask [H, W] of a region as the service describes it: `left`, `top` and `png`, or null."""
    mask = np.zeros(shape, bool)
    left, top, png = region["left"], region["top"], region["png"]
    if isinstance(png, str) and isinstance(left, int) and isinstance(top, int):
        part = _decode(png) > 0
        mask[top : top + part.shape[0], left : left + part.shape[1]] = part
    return mask


def _decode(png: str) -> NDArray[np.uint8]:
    decoded = cv2.imdecode(np.frombuffer(base64.b64decode(png), np.uint8), cv2.IMREAD_GRAYSCALE)
    return np.asarray(decoded, np.uint8)


def _is_segment(answer: Response) -> bool:
    return answer.url.endswith("/segment")


def _is_annotation(request: Request) -> bool:
    return request.method == "PUT" and request.url.endswith("/annotation")
