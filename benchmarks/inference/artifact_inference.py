"""Inference with an engine of an exported artifact."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, Infer, answer_inferences
from segdec.engines import ENGINES
from segdec.predictor import Predictor
from segdec.runtime.cli import import_tensorflow


def load(folder: Path, engine: str) -> tuple[Infer, str]:
    """Loads an engine of the artifact; imports TensorFlow only for its own engines."""
    library = ENGINES[engine].package
    if library == "tensorflow":
        import_tensorflow()
    predictor = Predictor.load(folder / "artifact", engine)

    def infer(images: NDArray[np.uint8]) -> Answer:
        logits = predictor.engine.infer(images)
        return logits.mask, logits.classes

    return infer, "; ".join([f"{library} {version(library)}", *predictor.notes])


if __name__ == "__main__":
    answer_inferences(load)
