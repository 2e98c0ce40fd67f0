"""FLOPs of a training step, and the FLOP/s that the devices reach."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from segdec.network.encoder import PADDED
from segdec.network.network import SegDecNet, outputs_of_heads
from training.stages import Stage

PASSES = 3
"""Forward pass, gradient of the input, gradient of the weights: equal costs."""

PRODUCTS = (keras.layers.Conv2D, keras.layers.DepthwiseConv2D, keras.layers.Dense)

SIDES = {"CPU": 1024, "GPU": 8192}
"""Side of the matrices: large enough to use the whole device, multiplied in a few milliseconds."""

ROUNDS = 5
"""Number of timed products; the fastest counts."""


@dataclass(frozen=True)
class Workload:
    """Model FLOPs of a step (`count_step_flops`), and FLOP/s of all devices together in matrix products."""

    step_flops: int
    peak_flops_per_s: float

    def speed(self, s_per_step: float) -> Mapping[str, float]:
        """Returns `model_flops_per_s`, and `flop_utilisation`, the fraction of the peak."""
        rate = self.step_flops / s_per_step
        return {"model_flops_per_s": rate, "flop_utilisation": rate / self.peak_flops_per_s}


def count_step_flops(
    network: SegDecNet, stage: Stage, images: Sequence[int], *, encoded: bool = False
) -> int:
    """Counts the FLOPs of a training step for a global batch `images` [B, H, W, C], on any device.

    Counts the products of convolutions and dense layers for every output, also at the border; a product and
    its addition are two FLOPs. Frozen parts count once, trained parts three times, even first layers, which
    need no gradient of the input. `encoded` steps get features instead of images.
    """
    image = keras.KerasTensor(images)
    segmented = network.segmentation.compute_output_spec(image)
    outputs = outputs_of_heads(segmented)
    flops = _segmentation_flops(network, image, trained=stage.trains_segmentation, encoded=encoded)
    if stage.trains_decision:
        parts = zip(network.decisions, outputs, strict=True)
        flops += sum(count_flops(decide, tuple(inputs), trained=True) for decide, (*inputs, _) in parts)
    return flops


def _segmentation_flops(network: SegDecNet, image: Any, *, trained: bool, encoded: bool) -> int:
    encoder, backbone = network.encoder, network.backbone
    if encoder is None or backbone is None:
        return count_flops(network.segmentation, image, trained=trained)
    features = encoder.compute_output_spec(image)
    flops = sum(count_flops(head, features, trained=trained) for head in network.heads)
    if encoded:
        return flops
    expected = keras.Model(encoder.input, encoder.get_layer(PADDED).output).compute_output_spec(image)
    return flops + count_flops(backbone, expected, trained=trained)


def count_flops(model: keras.Model, inputs: Any, *, trained: bool = False) -> int:
    """Counts the FLOPs of a functional model for symbolic inputs: one pass, or three for trained layers."""
    layers = [layer for layer in model.layers if isinstance(layer, PRODUCTS)]
    outputs = keras.Model(model.input, [layer.output for layer in layers]).compute_output_spec(inputs)
    return sum(
        2 * math.prod(output.shape) * _products(layer) * (PASSES if trained and layer.trainable else 1)
        for layer, output in zip(layers, outputs, strict=True)
    )


def _products(layer: keras.layers.Layer) -> int:
    """Number of products per output value."""
    by_channel = isinstance(layer, keras.layers.DepthwiseConv2D)
    return math.prod(layer.kernel.shape[: 2 if by_channel else -1])


def measure_strategy_peak(strategy: tf.distribute.Strategy, workers: int, dtype: str) -> float:
    """Measures the FLOP/s of all devices of a run on one of them, assuming equal machines.

    Logical CPU devices share one CPU and count once per process.
    """
    devices = strategy.extended.worker_devices
    on_gpus = "GPU" in devices[0]
    count = workers * (len(devices) if on_gpus else 1)
    return count * measure_peak_flops("GPU:0" if on_gpus else "CPU:0", dtype)


def measure_peak_flops(device: str, dtype: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """Measures the FLOP/s of the fastest of several matrix products on a logical device, in about 0.1 s."""
    side = SIDES["GPU" if "GPU" in device else "CPU"]
    with tf.device(device):
        matrix = tf.fill((side, side), tf.cast(1.0 / side, dtype))  # equals its own square

        @tf.function
        def multiply() -> tf.Tensor:
            return tf.reduce_max(tf.matmul(matrix, matrix))

        float(multiply())  # traces, and starts the threads
        durations_s = []
        for _ in range(ROUNDS):
            began = clock()
            float(multiply())  # waits for the device
            durations_s.append(clock() - began)
    return float(2.0 * side**3 / min(durations_s))
