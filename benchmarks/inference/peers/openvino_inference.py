"""Inference of `network.onnx` with OpenVINO: its own conversion, built for the size of the images."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, answer_inferences

EXACT = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
"""Of itself OpenVINO computes in bfloat16 where the CPU has it."""


def load(folder: Path, variant: str) -> tuple[Callable[[NDArray[np.uint8]], Answer], str]:  # noqa: ARG001
    """Loads a model that is compiled when the first images come."""
    core = openvino.Core()
    model = core.read_model(folder / "network.onnx")
    compiled = {}

    def infer(images: NDArray[np.uint8]) -> Answer:
        if images.shape not in compiled:
            model.reshape(images.shape)
            compiled[images.shape] = core.compile_model(model, "CPU", EXACT)
        answer = compiled[images.shape](images)
        return answer["mask_logits"], answer["class_logits"]

    return infer, f"openvino {openvino.__version__}"


if __name__ == "__main__":
    answer_inferences(load)
