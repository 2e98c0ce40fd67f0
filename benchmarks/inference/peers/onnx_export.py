"""Writes the PyTorch network as `network.onnx`, for any batch and image size.

python -m benchmarks.inference.peers.onnx_export FOLDER
"""

import sys
from pathlib import Path

import torch

from benchmarks.inference.peers.torch_network import load_network

OPEN = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC}


def main(folder: Path) -> None:
    """Exports with weights and trained statistics as constants."""
    network = load_network(folder).eval()
    images = torch.zeros((2, 64, 96, network.config["input_channels"]), dtype=torch.uint8)
    torch.onnx.export(
        network,
        (images,),
        folder / "network.onnx",
        input_names=["images"],
        output_names=["mask_logits", "class_logits"],
        dynamic_shapes=(OPEN,),
        external_data=False,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
