"""Inference with one of our engines, in the project's own environment."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, answer_inferences
from segdec.engines import ENGINES
from segdec.predictor import Predictor
from segdec.runtime.cli import import_tensorflow


def load(folder: Path, variant: str) -> tuple[Callable[[NDArray[np.uint8]], Answer], str]:
    """Loads the engine `variant` of the artifact; TensorFlow is loaded for its own engines only."""
    library = ENGINES[variant].package
    if library == "tensorflow":
        import_tensorflow()
    predictor = Predictor.load(folder / "artifact", variant)

    def infer(images: NDArray[np.uint8]) -> Answer:
        logits = predictor.engine.infer(images)
        return logits.mask, logits.classes

    return infer, "; ".join([f"{library} {version(library)}", *predictor.notes])


if __name__ == "__main__":
    answer_inferences(load)
