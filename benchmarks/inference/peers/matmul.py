"""The machine's float32 peak as far as a matrix product reaches it, with NumPy or PyTorch.

python -m benchmarks.inference.peers.matmul numpy|torch
"""

import sys
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.inference.peers.answering import Work, answer_requests

SIDE = 3072
FLOP = 2 * SIDE**3


def prepare(library: str) -> tuple[Work, str]:
    """Prepares the product of two square matrices."""
    sides = np.random.default_rng(0).random((2, SIDE, SIDE), np.float32)
    multiply, version = PRODUCTS[library](*sides)

    def work() -> Mapping[str, float]:
        multiply()
        return {}

    return work, version


def _with_numpy(left: np.ndarray, right: np.ndarray) -> tuple[Callable[[], object], str]:
    return lambda: left @ right, f"numpy {np.__version__}"


def _with_torch(left: np.ndarray, right: np.ndarray) -> tuple[Callable[[], object], str]:
    import torch

    a, b = torch.from_numpy(left), torch.from_numpy(right)
    return lambda: a @ b, f"torch {torch.__version__}"


PRODUCTS = {"numpy": _with_numpy, "torch": _with_torch}

if __name__ == "__main__":
    answer_requests(lambda: prepare(sys.argv[1]))
