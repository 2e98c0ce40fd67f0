"""Model FLOPs: what a training step computes, as a number that no implementation changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from segdec.network.network import SegDecNet
from training.stages import Stage

PASSES = 3
"""Forward, gradient of the input, gradient of the weights: each as much as the first."""


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
        """`model_flops_per_s`, and `flop_utilisation`, their share of the peak."""
        rate = self.step_flops / s_per_step
        return {"model_flops_per_s": rate, "flop_utilisation": rate / self.peak_flops_per_s}


def count_step_flops(network: SegDecNet, stage: Stage, images: Sequence[int]) -> int:
    """FLOPs of a training step, by convention and not by what a device happens to do.

    Counted are the products of convolutions and dense layers, at the size of what each puts out, border
    included; a product and its addition are two FLOPs. A part that is trained counts three times, one that
    is held still once, one that the stage does not run not at all. Neither a first layer, which nobody
    asks for the gradient of its input, nor accumulation in parts is made an exception of.

    Args:
        network: The network in training.
        stage: Which parts are run and trained.
        images: Shape [B, H, W, C] of the global batch.
    """
    image = keras.KerasTensor(images)
    features, coarse_logits, _ = network.segmentation.compute_output_spec(image)
    flops = count_forward_flops(network.segmentation, image) * (PASSES if stage.trains_segmentation else 1)
    if stage.trains_decision:
        flops += count_forward_flops(network.decision, (features, coarse_logits)) * PASSES
    return flops


def count_forward_flops(model: keras.Model, inputs: Any) -> int:
    """FLOPs of one forward pass of a functional model whose input has the shape of `inputs`, symbolic."""
    layers = [layer for layer in model.layers if isinstance(layer, keras.layers.Conv2D | keras.layers.Dense)]
    outputs = keras.Model(model.input, [layer.output for layer in layers]).compute_output_spec(inputs)
    return sum(
        2 * math.prod(output.shape) * math.prod(layer.kernel.shape[:-1])  # what a value is summed from
        for layer, output in zip(layers, outputs, strict=True)
    )
