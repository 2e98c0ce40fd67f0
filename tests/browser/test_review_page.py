"""The page of reviews in a real browser, with the real service behind it; a stub stands for the network."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, Route, expect

from api.app import create_app
from api.settings import Settings
from datasets.layouts.toy import make_sample
from segdec.engines import Logits
from segdec.images import encode_png

from tests.api.conftest import StubPredictor
from tests.browser.conftest import Visit, listening

ADA = "localStorage.setItem('segdec.reviewer', 'Ada')"
WIDTH, HEIGHT = 60, 40


class KnownPredictor(StubPredictor):
    """Has been told the mask scores × 255 of some photographs; of all others they are the grey levels."""

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


class Line:
    """A production line: sends parts to the service, and asks what it has kept."""

    def __init__(self, address: str, predictor: KnownPredictor) -> None:
        self.address = address
        self.predictor = predictor

    def inspect(self, picture: NDArray[np.uint8], part: str, station: str = "line3-cam1") -> int:
        """Has a photograph inspected; its number in the record."""
        path = f"v1/inspect?station={station}&part_id={part}"
        request = urllib.request.Request(
            self.address + path, encode_png(picture), {"Content-Type": "image/png"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            number: int = json.load(answer)["record_id"]
        return number

    def inspect_defects(self, count: int) -> list[int]:
        """Has different defective parts inspected, A1, A2, …; their numbers."""
        return [self.inspect(part_image(200 + n), f"A{n + 1}") for n in range(count)]

    def get(self, path: str) -> Any:
        """What the service answers."""
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            data = answer.read()
        return json.loads(data) if data[:1] in b"{[" else data

    def review(self, number: int) -> dict[str, Any] | None:
        """What a person says of a record."""
        said: dict[str, Any] | None = self.get(f"v1/records/{number}")["review"]
        return said

    def label(self, number: int) -> str | None:
        """The label that a person gave to a record."""
        said = self.review(number)
        return said and said["label"]

    def mask(self, number: int, which: str = "reviewed", values: str = "defect") -> NDArray[np.uint8]:
        """A mask of a record."""
        data = self.get(f"v1/records/{number}/mask?which={which}&values={values}")
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def part_image(brightness: int) -> NDArray[np.uint8]:
    """A dark part with a spot 6 × 4 px."""
    image = np.full((HEIGHT, WIDTH), 30, np.uint8)
    image[8:12, 10:16] = brightness
    return image


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """A line, whose parts wait for their review if they are defective."""
    predictor = KnownPredictor()
    settings = {"model": "unused", "record": "required", "record_folder": tmp_path / "record"}
    app = create_app(Settings.model_validate(settings), predictor)

    async def start() -> None:
        await app.state.service.start()

    with listening(app, start) as address:
        yield Line(address, predictor)


@pytest.fixture
def review(visit: Callable[..., Visit], line: Line) -> Callable[..., Visit]:
    """Opens the page of reviews in a browser of its own, as Ada."""

    def open_page(path: str = "review", **window: Any) -> Visit:
        user = visit(line.address, **window)
        user.page.context.add_init_script(ADA)
        user.open(path)
        return user

    return open_page


def shows(page: Page, part: str) -> None:
    """Waits until the picture of a part is on the page."""
    expect(page.locator("#part")).to_have_text(part)
    expect(page.locator("main")).to_have_attribute("data-picture", "shown")


def place(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a point of the photograph lies in the window; the picture is not zoomed."""
    box = page.locator("#picture").bounding_box()
    assert box is not None
    return box["x"] + x / WIDTH * box["width"], box["y"] + y / HEIGHT * box["height"]


def draw(page: Page, *points: tuple[float, float]) -> None:
    """Draws a line on the picture with the mouse."""
    page.mouse.move(*place(page, *points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*place(page, *point))
    page.mouse.up()


def test_verdicts_by_key_show_the_next_picture_and_are_kept(review, line):
    numbers = line.inspect_defects(5)
    page = review().page
    for part, key in zip(("A1", "A2", "A3", "A4"), "g1u2", strict=True):
        shows(page, part)
        page.keyboard.press(key)
    shows(page, "A5")
    expect(page.locator("#last em")).to_have_text(["kept"] * 4)
    expect(page.locator("#judged")).to_have_text("4 judged")
    expect(page.locator("#waiting")).to_have_text("1 waiting")
    assert [line.label(number) for number in numbers] == ["good", "scratch", "unsure", "spot", None]
    assert line.review(numbers[0])["reviewer"] == "Ada"
    page.keyboard.press("g")
    expect(page.locator("#blank-title")).to_have_text("Nothing waits")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_looks_right(review, line, scheme):
    for index, (peak, part) in enumerate([(230, "A10452"), (140, "A10453"), (235, "A10454"), (230, "A10455")]):
        sample = make_sample((1, 2, 3, 4)[index], size=512)
        blurred = cv2.GaussianBlur(sample.mask.astype(np.float32), (0, 0), 6)
        scores = np.rint(2 + peak * blurred / max(blurred.max(), 1)).astype(np.uint8)
        image = sample.image if sample.image.ndim == 3 else sample.image[..., None]
        line.predictor.known[sha256(np.ascontiguousarray(image).tobytes()).digest()] = scores
        line.inspect(sample.image, part)
    for name, window in {
        "desktop": {"viewport": {"width": 1440, "height": 900}},
        "tablet": {"viewport": {"width": 820, "height": 1180}, "has_touch": True},
    }.items():
        user = review(color_scheme=scheme, **window)
        page = user.page
        expect(page.locator("main")).to_have_attribute("data-picture", "shown")
        user.screenshot(f"verdict-{name}-{scheme}", full_page=False)
        page.keyboard.press("b")
        user.screenshot(f"mending-{name}-{scheme}", full_page=False)
        if name == "desktop":
            page.keyboard.press("v")
            page.keyboard.press("1")
            expect(page.locator("#last em")).to_have_text(["kept"])
            user.screenshot(f"second-{name}-{scheme}", full_page=False)
        page.locator("#show-slips").click()
        expect(page.locator("#slips .headline")).to_have_count(2)
        user.screenshot(f"slips-{name}-{scheme}", full_page=False)
        page.close()
