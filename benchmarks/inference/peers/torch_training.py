"""The training step with PyTorch, `eager` or `channels_last`: both losses, backward, Adam.

python -m benchmarks.inference.peers.torch_training FOLDER VARIANT
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from benchmarks.inference.peers.answering import Work, answer_requests
from benchmarks.inference.peers.torch_network import STRIDE, load_network

EPSILON = 1e-7
"""Of Adam, as in Keras."""


def prepare(folder: Path, variant: str) -> tuple[Work, str]:
    """Prepares the step on the batch of `batch.npz`."""
    network = load_network(
        folder, torch.channels_last if variant == "channels_last" else torch.contiguous_format
    ).train()
    experiment = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    with np.load(folder / "batch.npz") as arrays:
        batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
    optimizer = torch.optim.Adam(
        network.parameters(), experiment["stages"]["joint"]["learning_rate"], eps=EPSILON
    )
    positive_weight = torch.tensor(experiment["target"]["positive_weight"])

    def mask_loss(logits: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy_with_logits(logits, share, pos_weight=positive_weight)

    def step() -> Mapping[str, float]:
        optimizer.zero_grad(set_to_none=True)
        coarse_logits, mask_logits, class_logits = network.logits(batch["image"])
        share = batch["target"].permute(0, 3, 1, 2)
        coarse_share = functional.avg_pool2d(share, STRIDE // network.config["mask_stride"])
        segmentation = 0.5 * (mask_loss(mask_logits, share) + mask_loss(coarse_logits, coarse_share))
        loss = segmentation + functional.cross_entropy(class_logits, batch["label"])
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    return step, f"torch {torch.__version__}"


if __name__ == "__main__":
    answer_requests(lambda: prepare(Path(sys.argv[1]), sys.argv[2]))
