"""The inspection service with a stub in place of the network, to measure the service alone.

python -m benchmarks.serving.stub_service PORT
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import uvicorn
import uvloop
from numpy.typing import NDArray

from api.app import create_app
from api.listener.server import bind, make_uvicorn_config
from api.settings import Settings
from benchmarks.serving.server_process import ServerProcess
from benchmarks.untrained_models import TINY
from segdec.engines import Logits
from segdec.predictor import Predictor
from segdec.runtime.threads import limit_opencv_threads

STRIDE = 8
"""Pixels per mask logit along each side."""


class StubEngine:
    """Returns the same logits for every photograph: a defect in the middle third."""

    batch_pixels = 2**24

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Returns logits for `images` [B, H, W, C] uint8."""
        count, rows, columns = len(images), images.shape[1] // STRIDE, images.shape[2] // STRIDE
        mask = np.full((count, rows, columns, 1), -4.0, np.float32)
        mask[:, rows // 3 : 2 * rows // 3, columns // 3 : 2 * columns // 3] = 4.0
        return Logits(mask=mask, classes=np.tile(np.array([1.0, 3.0], np.float32), (count, 1)))


def start_stub(settings: Mapping[str, str]) -> ServerProcess:
    """Starts this module as a process with settings of the service."""
    variables = {f"SEGDEC_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "benchmarks.serving.stub_service", "{port}"]
    return ServerProcess(command, environment=variables)


async def serve(port: int) -> None:
    """Serves on 127.0.0.1 until SIGTERM."""
    settings = Settings(model=Path(os.devnull))
    app = create_app(settings, Predictor(StubEngine(), TINY))
    with bind("127.0.0.1", port) as listener:
        async with app.router.lifespan_context(app):
            await app.state.service.start()
            await uvicorn.Server(make_uvicorn_config(app, settings)).serve(sockets=[listener])


if __name__ == "__main__":
    limit_opencv_threads()  # as in the service's entry point
    uvloop.run(serve(int(sys.argv[1])))
