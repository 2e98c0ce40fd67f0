"""Inference of `network.onnx` with ONNX Runtime as it comes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, answer_inferences


def load(folder: Path, variant: str) -> tuple[Callable[[NDArray[np.uint8]], Answer], str]:  # noqa: ARG001
    """Loads a session on the CPU."""
    session = onnxruntime.InferenceSession(folder / "network.onnx", providers=["CPUExecutionProvider"])

    def infer(images: NDArray[np.uint8]) -> Answer:
        mask, classes = session.run(["mask_logits", "class_logits"], {"images": images})
        return mask, classes

    return infer, f"onnxruntime {onnxruntime.__version__}"


if __name__ == "__main__":
    answer_inferences(load)
