"""The stub on BentoML; a photograph comes as a form's file."""

from pathlib import Path
from typing import Any

import bentoml

from benchmarks.serving.peers.work import inspect, max_batch

BATCHING = {"batchable": True, "max_batch_size": max_batch()} if max_batch() > 1 else {}


@bentoml.service(workers=1, logging={"access": {"enabled": False}})
class Inspection:
    """One worker, as by default."""

    @bentoml.api(**BATCHING)
    def predict(self, images: list[Path]) -> list[dict[str, Any]]:
        """Does the whole inspection."""
        return inspect([image.read_bytes() for image in images])
