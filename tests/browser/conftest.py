"""A fake service for the real pages, and a browser."""

import asyncio
import base64
import shutil
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI, UploadFile
from numpy.typing import NDArray
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from starlette.requests import Request

from api.app import create_app
from api.errors import RequestError, add_error_handlers, service_unavailable
from api.metrics import Metrics
from api.middleware.request_id import RequestIdMiddleware
from api.routes.pages import add_pages
from api.settings import Settings
from segdec.images import Photograph, decode_image, encode_png
from segdec.inference.postprocessing import find_regions
from segdec.schemas import (
    Answer,
    Decision,
    ImageFacts,
    MaskAnswer,
    ModelDetail,
    ModelIdentity,
    ModelList,
    PolygonAnswer,
    RegionAnswer,
    Timing,
)
from tests.api.conftest import StubPredictor

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "test-output" / "browser"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=30_000)
"""Milliseconds, for busy machines."""

KINDS = ("good", "scratch", "stain")


class FakeService:
    """A service whose mask scores × 255 are the grey levels; it can be busy or require a key.

    Attributes:
        threshold: Image score threshold.
        review: Review threshold; None for no review.
        inspected_area: Of every answer.
        known: Other scores × 255 of some photographs, by their bytes.
        kinds: Classes of pixels, 1 = scratch, 2 = stain, for labelled regions.
    """

    def __init__(self) -> None:
        self.reset()
        self.app = FastAPI(title="segdec", docs_url=None, redoc_url=None)
        self.app.state.metrics = Metrics(queue_depth=lambda: 0, ready=lambda: True)
        self.app.add_middleware(RequestIdMiddleware)
        add_error_handlers(self.app)
        self.app.get("/v1/models")(self.models)
        self.app.post("/v1/predict")(self.predict)
        self.app.post("/v1/models/{name}/versions/{version}/predict")(self.predict_named)
        add_pages(self.app, Settings.model_validate({"model": "unused"}))

    def reset(self) -> None:
        """Resets settings and counters."""
        self.key = ""
        self.refusals = 0
        self.threshold = 0.5
        self.review: float | None = None
        self.inspected_area: list[PolygonAnswer] | None = None
        self.served = [("surface", "3", ["stable"])]
        self.asked: list[str] = []
        self.known: dict[bytes, NDArray[np.uint8]] = {}
        self.kinds: dict[bytes, NDArray[np.uint8]] = {}
        self.running = self.max_running = 0
        self.gate = threading.Event()
        self.gate.set()

    def models(self, request: Request) -> ModelList:
        """Lists the served models."""
        self._check_key(request)
        return ModelList(
            models=[
                ModelDetail(name=name, version=version, sha256="0" * 64, labels=labels, manifest={})
                for name, version, labels in self.served
            ]
        )

    def predict(self, request: Request, file: UploadFile, mask: str) -> Answer:
        """Inspects one photograph."""
        return self.predict_named(request, *self.served[0][:2], file, mask)

    def predict_named(self, request: Request, name: str, version: str, file: UploadFile, mask: str) -> Answer:
        """Inspects one photograph with a named model."""
        assert mask == "scores"
        self.asked.append(f"{name}/{version}")
        self._check_key(request)
        if self.refusals:
            self.refusals -= 1
            raise service_unavailable("queue_full", "The queue is full.", 0)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            assert self.gate.wait(timeout=30)
            data = file.file.read()
            photograph = decode_image(data, file.filename or "file", white_level=65535)
        finally:
            self.running -= 1
        scores = self.known.get(data, photograph.pixels.max(axis=2))
        model = ModelIdentity(name=name, version=version, sha256="0" * 64)
        decision = self._decide(float(scores.max()) / 255)
        found = answer(photograph, scores, model, decision, self.kinds.get(data))
        return found.model_copy(update={"inspected_area": self.inspected_area})

    def _decide(self, score: float) -> Decision:
        below = "good" if self.review is None or score < self.review else "review"
        return Decision(
            label=below if score < self.threshold else "scratch",
            score=score,
            threshold=self.threshold,
            review_threshold=self.review,
            probabilities={"good": 1 - score, "scratch": 0.75 * score, "spot": 0.25 * score},
        )

    def _check_key(self, request: Request) -> None:
        sent = request.headers.get("Authorization", "")
        if self.key and sent != f"Bearer {self.key}":
            detail = "The API key is not known here." if sent else "No API key arrived."
            detail += " Send one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'."
            raise RequestError(401, "unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def answer(
    photograph: Photograph,
    stored: NDArray[np.uint8],
    model: ModelIdentity,
    decision: Decision,
    kinds: NDArray[np.uint8] | None = None,
) -> Answer:
    """Returns the answer for mask scores × 255 [H, W], with the threshold 0.5."""
    height, width = stored.shape
    return Answer(
        id="1",
        model=model,
        image=ImageFacts(
            width=width,
            height=height,
            bit_depth=photograph.bit_depth,
            format=photograph.format,
            integrity=photograph.integrity,
        ),
        decision=decision,
        mask=MaskAnswer(
            encoding="scores",
            width=width,
            height=height,
            space="input",
            threshold=0.5,
            data=base64.b64encode(encode_png(stored)).decode("ascii"),
        ),
        regions=region_answers(stored, kinds),
        timing_ms=Timing(queue=0.1, decode=3.2, infer=11.4, encode=2.0, total=17.1),
        batch_size=1,
        warnings=list(photograph.warnings),
    )


def region_answers(stored: NDArray[np.uint8], kinds: NDArray[np.uint8] | None = None) -> list[RegionAnswer]:
    """Returns the regions of mask scores × 255 [H, W] from 0.5, for each class."""
    scores = stored.astype(np.float32) / 255
    mask = np.where(scores >= 0.5, np.uint8(255), np.uint8(0))
    parts = {None: mask}
    if kinds is not None:
        parts = {name: mask * (kinds == number) for number, name in enumerate(KINDS) if number}
    return [
        RegionAnswer(
            bbox=r.bbox, area_px=r.area_px, score_max=r.score_max, polygon=list(r.polygon), label=label
        )
        for label, part in parts.items()
        for r in find_regions(part, scores)
    ]


# === Service and browser ===


@contextmanager
def listening(app: FastAPI, start: Callable[[], Awaitable[None]] | None = None) -> Iterator[str]:
    """Runs `app` in a thread, after `start`; yields its address."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning"))

    async def run() -> None:
        async with app.router.lifespan_context(app):
            if start:
                await start()
            await server.serve([listener])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def running_service() -> Iterator[tuple[FakeService, str]]:
    """The fake service and its address."""
    service = FakeService()
    with listening(service.app) as address:
        yield service, address


@pytest.fixture
def real_service(tmp_path: Path) -> Iterator[str]:
    """The address of the real service with a stub network; its key is `open sesame`."""
    keys = tmp_path / "keys"
    keys.write_text(f"line1:{sha256(b'open sesame').hexdigest()}\n")
    app = create_app(Settings.model_validate({"model": "unused", "api_keys": keys}), StubPredictor())

    async def start() -> None:
        await app.state.service.start()

    with listening(app, start) as address:
        yield address


@pytest.fixture
def service(running_service: tuple[FakeService, str]) -> Iterator[FakeService]:
    """The fake service, reset."""
    fake = running_service[0]
    fake.reset()
    yield fake
    fake.gate.set()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for one module, because Playwright keeps an event loop in this thread."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("No chromium in the path: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page with its requests and errors."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.set_default_timeout(30_000)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def open(self, path: str = "") -> Page:
        """Opens the page and waits for its scripts."""
        self.page.goto(self.address + path)
        return self.page

    def asked(self, path: str) -> int:
        """Counts the requests with `path` in their address."""
        return sum(path in url for url in self.requests)

    def foreign(self) -> list[str]:
        """Requests to other hosts."""
        return [url for url in self.requests if not url.startswith((self.address, "blob:", "data:"))]

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

    def screenshot(self, name: str, *, full_page: bool = True) -> None:
        """Saves a screenshot in test-output/browser."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full_page)

    def _note(self, message: ConsoleMessage) -> None:
        # Browsers log every answer of 400 and above, which the page handles
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.errors.append(message.text)


@pytest.fixture
def visit(
    browser: Browser, running_service: tuple[FakeService, str], service: FakeService
) -> Iterator[Callable[..., Visit]]:
    """Opens browser windows; fails the test on page errors and requests to other hosts."""
    visits: list[Visit] = []

    def make(address: str = running_service[1], **window: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **window})
        visits.append(Visit(context, address))
        return visits[-1]

    yield make
    service.gate.set()
    for made in visits:
        assert "Page error" not in made.page.content()
        made.page.context.close()
        assert made.errors == []
        assert made.foreign() == []
