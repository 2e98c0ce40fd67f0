"""The staged train operations: which part of the network moves, and on which loss."""

from dataclasses import dataclass
from typing import Any

from segdec.network.network import SegDecNet


@dataclass(frozen=True)
class Stage:
    """One train operation.

    A part that is not trained runs in inference mode: neither its weights nor its moving statistics
    change by a bit.

    Attributes:
        name: Field of `StagesConfig` that holds the stage's settings.
        trains_segmentation: Whether the segmentation network and its loss take part.
        trains_decision: Whether the decision network and its loss take part.
    """

    name: str
    trains_segmentation: bool
    trains_decision: bool

    def trainable_variables(self, network: SegDecNet) -> list[Any]:
        """Returns the variables that the stage's optimiser owns."""
        variables: list[Any] = []
        if self.trains_segmentation:
            variables += network.segmentation.trainable_variables
        if self.trains_decision:
            variables += network.decision.trainable_variables
        return variables

    def trainable_kernels(self, network: SegDecNet) -> list[Any]:
        """Returns those of convolutions and dense layers alone: neither scales nor offsets nor biases."""
        return [variable for variable in self.trainable_variables(network) if is_kernel(variable)]


def is_kernel(variable: Any) -> bool:
    """Returns whether a variable is what a convolution or a dense layer multiplies with."""
    return bool(variable.name == "kernel")


STAGES = (
    Stage("segment", trains_segmentation=True, trains_decision=False),
    Stage("decision", trains_segmentation=False, trains_decision=True),
    Stage("joint", trains_segmentation=True, trains_decision=True),
)
