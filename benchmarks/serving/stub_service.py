"""The inspection service with a stub for its network, for comparison with other frameworks.

python -m benchmarks.serving.stub_service PORT
"""

import os
import sys
from pathlib import Path

import numpy as np
import uvicorn
import uvloop
from numpy.typing import NDArray

from api.app import create_app
from api.listener.server import bind, make_uvicorn_config
from api.settings import Settings
from benchmarks.serving.peers.work import CLASS_LOGITS, mask_logits, run_stub
from benchmarks.untrained_models import TINY
from segdec.engines import Logits
from segdec.predictor import Predictor
from segdec.runtime.threads import limit_opencv_threads


class StubEngine:
    """Answers the same for every photograph."""

    batch_pixels = 2**24

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Returns logits for `images` [B, H, W, C] uint8, after the stub's time."""
        count, height, width = images.shape[:3]
        run_stub(count)
        mask = np.broadcast_to(mask_logits(height, width)[..., None], (count, height // 8, width // 8, 1))
        return Logits(mask=mask, classes=np.tile(np.array(CLASS_LOGITS, np.float32), (count, 1)))


async def serve(port: int) -> None:
    """Serves on 127.0.0.1 until SIGTERM, once the stub is warm."""
    settings = Settings(model=Path(os.devnull))
    app = create_app(settings, Predictor(StubEngine(), TINY))
    with bind("127.0.0.1", port) as listener:
        async with app.router.lifespan_context(app):
            await app.state.service.start()
            await uvicorn.Server(make_uvicorn_config(app, settings)).serve(sockets=[listener])


if __name__ == "__main__":
    limit_opencv_threads()  # as the service's own entry point does
    uvloop.run(serve(int(sys.argv[1])))
