"""Writes what the competitors compute: one network in the format of each, and images.

    python -m benchmarks.inference.workload FOLDER (--network JSON | --run RUN) [--engines …] [--plain …]

It runs in its own process, so that TensorFlow takes no memory and threads during the measurement. Without a
finished run the weights are random. Normalisation statistics then come from the photographs, so that all
layers carry signals and an error in one of them shows in the logits.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import run_command
from benchmarks.untrained_models import export_network, photograph
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.encoders import SEGDECNET
from segdec.images import decode_image
from segdec.runtime.cli import clean_exit, import_tensorflow

DESCRIPTION, IMAGES = "network.json", "images.npy"
CALIBRATION = (4, 704, 256)
"""Photographs for the calibration of int8: [B, H, W]."""
STATISTICS_SIDE = 128


def write_workload(
    folder: Path,
    network: NetworkConfig,
    engines: Sequence[str],
    plain: Sequence[str],
    run: Path | None = None,
) -> NetworkConfig:
    """Writes `network.json`, `weights.npz`, an artifact and plain conversions, in a process of its own.

    Returns the configuration of the network: that of `run`, a finished run, replaces `network`.

    Raises:
        RunError: If the process fails.
    """
    source = ("--run", str(run)) if run else ("--network", network.model_dump_json())
    words = (str(folder), *source, "--engines", *engines, "--plain", *plain)
    run_command(sys.executable, "-m", "benchmarks.inference.workload", *words)
    return NetworkConfig.model_validate_json((folder / DESCRIPTION).read_text(encoding="utf-8"))


def peers_support(network: NetworkConfig) -> bool:
    """Whether `peers.torch_network` can build this network."""
    mask = network.mask_normalization, network.mask_activation
    if network.encoder != SEGDECNET:
        return False
    return network.normalization in ("batch", "instance") and mask == ("none", "sigmoid")


def photographs(batch: int, height: int, width: int) -> NDArray[np.uint8]:
    """Returns different grey photographs, uint8 [B, H, W, 1]."""
    files = [photograph(height, width, seed) for seed in range(batch)]
    return np.stack([decode_image(data, "photograph").pixels.reshape(height, width, 1) for data in files])


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--network", type=NetworkConfig.model_validate_json)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--engines", nargs="*", default=[])
    parser.add_argument("--plain", nargs="*", default=[])
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        import_tensorflow()
        options.folder.mkdir(parents=True, exist_ok=True)
        write = write_trained if options.run else write_untrained
        network = write(options.folder / "artifact", options.run or options.network, options.engines)
        if options.plain:
            from benchmarks.inference.plain_conversion import write_plain_conversions

            write_plain_conversions(network, options.folder, options.plain, list(photographs(*CALIBRATION)))
        text = network.config.model_dump_json()
        (options.folder / DESCRIPTION).write_text(text, encoding="utf-8")
        weights: dict[str, Any] = named_weights(network)
        np.savez(options.folder / "weights.npz", **weights)


def write_trained(artifact: Path, run: Path, engines: Sequence[str]) -> Any:
    """Exports a finished run as a user does; returns its network."""
    from training.run.folder import RunFolder

    run_command(sys.executable, "-m", "training", "export", str(run), str(artifact), "--engines", *engines)
    return RunFolder.finished(run).network()


def write_untrained(artifact: Path, config: NetworkConfig, engines: Sequence[str]) -> Any:
    """Exports a network with random weights; returns it."""
    network = build_untrained(config)
    model = ModelConfig(network=config, input=InputConfig(), classes=("good", "defect"))
    calibration = list(photographs(*CALIBRATION))
    export_network(network, model, artifact, name="benchmark", engines=engines, calibration=calibration)
    return network


def build_untrained(config: NetworkConfig) -> Any:
    """Builds a network with seeded weights; its moving statistics are those of photographs."""
    import keras

    from segdec.network.layers import all_layers
    from segdec.network.network import build_network

    keras.utils.set_random_seed(0)
    network, random = build_network(config), np.random.default_rng(0)
    for layer in all_layers(network):
        if getattr(layer, "gamma", None) is not None:
            layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
        if getattr(layer, "beta", None) is not None:
            layer.beta.assign(random.normal(0.0, 0.3, layer.beta.shape))
        if hasattr(layer, "momentum"):
            layer.momentum = 0.0  # the moving statistics become those of the next batch
    network(photographs(2, STATISTICS_SIDE, STATISTICS_SIDE), training=True)
    return network


def named_weights(network: Any) -> dict[str, NDArray[np.float32]]:
    """Returns the weights as `layer/variable` → array."""
    from segdec.network.layers import all_layers

    return {
        f"{layer.name}/{weight.name}": np.asarray(weight)
        for layer in all_layers(network)
        for weight in layer.weights
    }


if __name__ == "__main__":
    main()
