import asyncio
import copy
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import numpy as np
import psycopg
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI
from numpy.typing import NDArray
from pydantic_settings import DotEnvSettingsSource
from sqlalchemy import Engine, make_url

from api.app import create_app
from api.database.database import migrate, open_database
from api.database.database_files import DatabaseFiles
from api.settings import Settings
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.images import encode_png
from segdec.inference.postprocessing import Prediction, Region
from tests.api.live_server import SkippingLoop
from tests.api.record.databases import running_postgres
from tests.api.record.object_store import OwnObjectStore
from tests.api.record.small_disk import mounted
from tests.segdec.artifact.test_artifact import MANIFEST

T = TypeVar("T")

ROOT = Path(__file__).parents[2]

CLASSES = ("good", "scratch", "spot")
PNG = {"Content-Type": "image/png"}
PROBLEM = {"type", "title", "status", "detail", "code", "values", "request_id"}
"""Members of an answer about an error."""
CREATE_FILE = DatabaseFiles.create
"""Creates an empty SQLite file, as the service does outside of tests."""


class StubPredictor:
    """Finds the pixels above 127; the brightest one is the score. Notes who called it with what.

    While `gate` is not set, the network runs on; `entered` is released whenever it begins. It raises
    `failure`, and `prepare` raises `refusal`. Its grid has a score every `mask_stride` pixels. From the score
    `review` on, a photograph is for review; `area` [H, W] is what is inspected of every photograph. From the
    column `spot_from` on, a defect is a spot, before it a scratch; None for one mask. Every photograph
    has the surface `surface` [D].
    """

    def __init__(self) -> None:
        self.config = ModelConfig(
            network=NetworkConfig(preset="compact", num_classes=3), input=InputConfig(), classes=CLASSES
        )
        self.batch_pixels = 2**24
        self.shapes: list[tuple[int, ...]] = []
        self.threads: set[str] = set()
        self.running = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.failure: Exception | None = None
        self.refusal: Exception | None = None
        self.mask_stride = 8
        self.threshold = 0.5
        self.review: float | None = None
        self.area: NDArray[np.uint8] | None = None
        self.spot_from: int | None = None
        self.surface: NDArray[np.float32] | None = None

    def block(self) -> None:
        """Blocks the network; `entered` counts from now on."""
        while self.entered.acquire(blocking=False):
            pass
        self.gate.clear()

    def with_config(self, config: ModelConfig) -> Self:
        other = copy.copy(self)
        other.config = config
        other.threshold, other.review = config.thresholds.score, config.thresholds.review
        return other

    def warmup_shape(self) -> tuple[int, int, int]:
        return (16, 24, 1)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self.refusal:
            raise self.refusal
        return image

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        self.running += 1
        self.threads.add(threading.current_thread().name)
        try:
            self.entered.release()
            assert self.gate.wait(timeout=30)
            if self.failure:
                raise self.failure
            self.shapes.append(prepared.shape)
            surface = None if self.surface is None else np.stack([self.surface] * len(prepared))
            mask = prepared.max(axis=3, keepdims=True) / np.float32(255)
            return Logits(mask, np.zeros((len(prepared), 3)), surface)
        finally:
            self.running -= 1

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, unlike: bool, threshold: float | None = None
    ) -> Prediction:
        review = self.review if threshold is None else None
        threshold = self.threshold if threshold is None else threshold
        scores = logits.mask[row, : size[0], : size[1], 0]
        score = float(scores.max())
        doubtful = score < threshold and (unlike or (review is not None and review <= score))
        return Prediction(
            label="scratch" if score >= threshold else "review" if doubtful else "good",
            score=score,
            log_odds=8 * score - 4,
            threshold=threshold,
            review_threshold=review,
            probabilities={"good": 1 - score, "scratch": score, "spot": 0.0},
            mask=np.where(scores >= 0.5, 255, 0).astype(np.uint8),
            mask_scores=scores,
            grid_scores=scores[:: self.mask_stride, :: self.mask_stride],
            mask_threshold=0.5,
            regions=_regions(scores, None if self.spot_from is None else "scratch"),
            area=self.area,
            class_mask=self._classes(scores, 1),
            grid_classes=self._classes(scores, self.mask_stride),
        )

    def _classes(self, scores: NDArray[np.float32], stride: int) -> NDArray[np.uint8] | None:
        if self.spot_from is None:
            return None
        classes = np.where(np.arange(scores.shape[1]) >= self.spot_from, 2, 1) * np.ones_like(scores)
        found = np.where((scores >= 0.5) | (stride > 1), classes, 0)
        return found[::stride, ::stride].astype(np.uint8)

    def have_classes(self, spot_from: int) -> None:
        """Gives a mask for each class from now on."""
        self.spot_from = spot_from
        network = self.config.network.model_copy(update={"mask_classes": True})
        self.config = self.config.model_copy(update={"network": network})


class ServiceClient:
    """Starts an app in an event loop of its own and sends it requests, until the block is left."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            lifespan = self.app.router.lifespan_context(self.app)
            stack.enter_context(self._portal.wrap_async_context_manager(lifespan))
            self._portal.call(self.app.state.service.start)
            transport = httpx.ASGITransport(self.app)
            self._client = httpx.AsyncClient(transport=transport, base_url="http://test")
            stack.enter_context(self._portal.wrap_async_context_manager(self._client))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Runs `function` in the service's event loop."""
        return self._portal.call(function)

    def request(self, method: str, url: str, **words: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with asyncio.timeout(60):
                return await self._client.request(method, url, **words)

        return self._portal.call(ask)

    def get(self, url: str, **words: Any) -> httpx.Response:
        return self.request("GET", url, **words)

    def post(self, url: str, **words: Any) -> httpx.Response:
        return self.request("POST", url, **words)


@pytest.fixture(autouse=True)
def loggers_are_on(monkeypatch) -> Iterator[None]:
    """Undoes what libraries of other tests do: they raise levels, or disable loggers."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("api.") and isinstance(logger, logging.Logger):
            monkeypatch.setattr(logger, "disabled", False)
            monkeypatch.setattr(logger, "level", logging.NOTSET)
    service = logging.getLogger("api")
    before = service.level
    service.setLevel(before or logging.WARNING)
    yield
    service.setLevel(before)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """For async tests, marked `anyio`."""
    return "asyncio"


@pytest.fixture
def serve() -> type[ServiceClient]:
    """The context manager that starts an app and sends it requests."""
    return ServiceClient


def _regions(scores: NDArray[np.float32], label: str | None = None) -> tuple[Region, ...]:
    rows, columns = np.nonzero(scores >= 0.5)
    if not len(rows):
        return ()
    left, top, right, bottom = (int(v) for v in (columns.min(), rows.min(), columns.max(), rows.max()))
    box = (left, top, right + 1 - left, bottom + 1 - top)
    polygon = ((left, top), (left, bottom + 1), (right + 1, bottom + 1), (right + 1, top))
    return (Region(bbox=box, area_px=len(rows), score_max=float(scores.max()), polygon=polygon, label=label),)


def part_image(height: int = 24, width: int = 40, brightness: int = 204) -> NDArray[np.uint8]:
    """A dark part with a 6 × 4 px defect at x=10, y=8."""
    image = np.full((height, width, 1), 40, np.uint8)
    image[8:12, 10:16] = brightness
    return image


@pytest.fixture(scope="session")
def part() -> bytes:
    return encode_png(part_image())


@pytest.fixture
def predictor() -> StubPredictor:
    return StubPredictor()


@pytest.fixture
def make_app(predictor: StubPredictor) -> Callable[..., FastAPI]:
    def make(**settings: object) -> FastAPI:
        return create_app(Settings.model_validate({"model": Path("unused"), **settings}), predictor)

    return make


@pytest.fixture
def key_files(tmp_path: Path) -> dict[str, Path]:
    """Settings with files of one key each: `api`, `review` and `admin`, which are also the names."""
    files = {f"{key}_keys": tmp_path / f"{key}.keys" for key in ("api", "review", "admin")}
    for path in files.values():
        path.write_text(f"{path.stem}:{hashlib.sha256(path.stem.encode()).hexdigest()}")
    return files


@pytest.fixture
def app(make_app: Callable[..., FastAPI]) -> FastAPI:
    return make_app(max_body_bytes=200_000, max_pixels=20_000)


@pytest.fixture
def client(app: FastAPI) -> Iterator[ServiceClient]:
    with ServiceClient(app) as client:
        yield client


@pytest.fixture
def skipping_loop(monkeypatch) -> SkippingLoop:
    """The event loop of the server that the test starts, whose clock can be moved forward."""
    loop = SkippingLoop()
    monkeypatch.setattr(uvicorn.Config, "get_loop_factory", lambda _: lambda: loop)
    return loop


@dataclass(frozen=True)
class Stubbed:
    """The real server, as a process, with a stub for its model."""

    process: subprocess.Popen[str]
    address: tuple[str, int]
    log: Path

    def wait_for_log(self, words: str) -> None:
        """Returns when a line of the log has `words`."""
        while words not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    def wait_for(self, step: str) -> None:
        """Returns when the step begins."""
        assert step in iter(lambda: self.process.stdout.readline().strip(), "")


@pytest.fixture
def start_stubbed(tmp_path: Path) -> Iterator[Callable[..., Stubbed]]:
    """Starts the real server with a stub for its model, which hangs in the step that is named."""
    running = []

    def start_one(*flags: str, hangs: str = "") -> Stubbed:
        log = tmp_path / f"stderr{len(running)}"
        command = [sys.executable, "-m", "tests.api.stubbed_server", *flags]
        words = {"cwd": ROOT, "env": {**os.environ, "HANGS": hangs}, "text": True}
        with log.open("w") as stderr:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, **words)
        running.append((process, threading.Timer(120, process.kill)))
        running[-1][1].start()
        line = process.stdout.readline()
        assert line.startswith("Serving"), log.read_text()
        port = int(line.rsplit(":", 1)[1])
        return Stubbed(process, ("127.0.0.1", port), log)

    yield start_one
    for process, timer in running:
        timer.cancel()
        process.kill()
        process.communicate()


# === Databases ===


@pytest.fixture(scope="session")
def postgres():
    with running_postgres() as cluster:
        yield cluster


@pytest.fixture
def own_postgres():
    """A cluster that the test can stop; the shared one has the databases of all tests to recover."""
    with running_postgres() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def make_database(postgres):
    """Makes a database of PostgreSQL, empty or as another one, and returns its URL."""

    def make(template: str = "template0") -> str:
        name = f"record_{uuid.uuid4().hex}"
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return postgres.url_of(name)

    return make


@pytest.fixture(scope="session", autouse=True)
def new_files_have_tables(tmp_path_factory):
    """Makes each new SQLite database a copy of one with the current schema, as creating it takes 40 ms."""
    path = tmp_path_factory.mktemp("record") / "record.db"
    open_migrated(f"sqlite:///{path}").dispose()

    def create(files: DatabaseFiles) -> None:
        if not files._path.exists():
            shutil.copyfile(path, files._path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseFiles, "create", create)
        yield


@pytest.fixture(scope="session", autouse=True)
def settings_read_no_file():
    """Settings come from flags and variables; looking for each of them in a file takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DotEnvSettingsSource, "__call__", lambda _: {})
        yield


@pytest.fixture(scope="session")
def record_template(make_database):
    """The name of a PostgreSQL database with the current schema, to be copied."""
    url = make_database()
    open_migrated(url).dispose()
    return make_url(url).database


def open_migrated(url: str) -> Engine:
    engine = open_database(url)
    migrate(engine)
    return engine


@pytest.fixture(scope="session")
def make_database_url(request):
    """Makes a database without rows: `sqlite` or `postgresql`, folder → its URL."""

    def make(kind: str, folder: Path) -> str:
        if kind == "sqlite":
            return f"sqlite:///{folder}/record.db"
        return request.getfixturevalue("make_database")(request.getfixturevalue("record_template"))

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, make_database_url, tmp_path):
    """Of a database without rows."""
    return make_database_url(request.param, tmp_path)


@pytest.fixture
def engine(database_url):
    """Of a record with the current schema."""
    engine = open_migrated(database_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def running_object_store():
    store = OwnObjectStore()
    yield store
    store.stop()


@pytest.fixture
def object_store(running_object_store, monkeypatch):
    """The object store, with its address and key in the environment."""
    for name, value in running_object_store.environment.items():
        monkeypatch.setenv(name, value)
    return running_object_store


@pytest.fixture
def bucket(object_store):
    """The name of an empty bucket."""
    name = f"bucket-{uuid.uuid4().hex}"
    object_store.make(name)
    return name


@pytest.fixture
def disk(tmp_path):
    """A folder on a small file system."""
    with mounted(tmp_path / "disk") as folder:
        yield folder


def problem(answer):
    return answer.status_code, answer.json()["code"]


def know_training(predictor, grey_training):
    """Gives the stub grey training photographs of 32 × 48 px; returns one like them, and a black one."""
    predictor.config = MANIFEST.model_copy(
        update={"training_photographs": grey_training, "classes": predictor.config.classes}
    )
    return encode_png(np.full((32, 48, 1), 110, np.uint8)), encode_png(np.zeros((32, 48, 1), np.uint8))


@pytest.fixture
def folder(tmp_path):
    """Of a record."""
    return tmp_path / "record"


@pytest.fixture
def recorder(make_app, folder):
    """A client of a service that records."""
    with ServiceClient(make_app(record="required", record_folder=folder)) as client:
        yield client


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """A recorder that all tests of a module share."""
    settings = {"model": "unused", "record": "required", "record_folder": tmp_path_factory.mktemp("record")}
    with ServiceClient(create_app(Settings.model_validate(settings), StubPredictor())) as client:
        yield client


@pytest.fixture
def role_keys(key_files):
    """Keys of the roles `api`, `review` and `admin`, named like them, and settings with their files."""
    return {key: key for key in ("api", "review", "admin")}, key_files
