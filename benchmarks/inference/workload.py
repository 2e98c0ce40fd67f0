"""What the competitors compute: one network, written for each of them, and images.

    python -m benchmarks.inference.workload FOLDER (--network JSON | --run RUN) [--engines ENGINE …]
        [--plain ENGINE …]

A process of its own, so that TensorFlow takes no memory and no threads while others are measured. Without a
finished run the network is a `NetworkConfig` with random weights: what it has learned costs no time. Its
normalisation is made to fit the photographs, so that all of its layers carry signals and a fault in one shows
in the logits.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import peer_program, run_command
from benchmarks.untrained_models import export_network, photograph
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.encoders import SEGDECNET
from segdec.images import decode_image
from segdec.runtime.cli import clean_exit, import_tensorflow

REQUIREMENTS = Path(__file__).parent / "peers" / "inference.txt"
DESCRIPTION, IMAGES = "network.json", "images.npy"
CALIBRATION = (4, 704, 256)
"""Photographs that int8 is calibrated with: [B, H, W]."""
FITTING_SIDE = 128


def write_workload(
    folder: Path,
    network: NetworkConfig,
    engines: Sequence[str] = (),
    *,
    plain: Sequence[str] = (),
    run: Path | None = None,
) -> NetworkConfig:
    """Writes `network.json` and `weights.npz`; with `engines` an artifact, and `network.onnx` for peers.

    Args:
        folder: Where to.
        network: Shape of the network.
        engines: Ours.
        plain: Those of which the plain conversions are written too, see `plain_conversion`.
        run: A finished run, whose network takes the place of `network`.

    Returns:
        Shape of the network that was written.

    Raises:
        RunError: If one cannot be written.
    """
    source = ("--run", str(run)) if run else ("--network", network.model_dump_json())
    words = (str(folder), *source, "--engines", *engines, "--plain", *plain)
    run_command(sys.executable, "-m", "benchmarks.inference.workload", *words)
    written = NetworkConfig.model_validate_json((folder / DESCRIPTION).read_text(encoding="utf-8"))
    if engines and peers_know(written):
        run_command(peer_program(REQUIREMENTS), "-m", "benchmarks.inference.peers.onnx_export", str(folder))
    return written


def peers_know(network: NetworkConfig) -> bool:
    """Whether the peers' network can be one of this shape, see `peers.torch_network`."""
    mask = network.mask_normalization, network.mask_activation
    if network.encoder != SEGDECNET:
        return False
    return network.normalization in ("batch", "instance") and mask == ("none", "sigmoid")


def write_images(folder: Path, shape: tuple[int, int, int]) -> None:
    """Writes a batch of photographs, uint8 [B, H, W, 1], for the shape [B, H, W]."""
    np.save(folder / IMAGES, photographs(*shape))


def photographs(batch: int, height: int, width: int) -> NDArray[np.uint8]:
    """Returns grey photographs, all different, uint8 [B, H, W, 1]."""
    pictures = [
        decode_image(photograph(height, width, seed), "photograph").pixels.reshape(height, width, 1)
        for seed in range(batch)
    ]
    return np.stack(pictures)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the files of our side."""
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

            calibration = list(photographs(*CALIBRATION))
            write_plain_conversions(network, options.folder, options.plain, calibration)
        text = network.config.model_dump_json()
        (options.folder / DESCRIPTION).write_text(text, encoding="utf-8")
        weights: dict[str, Any] = named_weights(network)
        np.savez(options.folder / "weights.npz", **weights)


def write_trained(artifact: Path, run: Path, engines: Sequence[str]) -> Any:
    """Writes the network of a finished run, and its artifact as a user exports it."""
    from training.run.folder import RunFolder

    if engines:
        words = ("export", str(run), str(artifact), "--engines", *engines)
        run_command(sys.executable, "-m", "training", *words)
    return RunFolder.finished(run).network()


def write_untrained(artifact: Path, config: NetworkConfig, engines: Sequence[str]) -> Any:
    """Writes a network of random weights, and its artifact."""
    network = build_signalling_network(config)
    if engines:
        model = ModelConfig(network=config, input=InputConfig(), classes=("good", "defect"))
        calibration = list(photographs(*CALIBRATION))
        export_network(network, model, artifact, name="benchmark", engines=engines, calibration=calibration)
    return network


def build_signalling_network(config: NetworkConfig) -> Any:
    """Builds a network of seeded weights whose moving statistics are those of the photographs."""
    import keras

    from segdec.network.network import build_network

    keras.utils.set_random_seed(0)
    network, random = build_network(config), np.random.default_rng(0)
    for layer in _layers(network):
        if hasattr(layer, "gamma"):
            layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
        if getattr(layer, "beta", None) is not None:
            layer.beta.assign(random.normal(0.0, 0.3, layer.beta.shape))
        if hasattr(layer, "momentum"):
            layer.momentum = 0.0  # the moving statistics become those of the next batch
    network(photographs(2, FITTING_SIDE, FITTING_SIDE), training=True)
    return network


def named_weights(network: Any) -> dict[str, NDArray[np.float32]]:
    """Returns the weights as `layer/variable` → array."""
    return {
        f"{layer.name}/{weight.name}": np.asarray(weight)
        for layer in _layers(network)
        for weight in layer.weights
    }


def set_weights(network: Any, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Gives a network what `named_weights` took from one of the same shape."""
    for layer in _layers(network):
        for weight in layer.weights:
            weight.assign(weights[f"{layer.name}/{weight.name}"])


def _layers(network: Any) -> list[Any]:
    from segdec.network.layers import all_layers

    return list(all_layers(network))


if __name__ == "__main__":
    main()
