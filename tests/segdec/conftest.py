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
from fastapi.responses import JSONResponse

from segdec.config import ModelConfig
from segdec.errors import ImageError
from segdec.images import decode_image, encode_png
from segdec.inference.postprocessing import find_regions
from tests.segdec.service_answer import SERVICE_ANSWER


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
def wide_network(wide_config: ModelConfig) -> Any:
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
def exported(
    wide_network: Any, wide_config: ModelConfig, make_once: Callable[[str, Callable[[Path], object]], Path]
) -> Path:
    """An artifact of the wide network for TensorFlow and OpenVINO, exported once for all workers."""
    from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model

    photographs = np.random.default_rng(4).integers(0, 256, (8, 64, 48, 1), dtype=np.uint8)
    validation, card = ValidationPhotographs(calibration=list(photographs)), ModelCard("wide", "1")
    engines = ["tensorflow", "openvino", "openvino-int8"]
    options: dict[str, Any] = {"engines": engines, "validation": validation, "measure": False}
    return make_once(
        "exported", lambda folder: export_model(wide_network, folder, wide_config, card, **options)
    )


@pytest.fixture
def written_engines(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports of the wide network copy the files of an engine instead of writing them again."""

    def copy(name: str, _network: Any, folder: Path, *_: Any) -> None:
        shutil.copytree(exported / name, folder)

    monkeypatch.setattr("segdec.export.model_export.write_engine", copy)


class StubService:
    """Answers like the service: pixels above 127 are the defect, the brightest pixel is the score."""

    def __init__(self) -> None:
        self.key: str | None = None  # API key that it asks for
        self.mask_classes = False
        self.requests: list[tuple[str, dict[str, str]]] = []  # path, headers
        self.recorded: dict[str, int] = {}  # Idempotency-Key → id
        self.parts: list[dict[str, str]] = []  # queries of inspected photographs
        self.app = FastAPI()
        self.app.middleware("http")(self._check)
        self.app.exception_handler(ImageError)(self._refuse_image)
        self.app.get("/readyz")(lambda: {"status": "ready"})
        self.app.get("/v1/models")(self.list_models)
        for path in ("/v1/predict", "/v1/models/{name}/versions/{version}/predict"):
            self.app.post(path)(self.predict)
        self.app.post("/v1/inspect")(self.inspect)

    async def _check(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        self.requests.append((request.url.path, dict(request.headers)))
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return refuse(401, "unauthorized", "The key is missing or unknown.")
        return await call_next(request)

    async def _refuse_image(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, ImageError)
        return refuse(422, error.code, str(error))

    async def list_models(self) -> dict[str, Any]:
        manifest = {"network": {"mask_classes": self.mask_classes}, "classes": ["good", "spot"]}
        manifest |= {"input": {"white_level": 4095}, "thresholds": {"score": 0.5}}
        return {"models": [{**SERVICE_ANSWER["model"], "aliases": ["stable"], "manifest": manifest}]}

    async def predict(self, request: Request, mask: str, threshold: float = 0.5) -> dict[str, Any]:
        photograph = decode_image(await request.body(), "The request body", white_level=4095)
        grey = photograph.pixels.max(axis=2)
        score, size = float(grey.max()) / 255, dict(zip(("height", "width"), grey.shape, strict=True))
        defect = np.where(grey > 127, np.uint8(255), np.uint8(0))
        encoding = "classes" if mask == "classes" else "png"
        data = base64.b64encode(encode_png(defect // 255 if mask == "classes" else defect)).decode()
        facts = {"encoding": encoding, "space": "input", "threshold": 0.5, "labels": ["good", "spot"], **size}
        label, probabilities = "spot" if score >= threshold else "good", {"good": 1 - score, "spot": score}
        decision = {"label": label, "score": score, "threshold": threshold, "probabilities": probabilities}
        regions = find_regions(defect, grey.astype(np.float32) / 255)
        return SERVICE_ANSWER | {
            "image": {"bit_depth": 8, "format": photograph.format, "integrity": photograph.integrity, **size},
            "decision": decision,
            "mask": None if mask == "none" else {"data": data, **facts},
            "regions": [asdict(region) for region in regions],
            "warnings": ["it is a stub"],
        }

    async def inspect(self, request: Request) -> dict[str, Any]:
        """Records photographs with a new Idempotency-Key."""
        answer, key = await self.predict(request, "none"), request.headers["Idempotency-Key"]
        repeated = key in self.recorded
        number = self.recorded.setdefault(key, len(self.recorded) + 1)
        self.parts.append(dict(request.query_params))
        return answer | {"record_id": number, "repeated": repeated}


def refuse(status: int, code: str, detail: str) -> Response:
    problem = {"title": "", "status": status, "code": code, "detail": detail, "request_id": "of-the-stub"}
    return JSONResponse(problem, status, media_type="application/problem+json")


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
