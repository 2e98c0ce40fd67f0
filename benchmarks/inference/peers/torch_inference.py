"""Inference with PyTorch in eager mode."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, answer_inferences
from benchmarks.inference.peers.torch_network import load_network


def load(folder: Path, variant: str) -> tuple[Callable[[NDArray[np.uint8]], Answer], str]:  # noqa: ARG001
    """Loads the network."""
    network = load_network(folder).eval()

    def infer(images: NDArray[np.uint8]) -> Answer:
        with torch.inference_mode():
            mask, classes = network(torch.from_numpy(images))
        return mask.numpy(), classes.numpy()

    return infer, f"torch {torch.__version__}"


if __name__ == "__main__":
    answer_inferences(load)
