"""The real service with a stub network, and a browser."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, ViewportSize, expect

from api.app import create_app
from api.settings import Settings
from datasets.layouts.toy import make_sample
from examples.headless_browser import find_chromium, running_chromium
from segdec.engines import Logits
from segdec.errors import ConfigError
from segdec.inference.postprocessing import Prediction, find_regions
from tests.api.conftest import StubPredictor
from tests.api.live_server import served

SCREENSHOTS = Path(__file__).parents[2] / "test-output" / "browser"
KEY = "open sesame"
SIZES: dict[str, ViewportSize] = {
    "large": {"width": 1920, "height": 1080},
    "small": {"width": 1024, "height": 768},
    "phone": {"width": 390, "height": 844},
}
"""Viewports of the pages."""
expect.set_options(timeout=30_000)
"""Milliseconds, for busy machines."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests in a browser as slow, except those of one file, which opens each page."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and item.path.stem != "test_pages":
            item.add_marker("slow")


class PagePredictor(StubPredictor):
    """Mask scores × 255 are grey levels, or those in `known` for a photograph; regions are the real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[bytes, NDArray[np.uint8]] = {}

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        logits = super().infer(prepared)
        for row, image in enumerate(prepared):
            scores = self.known.get(sha256(image.tobytes()).digest())
            if scores is not None:
                logits.mask[row, ..., 0] = scores / np.float32(255)
        return logits

    def interpret(self, *args: Any, **words: Any) -> Prediction:
        found = super().interpret(*args, **words)
        if self.spot_from is not None:
            return found
        return replace(found, regions=find_regions(found.mask, found.mask_scores))

    def add_toy_part(self, index: int, peak: int = 230) -> NDArray[np.uint8]:
        """A photograph that looks real, with scores like a network's, of `peak` / 255 at most."""
        sample = make_sample(index, size=512)
        blurred = cv2.GaussianBlur(sample.mask.astype(np.float32), (0, 0), 6)
        scores = np.rint(2 + (peak - 2) * blurred / max(blurred.max(), 1)).astype(np.uint8)
        self.known[sha256(np.atleast_3d(sample.image).tobytes()).digest()] = scores
        return sample.image


def part_image(brightness: int = 204) -> NDArray[np.uint8]:
    """A dark part, 60 × 40 px, with a spot 6 × 4 px of `brightness`."""
    image = np.full((40, 60), 30, np.uint8)
    image[8:12, 10:16] = brightness
    return image


# === Service and browser ===


@dataclass
class RunningService:
    """The real service with its stub network."""

    address: str
    folder: Path
    predictor: PagePredictor


@contextmanager
def serving(
    folder: Path, predictor: PagePredictor | None = None, **settings: Any
) -> Iterator[RunningService]:
    """Runs the service with a record in `folder`."""
    predictor = predictor or PagePredictor()
    given = {"model": "unused", "record": "required", "record_folder": folder / "record", **settings}
    with served(create_app(Settings.model_validate(given), predictor)) as (host, port):
        yield RunningService(f"http://{host}:{port}/", folder / "record", predictor)
        predictor.gate.set()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A file with the key `KEY` of the client `office`."""
    path = tmp_path / "keys"
    path.write_text(f"office:{sha256(KEY.encode()).hexdigest()}\n")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for one module, because Playwright keeps an event loop in this thread."""
    try:
        find_chromium()
    except ConfigError as error:
        pytest.skip(str(error))
    with running_chromium() as browser:
        yield browser


class Visit:
    """A page with its requests and errors."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.rejections: list[str] = []
        self.page.set_default_timeout(30_000)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("response", self._note_rejection)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def open(self, path: str = "") -> Page:
        """Opens the page and waits for its scripts; routes that are set later can miss the next requests."""
        self.page.goto(self.address + path)
        return self.page

    def drop(self, *files: tuple[str, bytes]) -> None:
        """Drops files (name, content) on the page, as a file manager does."""
        sent = [{"name": name, "b64": base64.b64encode(data).decode("ascii")} for name, data in files]
        transfer = self.page.evaluate_handle(
            """files => {
                const transfer = new DataTransfer();
                for (const { name, b64 } of files) {
                    const bytes = Uint8Array.from(atob(b64), (character) => character.charCodeAt(0));
                    transfer.items.add(new File([bytes], name));
                }
                return transfer;
            }""",
            sent,
        )
        for event in ("dragenter", "dragover", "drop"):
            self.page.dispatch_event("body", event, {"dataTransfer": transfer})

    def screenshot(self, name: str, *, full_page: bool = False) -> None:
        """Saves a screenshot in test-output/browser."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full_page)

    def check_sizes(
        self, name: str, sizes: Mapping[str, ViewportSize] = SIZES, *, full_page: bool = False
    ) -> None:
        """Asserts that the page does not scroll sideways in windows of these sizes; saves screenshots."""
        for size, window in sizes.items():
            self.page.set_viewport_size(window)
            self.page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
            self.screenshot(f"{name}-{size}", full_page=full_page)

    def _note_rejection(self, answer: Response) -> None:
        if answer.status >= 400:
            self.rejections.append(f"{answer.status} {answer.url}")

    def _note(self, message: ConsoleMessage) -> None:
        # Browsers log every answer of 400 and above, which the page handles
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.errors.append(message.text)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Opens a browser window for an address; fails the test on page errors and requests to other hosts."""
    visits: list[Visit] = []

    def make(address: str, **window: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **window})
        visits.append(Visit(context, address))
        return visits[-1]

    yield make
    for made in visits:
        assert "Page error" not in made.page.content()
        made.page.context.close()
        assert made.errors == []
        assert [url for url in made.requests if not url.startswith((made.address, "blob:", "data:"))] == []


def contrast(page: Page, selector: str) -> float:
    """The contrast of a text with the background below it, as WCAG 2 defines it."""
    colors = page.locator(selector).first.evaluate(
        """part => {
            const rgb = (color) => color.match(/[0-9.]+/g).map(Number);
            let below = part;
            while (rgb(getComputedStyle(below).backgroundColor)[3] === 0) below = below.parentElement;
            return [getComputedStyle(part).color, getComputedStyle(below).backgroundColor].map(rgb);
        }"""
    )
    lights = []
    for color in colors:
        shares = [value / 255 for value in color[:3]]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)
