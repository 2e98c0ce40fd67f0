"""FLOPs: what a training step computes by convention, and how many a second the devices reach."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from segdec.network.encoder import PADDED
from segdec.network.network import SegDecNet
from training.stages import Stage

PASSES = 3
"""Forward, gradient of the input, gradient of the weights: each as much as the first."""

PRODUCTS = (keras.layers.Conv2D, keras.layers.DepthwiseConv2D, keras.layers.Dense)

SIDES = {"CPU": 1024, "GPU": 8192}
"""Rows and columns of the matrices: enough to keep the device busy, done in a few milliseconds."""

ROUNDS = 5
"""Products that are timed; the fastest counts, for what slows a round is other work."""


@dataclass(frozen=True)
class Workload:
    """What a step computes, and what the machine could.

    Attributes:
        step_flops: Model FLOPs of a step, see `count_step_flops`.
        peak_flops_per_s: What all devices together reach in matrix products.
    """

    step_flops: int
    peak_flops_per_s: float

    def speed(self, s_per_step: float) -> Mapping[str, float]:
        """Returns `model_flops_per_s`, and `flop_utilisation`, their fraction of the peak."""
        rate = self.step_flops / s_per_step
        return {"model_flops_per_s": rate, "flop_utilisation": rate / self.peak_flops_per_s}


def count_step_flops(
    network: SegDecNet, stage: Stage, images: Sequence[int], *, encoded: bool = False
) -> int:
    """Counts the FLOPs of a training step, by convention and not by what a device happens to do.

    Counted are the products of convolutions and dense layers, at the size of what each puts out, border
    included; a product and its addition are two FLOPs. A part that is trained counts three times, one that
    is held still once, one that the stage does not run not at all. Neither a first layer, which nobody
    asks for the gradient of its input, nor accumulation in parts is made an exception of.

    Args:
        network: The network in training.
        stage: Which parts are run and trained.
        images: Shape [B, H, W, C] of the global batch.
        encoded: Whether the step is given the features of an encoder in place of the images.
    """
    image = keras.KerasTensor(images)
    features, coarse_logits, _ = network.segmentation.compute_output_spec(image)
    flops = _segmentation_flops(network, image, trained=stage.trains_segmentation, encoded=encoded)
    if stage.trains_decision:
        flops += count_flops(network.decision, (features, coarse_logits), trained=True)
    return flops


def _segmentation_flops(network: SegDecNet, image: Any, *, trained: bool, encoded: bool) -> int:
    encoder, backbone, head = network.encoder, network.backbone, network.head
    if encoder is None or backbone is None or head is None:
        return count_flops(network.segmentation, image, trained=trained)
    flops = count_flops(head, encoder.compute_output_spec(image), trained=trained)
    if encoded:
        return flops
    expected = keras.Model(encoder.input, encoder.get_layer(PADDED).output).compute_output_spec(image)
    return flops + count_flops(backbone, expected, trained=trained)


def count_flops(model: keras.Model, inputs: Any, *, trained: bool = False) -> int:
    """Counts the FLOPs of a functional model on inputs of these shapes, symbolic ones: forwards, or trained.

    A layer that is held still counts as forwards.
    """
    layers = [layer for layer in model.layers if isinstance(layer, PRODUCTS)]
    outputs = keras.Model(model.input, [layer.output for layer in layers]).compute_output_spec(inputs)
    return sum(
        2 * math.prod(output.shape) * _products(layer) * (PASSES if trained and layer.trainable else 1)
        for layer, output in zip(layers, outputs, strict=True)
    )


def _products(layer: keras.layers.Layer) -> int:
    """What a value is summed from."""
    by_channel = isinstance(layer, keras.layers.DepthwiseConv2D)
    return math.prod(layer.kernel.shape[: 2 if by_channel else -1])


def measure_strategy_peak(strategy: tf.distribute.Strategy, workers: int, dtype: str) -> float:
    """Measures the FLOP/s of all devices of a run by one of them; the machines are taken to be alike.

    Logical CPU devices lie on one CPU, so however many there are, they count once a process.

    Args:
        strategy: Names the devices.
        workers: Number of processes that compute gradients.
        dtype: See `measure_peak`.
    """
    devices = strategy.extended.worker_devices
    on_gpus = "GPU" in devices[0]
    alike = workers * (len(devices) if on_gpus else 1)
    return alike * measure_peak("GPU:0" if on_gpus else "CPU:0", dtype)


def measure_peak(device: str, dtype: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """Measures the FLOP/s of the best product of two square matrices; takes about a tenth of a second.

    Args:
        device: Name of a logical device. A CPU computes with all threads of the process, whichever of its
            logical devices is named.
        dtype: Of the matrices.
        clock: Seconds.
    """
    side = SIDES["GPU" if "GPU" in device else "CPU"]
    with tf.device(device):
        matrix = tf.fill((side, side), tf.cast(1.0 / side, dtype))  # products of it stay what it is

        @tf.function
        def multiply() -> tf.Tensor:
            return tf.reduce_max(tf.matmul(matrix, matrix))

        float(multiply())  # traces, and brings the threads up
        durations_s = [_time(multiply, clock) for _ in range(ROUNDS)]
    return float(2.0 * side**3 / min(durations_s))


def _time(multiply: Callable[[], tf.Tensor], clock: Callable[[], float]) -> float:
    began = clock()
    float(multiply())  # waits for the device
    return clock() - began
