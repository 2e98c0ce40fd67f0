"""Inference with PyTorch: `eager`, `compile` or `channels_last`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, answer_inferences
from benchmarks.inference.peers.torch_network import load_network


def load(folder: Path, variant: str) -> tuple[Callable[[NDArray[np.uint8]], Answer], str]:
    """Loads the network as that variant runs it."""
    channels_last = variant == "channels_last"
    network = load_network(folder, torch.channels_last if channels_last else torch.contiguous_format).eval()
    run = torch.compile(network) if variant == "compile" else network

    def infer(images: NDArray[np.uint8]) -> Answer:
        with torch.inference_mode():
            mask, classes = run(torch.from_numpy(images))
        return mask.numpy(), classes.numpy()

    return infer, f"torch {torch.__version__}"


if __name__ == "__main__":
    answer_inferences(load)
