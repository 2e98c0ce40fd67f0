"""Who takes part: our engines, the peers, and matrix products that tell the machine's peak."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environments import peer_program
from benchmarks.inference.competitor import Competitor
from benchmarks.inference.plain_conversion import plain_counterpart
from benchmarks.inference.workload import IMAGES, REQUIREMENTS

EAGER = "PyTorch eager"
PEERS = {
    EAGER: ("torch_inference", "eager"),
    "PyTorch compile": ("torch_inference", "compile"),
    "PyTorch channels_last": ("torch_inference", "channels_last"),
    "ONNX Runtime": ("onnxruntime_inference", "float32"),
    "OpenVINO": ("openvino_inference", "float32"),
}
"""Module and variant of each; all compute in float32."""
PUBLISHED_EAGER = f"{EAGER}, published network"
"""Stands beside networks that the peers do not know."""
PRODUCTS = {"matrix product, NumPy": "numpy", "matrix product, PyTorch": "torch"}


def engine_name(engine: str) -> str:
    """Returns the name of one of our engines in the tables."""
    return f"segdec {engine}"


def plain_name(engine: str) -> str:
    """Returns the name in the tables of the plain conversion that stands beside one of our engines."""
    return f"plain {plain_counterpart(engine)}"


def inference_competitors(
    folder: Path, engines: Sequence[str], peers: Sequence[str], plain: Sequence[str] = ()
) -> dict[str, Competitor]:
    """Returns the competitors by name; each leaves its logits in the file `logits_file` names.

    Args:
        folder: Of the workload and its images.
        engines: Ours.
        peers: Names in `PEERS`.
        plain: Engines whose plain conversions take part.
    """
    ours = (sys.executable, "-m", "benchmarks.inference.artifact_inference")
    commands: dict[str, tuple[str, ...]] = {
        engine_name(engine): (*ours, str(folder), engine) for engine in engines
    }
    for peer in peers:
        module, variant = PEERS[peer]
        commands[peer] = (*peer_module(module), str(folder), variant)
    converted = (sys.executable, "-m", "benchmarks.inference.plain_conversion")
    for engine in plain:
        commands[plain_name(engine)] = (*converted, str(folder), engine)
    return {
        name: Competitor([*command, str(folder / IMAGES), str(logits_file(folder, name))])
        for name, command in commands.items()
    }


def published_competitor(folder: Path, images: Path) -> dict[str, Competitor]:
    """Returns PyTorch eager by its name, with the published network on the images of another workload.

    Args:
        folder: Of the published network's workload.
        images: File of the images.
    """
    module, variant = PEERS[EAGER]
    words = (str(folder), variant, str(images), str(logits_file(folder, PUBLISHED_EAGER)))
    return {PUBLISHED_EAGER: Competitor([*peer_module(module), *words])}


def matrix_products() -> dict[str, Competitor]:
    """Returns the same product with each library."""
    return {name: Competitor([*peer_module("matmul"), library]) for name, library in PRODUCTS.items()}


def logits_file(folder: Path, competitor: str) -> Path:
    """Returns where a competitor leaves its logits."""
    return folder / f"logits of {competitor}.npz"


def peer_module(module: str) -> tuple[str, ...]:
    """Returns the command that runs a module of `peers` in the peers' environment."""
    return (peer_program(REQUIREMENTS), "-m", f"benchmarks.inference.peers.{module}")
