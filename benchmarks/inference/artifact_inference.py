"""Inference with an engine of an exported artifact, loaded for the size of the images."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, Infer, answer_inferences
from benchmarks.inference.workload import IMAGES
from segdec.engines import ENGINES
from segdec.runtime.cli import import_tensorflow


def load(folder: Path, engine: str) -> tuple[Infer, str]:
    """Loads an engine of the artifact; imports TensorFlow only for its own engines."""
    library = ENGINES[engine].package
    if library == "tensorflow":
        import_tensorflow()
    _, height, width, _ = np.load(folder / IMAGES, mmap_mode="r").shape
    loaded = ENGINES[engine].load(folder / "artifact" / engine, size=(height, width))

    def infer(images: NDArray[np.uint8]) -> Answer:
        logits = loaded.infer(images)
        return logits.mask, logits.classes

    return infer, "; ".join([f"{library} {version(library)}", *getattr(loaded, "notes", ())])


if __name__ == "__main__":
    answer_inferences(load)
