import base64
import shutil
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response

from segdec.config import ModelConfig
from segdec.engines import ENGINES
from segdec.errors import ImageError
from segdec.images import decode_image, encode_png
from segdec.inference.postprocessing import find_regions
from segdec.schemas import (
    Answer,
    Decision,
    ImageFacts,
    InspectAnswer,
    MaskAnswer,
    ModelDetail,
    ModelIdentity,
    ModelList,
    Problem,
    RegionAnswer,
    Timing,
)


@pytest.fixture
def artifact_copy(tiny_artifact: Path, tmp_path: Path) -> Path:
    """The tiny artifact, for a test to damage."""
    return Path(shutil.copytree(tiny_artifact, tmp_path / "copy"))


@pytest.fixture(scope="session")
def wide_config(tiny_config: ModelConfig) -> ModelConfig:
    """A network whose feature convolution is wide enough for Fourier transforms."""
    widths = {"segmentation_widths": ((4,), (4,), (32,)), "feature_width": 64, "feature_kernel": 9}
    network = tiny_config.network.model_copy(update=widths)
    return tiny_config.model_copy(update={"network": network})


@pytest.fixture(scope="session")
def wide_network(wide_config: ModelConfig, tensorflow_devices: list[str]) -> Any:  # noqa: ARG001
    """The wide network with seeded weights and moving statistics that are not the initial ones."""
    import keras

    from segdec.network.network import build_network

    keras.utils.set_random_seed(3)
    network = build_network(wide_config.network)
    random = np.random.default_rng(3)
    for variable in network.non_trainable_variables:
        variable.assign(random.uniform(0.05, 0.15, variable.shape))
    return network


@pytest.fixture(scope="session")
def every_engine(
    wide_network: Any, wide_config: ModelConfig, make_once: Callable[[str, Callable[[Path], object]], Path]
) -> Path:
    """An artifact of the wide network for every engine, exported once for all workers."""
    from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model

    photographs = np.random.default_rng(4).integers(0, 256, (8, 64, 48, 1), dtype=np.uint8)
    validation, card = ValidationPhotographs(calibration=list(photographs)), ModelCard("wide", "1")
    options: dict[str, Any] = {"engines": list(ENGINES), "validation": validation, "measure": False}
    return make_once(
        "every_engine", lambda folder: export_model(wide_network, folder, wide_config, card, **options)
    )


class StubService:
    """Answers like the service: pixels above 127 are the defect, the brightest pixel is the score."""

    def __init__(self) -> None:
        self.key: str | None = None  # API key that it asks for
        self.review: float | None = None  # score from which a photograph is for review
        self.mask_classes = False
        self.requests: list[tuple[str, dict[str, str]]] = []  # path, headers
        self.recorded: dict[str, int] = {}  # Idempotency-Key → id
        self.parts: list[dict[str, str]] = []  # queries of inspected photographs
        self.app = FastAPI()
        self.app.get("/readyz")(lambda: {"status": "ready"})
        self.app.middleware("http")(self._check)
        self.app.get("/v1/models")(self.list_models)
        self.app.post("/v1/predict")(self.predict)
        self.app.post("/v1/inspect")(self.inspect)
        self.app.post("/v1/models/{name}/versions/{version}/predict")(self.predict)

    async def _check(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        self.requests.append((request.url.path, dict(request.headers)))
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return self._refuse(401, "unauthorized", "The key is missing or unknown.")
        return await call_next(request)

    async def list_models(self) -> ModelList:
        manifest = {
            "network": {"mask_classes": self.mask_classes},
            "classes": ["good", "spot"],
            "input": {"white_level": 4095},
            "thresholds": {"score": 0.5, "review": self.review},
        }
        detail = ModelDetail(name="parts", version="2", sha256=None, labels=["stable"], manifest=manifest)
        return ModelList(models=[detail])

    async def predict(self, request: Request, mask: str, threshold: float | None = None) -> Response:
        try:
            answer = self._answer(await request.body(), mask, threshold)
        except ImageError as error:
            return self._refuse(422, error.code, str(error))
        return Response(answer.model_dump_json(), media_type="application/json")

    async def inspect(self, request: Request) -> Response:
        """Records photographs with a new Idempotency-Key."""
        try:
            answer = self._answer(await request.body(), "none", None)
        except ImageError as error:
            return self._refuse(422, error.code, str(error))
        key = request.headers["Idempotency-Key"]
        repeated = key in self.recorded
        number = self.recorded.setdefault(key, len(self.recorded) + 1)
        self.parts.append(dict(request.query_params))
        recorded = InspectAnswer(**dict(answer), record_id=number, repeated=repeated)
        return Response(recorded.model_dump_json(), media_type="application/json")

    def _answer(self, data: bytes, mask: str, threshold: float | None) -> Answer:
        photograph = decode_image(data, "The request body", white_level=4095)
        grey = photograph.pixels.max(axis=2)
        score = float(grey.max()) / 255
        defect = np.where(grey > 127, 255, 0).astype(np.uint8)
        height, width = grey.shape
        size, kind, integrity = {"width": width, "height": height}, photograph.format, photograph.integrity
        pixels = (defect > 0).view(np.uint8) if mask == "classes" else defect
        drawn = MaskAnswer(
            **size,
            encoding="classes" if mask == "classes" else "png",
            space="input",
            threshold=0.5,
            data=base64.b64encode(encode_png(pixels)).decode(),
            labels=["good", "spot"] if mask == "classes" else None,
        )
        regions = find_regions(defect, grey.astype(np.float32) / 255)
        return Answer(
            id="1",
            model=ModelIdentity(name="parts", version="2", sha256=None),
            image=ImageFacts(**size, bit_depth=8, format=kind, integrity=integrity),
            decision=self._decide(score, threshold),
            mask=None if mask == "none" else drawn,
            regions=[RegionAnswer.model_validate(asdict(region)) for region in regions],
            timing_ms=Timing(queue=0, decode=0, infer=0, encode=0, total=0),
            batch_size=1,
            warnings=["it is a stub"],
        )

    def _decide(self, score: float, threshold: float | None) -> Decision:
        review = self.review if threshold is None else None
        limit = 0.5 if threshold is None else threshold
        below = "good" if review is None or score < review else "review"
        return Decision(
            label="spot" if score >= limit else below,
            score=score,
            threshold=limit,
            review_threshold=review,
            probabilities={"good": 1 - score, "spot": score},
        )

    def _refuse(self, status: int, code: str, detail: str) -> Response:
        problem = Problem(title="", status=status, detail=detail, code=code, request_id="of-the-stub")
        return Response(problem.model_dump_json(), status, media_type="application/problem+json")


@pytest.fixture
def stub_service() -> StubService:
    return StubService()


@pytest.fixture
def service_url(stub_service: StubService) -> Iterator[str]:
    """Address of the listening `stub_service`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it queues whoever comes before the thread
        config = uvicorn.Config(stub_service.app, lifespan="off", ws="none", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()
